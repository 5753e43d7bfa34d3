"""The project's Python: what workers get of it, and what is wrong with it.

Without `--import-tools` nothing is imported: only what the files name is known then. With it the tool host imports the
modules, as it would for a run.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from llm_do_mcp.check.finding import Finding
from llm_do_mcp.project.settings import EVERY_FUNCTION
from llm_do_mcp.runtime.function import Declaration
from llm_do_mcp.toolsets import custom
from llm_do_mcp.toolsets.overview import Standing

if TYPE_CHECKING:
    from llm_do_mcp.project.effective import Worker
    from llm_do_mcp.runtime.policy import Rule
    from llm_do_mcp.toolhost.descriptions import ToolModule

_POINTED = re.compile(r"(?P<path>(?:[a-z0-9_-]+:)?[^:]+\.py)(?::(?P<line>\d+))?: (?P<message>.+)", re.DOTALL)
_UNKNOWN_RISK = "default, as long as the function is not declared to read (--import-tools)"


def pointed(text: str) -> Finding:
    """What the tool host says, `tools.py:3: …`, as a finding."""
    found = _POINTED.fullmatch(text)
    if found is None:
        return Finding("error", text)
    line = found["line"]
    return Finding("error", found["message"], found["path"], int(line) if line else None)


# ---- without importing anything


def named(worker: Worker) -> tuple[Declaration, ...]:
    """The Python functions that a worker names, as far as that says anything about them."""
    names = [name for name in worker.named_tools or () if name != EVERY_FUNCTION]
    return tuple(
        Declaration(f"custom.{name}", name.rpartition(":")[2], "", {"type": "object"}, toolset="custom")
        for name in names
    )


def unnamed(worker: Worker) -> tuple[str, ...]:
    """The modules that a worker gets functions from without naming them."""
    if worker.named_tools is None:
        return tuple(dict.fromkeys((*worker.own_tool_modules, *worker.imported_tool_modules)))
    return worker.tool_modules if EVERY_FUNCTION in worker.named_tools else worker.imported_tool_modules


def doubtful(answer: Standing) -> Standing:
    """The answer for a function of which only the name is known."""
    is_python = answer.function.startswith("custom.")
    return replace(answer, source=_UNKNOWN_RISK) if is_python and answer.source.startswith("default") else answer


def may_be_about(rule: Rule, worker: Worker) -> bool:
    """Whether a rule may be about a function of a worker that nothing is known of."""
    return rule.function.startswith("custom") and bool(unnamed(worker))


def unused(modules: Sequence[str], workers: Collection[Worker]) -> Iterator[Finding]:
    """The project's tool modules of which no worker can get a function."""
    if any(worker.named_tools for worker in workers):
        return
    used = {module for worker in workers for module in unnamed(worker)}
    for module in modules:
        if module not in used:
            yield _unseen(module, "what it offers")


# ---- with the modules imported


def broken(modules: Sequence[ToolModule]) -> Iterator[Finding]:
    """What cannot be imported, and functions that cannot be tools."""
    for module in modules:
        for reason in (module.error, *(function.reason for function in module.broken)):
            if reason is not None:
                yield pointed(reason)


def empty(modules: Sequence[ToolModule]) -> Iterator[Finding]:
    """Modules that offer nothing: perhaps helpers, perhaps with functions that somebody takes for tools."""
    for module in modules:
        if not (module.error or module.functions or module.broken):
            yield Finding("warning", f"it offers no function; {custom.HOW}", module.path)


def unseen(modules: Sequence[ToolModule], given: Mapping[str, Sequence[Declaration]]) -> Iterator[Finding]:
    """The functions that no worker sees.

    Args:
        modules: The project's.
        given: Id of a worker → its functions.
    """
    seen = {(one.options.get("module"), one.shown) for functions in given.values() for one in functions}
    for module in modules:
        names = [function.name for function in module.functions if (module.path, function.name) not in seen]
        if names:
            yield _unseen(module.path, ", ".join(f"`{name}`" for name in names))


def shadowed(
    modules: Sequence[ToolModule], workers: Collection[Worker], given: Mapping[str, Sequence[Declaration]]
) -> Iterator[Finding]:
    """The functions that a worker would see, were there not a nearer one of the same name."""
    offers = {module.path: {function.name for function in module.functions} for module in modules}
    for worker in workers:
        if worker.named_tools is None:  # it looks no farther than its own folder
            continue
        for function in given.get(worker.id, ()):
            near = function.options.get("module")
            for far in worker.tool_modules:
                if near in worker.tool_modules and far != near and function.shown in offers.get(far, ()):
                    message = f"{worker.id} sees `{function.shown}` of {near}, which is nearer, and not this one"
                    yield Finding("warning", f"{message}; rename one where both are meant", far)


def _unseen(module: str, what: str) -> Finding:
    return Finding("warning", f"no worker sees {what}: name it under `toolsets: {{custom: […]}}` of a worker", module)
