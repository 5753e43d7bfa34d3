"""`llm-do list`: the workers of a project and what it publishes; `--list-workers`: only the workers."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llm_do_mcp.cli.exits import DONE, USAGE
from llm_do_mcp.cli.options import Parser, add_loading
from llm_do_mcp.cli.projects import opened
from llm_do_mcp.errors import LlmDoError, ProjectError
from llm_do_mcp.runtime.display import escape

if TYPE_CHECKING:
    from llm_do_mcp.project.effective import Worker
    from llm_do_mcp.project.load import Project
    from llm_do_mcp.toolsets.workbench import Workbench


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = Parser(prog="llm-do list", description="List a project's workers and its published tools.")
    made.add_argument(
        "path", nargs="?", metavar="PATH", help="the project (default: LLM_DO_PROJECT, else the working directory)"
    )
    add_loading(made)
    made.add_argument(
        "--policy", action="store_true", help="for each function, whether it runs, asks or is refused, and why"
    )
    made.add_argument("--json", action="store_true", help="print JSON")
    return made


def main(given: list[str]) -> int:
    """Entry point of `llm-do list`."""
    from llm_do_mcp.serving.surface import publish
    from llm_do_mcp.toolsets.workbench import Workbench

    options = parser().parse_intermixed_args(given)
    project = opened(options.path, options)
    listed = _listed(project)
    workers = [one.worker for one in listed if one.worker is not None]
    bench = Workbench(project)
    tools = publish(bench)
    if options.policy:
        from llm_do_mcp.cli.policy import show

        return asyncio.run(show(bench, workers, tools.values(), as_json=options.json))
    broken = [*map(str, project.broken), *asyncio.run(_without_functions(bench, workers))]
    code = USAGE if broken else DONE
    if options.json:
        found = {
            "project": project.name,
            "workers": [one.to_json(project) for one in listed if one.worker is not None],
            "tools": [{"name": tool.name, "calls": tool.subject} for tool in tools.values()],
            "broken": broken,
        }
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return code
    print(f"project {escape(project.name)}")
    for worker in workers:
        entry = "  (entry)" if worker.id == project.entry else ""
        print(escape(f"  worker {worker.id}{entry}  {worker.description}".rstrip()))
    for tool in tools.values():
        print(f"  tool   {tool.name}  → {tool.subject or 'runs'}")
    for error in broken:
        print(escape(f"  broken {error}"))
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


def list_workers(options: argparse.Namespace) -> int:
    """Print the workers that are found, one a line, also those that are broken.

    Args:
        options: `path`, `json` and those of `add_loading`.

    Returns:
        The exit code.
    """
    project = opened(options.path, options)
    listed = _listed(project)
    if options.json:
        print(json.dumps([one.to_json(project) for one in listed], indent=2, ensure_ascii=False))
        return DONE
    width = max((len(one.id) for one in listed), default=0)
    for one in listed:
        what = f"broken: {one.error}" if one.worker is None else one.worker.description
        print(escape(f"{one.id:{width}}  {one.path}  {what}".rstrip()))
    return DONE


@dataclass(frozen=True)
class _Listed:
    """A worker that was found; without the worker itself, but with the reason, where it is broken."""

    id: str
    path: str
    worker: Worker | None
    error: str | None = None

    def to_json(self, project: Project) -> dict[str, Any]:
        published = (name for name, identifier in project.exports.items() if identifier == self.id)
        return {
            "id": self.id,
            "path": self.path,
            "description": self.worker.description if self.worker is not None else "",
            "entry": self.id == project.entry,
            "published": next(published, None),
            "error": self.error,
        }


def _listed(project: Project) -> list[_Listed]:
    """The workers that a scan finds, then those of libraries that are published."""
    places = project.scan().workers
    found = []
    for identifier in {**places, **dict.fromkeys(project.exports.values())}:
        try:
            worker = project.worker(identifier)
            found.append(_Listed(identifier, worker.path, worker))
        except ProjectError as error:
            found.append(_Listed(identifier, places.get(identifier, ""), None, str(error)))
    return found
