"""The `custom` toolset: the project's Python functions, which run in the tool host and nowhere else."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from llm_do_mcp.errors import FunctionFailed, ToolModuleError
from llm_do_mcp.project import schema
from llm_do_mcp.project.toolmodules import library_of
from llm_do_mcp.runtime import debug
from llm_do_mcp.runtime.function import JSON, Declaration, Function, Preview
from llm_do_mcp.runtime.gate import Call

if TYPE_CHECKING:
    from llm_do_mcp.toolhost.client import ToolHost
    from llm_do_mcp.toolhost.descriptions import ToolFunction, ToolModule


_log = logging.getLogger(__name__)

HOW = "write register(agent), or mark functions with @tool, or list them in __all__"
"""How a module offers functions."""


def declare(levels: Iterable[Iterable[ToolModule]], wanted: Iterable[str] | None) -> tuple[Declaration, ...]:
    """The functions of tool modules that a worker is given.

    Args:
        levels: The modules, nearest first: of two functions with one name the nearest wins, and two that are equally
            near are one too many. Where a module does not load, what is farther may not be the nearest: it is not used.
        wanted: Names, `utils:clean` for the one of a library; or None for all.

    Raises:
        ToolModuleError: A wanted function that is broken, doubled, or nowhere, or whose module does not load.
    """
    found: dict[str, Declaration | str] = {}
    paths: list[str] = []
    failed: str | None = None
    for level in levels:
        here: dict[str, Declaration | str] = {}
        errors: list[str] = []
        for module in level:
            paths.append(module.path)
            errors += [] if module.error is None else [module.error]
            for name, function in _offers(module):
                here[name] = function if name not in here else _doubled(name, here[name], module)
        for name, function in here.items():
            found.setdefault(name, function if failed is None else failed)
        failed = failed or next(iter(errors), None)
    if wanted is None and failed is not None:
        raise ToolModuleError(failed)
    if wanted is None and paths and not found:
        raise ToolModuleError(f"{', '.join(paths)}: no function is offered; {HOW}")
    given: dict[str, Declaration] = {}
    for name in (name for name in found if ":" not in name) if wanted is None else wanted:
        function = found.get(name, failed or _missing(name, paths, found))
        if isinstance(function, str):
            raise ToolModuleError(function)
        given[function.name] = function
    return tuple(given.values())


def offered(module: ToolModule) -> Iterator[str]:
    """The names by which a worker can ask for what a module offers, also for what cannot be a tool."""
    own = (*(function.name for function in module.functions), *(function.name for function in module.broken))
    for name in own:
        yield from _names(name, library_of(module.path))


def check_loads(module: ToolModule) -> None:
    """Check that a module that a worker cannot do without could be imported.

    Raises:
        ToolModuleError: It could not.
    """
    if module.error is not None:
        raise ToolModuleError(module.error)


def check_offers(module: ToolModule) -> None:
    """Check that a module that somebody names as a tool module is one.

    Raises:
        ToolModuleError: It was imported, and offers no function.
    """
    if module.error is None and not module.functions and not module.broken:
        raise ToolModuleError(f"{module.path}: tool module missing `register`: it offers no function; {HOW}")


def _offers(module: ToolModule) -> Iterator[tuple[str, Declaration | str]]:
    """What a module has under which names: functions, and reasons why one cannot be given."""
    library = library_of(module.path)
    for function in module.functions:
        try:
            function = replace(
                function,
                input_schema=schema.checked(function.input_schema),
                output_schema=function.output_schema and schema.checked(function.output_schema),
            )
        except ValueError as error:
            reason = f"{function.place}: `{function.name}` cannot be a tool: its schema: {error}"
            yield from ((name, reason) for name in _names(function.name, library))
            continue
        yield from ((name, _declaration(module, function, library)) for name in _names(function.name, library))
    for broken in module.broken:
        yield from ((name, broken.reason) for name in _names(broken.name, library))


def _doubled(name: str, other: Declaration | str, module: ToolModule) -> str:
    if isinstance(other, str):
        return other
    return f"two functions are called {name!r}, in {other.options['module']} and {module.path}; rename one"


def _missing(name: str, paths: Sequence[str], found: Iterable[str]) -> str:
    if not paths:
        return f"there is no tool {name!r}: no tool module was found"
    known = f"there are: {', '.join(found)}" if found else f"none is offered there: {HOW}"
    return f"there is no tool {name!r} in {', '.join(paths)}; {known}"


def _names(function: str, library: str | None) -> tuple[str, ...]:
    """The names by which a worker can ask for a function."""
    return (function,) if library is None else (function, f"{library}:{function}")


def _declaration(module: ToolModule, function: ToolFunction, library: str | None) -> Declaration:
    return Declaration(
        name=f"custom.{_names(function.name, library)[-1]}",  # what is said of the project's own is not said of it
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
        (found,) = declare([await host.describe((module,))], (name,))
        return found

    return Function(declaration, execute, preview, now=now)
