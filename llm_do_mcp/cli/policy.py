"""`llm-do list --policy`: what each worker, and a client, may do: what runs, what asks, what is refused, and why."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from llm_do_mcp.cli.exits import DONE, USAGE
from llm_do_mcp.errors import LlmDoError
from llm_do_mcp.runtime.display import cut, escape
from llm_do_mcp.runtime.policy import ANY, Rule
from llm_do_mcp.toolsets.overview import Standing, idle, standing

if TYPE_CHECKING:
    from llm_do_mcp.project.effective import Worker
    from llm_do_mcp.serving.surface import Published
    from llm_do_mcp.toolsets.workbench import Workbench


@dataclass(frozen=True)
class _Seen:
    """What was found for one caller: its answers, its rules, those that match nothing; or why it cannot be told."""

    name: str
    answers: tuple[Standing, ...] = ()
    rules: tuple[Rule, ...] = ()
    idle: tuple[Rule, ...] = ()
    error: str = ""


async def show(bench: Workbench, workers: Iterable[Worker], tools: Iterable[Published], *, as_json: bool) -> int:
    """Print the policy of a project.

    Args:
        bench: The project's.
        workers: Those that are whole.
        tools: What is published to clients.
        as_json: Print JSON.

    Returns:
        The exit code.
    """
    try:
        seen = [await _of_worker(bench, worker) for worker in workers]
    finally:
        await bench.aclose()
    client = _of_client(tools)
    nothing = _idle([*seen, client])
    broken = [str(error) for error in bench.project.broken]
    code = USAGE if broken or any(part.error for part in seen) else DONE
    if as_json:
        found = {
            "workers": [_json(part) for part in seen],
            "client": _json(client)["functions"],
            "broken": broken,
            "idle": [{"rule": _spelled(rule), "source": rule.source} for rule in nothing],
        }
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return code
    for part in seen:
        print(f"worker {part.name}")
        _print(part)
    for error in broken:
        print(escape(f"broken {error}"))
    print("client")
    _print(client)
    if nothing:
        print("rules that match nothing")
    for rule in nothing:
        print(escape(f"  {rule.source}: {_spelled(rule)}"))
    return code


async def _of_worker(bench: Workbench, worker: Worker) -> _Seen:
    try:
        rules = bench.rules_of(worker)
        declarations = await bench.declarations(worker)
    except LlmDoError as error:
        return _Seen(worker.id, error=str(error))
    callees = [callee.id for callee in bench.callees_of(worker)]
    answers = [answer for one in declarations for answer in standing(rules, one, "worker", callees)]
    return _Seen(worker.id, tuple(answers), rules, tuple(idle(rules, declarations, "worker")))


def _of_client(tools: Iterable[Published]) -> _Seen:
    rules: tuple[Rule, ...] = ()
    answers: list[Standing] = []
    declarations = []
    for tool in tools:
        if tool.declaration is not None:
            rules = tool.rules
            declarations.append(tool.declaration)
            answers += [replace(one, shown=tool.name) for one in standing(rules, tool.declaration, "client")]
    return _Seen("client", tuple(answers), rules, tuple(idle(rules, declarations, "client")))


def _idle(seen: Sequence[_Seen]) -> list[Rule]:
    """The rules that match nothing for any caller. A rule is told by its source: one may be given to several."""
    whole = [part for part in seen if not part.error]
    at_work = {rule.source for part in whole for rule in part.rules if rule not in part.idle}
    found = {rule.source: rule for part in whole for rule in part.idle if rule.source not in at_work}
    return list(found.values())


def _json(part: _Seen) -> dict[str, Any]:
    found: dict[str, Any] = {"id": part.name, "functions": [answer.to_json() for answer in part.answers]}
    return {**found, "error": part.error} if part.error else found


def _print(part: _Seen) -> None:
    if part.error:
        print(f"  broken: {part.error}")
    elif not part.answers:
        print("  (no functions)")
    for answer in part.answers:
        named = answer.function if answer.function == answer.shown else f"{answer.function} ({answer.shown})"
        print(escape(f"  {answer.decision:5}  {' '.join(filter(None, (named, answer.subject))):48}  {answer.source}"))
        for said in answer.exceptions:
            print(escape(f"    {said.decision:5}  {said.subject:46}  {said.source}"))


def _spelled(rule: Rule) -> str:
    subject = "" if rule.subject in (None, ANY) else f" {rule.subject}"
    caller = f" by a {rule.caller}" if rule.caller else ""
    return cut(f"{rule.decision} {rule.function}{subject}{caller}", 200)
