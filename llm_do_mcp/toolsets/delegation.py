"""The `delegation` toolset: calls of other workers.

`worker_call` reaches every worker that the caller's policy allows; a worker with an input schema is also a function
of its own name. Attachments are read from the caller's sandbox, through the gate like any read, and have to fit the
callee's policy and then the caller's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from llm_do_mcp.errors import InvalidInput, NotExported, ProjectError, Refused
from llm_do_mcp.project.references import covers
from llm_do_mcp.runtime import gate
from llm_do_mcp.runtime.definition import Attachment, Definition
from llm_do_mcp.runtime.display import cut, escape
from llm_do_mcp.runtime.function import JSON, Declaration, Function, Preview
from llm_do_mcp.runtime.gate import Call
from llm_do_mcp.runtime.schema import problem
from llm_do_mcp.sandbox.root import Root
from llm_do_mcp.toolsets import filesystem
from llm_do_mcp.toolsets.attached import named_apart

if TYPE_CHECKING:
    from llm_do_mcp.project.effective import Worker
    from llm_do_mcp.project.settings import AttachmentPolicy
    from llm_do_mcp.toolsets.workbench import Workbench

WORKER_CALL = "worker_call"
CALLED, CALLER = "the worker called", "the caller"


def declare(
    workers: Sequence[Worker],
    allowed: Sequence[str],
    roots: Sequence[Root],
    attachments: AttachmentPolicy,
    lock: str | None = None,
    library: str | None = None,
    *,
    made: bool = False,
) -> tuple[Declaration, ...]:
    """The calls of other workers that a worker is given.

    Args:
        workers: Those that may be called and exist now.
        allowed: Ids and globs of the workers that may be called.
        roots: The caller's, from which attachments are read.
        attachments: The caller's policy.
        lock: The only worker that may be called, whatever the model says.
        library: The library that the caller comes from, where names start; None for the project.
        made: Whether those that are made in this session may be called as well.
    """
    if not allowed and lock is None and not made:
        return ()
    shown = [f"{worker.id}: {worker.description}" if worker.description else worker.id for worker in workers]
    listed = "; ".join(shown or allowed or ["those that you make"])
    options = {
        "allowed": list(allowed),
        "lock": lock,
        "roots": [root.to_json() for root in roots],
        "policy": attachments.model_dump(mode="json"),
        "library": library,
        "made": made,
    }
    declarations = [
        Declaration(
            name="worker.call",
            shown=WORKER_CALL,
            description=f"Call another worker and get its answer. Workers: {listed}.",
            input_schema=call_schema(),
            risk="read",
            nested=True,
            toolset="delegation",
            options=options,
        )
    ]
    declarations += [
        Declaration(
            name="worker.call",
            shown=own_name(worker),
            description=worker.description or f"Call the worker {worker.id}.",
            input_schema=worker.input_schema,
            risk="read",
            nested=True,
            toolset="delegation",
            options={**options, "lock": worker.id, "direct": True},
        )
        for worker in workers
        if worker.input_schema is not None
    ]
    return tuple(declarations)


def own_name(worker: Worker) -> str:
    """The name of the tool that a worker with an input schema is, beside `worker_call`."""
    return re.sub("[/:-]", "_", worker.id)


def call_schema() -> dict[str, Any]:
    """The input of `worker_call`."""
    text = {"type": "string"}
    return {
        "type": "object",
        "properties": {
            "worker": {**text, "description": "the worker's id"},
            "input_data": {"type": ["string", "object"], "description": "its input"},
            "attachments": {"type": "array", "items": text, "description": "files to attach, as alias/path"},
            "extra_context": {
                "anyOf": [text, {"type": "array", "items": text}],
                "description": "further text for the worker",
            },
            "params": {"type": "object", "description": "values for its template's parameters"},
            "expect_json": {"type": "boolean", "description": "the answer must be JSON by the worker's schema"},
        },
        "required": ["worker"],
        "additionalProperties": False,
    }


def bind(declaration: Declaration, bench: Workbench) -> Function:
    """The call of a worker, ready to run."""
    options = declaration.options

    async def execute(call: Call) -> JSON:
        value = {"input_data": call.input} if options.get("direct") else dict(call.input)
        name = options["lock"] or value.get("worker", "")

        async def define() -> Definition:
            # Only here is the project looked at: a run that is resumed has the definition it began with.
            try:
                worker = bench.worker(name, options.get("library"))
            except NotExported as error:
                raise Refused(error.message) from None
            made = options.get("made") and worker.made_by is not None
            if options["lock"] is None and not made and not permitted(worker.id, options["allowed"]):
                allowed = ", ".join(options["allowed"]) or "workers made in this session"
                library = f" (to be named with its library: {worker.library}:…)" if worker.library else ""
                raise Refused(f"worker {escape(name)[:80]!r} may not be called from here; allowed: {allowed}{library}")
            await bench.freeze(worker)
            given = value.get("input_data", "")
            if worker.input_schema is not None and (wrong := problem(worker.input_schema, given)) is not None:
                raise InvalidInput(f"worker {worker.id}: {wrong}")
            if value.get("expect_json") and worker.output_schema is None:
                raise InvalidInput(f"worker {worker.id} has no output schema, so expect_json cannot be asked of it")
            attachments = await attach(call, bench, value.get("attachments") or (), worker.attachment_policy)
            context = value.get("extra_context") or ()
            texts = (context,) if isinstance(context, str) else tuple(context)
            params, unattended = value.get("params") or {}, call.run.definition.unattended
            return await bench.define(worker, given, params, texts, attachments, unattended=unattended)

        return await call.run.child(call.key, name, call.input, define, bench.body)

    async def preview(call: Call) -> Preview:
        name = options["lock"] or call.input.get("worker", "")
        return Preview("call the worker", name, scope=name)

    def subject(value: JSON) -> str:
        name: str = options["lock"] or value.get("worker", "")
        try:
            # policy knows ids, and a reference has several spellings
            return bench.worker(name, options.get("library")).id
        except ProjectError:
            return name

    return Function(declaration, execute, preview, subject)


def permitted(worker: str, allowed: Sequence[str]) -> bool:
    """Whether a worker's id is among the allowed ids and globs."""
    return any(covers(pattern, worker) for pattern in allowed)


async def attach(
    call: Call, bench: Workbench, paths: Sequence[str], callee: AttachmentPolicy
) -> tuple[Attachment, ...]:
    """Read attachments from the caller's sandbox, held to the callee's policy and then the caller's."""
    if not paths:
        return ()
    from llm_do_mcp.project.settings import AttachmentPolicy

    caller = AttachmentPolicy.model_validate(call.function.declaration.options["policy"])
    check_attachments(paths, callee, caller)
    room, whose = room_for_attachments(callee, caller)
    roots = [Root.from_json(root) for root in call.function.declaration.options["roots"]]
    reader = filesystem.bind(filesystem.declare_attach(roots), bench.handles, bench.session)
    attached = []
    size = 0
    for path in paths:
        value = {"path": path, "max_bytes": room}
        key = call.inner_key("files.read", value)
        found: Mapping[str, Any] = await gate.call(call.run, key, reader, value, call.functions, call.caller)
        size += found["size"]
        if size > room:
            raise InvalidInput(f"attachments up to {path} have {size} bytes together, {whose} allows {room}")
        attached.append(Attachment(**found))
    return named_apart(attached)


def room_for_attachments(callee: AttachmentPolicy, caller: AttachmentPolicy) -> tuple[int, str]:
    """How many bytes attachments may have together, and whose policy says so."""
    return min((callee.max_total_bytes, CALLED), (caller.max_total_bytes, CALLER))


def check_attachments(paths: Sequence[str], callee: AttachmentPolicy, caller: AttachmentPolicy) -> None:
    """Hold attachments to the callee's policy and then the caller's, as far as their names tell.

    Raises:
        InvalidInput: One is not allowed, or there are too many.
    """
    for policy, whose in ((callee, CALLED), (caller, CALLER)):
        if len(paths) > policy.max_attachments:
            raise InvalidInput(f"{len(paths)} attachments, {whose} allows {policy.max_attachments}")
        for path in paths:
            _check_suffix(path, policy, whose)


def _check_suffix(path: str, policy: AttachmentPolicy, whose: str) -> None:
    shown = cut(escape(path), 200)
    lowered = path.lower()
    if any(lowered.endswith(suffix) for suffix in policy.denied_suffixes):
        raise InvalidInput(f"attachment {shown}: {whose} denies {', '.join(policy.denied_suffixes)}")
    if policy.allowed_suffixes and not any(lowered.endswith(suffix) for suffix in policy.allowed_suffixes):
        raise InvalidInput(f"attachment {shown}: {whose} allows {', '.join(policy.allowed_suffixes)}")
