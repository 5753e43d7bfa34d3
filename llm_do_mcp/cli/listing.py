"""`llm-do list`: the workers of a project and what it publishes; `--list-workers`: only the workers."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llm_do_mcp.cli.exits import DONE, FAILED, USAGE
from llm_do_mcp.cli.options import PROJECT, add_loading
from llm_do_mcp.cli.parser import Parser
from llm_do_mcp.cli.projects import opened, together
from llm_do_mcp.errors import LlmDoError, ProjectError, UsageError
from llm_do_mcp.runtime.display import escape

if TYPE_CHECKING:
    from llm_do_mcp.project.effective import Worker
    from llm_do_mcp.project.load import Project
    from llm_do_mcp.serving.names import Names
    from llm_do_mcp.toolsets.workbench import Workbench


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = Parser(
        "llm-do list",
        "List a project's workers, and the tools that it publishes.",
        usage="[PROJECT]… [OPTION]…",
        examples={
            "llm-do list my-notes --policy": "what runs and what asks, by which rule",
            "llm-do list notes shop": "the names of both, served together",
        },
        environment=("LLM_DO_MODEL", "LLM_DO_PROJECT", "LLM_DO_PATH", "LLM_DO_LIBS"),
        exits={DONE: "done", FAILED: "failed", USAGE: "the project, or one of its workers, cannot be used"},
        more="What is published",
    )
    made.add_argument("paths", nargs="*", metavar="PROJECT", help=f"{PROJECT}; several: as they are served together")
    made.add_argument(
        "--policy", action="store_true", help="for each function, whether it runs, asks or is refused, and why"
    )
    made.add_argument("--json", action="store_true", help="print JSON")
    add_loading(made)
    return made


def main(given: list[str]) -> int:
    """Entry point of `llm-do list`."""
    from llm_do_mcp.serving.names import Names
    from llm_do_mcp.serving.surface import publish
    from llm_do_mcp.toolsets.workbench import Workbench

    options = parser().parse_intermixed_args(given)
    projects = together(options.paths, options)
    beside = Names() if len(projects) > 1 else None
    if options.policy:
        from llm_do_mcp.cli.policy import show

        if beside is not None:
            raise UsageError("--policy: name one project")
        bench = Workbench(projects[0])
        whole = [worker for _, worker in _found(projects[0]) if not isinstance(worker, ProjectError)]
        return asyncio.run(show(bench, whole, publish(bench).values(), as_json=options.json))
    shown = [_shown(project, beside=beside) for project in projects]
    if options.json:
        print(json.dumps(shown[0] if beside is None else shown, indent=2, ensure_ascii=False))
    else:
        for project, one in zip(projects, shown, strict=True):
            _print(project, one)
    return USAGE if any(one["broken"] for one in shown) else DONE


def _shown(project: Project, *, beside: Names | None) -> dict[str, Any]:
    """What there is to say of a project; with `beside` as it is served together with others.

    Raises:
        ProjectError: It cannot be served so.
    """
    from llm_do_mcp.serving.surface import publish, worker_names
    from llm_do_mcp.toolsets.workbench import Workbench

    bench = Workbench(project)
    tools = publish(bench, beside=beside is not None)
    if beside is not None:
        beside.take(project, tools)
    listed = asyncio.run(_listed(bench))
    names = {identifier: name for name, identifier in worker_names(project, beside=beside is not None).items()}
    return {
        "project": project.name,
        "workers": [one.to_json(project, names) for one in listed if one.worker is not None],
        "tools": [{"name": tool.name, "calls": tool.subject} for tool in tools.values()],
        "broken": [*map(str, project.broken), *(one.error for one in listed if one.worker is not None and one.error)],
    }


def _print(project: Project, shown: dict[str, Any]) -> None:
    print(f"project {escape(project.name)}")
    for worker in shown["workers"]:
        entry = "  (entry)" if worker["entry"] else ""
        print(escape(f"  worker {worker['id']}{entry}  {worker['description']}".rstrip()))
    for tool in shown["tools"]:
        print(f"  tool   {tool['name']}  → {tool['calls'] or 'runs'}")
    for error in shown["broken"]:
        print(escape(f"  broken {error}"))


def list_workers(options: argparse.Namespace) -> int:
    """Print the workers that are found, one a line, also those that are broken.

    Args:
        options: `path`, `json` and those of `add_loading`.

    Returns:
        The exit code: as for `llm-do list`, 2 where one is broken.
    """
    from llm_do_mcp.toolsets.workbench import Workbench

    project = opened(options.path, options)
    listed = asyncio.run(_listed(Workbench(project)))
    nameless = project.scan().problems
    if options.json:
        names = {identifier: name for name, identifier in project.exports.items()}
        print(json.dumps([one.to_json(project, names) for one in listed], indent=2, ensure_ascii=False))
    else:
        width = max((len(one.id) for one in listed), default=0)
        for one in listed:
            what = f"broken: {one.error}" if one.error else one.description
            print(escape(f"{one.id:{width}}  {one.path}  {what}".rstrip()))
    for problem in nameless:
        print(escape(f"llm-do: {problem}"), file=sys.stderr)
    return USAGE if nameless or any(one.error for one in listed) else DONE


@dataclass(frozen=True)
class _Listed:
    """A worker that was found; without the worker itself where its file is broken, and with the reason where it is."""

    id: str
    path: str
    worker: Worker | None
    error: str | None = None

    @property
    def description(self) -> str:
        return self.worker.description if self.worker is not None else ""

    def to_json(self, project: Project, names: Mapping[str, str]) -> dict[str, Any]:
        """As data; `names` has the published ones by id."""
        return {
            "id": self.id,
            "path": self.path,
            "description": self.description,
            "entry": self.id == project.entry,
            "published": names.get(self.id),
            "error": self.error,
        }


async def _listed(bench: Workbench) -> list[_Listed]:
    """The workers, and what is wrong: with the file, or with the functions that it names."""
    places, found = bench.project.scan().workers, []
    try:
        for identifier, worker in _found(bench.project):
            if isinstance(worker, ProjectError):
                found.append(_Listed(identifier, places.get(identifier, ""), None, str(worker)))
                continue
            error = None
            try:
                await bench.declarations(worker)
            except LlmDoError as wrong:
                error = str(wrong) if worker.id in str(wrong) else f"worker {worker.id}: {wrong}"
            found.append(_Listed(identifier, worker.path, worker, error))
    finally:
        await bench.aclose()
    return found


def _found(project: Project) -> Iterator[tuple[str, Worker | ProjectError]]:
    """The workers that a scan finds, then those of libraries that are published, each by its id."""
    for identifier in {**project.scan().workers, **dict.fromkeys(project.exports.values())}:
        try:
            yield identifier, project.worker(identifier)
        except ProjectError as error:
            yield identifier, error
