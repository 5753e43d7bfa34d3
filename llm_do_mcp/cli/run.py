"""`llm-do`: run a worker in the terminal, and look after runs."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from llm_do_mcp.cli import given
from llm_do_mcp.cli.exits import guarded
from llm_do_mcp.errors import UsageError
from llm_do_mcp.runtime.approvals import HELP, MODES

if TYPE_CHECKING:
    pass

EPILOG = """\
commands:
  llm-do PATH [INPUT]        run a project's entry worker, or a single .worker file
  llm-do demo                the example, end to end, over MCP
  llm-do list PATH           the workers and what is published; --policy: what may run, what asks
  llm-do runs                runs of a project; `llm-do runs resume RUN` goes on with one,
                             `llm-do runs prune` removes old ones
  llm-do trace RUN           what happened in a run; --html: a page to look at
  llm-do approve [RUN]       answer the questions that wait, also while the server runs
  llm-do approvals lock RUN  write approvals.lock from a run, for --approvals locked

exit codes: 0 done, 1 failed, 2 usage or project error, 3 done but something was refused,
            4 waits for a person, 130 interrupted
"""


def parser() -> argparse.ArgumentParser:
    """The command line that runs a worker."""
    made = argparse.ArgumentParser(
        prog="llm-do",
        description="Run a worker: a prompt packaged with its configuration, called like a function.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("path", metavar="PATH", help="a project's folder, or a .worker file")
    given.add_options(made)
    made.add_argument("--entry", metavar="ID", help="the worker to run (default: the project's entry)")
    made.add_argument("--model", metavar="M", help="the entry worker's model, such as anthropic:claude-haiku-4-5")
    made.add_argument("--json", action="store_true", help="print the result and the run's account as JSON")
    made.add_argument("--no-project", action="store_true", help="take a .worker file for itself, without its project")
    made.add_argument("--state-dir", metavar="DIR", help="where runs are recorded (default: .llm-do/ in the project)")
    approvals = made.add_mutually_exclusive_group()
    approvals.add_argument("--approve-all", action="store_true", help="approve every question without asking")
    approvals.add_argument("--approvals", choices=MODES, default="ask", help=HELP)
    return made


def main(argv: list[str] | None = None) -> int:
    """Entry point of `llm-do`."""
    words = sys.argv[1:] if argv is None else argv
    commands: dict[str, Callable[[list[str]], int]] = {
        "demo": _demo,
        "runs": _runs,
        "trace": _trace,
        "list": _list,
        "approvals": _approvals,
        "approve": _approve,
    }
    if words and words[0] in commands:
        return guarded(lambda: commands[words[0]](words[1:]), "llm-do")
    options = parser().parse_intermixed_args(words or ["--help"])
    return guarded(lambda: asyncio.run(_run(options)), "llm-do")


def _demo(given: list[str]) -> int:
    from llm_do_mcp.cli.demo import main as demo

    return demo(given)


def _runs(given: list[str]) -> int:
    from llm_do_mcp.cli.runs import main as runs

    return runs(given)


def _trace(given: list[str]) -> int:
    from llm_do_mcp.cli.trace import main as trace

    return trace(given)


def _approvals(given: list[str]) -> int:
    from llm_do_mcp.cli.approvals import main as approvals

    return approvals(given)


def _approve(given: list[str]) -> int:
    from llm_do_mcp.cli.approve import main as approve

    return approve(given)


def _list(given: list[str]) -> int:
    from llm_do_mcp.cli.listing import main as listing

    return listing(given)


async def _run(options: argparse.Namespace) -> int:
    from llm_do_mcp.cli.front import drive
    from llm_do_mcp.cli.projects import load
    from llm_do_mcp.runtime.approvals import of_project
    from llm_do_mcp.runtime.engine import Engine
    from llm_do_mcp.runtime.redact import redactor
    from llm_do_mcp.runtime.state import state_folder
    from llm_do_mcp.serving.surface import worker_declaration, worker_input
    from llm_do_mcp.toolsets.workbench import Workbench

    project = load(options.path, no_project=options.no_project)
    name = project.entry if options.entry is None else options.entry
    if name is None:
        raise UsageError(f"{options.path} has no entry worker; name one with --entry")
    approvals = of_project(options.approvals, project.root)
    bench = Workbench(project, model=options.model, approvals=approvals)
    worker = project.worker(name)
    value = given.arguments(options, worker)
    roots, attachments = given.attached(options.attach)
    value = worker_input(worker, value, ()) | ({"attachments": attachments} if attachments else {})
    definition = bench.define_call(worker_declaration(bench, worker, (*project.roots, *roots)), value, ())
    folder = state_folder(Path(project.root), options.state_dir)
    engine = Engine(folder, bench.body, redactor(os.environ, project.manifest))

    try:
        run = await engine.start(worker.id, definition)
        return await drive(engine, run, options, approvals, project.root)
    finally:
        await engine.aclose(bench.kill)
        await bench.aclose()


if __name__ == "__main__":
    sys.exit(main())
