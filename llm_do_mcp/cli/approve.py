"""`llm-do approve`: answer the questions that wait, whichever process drives their runs.

An answer is written into the record; a living process takes it up from there, and what it asks next is asked here
too. A run whose process is gone goes on here, in this terminal.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from pathlib import Path

from llm_do_mcp.cli import terminal
from llm_do_mcp.cli.exits import DONE, PAUSED
from llm_do_mcp.cli.front import drive
from llm_do_mcp.errors import RunError
from llm_do_mcp.runtime.approvals import Approvals
from llm_do_mcp.runtime.display import cut, escape
from llm_do_mcp.runtime.engine import ANSWERS_EVERY_S, Engine, Waiting
from llm_do_mcp.runtime.question import text
from llm_do_mcp.runtime.store import OPEN


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="llm-do approve",
        description="Answer the questions that wait, also while the server runs. Without a terminal, list them.",
    )
    made.add_argument("run", nargs="?", metavar="RUN", help="only the questions of this run")
    made.add_argument(
        "--project", metavar="DIR", help="the project (default: LLM_DO_PROJECT, else the working directory)"
    )
    made.add_argument("--state-dir", metavar="DIR", help="where runs are recorded (default: .llm-do/ in the project)")
    made.add_argument("--json", action="store_true", help="list what waits as JSON, and ask nothing")
    return made


def main(given: list[str]) -> int:
    """Entry point of `llm-do approve`."""
    return asyncio.run(_approve(parser().parse_intermixed_args(given)))


async def _approve(options: argparse.Namespace) -> int:
    from llm_do_mcp.cli.projects import load
    from llm_do_mcp.runtime.redact import redactor
    from llm_do_mcp.runtime.state import state_folder
    from llm_do_mcp.toolsets.workbench import Workbench

    project = load(options.project)
    bench = Workbench(project)
    folder = state_folder(Path(project.root), options.state_dir)
    engine = Engine(folder, bench.body, redactor(os.environ, project.manifest))
    try:
        waiting = await _waiting(engine, options.run)
        if options.json or not terminal.has_person():
            return _show(waiting, as_json=options.json)
        return await _ask(engine, options, project.root)
    finally:
        await engine.aclose(bench.kill)
        await bench.aclose()


async def _waiting(engine: Engine, run: str | None) -> list[Waiting]:
    recorded = (engine.folder / "runs.sqlite3").exists()
    if run is not None and (not recorded or await engine.store.get(run) is None):
        raise RunError(f"there is no run {cut(escape(run), 40)}; `llm-do runs` lists those there are")
    if not recorded:
        return []
    return [waiting for waiting in await engine.waiting() if run in (None, waiting.run)]


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


async def _ask(engine: Engine, options: argparse.Namespace, project: str) -> int:
    """Put question after question at the prompt, until the runs that were answered have ended."""
    runs: dict[str, None] = {}
    codes = [DONE]
    while True:
        if waiting := await _waiting(engine, options.run):
            each = waiting[0]
            answer = await terminal.ask(f"run {each.run} ({each.name})\n{text(each.question)}", each.question.decisions)
            if answer.silence is not None:
                return PAUSED
            if not await engine.answer(each.run, each.question.key, answer):
                terminal.say("too late: that question was settled already")
            runs[each.run] = None
            if each.driven and answer.decision == "run":
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
            driving = argparse.Namespace(approve_all=False, json=False)
            codes.append(await drive(engine, run, driving, Approvals(), project))
        if not runs:
            return max(codes)
        await asyncio.sleep(ANSWERS_EVERY_S)
