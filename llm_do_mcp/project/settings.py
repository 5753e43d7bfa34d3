"""What both a worker and the manifest can set, and how the manifest's settings reach the worker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from llm_do_mcp.project.checked import Checked, Count, Flag, Model, Text, TextOrTexts, Texts, keys_of, nearest, quoted
from llm_do_mcp.project.commandline import BadCommand, pattern
from llm_do_mcp.project.names import file_tool, slug
from llm_do_mcp.sandbox import patterns
from llm_do_mcp.sandbox.names import BadName
from llm_do_mcp.sandbox.root import Mode


def _suffix(text: str) -> str:
    if not text.startswith(".") or "/" in text:
        raise ValueError(f"{quoted(text)} is not a suffix; write it with its dot, such as '.md'")
    return text.lower()


def _empty(value: Any) -> Any:
    """A key with nothing behind it asks for the defaults."""
    return {} if value is None else value


def _switched_on(value: Any) -> Any:
    """A key with nothing behind it, or with no settings, asks for what it names."""
    return True if value is None or value == {} else value


def _models(value: Any) -> Any:
    """`model: null`, which programs write where there is none, names none."""
    return [] if value is None else value


ModelNames = Annotated[TextOrTexts, BeforeValidator(_models)]
"""A model, or a list of a model and its fallbacks."""

ATTACHMENTS = "attachments"
"""The alias under which a worker finds the files that were attached to its call."""

Suffixes = tuple[Annotated[Text, AfterValidator(_suffix)], ...]
NotNegative = Annotated[int, Field(strict=True, ge=0)]


class PathSettings(Checked):
    """One alias of a sandbox. `ro:./input` is short for `{root: ./input, mode: ro}`.

    Only a worker that changes something of an alias of the manifest's can leave `root` out.
    """

    root: Text = ""
    mode: Mode = "ro"
    suffixes: Suffixes | None = None
    max_file_bytes: Count | None = None
    read_approval: Flag = False
    write_approval: Flag | None = None

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        mode, colon, root = value.partition(":")
        if not colon or not root or mode not in get_args(Mode):
            raise ValueError(f"{quoted(value)} is not of the form mode:folder, such as 'ro:./input' (ro, rw or out)")
        return {"root": root, "mode": mode}


def _alias(text: str) -> str:
    name = slug(text)
    if not name:
        raise ValueError(f"alias {quoted(text)} has no letter or digit")
    if name == ATTACHMENTS:
        raise ValueError(f"alias {name!r} is where a worker finds its attachments; choose another")
    return name


class SandboxSettings(Checked):
    """The folders that a worker can reach, by alias (as a slug), and whether it may reach the network.

    Of two aliases that are one as slugs, which `roots.problems` tells of, the last is here.
    """

    paths: dict[Annotated[Text, AfterValidator(_alias)], PathSettings] = Field(default_factory=dict)
    network_enabled: Flag | None = None


class AttachmentPolicy(Checked):
    """Which files may be attached to a call; an empty list of allowed suffixes allows every suffix."""

    allowed_suffixes: Suffixes = ()
    denied_suffixes: Suffixes = ()
    max_attachments: NotNegative = 4
    max_total_bytes: NotNegative = 10_000_000


USUAL_LIMITS: Mapping[str, int] = {
    "timeout_s": 3600,
    "max_turns": 200,
    "max_tool_calls": 1000,
    "max_tokens": 5_000_000,
    "max_depth": 5,
}
"""What holds of the keys of `Limits` that nobody sets."""


class Limits(Checked):
    """Limits of a run and all below it; for what is not set there are `USUAL_LIMITS`."""

    timeout_s: Annotated[float, Field(strict=True, gt=0)] | None = None
    max_turns: Count | None = None
    max_tool_calls: Count | None = None
    max_tokens: Count | None = None
    max_cost: Annotated[float, Field(strict=True, gt=0)] | None = None
    max_depth: Count | None = None


class ApprovalRule(Checked):
    """What a function may do without a person.

    `function` is a canonical name or glob (`files.write`, `custom.*`); `subject` a pattern on what the call is done to
    (a worker's id, a command, a path `alias/relative`: `notes/*.md` is not `notes/a/b.md`, `notes/**` is; `*` is any);
    `caller` restricts the rule to clients or workers.
    """

    function: Text
    decision: Literal["allow", "ask", "deny"]
    subject: Text | None = None
    caller: Literal["client", "worker"] | None = None

    @model_validator(mode="after")
    def _can_match(self) -> ApprovalRule:
        if self.subject is not None and (named := file_tool(self.function)) is not None:
            function, alias = named
            instead = f"write `function: {function}` and `subject: {alias}/…`"
            raise ValueError(f"{self.function} is of one folder already; for some of its files {instead}")
        if self.subject not in (None, "*") and self.function.startswith("files."):
            assert self.subject is not None
            try:
                patterns.parse_aliased(self.subject)
            except BadName as error:
                raise ValueError(f"subject {quoted(self.subject)}: {error}; write alias/pattern") from None
        return self


class ToolRule(Checked):
    """What a worker's `tool_rules` say of one function. `name` repeats the rule's key, `description` is for readers."""

    allowed: Flag = True
    approval_required: Flag | None = None
    name: Text | None = None
    description: Text | None = None


def _rules_by_name(rules: dict[str, ToolRule]) -> dict[str, ToolRule]:
    for key, rule in rules.items():
        if rule.name not in (None, key):
            raise ValueError(f"the rule under {quoted(key)} is named {quoted(rule.name)}; the key is what counts")
    return rules


ToolRules = Annotated[dict[Text, ToolRule], AfterValidator(_rules_by_name)]


class PreApproval(Checked):
    """What `_approval_config` says of one function of a toolset."""

    pre_approved: Flag = False


class Toolset(Checked):
    """What every toolset can be given."""

    approval_config: dict[Text, PreApproval] = Field(default_factory=dict, alias="_approval_config")


def _created(value: Any) -> Any:
    """`worker_create: true`, or `false`, or with nothing behind it, as what it is short for."""
    match value:
        case None:
            return {}
        case bool():
            return {"enabled": value}
        case Mapping():
            return value
        case _:
            raise ValueError("must be true or false")


class WorkerCreation(Checked):
    """Whether new workers may be made.

    They are kept for the session, in a folder of its own. `output_dir`, which once said where, changes nothing, and
    `check` says so.
    """

    enabled: Flag = True
    output_dir: Text | None = None


class Delegation(Toolset):
    """Calls of other workers, and whether new ones may be made, which `allow_workers: ['*']` says as well.

    `allow_templates` and `lock_template` are the older names of the first two keys, and `helper: {}` an older way to
    write `allow_workers: [helper]`. `worker_call: {}` is said by these too; by itself it allows nobody but the workers
    that are made in the session, where these may be made.
    """

    REFUSED: ClassVar[dict[str, str]] = {
        "allowed_suffixes": "write `attachment_policy: {allowed_suffixes: […]}` into the worker",
        "max_attachments": "write `attachment_policy: {max_attachments: …}` into the worker",
        "max_bytes": "write `attachment_policy: {max_total_bytes: …}` into the worker",
        "debug": "set LLM_DO_DEBUG=1 in the environment",
    }
    INSTEAD: ClassVar[str] = "a worker that may be called is named in `allow_workers: […]`"

    allow_workers: Texts | None = None
    lock_worker: Text | None = None
    worker_create: Annotated[WorkerCreation | None, BeforeValidator(_created)] = None
    worker_call: Annotated[Literal[True] | None, BeforeValidator(_switched_on)] = None
    allow_templates: Texts | None = None
    lock_template: Text | None = None

    @model_validator(mode="before")
    @classmethod
    def _named_by_keys(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        known = {*keys_of(cls), *cls.REFUSED}
        named = [key for key, said in value.items() if key not in known and said in (None, {})]
        listed = value.get("allow_workers") or []
        if not named or not isinstance(listed, list | tuple):
            return value
        others = {key: said for key, said in value.items() if key not in named}
        return {**others, "allow_workers": [*listed, *named]}


def _command_pattern(text: str) -> str:
    try:
        pattern(text)
    except BadCommand as error:
        raise ValueError(f"no command can match {quoted(text)}: {error}") from None
    return text


class ShellRule(Checked):
    """What commands that match a pattern may do: run (`approval_required: false`), ask, or nothing (`allowed: false`).

    The pattern is one of words, quoted as in a shell: `git log` is what begins with these words, whatever follows,
    `git log *` has at least one more; neither is `git logx`. `pytest tests/*.py` is one word of that form and no more.
    The first rule that matches counts; `project/commandline.py` has the details.

    `sandbox_paths` names the folders that the words of such a command may lead into; where it names none, those are
    the worker's folders that can be read without asking.
    """

    pattern: Annotated[Text, AfterValidator(_command_pattern)]
    sandbox_paths: Texts = ()
    allowed: Flag = True
    approval_required: Flag = True


class ShellDefault(Checked):
    """What commands that match no pattern may do."""

    allowed: Flag = True
    approval_required: Flag = True


class Shell(Toolset):
    """Commands of the system: one program and its arguments, which no shell reads.

    `rules` are tried in order; a command that none matches is for `default`, and asks where there is none. `cwd` is
    where they run, as `alias` or `alias/folder`; by default the first of the rule's `sandbox_paths`, else the first of
    the worker's folders, else an empty folder that is made for the command.
    """

    rules: tuple[ShellRule, ...] = ()
    default: ShellDefault | None = None
    cwd: Text | None = None


EVERY_FUNCTION = "*"
"""The name under which `custom: all` is kept."""


def _custom(value: Any) -> Any:
    """`all`, a list of names, and `_approval_config`, as what they are short for."""
    match value:
        case None:
            return {}
        case "all":
            return {EVERY_FUNCTION: {}}
        case list() if all(isinstance(name, str) for name in value):
            return {name: {} for name in value}
        case {"_approval_config": Mapping() as config, **functions}:
            return {**functions, **{name: said for name, said in config.items() if not functions.get(name)}}
        case Mapping():
            return value
        case _:
            raise ValueError("must be 'all', a list of function names, or `function: settings` lines")


class Toolsets(Checked):
    """What a worker's model is given. A toolset that is not named is None.

    `custom` maps the names of Python functions to what is said of each; `EVERY_FUNCTION` stands for all of them.
    """

    filesystem: Annotated[Toolset | None, BeforeValidator(_empty)] = None
    delegation: Annotated[Delegation | None, BeforeValidator(_empty)] = None
    shell: Annotated[Shell | None, BeforeValidator(_empty)] = None
    te: Annotated[Toolset | None, BeforeValidator(_empty)] = None
    custom: Annotated[dict[Text, Annotated[PreApproval, BeforeValidator(_empty)]] | None, BeforeValidator(_custom)] = (
        None
    )


SERVER_SIDE_TOOLS = ("web_search", "web_fetch", "code_execution")
"""The tools that a model's provider can run, by the names that workers use."""


def _server_side(text: str) -> str:
    if text not in SERVER_SIDE_TOOLS:
        raise ValueError(f"{quoted(text)} is no server-side tool; {nearest(text, SERVER_SIDE_TOOLS)}")
    return text


class ServerSideTool(Checked):
    """A tool that the model's provider runs, such as its web search."""

    tool_type: Annotated[Text, AfterValidator(_server_side)]
    max_uses: Count | None = None
    allowed_domains: Texts | None = None
    blocked_domains: Texts | None = None

    @model_validator(mode="after")
    def _can_be_sent(self) -> ServerSideTool:
        if self.allowed_domains is not None and self.blocked_domains is not None:
            raise ValueError("allowed_domains and blocked_domains are not taken together; write one of them")
        for key in ("allowed_domains", "blocked_domains"):
            if getattr(self, key) == ():
                raise ValueError(f"{key} names no domain; name one, or leave the key out")
        limits = self.model_fields_set - {"tool_type"}
        if self.tool_type == "code_execution" and limits:
            raise ValueError(f"code_execution takes no {' and no '.join(sorted(limits))}; it has tool_type alone")
        return self


def _each_once(tools: tuple[ServerSideTool, ...]) -> tuple[ServerSideTool, ...]:
    names = [tool.tool_type for tool in tools]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{name} stands in it {names.count(name)} times; write it once, with all its limits")
    return tools


ServerSideTools = Annotated[tuple[ServerSideTool, ...], AfterValidator(_each_once)]
"""The tools that a worker's model may have of its provider, each once."""


def narrowed(limits: Limits | None, asked: Limits | None) -> Limits:
    """Limits, and what somebody asks for who may have less and never more; the usual ones hold where nobody says."""
    given = {} if limits is None else limits.model_dump(exclude_none=True)
    wanted = {} if asked is None else asked.model_dump(exclude_none=True)
    most = {**USUAL_LIMITS, **given}
    return Limits(**{**given, **{key: min(value, most.get(key, value)) for key, value in wanted.items()}})


def merge(manifest: Model | None, worker: Model | None, empty: Model) -> Model:
    """The worker's settings over the manifest's: mappings by key at every depth, scalars and lists replaced.

    Only what a file really sets takes part, so that a default of the worker never hides what the manifest says.
    """
    merged: dict[str, Any] = {}
    for settings in (manifest, worker):
        if settings is not None:
            _lay_over(merged, settings.model_dump(exclude_unset=True, by_alias=True))
    return type(empty).model_validate(merged) if merged else empty


def _lay_over(below: dict[str, Any], above: Mapping[str, Any]) -> None:
    for key, value in above.items():
        if isinstance(value, Mapping) and isinstance(below.get(key), dict):
            _lay_over(below[key], value)
        else:
            below[key] = value
