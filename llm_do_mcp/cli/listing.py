"""`llm-do list`: the workers of a project and what it publishes."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from llm_do_mcp.cli.exits import DONE, USAGE
from llm_do_mcp.cli.options import Parser
from llm_do_mcp.errors import LlmDoError, ProjectError

if TYPE_CHECKING:
    from llm_do_mcp.project.effective import Worker
    from llm_do_mcp.toolsets.workbench import Workbench


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = Parser(prog="llm-do list", description="List a project's workers and its published tools.")
    made.add_argument(
        "path", nargs="?", metavar="PATH", help="the project (default: LLM_DO_PROJECT, else the working directory)"
    )
    made.add_argument(
        "--policy", action="store_true", help="for each function, whether it runs, asks or is refused, and why"
    )
    made.add_argument("--json", action="store_true", help="print JSON")
    return made


def main(given: list[str]) -> int:
    """Entry point of `llm-do list`."""
    from llm_do_mcp.cli.projects import load
    from llm_do_mcp.serving.surface import publish
    from llm_do_mcp.toolsets.workbench import Workbench

    options = parser().parse_intermixed_args(given)
    project = load(options.path)
    workers = []
    for identifier in project.scan().workers:
        with contextlib.suppress(ProjectError):  # a broken one is listed as that
            workers.append(project.worker(identifier))
    bench = Workbench(project)
    tools = publish(bench)
    if options.policy:
        from llm_do_mcp.cli.policy import show

        return asyncio.run(show(bench, workers, tools.values(), as_json=options.json))
    broken = [*map(str, project.broken), *asyncio.run(_without_functions(bench, workers))]
    code = USAGE if broken else DONE
    if options.json:
        found = {
            "workers": [{"id": worker.id, "description": worker.description} for worker in workers],
            "tools": [{"name": tool.name, "calls": tool.subject} for tool in tools.values()],
            "broken": broken,
        }
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return code
    print(f"project {project.name}")
    for worker in workers:
        entry = "  (entry)" if worker.id == project.entry else ""
        print(f"  worker {worker.id}{entry}  {worker.description}".rstrip())
    for tool in tools.values():
        print(f"  tool   {tool.name}  → {tool.subject or 'runs'}")
    for error in broken:
        print(f"  broken {error}")
    return code


async def _without_functions(bench: Workbench, workers: Sequence[Worker]) -> list[str]:
    """Why workers whose files are whole cannot run: the functions that they name cannot be had."""
    found = []
    try:
        for worker in workers:
            try:
                await bench.declarations(worker)
            except LlmDoError as error:
                found.append(str(error) if worker.id in str(error) else f"worker {worker.id}: {error}")
    finally:
        await bench.aclose()
    return found
