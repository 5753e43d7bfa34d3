"""What a worker amounts to, with the manifest merged in: the form in which everything beyond `project` knows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from llm_do_mcp.project.references import covers
from llm_do_mcp.project.schema import extended
from llm_do_mcp.project.settings import (
    EVERY_FUNCTION,
    ApprovalRule,
    AttachmentPolicy,
    Limits,
    SandboxSettings,
    ServerSideTool,
    ToolRule,
    Toolsets,
)
from llm_do_mcp.project.worker import Template
from llm_do_mcp.sandbox.root import Root

ANY_WORKER = "*"
"""The glob of `allow_workers` that stands for every worker, also one that is not there yet."""

_KINDS: dict[type, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


@dataclass(frozen=True)
class Worker:
    """A worker as it is called. Everything in it is plain data.

    Args:
        id: Its id, `reports/summarizer`; `main` for the main worker; `utils:summarizer` for one of a library.
        path: Its file, relative to the project; `utils:workers/summarizer.worker` for one of a library.
        library: The library that it comes from, or None.
        folder: Its own folder, which only the directory form has, relative to the project or library.
        description: What it does, for whoever may call it.
        model: The model and its fallbacks; empty where neither worker, manifest nor environment names one.
        compatible_models: Globs that every model must match one of; None for any model.
        instructions: System text. `render` makes templates into text.
        prompt: User text, or None where the input itself is the user text.
        fragments, system_fragments: Further texts beside the prompt and the instructions.
        params: Parameter → default; None means that the caller must give it.
        input_schema: JSON Schema of the input, an object; None for a single text.
        output_schema: JSON Schema of the output, an object; None for text.
        toolsets: What its model is given.
        tools: Names of Python functions from the key `tools`.
        allow_workers: Ids, and globs on ids, of the workers it may call; None where it delegates nothing.
        lock_worker: The one worker that every delegated call goes to, or None.
        imports: Ids of the workers it imports.
        tool_rules, approvals: Its policy; the manifest's approvals come first.
        sandbox: What manifest and worker say of the folders it can reach, as they name them; of what is granted to a
            library, what the project's manifest says.
        roots: Those folders.
        network_enabled: False denies what would use the network.
        attachment_policy: Which files may be attached to a call of it.
        server_side_tools: Tools that the model's provider runs.
        limits: Of a run of it and all below it.
        tool_modules: Python files that hold tools, relative to the project or as `utils:tools.py`, nearest first; of
            two functions with one name the nearest counts.
        own_tool_modules: Those of its own folder, whose functions it sees without naming them.
        imported_tool_modules: Those of `imports.tools`, whose functions it sees as well.
        locked: Whether its author wants it left as it is.
        made_by: Id of the worker that made it in this session; None for one that has a file in the project.
    """

    id: str
    path: str
    instructions: Template
    library: str | None = None
    folder: str | None = None
    description: str = ""
    model: tuple[str, ...] = ()
    compatible_models: tuple[str, ...] | None = None
    prompt: Template | None = None
    fragments: tuple[Template, ...] = ()
    system_fragments: tuple[Template, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    input_schema: Mapping[str, Any] | None = None
    output_schema: Mapping[str, Any] | None = None
    toolsets: Toolsets = field(default_factory=Toolsets)
    tools: tuple[str, ...] = ()
    allow_workers: tuple[str, ...] | None = None
    lock_worker: str | None = None
    imports: tuple[str, ...] = ()
    tool_rules: Mapping[str, ToolRule] = field(default_factory=dict)
    approvals: tuple[ApprovalRule, ...] = ()
    sandbox: SandboxSettings = field(default_factory=SandboxSettings)
    roots: tuple[Root, ...] = ()
    network_enabled: bool = True
    attachment_policy: AttachmentPolicy = field(default_factory=AttachmentPolicy)
    server_side_tools: tuple[ServerSideTool, ...] = ()
    limits: Limits = field(default_factory=Limits)
    tool_modules: tuple[str, ...] = ()
    own_tool_modules: tuple[str, ...] = ()
    imported_tool_modules: tuple[str, ...] = ()
    locked: bool = False
    made_by: str | None = None

    @property
    def named_tools(self) -> tuple[str, ...] | None:
        """The Python functions that it names, `*` for all; None where it names none and sees its own folder's."""
        custom = self.toolsets.custom
        if custom is None and not self.tools:
            return None
        if custom is not None and EVERY_FUNCTION in custom:
            return (EVERY_FUNCTION,)
        return tuple(dict.fromkeys((*(custom or ()), *self.tools)))

    @property
    def tool_schema(self) -> dict[str, Any]:
        """JSON Schema of a call: its input's properties, or one text `input`, and its parameters."""
        plain = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
        whole = dict(self.input_schema or {**plain, "additionalProperties": False})
        if self.params:
            properties = {name: _parameter_schema(default) for name, default in self.params.items()}
            required = [name for name, default in self.params.items() if default is None]
            whole = extended(whole, properties, required)
        return whole

    @property
    def creates_workers(self) -> bool:
        """Whether it may propose new workers: its delegation says so, or that it may call any worker."""
        delegation = self.toolsets.delegation
        said = None if delegation is None else delegation.worker_create
        return self.lock_worker is None and (ANY_WORKER in (self.allow_workers or ()) if said is None else said.enabled)

    @property
    def calls_made_workers(self) -> bool:
        """Whether it may call every worker that is made in its session, whatever that one's name is."""
        delegation = self.toolsets.delegation
        return self.creates_workers and delegation is not None and bool(delegation.worker_call)

    @property
    def delegates_to(self) -> tuple[str, ...]:
        """The ids, and globs on ids, that its calls of workers can lead to: its lock leaves just one."""
        return (self.lock_worker,) if self.lock_worker else self.allow_workers or ()

    def may_call(self, identifier: str) -> bool:
        """Whether it may call a worker."""
        return any(covers(allowed, identifier) for allowed in self.allow_workers or ())

    def accepts_model(self, model: str) -> bool:
        """Whether a model is compatible."""
        return self.compatible_models is None or any(fnmatchcase(model, glob) for glob in self.compatible_models)


def _parameter_schema(default: Any) -> dict[str, Any]:
    """The schema of a parameter: the type of its default, or anything where it has none."""
    kind = _KINDS.get(type(default))
    return {"type": kind, "default": default} if kind else {}
