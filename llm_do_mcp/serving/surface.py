"""What a project publishes over MCP: one table from tool names to functions.

Every exported worker is a tool (the entry worker bears the project's name), so are three operations for each
published alias, one search, and those that follow a run that was handed over. Each row says how its arguments
become the input of a function of the gate; there is no second way to act.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from llm_do_mcp.errors import ProjectError
from llm_do_mcp.project.manifest import MANIFEST_NAMES
from llm_do_mcp.project.names import MAX_PUBLISHED, file_tool, published_name
from llm_do_mcp.project.schema import extended
from llm_do_mcp.project.settings import AttachmentPolicy
from llm_do_mcp.runtime.function import JSON, Declaration
from llm_do_mcp.runtime.lock import CLIENT
from llm_do_mcp.runtime.policy import Rule
from llm_do_mcp.sandbox.names import in_project
from llm_do_mcp.sandbox.root import Root
from llm_do_mcp.serving.caller import Scope
from llm_do_mcp.serving.changes import Changes
from llm_do_mcp.toolsets import delegation, filesystem, overview, rules, search

if TYPE_CHECKING:
    from llm_do_mcp.project.effective import Worker
    from llm_do_mcp.project.load import Project
    from llm_do_mcp.toolsets.workbench import Workbench

READ_CHARS = 40_000
"""Characters that a client's read gives where it does not say; hosts cut longer results."""

SEARCH = "te"
RUN_WAIT, RUN_CANCEL, RUN_APPROVE = "run_wait", "run_cancel", "run_approve"
FOLLOWING = (RUN_WAIT, RUN_CANCEL, RUN_APPROVE)
"""Of these there is one each, however many projects are served."""


def _as_it_is(output: JSON) -> JSON:
    return output


@dataclass(frozen=True)
class Published:
    """One tool.

    Args:
        name: As clients call it.
        description: What it does.
        input_schema: Of its arguments.
        output_schema: Of its result, or None for text.
        declaration: The function that it calls; None for those that follow a run.
        to_input: Its arguments as that function's input.
        to_output: That function's output as its own.
        offset: Of `run_wait`: from where in the result's text on it is wanted; None for the result as it is.
        rules: The policy for the call.
        subject: What is run, for lists: a worker's id or a function's name.
        alias: The folder that it reads or writes in, if it is one for files.
        read_only: It cannot change anything.
        idempotent: A second call changes nothing more.
        open_world: It reaches beyond the project: a model is called.
        is_worker: Its result carries the account for people.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None
    declaration: Declaration | None
    to_input: Callable[[Mapping[str, Any]], JSON]
    rules: tuple[Rule, ...] = ()
    subject: str = ""
    alias: str = ""
    read_only: bool = True
    idempotent: bool = True
    open_world: bool = False
    is_worker: bool = False
    to_output: Callable[[JSON], JSON] = _as_it_is
    offset: int | None = None

    @property
    def function(self) -> str:
        """The canonical name of the function that it calls; "" for those that follow a run."""
        return "" if self.declaration is None else self.declaration.name

    @property
    def is_long(self) -> bool:
        """Whether a result of it may have to be longer than hosts expect: it cannot be cut, or was asked for."""
        return self.function == "files.read" or (self.is_worker and self.output_schema is not None)

    @property
    def lasts(self) -> bool:
        """Whether a call of it may take as long as a worker does, or a person who is asked."""
        return self.is_worker or not self.read_only or self.name in FOLLOWING

    @cached_property
    def just_reads(self) -> bool:
        """Whether a call of it reads one file and asks nobody."""
        read = self.declaration
        if read is None or read.name != "files.read":
            return False
        return not any(rule.decision == "ask" and rule.speaks_of(read, "client") for rule in self.rules)

    @property
    def scope(self) -> Scope:
        """What a caller's token must allow, where the server asks for one."""
        if self.name == RUN_APPROVE:
            return "approve"
        return "call" if self.read_only or self.name == RUN_CANCEL else "write"


def publish(bench: Workbench, *, approve_tool: bool = False, beside: bool = False) -> dict[str, Published]:
    """The tools of a project, in the order in which they are listed.

    Args:
        bench: The project's.
        approve_tool: Publish `run_approve`.
        beside: Other projects are served beside it, so that names begin with the project's.

    Raises:
        ProjectError: Two would have one name, or one alias means two folders.
    """
    project = bench.project
    unusable = bench.unusable
    workers = tuple(worker for worker in project.exported() if worker.id not in unusable)
    roots = _roots(bench, workers)
    client = rules.of_client(project, roots)
    names = {identifier: name for name, identifier in worker_names(project, beside=beside).items()}
    changes = Changes(bench)
    tools = [
        _worker(bench, worker, names[worker.id], roots, client, read_only=not changes.possible(worker))
        for worker in workers
    ]
    for root in roots:
        tools += _files(bench, root, client)
    settings = project.manifest.publish
    if settings.te is not False:
        restricted = rules.restricted(roots, client, "client")
        tools += [_search(declaration, client) for declaration in search.declare(project, roots, restricted)]
    if beside:
        tools = [tool if tool.is_worker else replace(tool, name=_beside(project, tool.name)) for tool in tools]
    tools += _following() if tools else []
    tools += [_approving()] if approve_tool else []
    table: dict[str, Published] = {}
    for tool in tools:
        if (other := table.setdefault(tool.name, tool)) is not tool:
            both = f"{other.subject or other.name} and {tool.subject or tool.name}"
            instead = _other_name(project, other if other.is_worker else tool)
            raise ProjectError(f"two tools would be called {tool.name!r}: {both}; {instead}")
    return table


def worker_names(project: Project, *, beside: bool) -> dict[str, str]:
    """Published name → id of each exported worker.

    Args:
        project: The project.
        beside: See `publish`; the entry worker bears the project's name in any case.

    Raises:
        ProjectError: Two would have one name.
    """
    if not beside:
        return dict(project.exports)
    names: dict[str, str] = {}
    for name, identifier in project.exports.items():
        longer = name if identifier == project.entry else _beside(project, name)
        if (other := names.setdefault(longer, identifier)) != identifier:
            raise ProjectError(
                f"workers {other!r} and {identifier!r} would both be published as {longer!r}; rename one"
            )
    return names


def _beside(project: Project, name: str) -> str:
    return published_name(f"{project.name}_{name}")


# ---- workers


def is_taken(name: str) -> bool:
    """Whether a published name may be that of a tool which is no worker, so that no project can have it."""
    return name in (SEARCH, *FOLLOWING) or file_tool(name) is not None


def _other_name(project: Project, tool: Published) -> str:
    """How a worker's tool gets another name: of two that share one, one is a worker."""
    if tool.subject == project.entry:
        file = project.manifest_path or MANIFEST_NAMES[0]
        return f"its worker has the project's name, so write another `name:` into {file}"
    return f"rename the worker {tool.subject}, or do not export it"


def _worker(
    bench: Workbench,
    worker: Worker,
    name: str,
    roots: tuple[Root, ...],
    client: tuple[Rule, ...],
    *,
    read_only: bool,
) -> Published:
    declaration = worker_declaration(bench, worker, roots)
    own = worker.tool_schema
    added: dict[str, Any] = {"extra_context": {"type": "string", "description": "further text for the worker"}}
    if worker.attachment_policy.max_attachments and roots:
        aliases = ", ".join(root.alias for root in roots)
        added["attachments"] = {
            "type": "array",
            "items": {"type": "string"},
            "description": f"files to attach, as alias/path; aliases: {aliases}",
        }
    # A field of the worker's own keeps its meaning.
    added = {name: added[name] for name in added if name not in own.get("properties", {})}

    def to_input(arguments: Mapping[str, Any]) -> JSON:
        return worker_input(worker, arguments, tuple(added))

    return Published(
        name=name,
        description=worker.description or f"Runs the worker {worker.id}.",
        input_schema=extended(own, added),
        output_schema=worker.output_schema,
        declaration=declaration,
        to_input=to_input,
        rules=client,
        subject=worker.id,
        read_only=read_only,
        idempotent=False,
        open_world=True,
        is_worker=True,
    )


def worker_declaration(bench: Workbench, worker: Worker, roots: tuple[Root, ...]) -> Declaration:
    """The call of one worker by a client or a person.

    Args:
        bench: The project's.
        worker: The only one that it can call.
        roots: From which attachments can be named.
    """
    policy = direct_policy(bench.project)
    return Declaration(
        name="worker.call",
        shown=delegation.WORKER_CALL,
        description="",
        input_schema=delegation.call_schema(),
        risk="read",
        nested=True,
        toolset="delegation",
        options={
            "allowed": [worker.id],
            "lock": worker.id,
            "roots": [root.to_json() for root in roots],
            "policy": policy.model_dump(mode="json"),
        },
    )


def direct_policy(project: Project) -> AttachmentPolicy:
    """What holds for the attachments of a person or a client that calls a worker directly."""
    return project.manifest.attachment_policy or AttachmentPolicy()


def worker_input(worker: Worker, arguments: Mapping[str, Any], extras: tuple[str, ...]) -> JSON:
    """The arguments of a worker's tool as the input of `worker.call`."""
    beside = (*worker.params, *extras)
    given = {name: value for name, value in arguments.items() if name not in beside}
    return {
        "worker": worker.id,
        "input_data": given["input"] if worker.input_schema is None else given,
        "params": {name: arguments[name] for name in worker.params if name in arguments},
        **{name: arguments[name] for name in extras if name in arguments},
    }


def attached_files(files: Sequence[str], policy: AttachmentPolicy) -> tuple[tuple[Root, ...], list[str]]:
    """Files from anywhere, for the call of one worker: their folders as read-only roots, and their paths in these.

    Args:
        files: On this machine.
        policy: The worker's. A folder that nobody has set up has no limit of its own beside it.
    """
    most = max(policy.max_total_bytes, 1)
    folders: dict[str, Root] = {}
    paths = []
    for file in files:
        folder, name = os.path.split(os.path.abspath(file))
        alias = f"attached{len(folders) + 1}"
        root = folders.setdefault(folder, Root(alias, os.path.realpath(folder), max_file_bytes=most))
        paths.append(f"{root.alias}/{name}")
    return tuple(folders.values()), paths


# ---- files and search


def _roots(bench: Workbench, workers: tuple[Worker, ...]) -> tuple[Root, ...]:
    """The published folders: the manifest's and the exported workers'."""
    project = bench.project
    wanted = project.manifest.publish.files
    found: dict[str, Root] = {}
    for root in (*project.roots, *(root for worker in workers for root in worker.roots)):
        other = found.setdefault(root.alias, root)
        if other.path != root.path and (wanted is None or root.alias in wanted):
            both = " and ".join(in_project(folder.path, project.root) for folder in (other, root))
            raise ProjectError(
                f"the alias {root.alias!r} means two folders, {both}; rename one, or list others only "
                "in `publish.files`"
            )
    for alias in wanted or ():
        if alias not in found:
            raise ProjectError(f"publish.files names {alias!r}; there are: {', '.join(found) or 'none'}")
    return tuple(root for alias, root in found.items() if wanted is None or alias in wanted)


def _files(bench: Workbench, root: Root, client: tuple[Rule, ...]) -> list[Published]:
    alias = root.alias
    name = published_name(alias, MAX_PUBLISHED - len("files__write_text"))
    path = {"type": "string", "description": f"path below {alias}"}
    shapes: dict[str, tuple[str, str, dict[str, Any], list[str]]] = {
        "files.list": (
            "list",
            f"List the files of {alias}.",
            {"pattern": {"type": "string", "description": "glob, by default **/*"}},
            [],
        ),
        "files.read": (
            "read_text",
            f"Read a text file of {alias}. A long one is read in parts: go on with `offset`.",
            {
                "path": path,
                "max_chars": {"type": "integer", "minimum": 1, "maximum": 1_000_000, "default": READ_CHARS},
                "offset": {"type": "integer", "minimum": 0, "default": 0},
            },
            ["path"],
        ),
        "files.write": (
            "write_text",
            f"Write a text file of {alias} as a whole. A person may be asked first.",
            {"path": path, "content": {"type": "string"}},
            ["path", "content"],
        ),
    }

    def below_alias(output: JSON) -> JSON:
        """Paths as these tools take them: below the alias that their name holds."""
        if "files" in output:
            return {**output, "files": [below_alias(file) for file in output["files"]]}
        return {**output, "path": output["path"].removeprefix(f"{alias}/")}

    def published(declaration: Declaration) -> Published:
        verb, description, properties, required = shapes[declaration.name]

        def to_input(arguments: Mapping[str, Any]) -> JSON:
            below = arguments.get("path")
            defaults = {"max_chars": READ_CHARS} if verb == "read_text" else {}
            return {**defaults, **arguments, "path": alias if below is None else f"{alias}/{below}"}

        return Published(
            name=f"files_{name}_{verb}",
            description=description,
            input_schema=_object(properties, required),
            output_schema=declaration.output_schema,
            declaration=declaration,
            to_input=to_input,
            rules=client,
            subject=f"{declaration.name} {alias}",
            alias=alias,
            read_only=declaration.risk == "read",
            to_output=below_alias if declaration.output_schema is not None else _as_it_is,
        )

    return [
        published(declaration)
        for declaration in filesystem.declare((root,))
        if "allow" in overview.answers(client, declaration, "client")
        or not bench.approvals.hides(CLIENT, declaration.name)
    ]


def _search(declaration: Declaration, client: tuple[Rule, ...]) -> Published:
    return Published(
        name=SEARCH,
        description=declaration.description,
        input_schema=declaration.input_schema,
        output_schema=None,
        declaration=declaration,
        to_input=dict,
        rules=client,
        subject=SEARCH,
    )


# ---- following a run that was handed over


def _approving() -> Published:
    text = {"type": "string"}
    schema = _object(
        {
            "run_id": text,
            "question": {**text, "description": "its key, as run_wait gives it"},
            "decision": {**text, "description": "one of those that the question offers"},
            "note": text,
        },
        ["run_id", "question", "decision"],
    )
    description = "Answer a question of a run, on the word of your user, whom you have asked."
    return Published(RUN_APPROVE, description, schema, None, None, dict, read_only=False, idempotent=False)


def _following() -> list[Published]:
    known = {"run_id": {"type": "string", "description": "as the call that was handed over gave it"}}
    run, about = _object(known, ["run_id"]), "for the rest of a long result: the character that it begins with"
    wait = _object({**known, "offset": {"type": "integer", "minimum": 0, "description": about}}, ["run_id"])
    return [
        Published(RUN_WAIT, "Wait for a run that was handed over, and get its result.", wait, None, None, dict),
        Published(RUN_CANCEL, "Stop a run and all below it.", run, None, None, dict, read_only=False, idempotent=True),
    ]


def _object(properties: Mapping[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
