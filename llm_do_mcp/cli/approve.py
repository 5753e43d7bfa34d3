"""`llm-do approve`: answer the questions that wait, whichever process drives their runs.

An answer is written into the record; a living process takes it up from there, and what it asks next is asked here
too. A run whose process is gone goes on here, in this terminal.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from functools import partial

from llm_do_mcp.cli import terminal
from llm_do_mcp.cli.exits import DONE, FAILED, INTERRUPTED, PAUSED, USAGE
from llm_do_mcp.cli.front import drive
from llm_do_mcp.cli.options import RUN, add_project
from llm_do_mcp.cli.parser import Parser
from llm_do_mcp.cli.projects import driving, named, run_named
from llm_do_mcp.runtime.approvals import Approvals
from llm_do_mcp.runtime.engine import ANSWERS_EVERY_S, Engine, Waiting
from llm_do_mcp.runtime.question import text
from llm_do_mcp.runtime.state import RECORD
from llm_do_mcp.runtime.store import OPEN


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = Parser(
        "llm-do approve",
        "Answer the questions that wait, also while a server runs.",
        usage="[RUN] [OPTION]…",
        notes=("Without a terminal they are listed.",),
        examples={"llm-do approve --project my-notes": "", "llm-do approve --json": ""},
        environment=("LLM_DO_PROJECT",),
        exits=(DONE, FAILED, USAGE, PAUSED, INTERRUPTED),
        more="Approvals",
    )
    made.add_argument("run", nargs="?", metavar="RUN", help=f"only the questions of this run: {RUN}")
    made.add_argument("--json", action="store_true", help="list what waits as JSON, and ask nothing")
    add_project(made)
    return made


def main(given: list[str]) -> int:
    """Entry point of `llm-do approve`."""
    return asyncio.run(_approve(parser().parse_intermixed_args(given)))


async def _approve(options: argparse.Namespace) -> int:
    from llm_do_mcp.toolsets.workbench import Workbench

    project = named(options)
    async with driving(Workbench(project), options.state_dir) as engine:
        store = engine.store if _recorded(engine) else None
        run = None if options.run is None else (await run_named(store, options.run, engine.hint)).id
        if options.json or not terminal.has_person():
            return _show(await _waiting(engine, run), as_json=options.json)
        return await _ask(engine, run)


async def _waiting(engine: Engine, run: str | None) -> list[Waiting]:
    waiting = await engine.waiting() if _recorded(engine) else []
    return [each for each in waiting if run in (None, each.run)]


def _recorded(engine: Engine) -> bool:
    """Whether there is any record: to look at a project makes none."""
    return (engine.folder / RECORD).exists()


def _show(waiting: list[Waiting], *, as_json: bool) -> int:
    if as_json:
        found = [
            {
                "run": each.run,
                "question": each.question.key,
                "function": each.question.function,
                "target": each.question.target,
                "decisions": list(each.question.decisions),
                "driven": each.driven,
                "asked": each.asked,
            }
            for each in waiting
        ]
        print(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        for each in waiting:
            print(f"run {each.run}\n{text(each.question)}\n")
    return PAUSED if waiting else DONE


async def _ask(engine: Engine, only: str | None) -> int:
    """Put question after question at the prompt, until the runs that were answered have ended."""
    runs: dict[str, None] = {}
    codes = [DONE]
    while True:
        if waiting := await _waiting(engine, only):
            each = waiting[0]
            question = each.question
            answer = await terminal.ask(
                f"run {each.run} ({each.name})\n{text(question)}",
                question.decisions,
                elsewhere=partial(engine.settled, each.run, question.key),
            )
            if answer is not None and answer.silence is not None:
                return PAUSED
            if answer is not None and not await engine.answer(each.run, question.key, answer):
                terminal.say("too late: that question was settled already")
            runs[each.run] = None
            if each.driven and answer is not None and answer.decision == "run":
                await asyncio.sleep(2 * ANSWERS_EVERY_S)  # its process settles what else this decision covers
            continue
        if not runs:
            terminal.say("nothing waits for a decision")
        for run in tuple(runs):
            row = await engine.store.get(run)
            if row is not None and row.status in OPEN and engine.lease.alive(row.owner):
                continue
            del runs[run]
            if row is None or row.status not in OPEN:
                terminal.say(f"run {run} has ended" + (f" ({row.status})" if row is not None else ""))
                continue
            terminal.say(f"run {run} goes on here: its process is gone")
            await engine.resume(run)
            codes.append(await drive(engine, run, Approvals()))
        if not runs:
            return max(codes)
        await asyncio.sleep(ANSWERS_EVERY_S)
