"""`llm-do runs`: the runs of a project, and going on with one that was left."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from datetime import datetime
from pathlib import Path

from llm_do_mcp.cli.exits import DONE
from llm_do_mcp.cli.front import drive
from llm_do_mcp.runtime.approvals import HELP, MODES


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="llm-do runs",
        description="List the runs of a project, or go on with one. `llm-do runs prune` removes old ones.",
    )
    made.add_argument("action", nargs="?", choices=("resume",), help="go on with a run that no process drives")
    made.add_argument("run", nargs="?", metavar="RUN", help="the run's id")
    made.add_argument(
        "--project", metavar="DIR", help="the project (default: LLM_DO_PROJECT, else the working directory)"
    )
    made.add_argument("--state-dir", metavar="DIR", help="where runs are recorded (default: .llm-do/ in the project)")
    made.add_argument("--json", action="store_true", help="print JSON")
    approvals = made.add_mutually_exclusive_group()
    approvals.add_argument("--approve-all", action="store_true", help="approve every question without asking")
    approvals.add_argument("--approvals", choices=MODES, default="ask", help=HELP)
    return made


def main(given: list[str]) -> int:
    """Entry point of `llm-do runs`."""
    if given[:1] == ["prune"]:
        from llm_do_mcp.cli.prune import main as prune

        return prune(given[1:])
    made = parser()
    options = made.parse_intermixed_args(given)
    if options.action == "resume" and options.run is None:
        made.error("runs resume needs the id of a run; `llm-do runs` lists them")
    return asyncio.run(_resume(options) if options.action == "resume" else _show(options))


async def _show(options: argparse.Namespace) -> int:
    from llm_do_mcp.cli.projects import load
    from llm_do_mcp.runtime.state import state_folder
    from llm_do_mcp.runtime.store import OPEN, Store

    project = load(options.project)
    path = state_folder(Path(project.root), options.state_dir) / "runs.sqlite3"
    rows = []
    if path.exists():
        store = Store(path)
        try:
            rows = await store.runs()
        finally:
            store.close()
    if options.json:
        found = [
            {"id": row.id, "status": row.status, "worker": row.name, "created": row.created, "updated": row.updated}
            for row in rows
        ]
        print(json.dumps(found, indent=2))
        return DONE
    for row in rows:
        began = datetime.fromtimestamp(row.created).strftime("%Y-%m-%d %H:%M:%S")
        hint = "  (llm-do runs resume)" if row.status in OPEN else ""
        print(f"{row.id}  {began}  {row.updated - row.created:7.1f} s  {row.status:9}  {row.name}{hint}")
    return DONE


async def _resume(options: argparse.Namespace) -> int:
    from llm_do_mcp.cli.projects import load
    from llm_do_mcp.runtime.approvals import of_project
    from llm_do_mcp.runtime.engine import Engine
    from llm_do_mcp.runtime.redact import redactor
    from llm_do_mcp.runtime.state import state_folder
    from llm_do_mcp.toolsets.workbench import Workbench

    project = load(options.project)
    approvals = of_project(options.approvals, project.root)
    bench = Workbench(project, approvals=approvals)
    folder = state_folder(Path(project.root), options.state_dir)
    engine = Engine(folder, bench.body, redactor(os.environ, project.manifest))
    try:
        await engine.resume(options.run)
        return await drive(engine, options.run, options, approvals, project.root)
    finally:
        await engine.aclose(bench.kill)
        await bench.aclose()
