"""`llm-do list --policy`: what each worker, and a client, may do: what runs, what asks, what is refused, and why."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from llm_do_mcp.check.policy import Answers, never, of_client, of_worker, spelled, to_json
from llm_do_mcp.cli.exits import DONE, USAGE
from llm_do_mcp.errors import LlmDoError
from llm_do_mcp.runtime.display import escape

if TYPE_CHECKING:
    from llm_do_mcp.project.effective import Worker
    from llm_do_mcp.serving.surface import Published
    from llm_do_mcp.toolsets.workbench import Workbench


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
    client = of_client(tools)
    nothing = never([*seen, client])
    broken = [str(error) for error in bench.project.broken]
    code = USAGE if broken or any(part.error for part in seen) else DONE
    if as_json:
        found = {
            "workers": [to_json("id", part) for part in seen],
            "client": to_json("id", client)["functions"],
            "broken": broken,
            "idle": [{"rule": spelled(rule), "source": rule.source} for rule in nothing],
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
        print(escape(f"  {rule.source}: {spelled(rule)}"))
    return code


async def _of_worker(bench: Workbench, worker: Worker) -> Answers:
    try:
        return of_worker(bench, worker, await bench.declarations(worker))
    except LlmDoError as error:
        return Answers(worker.id, error=str(error))


def _print(part: Answers) -> None:
    if part.error:
        print(f"  broken: {part.error}")
    elif not part.answers:
        print("  (no functions)")
    for answer in part.answers:
        named = answer.function if answer.function == answer.shown else f"{answer.function} ({answer.shown})"
        print(escape(f"  {answer.decision:5}  {' '.join(filter(None, (named, answer.subject))):48}  {answer.source}"))
        for said in answer.exceptions:
            print(escape(f"    {said.decision:5}  {said.subject:46}  {said.source}"))
