"""What a policy comes to for each caller, and the rules in it that mean nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from llm_do_mcp.project.checked import nearest
from llm_do_mcp.runtime.display import cut
from llm_do_mcp.runtime.function import Declaration
from llm_do_mcp.runtime.policy import ANY, Rule
from llm_do_mcp.toolsets.overview import Standing, idle, standing

if TYPE_CHECKING:
    from llm_do_mcp.project.effective import Worker
    from llm_do_mcp.serving.surface import Published
    from llm_do_mcp.toolsets.workbench import Workbench


_MOST_NAMED = 20


@dataclass(frozen=True)
class Answers:
    """What was found for one caller.

    Args:
        name: A worker's id, or `client`.
        answers: For each function, what happens.
        rules: All of its policy, and what is said there without effect.
        idle: The rules that match no call that this caller could make.
        error: Why it cannot be told, or "".
    """

    name: str
    answers: tuple[Standing, ...] = ()
    rules: tuple[Rule, ...] = ()
    idle: tuple[Rule, ...] = ()
    error: str = ""


def of_worker(bench: Workbench, worker: Worker, declarations: Sequence[Declaration]) -> Answers:
    """The answers for a worker.

    Args:
        bench: The project's.
        worker: Whose policy.
        declarations: The functions that it is given.
    """
    rules = bench.rules_of(worker)
    callees = [callee.id for callee in bench.callees_of(worker)]
    answers = (answer for one in declarations for answer in standing(rules, one, "worker", callees))
    said = (*rules, *bench.rules_without_effect(worker))
    return Answers(worker.id, tuple(answers), said, tuple(idle(said, declarations, "worker")))


def of_client(tools: Iterable[Published]) -> Answers:
    """The answers for MCP clients."""
    rules: tuple[Rule, ...] = ()
    answers: list[Standing] = []
    declarations = []
    for tool in tools:
        if tool.declaration is not None:
            rules = tool.rules
            declarations.append(tool.declaration)
            answers += (replace(answer, shown=tool.name) for answer in standing(rules, tool.declaration, "client"))
    return Answers("client", tuple(answers), rules, tuple(idle(rules, declarations, "client")))


def never(seen: Sequence[Answers], place: Callable[[Rule], Hashable] = lambda rule: rule.source) -> list[Rule]:
    """The rules that match nothing for any caller.

    Args:
        seen: All callers.
        place: Tells rules that are said in one place, for several callers, from others.
    """
    whole = [part for part in seen if not part.error]
    if not any(part.idle for part in whole):
        return []
    at_work = {place(rule) for part in whole for rule in part.rules if rule not in part.idle}
    found = {place(rule): rule for part in whole for rule in part.idle}
    return [rule for key, rule in found.items() if key not in at_work]


def nothing(rule: Rule, known: Iterable[str]) -> str:
    """Why a rule can match nothing, in words.

    Args:
        rule: The rule.
        known: Names of all functions that there are, as policy and as workers know them.
    """
    said = f"`{spelled(rule)}` can match nothing"
    if rule.unless and rule.subject is not None:
        return f"{said}: an earlier rule matches every such command; put it first, or remove it"
    names = set(known)
    toolset, slash, name = rule.function.rpartition("/")
    if slash and name in names:
        return f"{said}: {name} is no function of {toolset}"
    if any(fnmatchcase(name, rule.function) for name in names):
        return f"{said}: nobody can call {rule.function} like that"
    hint = nearest(re.split("[]/]", rule.function)[-1], names)
    return f"{said}: nobody has such a function{f'; {hint}' if len(names) <= _MOST_NAMED or '?' in hint else ''}"


def spelled(rule: Rule) -> str:
    """A rule in one line."""
    subject = "" if rule.subject in (None, ANY) else f" {rule.subject}"
    caller = f" by a {rule.caller}" if rule.caller else ""
    return cut(f"{rule.decision} {rule.function}{subject}{caller}", 200)


def to_json(key: str, part: Answers) -> dict[str, Any]:
    """The answers for one caller as data, its name under the key."""
    found: dict[str, Any] = {key: part.name, "functions": [answer.to_json() for answer in part.answers]}
    return {**found, "error": part.error} if part.error else found
