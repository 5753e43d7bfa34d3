"""The `custom` toolset: the project's Python functions, which run in the tool host and nowhere else."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from llm_do_mcp.errors import FunctionFailed, ToolModuleError
from llm_do_mcp.runtime import debug
from llm_do_mcp.runtime.function import JSON, Declaration, Function, Preview
from llm_do_mcp.runtime.gate import Call

if TYPE_CHECKING:
    from llm_do_mcp.toolhost.client import ToolHost
    from llm_do_mcp.toolhost.descriptions import ToolFunction, ToolModule


_log = logging.getLogger(__name__)


def declare(modules: Iterable[ToolModule], wanted: Iterable[str] | None) -> tuple[Declaration, ...]:
    """The functions of tool modules that a worker is given.

    Args:
        modules: Nearest first; of two functions with one name the nearest wins.
        wanted: Names, or None for all.

    Raises:
        ToolModuleError: A module that does not load, a wanted function that is broken, or one that does not exist.
    """
    found: dict[str, Declaration] = {}
    broken: dict[str, str] = {}
    modules = tuple(modules)
    for module in modules:
        if module.error is not None:
            raise ToolModuleError(module.error)
        for function in module.functions:
            if function.name not in broken:
                found.setdefault(function.name, _declaration(module, function))
        for failed in module.broken:
            if failed.name not in found:
                broken.setdefault(failed.name, failed.reason)
    names = [*found, *broken] if wanted is None else list(wanted)
    for name in names:
        if name in broken:
            raise ToolModuleError(broken[name])
        if name not in found:
            if not modules:
                raise ToolModuleError(f"there is no tool {name!r}: no tool module was found")
            where = ", ".join(module.path for module in modules)
            raise ToolModuleError(f"there is no tool {name!r} in {where}; there are: {', '.join(found) or 'none'}")
    return tuple(found[name] for name in names)


def _declaration(module: ToolModule, function: ToolFunction) -> Declaration:
    return Declaration(
        name=f"custom.{function.name}",
        shown=function.name,
        description=function.description,
        input_schema=function.input_schema,
        output_schema=function.output_schema,
        risk=function.risk or "write",  # type: ignore[arg-type]  # the tool host accepts no other risk
        idempotent=function.idempotent,
        toolset="custom",
        options={"module": module.path, "function": function.name},
        code=module.code_hash,
    )


def bind(declaration: Declaration, host: ToolHost) -> Function:
    """The function, ready to run in the tool host."""
    module, name = declaration.options["module"], declaration.options["function"]

    async def execute(call: Call) -> JSON:
        async def say(message: str) -> None:
            call.run.tree.tell(f"{name}: {message}")

        async def progress(done: float, total: float | None, message: str) -> None:
            await say(message or (f"{done:g}" if total is None else f"{done:g} of {total:g}"))

        try:
            return await host.call(
                module,
                name,
                call.input,
                on_call=call.call,
                on_ask=call.ask,
                on_log=say,
                on_progress=progress,
                timeout=None,
                code_hash=call.code,
            )
        except FunctionFailed as failed:
            redact = call.run.tree.redact
            _log.warning("%s failed: %s", name, redact.text(str(failed)))
            if debug.enabled():
                debug.show_traceback(redact, name, failed.traceback)
            raise

    async def preview(call: Call) -> Preview:
        return Preview(f"run the project's Python function {name} ({module})", scope=name)

    async def now() -> Declaration:
        (found,) = declare(await host.describe((module,)), (name,))
        return found

    return Function(declaration, execute, preview, now=now)
