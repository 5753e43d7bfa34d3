"""`llm-do runs`: the runs of a project, and going on with one that was left."""

from __future__ import annotations

import argparse
import asyncio
import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from llm_do_mcp.cli.exits import DONE, MEANINGS
from llm_do_mcp.cli.options import RUN, add_approvals, add_project
from llm_do_mcp.cli.parser import Parser
from llm_do_mcp.cli.projects import driving, living, named, reading, recorded, state_of
from llm_do_mcp.runtime import account

if TYPE_CHECKING:
    from llm_do_mcp.runtime.store import Store

NOTHING = account.spent(())
"""What a run spent in which no model had a turn."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = Parser(
        "llm-do runs",
        "List the runs of a project, or go on with one.",
        usage=("[OPTION]…", "resume RUN [OPTION]…", "prune …"),
        notes=("`llm-do runs prune` removes old ones, and has a help of its own.",),
        examples={
            "llm-do runs --project my-notes": "list them",
            "llm-do runs resume last --project my-notes": "go on with the newest",
            "llm-do runs prune --help": "how to remove old ones",
        },
        environment=("ANTHROPIC_API_KEY", "LLM_DO_MODEL", "LLM_DO_PROJECT"),
        exits=MEANINGS,
        more="Runs",
    )
    made.add_argument("action", nargs="?", choices=("resume",), help="go on with a run that no process drives")
    made.add_argument("run", nargs="?", metavar="RUN", help=RUN)
    made.add_argument("--json", action="store_true", help="print JSON")
    add_approvals(made)
    add_project(made)
    return made


def main(given: list[str]) -> int:
    """Entry point of `llm-do runs`."""
    if given[:1] == ["prune"]:
        from llm_do_mcp.cli.prune import main as prune

        return prune(given[1:])
    made = parser()
    options = made.parse_intermixed_args(given)
    if options.action == "resume" and options.run is None:
        made.error("resume needs the id of a run, as `llm-do runs` lists them")
    return asyncio.run(_resume(options) if options.action == "resume" else _show(options))


async def _show(options: argparse.Namespace) -> int:
    from llm_do_mcp.runtime.hint import of_project
    from llm_do_mcp.runtime.store import OPEN

    project = named(options)
    folder = state_of(project, options.state_dir)
    with reading(folder) as store:
        rows = [] if store is None else await store.runs()
        spent = {} if store is None else await _spent(store)
    if options.json:
        found = [
            {"id": row.id, "status": row.status, "worker": row.name, "created": row.created, "updated": row.updated}
            | spent.get(row.id, NOTHING)
            for row in rows
        ]
        print(json.dumps(found, indent=2))
        return DONE
    hint = of_project(project, options.state_dir)
    left = {row.owner for row in rows if row.status in OPEN}
    left -= living(folder, left) if left else set()
    for row in rows:
        began = datetime.fromtimestamp(row.created).strftime("%Y-%m-%d %H:%M:%S")
        how = ""
        if row.status in OPEN and row.owner in left:
            how = f"  → {hint('runs', 'resume', row.id)}"
        elif row.status == "waiting":
            how = f"  → {hint('approve', row.id)}"
        money = f"  {said}" if (said := account.money(spent.get(row.id, NOTHING))) else ""
        print(f"{row.id}  {began}  {row.updated - row.created:7.1f} s  {row.status:9}  {row.name}{money}{how}")
    return DONE


async def _spent(store: Store) -> dict[str, dict[str, Any]]:
    """What each run that had turns of a model spent on them."""
    places = ("model", "answered_by", "usage.input_tokens", "usage.output_tokens", "cost", "lost")
    turns: dict[str, list[dict[str, Any]]] = {}
    for run, model, answered, took, gave, cost, lost in await store.fields("model", *places):
        usage = {"input_tokens": took, "output_tokens": gave}
        priced = {} if cost is None else {"cost": cost}
        reply = {} if model is None else {"model": model, "answered_by": answered, "usage": usage, **priced}
        turns.setdefault(run, []).append({**reply, "lost": json.loads(lost or "[]")})
    return {run: account.spent(replies) for run, replies in turns.items()}


async def _resume(options: argparse.Namespace) -> int:
    from llm_do_mcp.cli.front import drive
    from llm_do_mcp.runtime.approvals import of_project
    from llm_do_mcp.toolsets.workbench import Workbench

    project = named(options)
    approvals = of_project(options.approvals, project.root)
    async with recorded(project, options.state_dir, options.run) as (_, row):
        run = row.id
    async with driving(Workbench(project, approvals=approvals), options.state_dir) as engine:
        await engine.resume(run)
        return await drive(engine, run, approvals, as_json=options.json)
