"""`worker_create`: a worker makes another one, which it, and whoever may, can then call like any worker.

A person approves it as it will be. What could not be called afterwards (a name that is taken, a model that its maker
may not use, a schema that is not there) is refused before anybody is asked.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from llm_do_mcp.errors import InvalidInput, ModelError, ProjectError, WorkerNotFound
from llm_do_mcp.models.select import check_forms
from llm_do_mcp.project.bounds import Bounds
from llm_do_mcp.project.checked import quoted
from llm_do_mcp.project.references import BUILT_IN, is_id
from llm_do_mcp.runtime.function import JSON, Declaration, Function, Preview
from llm_do_mcp.runtime.gate import Call
from llm_do_mcp.runtime.policy import Rule
from llm_do_mcp.runtime.threads import in_thread
from llm_do_mcp.toolsets.generated import CREATE, Made, rules_from

if TYPE_CHECKING:
    from llm_do_mcp.project.effective import Worker
    from llm_do_mcp.toolsets.workbench import Workbench

WORKER_CREATE = "worker_create"
MAX_INSTRUCTIONS = 100_000


def declare(worker: Worker, policy: Sequence[Rule]) -> tuple[Declaration, ...]:
    """Making workers, where a worker is given that; `policy` is for what it calls."""
    if not worker.creates_workers:
        return ()
    text = {"type": "string"}
    properties = {
        "name": {**text, "minLength": 1, "maxLength": 60, "description": "how to call it"},
        "instructions": {**text, "minLength": 1, "maxLength": MAX_INSTRUCTIONS, "description": "its system text"},
        "description": {**text, "maxLength": 1000, "description": "what it does, in a line"},
        "model": {**text, "description": "such as anthropic:claude-haiku-4-5; by default the project's"},
        "output_schema_ref": {**text, "description": "a schema of the project, such as schemas/report.json"},
        "force": {"type": "boolean", "description": "replace one that was made before"},
    }
    strict = [rule for rule in policy if rule.decision != "allow"]
    return (
        Declaration(
            name=CREATE,
            shown=WORKER_CREATE,
            description=(
                "Make a worker for this session, then call it with worker_call. It sees its input, what is attached "
                "to a call, and the project's default folders. A person may be asked first."
            ),
            input_schema={
                "type": "object",
                "properties": properties,
                "required": ["name", "instructions"],
                "additionalProperties": False,
            },
            output_schema={
                "type": "object",
                "properties": {"worker": text, "created": {"type": "boolean"}, "record": text},
                "required": ["worker", "created", "record"],
                "additionalProperties": False,
            },
            risk="write",
            idempotent=True,
            toolset="creation",
            options={"bounds": Bounds.of(worker).to_json(), "rules": [dict(vars(rule)) for rule in strict]},
        ),
    )


def bind(declaration: Declaration, bench: Workbench) -> Function:
    """The making of workers, ready to run."""
    bounds = Bounds.from_json(declaration.options["bounds"])
    rules = rules_from(declaration.options["rules"])

    def made(call: Call) -> Made:
        """What a call would make.

        Raises:
            InvalidInput: Nothing that could be called.
        """
        name = call.input["name"]
        if not is_id(name) or "/" in name:
            raise InvalidInput(f"{WORKER_CREATE}: {quoted(name)} is no name; allowed are letters, digits, _ and -")
        before = bench.generated.find(name)
        if (owner := _owner(bench, name)) is not None:
            raise InvalidInput(f"{WORKER_CREATE}: {owner} has a worker {name!r}; choose another name")
        if before is not None and (before.name != name or not call.input.get("force")):
            instead = "choose another name" if before.name != name else "choose another, or replace it with force"
            raise InvalidInput(f"{WORKER_CREATE}: the worker {before.name!r} was made before; {instead}")
        made = Made(name, _file(call.input), bounds, rules)
        try:
            models = bench.models_of(made.worker(bench.project))
            check_forms(models)
        except (ProjectError, ModelError) as error:
            raise InvalidInput(f"{WORKER_CREATE}: {error}") from None
        if not models:
            raise InvalidInput(f"{WORKER_CREATE}: there is no default model; name one under 'model'")
        return made

    async def execute(call: Call) -> JSON:
        new = made(call)
        created = bench.generated.find(new.name) is None
        record = await in_thread(bench.generated.add, new, call.run.tree)
        return {"worker": new.name, "created": created, "record": record}

    async def preview(call: Call) -> Preview:
        new = made(call)
        before = bench.generated.find(new.name)
        if before is None:
            return Preview("create the worker", new.name, new.file, scope=new.name)
        from difflib import unified_diff

        lines = unified_diff(before.file.splitlines(), new.file.splitlines(), "now", "then", lineterm="")
        return Preview("replace the worker", new.name, "\n".join(lines), scope=new.name)

    return Function(declaration, execute, preview)


def _owner(bench: Workbench, name: str) -> str | None:
    """What has a worker already that a call of a name would reach instead; the built-in ones come behind."""
    try:
        worker = bench.project.worker(name)
    except WorkerNotFound:
        return None
    except ProjectError:  # it has one, though that cannot be used
        return "the project"
    if worker.library == BUILT_IN:
        return None
    return "the project" if worker.library is None else f"the library {worker.library}"


def _file(given: JSON) -> str:
    """The new worker's file.

    Raises:
        InvalidInput: It cannot be written as one.
    """
    keys = ("name", "description", "model", "output_schema_ref")
    lines = [f"{key}: {json.dumps(given[key], ensure_ascii=False)}\n" for key in keys if given.get(key)]
    file = f"---\n{''.join(lines)}---\n{given['instructions']}"
    if not given["instructions"].strip():
        raise InvalidInput(f"{WORKER_CREATE}: the instructions are empty")
    return file
