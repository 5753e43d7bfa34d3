"""The manifest, `project.yaml` or `llm-do.yaml`: what holds for the whole project. Both names mean the same file."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from llm_do_mcp.project import redaction
from llm_do_mcp.project.checked import Checked, Count, Flag, Text, Texts, quoted
from llm_do_mcp.project.paths import ProjectPath
from llm_do_mcp.project.settings import (
    ApprovalRule,
    AttachmentPolicy,
    Limits,
    ModelNames,
    NotNegative,
    SandboxSettings,
    Toolsets,
)
from llm_do_mcp.sandbox import patterns

MANIFEST_NAMES = ("project.yaml", "llm-do.yaml")
FORMAT = 1
"""The only format of the manifest there is; `version: 1` says so."""


def _version(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        if value != FORMAT:
            raise ValueError(f"format {value} is not known; known: {FORMAT} (a release is text: put it in quotes)")
        return value
    if not isinstance(value, str):
        raise ValueError(f"must be the format {FORMAT}, or the project's release as text: put it in quotes")
    return value


Version = Annotated[Any, AfterValidator(_version)]
"""`1`, the format of the file, or a release as text; None where nothing is said."""


def _glob(text: str) -> str:
    patterns.parse(text)
    return text


Glob = Annotated[Text, AfterValidator(_glob)]
"""A pattern over paths below a folder: `*`, `?`, `[…]` within a name, `**` for any number of folders."""


class WorkersSection(Checked):
    """Where workers lie, and which of them lists and globs show."""

    root: ProjectPath = "workers"
    include: tuple[Glob, ...] = ("**/*.worker", "**/*.yaml", "**/*.yml")
    exclude: tuple[Glob, ...] = ()


class PromptsSection(Checked):
    """Where instructions lie that have a file of their own."""

    root: ProjectPath = "prompts"


class ToolsSection(Checked):
    """The project's Python.

    `roots` are folders whose `*.py` are tool modules, `modules` single ones. `env` names the environment variables
    that the tool host gets; `python` is the interpreter it runs under.
    """

    roots: tuple[ProjectPath, ...] = ("toolsets",)
    modules: Texts = ()
    allow_module_imports: Flag = False
    env: Texts = ()
    python: Text | None = None


class PublishSection(Checked):
    """What is published beside the workers: `files` narrows the aliases, `te` switches the search on or off."""

    files: Texts | None = None
    te: Flag | None = None


class Workspace(Checked):
    """A folder that `te` searches instead of the sandbox."""

    root: Text | None = None
    respect_gitignore: Flag | None = None
    allow_outside_root: Flag | None = None


def _log(path: str) -> str:
    from llm_do_mcp.te.settings import may_be_log  # here: few projects name a log, and every start loads this module

    if not may_be_log(path):
        raise ValueError(f"{quoted(path)} is no .jsonl file in the project")
    return path


class Telemetry(Checked):
    """Whether and where `te` keeps a log."""

    enabled: Flag | None = None
    path: Annotated[Text, AfterValidator(_log)] | None = None


class SearchSettings(Checked):
    """Of `te grep` and `te find`."""

    preview_matches: Count | None = None
    max_output_chars: Count | None = None
    timeout_ms: Count | None = None


class CatSettings(Checked):
    """Of `te cat`."""

    preview_lines: Count | None = None
    max_output_chars: Count | None = None
    timeout_ms: Count | None = None


class CoachSettings(Checked):
    """Whether `te` tries several ways to answer, how often at random, and from which start."""

    enabled: Flag | None = None
    explore: Annotated[float, Field(strict=True, ge=0, le=1)] | None = None
    seed: NotNegative | None = None


class ToolEnvelope(Checked):
    """Settings of `te`; what is not set is left to te's defaults."""

    enabled: Flag = True
    workspace: Workspace = Workspace()
    telemetry: Telemetry = Telemetry()
    coach: CoachSettings = CoachSettings()
    grep: SearchSettings = SearchSettings()
    cat: CatSettings = CatSettings()
    find: SearchSettings = SearchSettings()
    agent_budgets: dict[Text, Count] = Field(default_factory=dict)


class ModelCapabilities(Checked):
    """What a model takes, where that is something else than is safe to assume of it."""

    documents: Flag | None = None
    images: Flag | None = None
    structured_output: Flag | None = None
    strict_tools: Flag | None = None
    parallel_tools: Flag | None = None
    server_side_tools: Flag | None = None
    caching: Flag | None = None
    max_output_tokens: Count | None = None


def web_address(text: str) -> str:
    """The address of a server, as it is.

    Raises:
        ValueError: It is none.
    """
    parts = urlsplit(text)
    try:
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return text
    except ValueError:
        pass
    raise ValueError(f"{quoted(text)} is no address of a server; write http://HOST:PORT or https://HOST")


Dollars = Annotated[float, Field(strict=True, ge=0, le=1_000_000)]


class Rates(Checked):
    """US dollars per million tokens; cached input costs what input does where nothing else is said."""

    input: Dollars
    output: Dollars
    cache_read: Dollars | None = None
    cache_write: Dollars | None = None


class LongPrompt(Rates):
    """The rates of a turn whose whole input, cached or not, has more tokens than `above`."""

    above: Count


class Price(Rates):
    """What the turns of a model cost; `web_search` is of a thousand searches that its provider ran."""

    web_search: Dollars | None = None
    long_prompt: LongPrompt | None = None


class Manifest(Checked):
    """The keys of the manifest; without a file, all at their defaults."""

    name: Text | None = None
    version: Version = None
    description: Text | None = None
    model: ModelNames = ()
    base_url: Annotated[Text, AfterValidator(web_address)] | None = None
    model_capabilities: dict[Text, ModelCapabilities] = Field(default_factory=dict)
    entry: Text | None = None
    exports: Texts | None = None
    dependencies: Texts = ()
    grants: dict[Text, Texts] = Field(default_factory=dict)
    sandbox: SandboxSettings | None = None
    toolsets: Toolsets | None = None
    attachment_policy: AttachmentPolicy | None = None
    limits: Limits | None = None
    approvals: tuple[ApprovalRule, ...] = ()
    workers: WorkersSection = WorkersSection()
    prompts: PromptsSection = PromptsSection()
    tools: ToolsSection = ToolsSection()
    tool_envelope: ToolEnvelope = ToolEnvelope()
    publish: PublishSection = PublishSection()
    redact: tuple[Annotated[Text, AfterValidator(redaction.pattern)], ...] = ()
    prices: dict[Text, Price] = Field(default_factory=dict)

    @property
    def capabilities(self) -> dict[str, dict[str, Any]]:
        """`model_capabilities` as models take them: a name or glob → the flags that are set."""
        return {name: flags.model_dump(exclude_none=True) for name, flags in self.model_capabilities.items()}
