"""`llm-do`: run a worker in the terminal, and look after runs."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import sys

from llm_do_mcp.cli import given
from llm_do_mcp.cli.exits import guarded
from llm_do_mcp.cli.options import MODEL, Parser, add_approvals, add_loading, add_state_dir, add_version
from llm_do_mcp.errors import ModelError, UsageError

COMMANDS = {
    "check": "check",
    "demo": "demo",
    "init": "init",
    "runs": "runs",
    "trace": "trace",
    "list": "listing",
    "approvals": "approvals",
    "approve": "approve",
    "lib": "lib",
    "test": "test",
}
"""Each command's module in this package, of which only the one that is wanted is imported."""

EPILOG = """\
commands:
  llm-do PATH [INPUT]        run a project's entry worker, or a single .worker file
  llm-do NAME [INPUT]        the same, from the folders of LLM_DO_PATH (default: ~/.llm-do/workers)
  llm-do demo                the example, end to end, over MCP
  llm-do init NAME           begin a project; --list-templates: what with
  llm-do check [PATH]        what a project amounts to, and all that is wrong with it
  llm-do list [PATH]         the workers and what is published; --policy: what may run, what asks
  llm-do test [PATH]         play the tests that a project brings along, tests/*.yaml
  llm-do runs                runs of a project; `llm-do runs resume RUN` goes on with one,
                             `llm-do runs prune` removes old ones
  llm-do trace RUN           what happened in a run; --html: a page to look at
  llm-do approve [RUN]       answer the questions that wait, also while the server runs
  llm-do lib                 install, list, remove and show libraries, and lock those of a project
  llm-do approvals lock RUN  write approvals.lock from a run, for --approvals locked

exit codes: 0 done, 1 failed, 2 usage or project error, 3 done but something was refused,
            4 waits for a person, 130 interrupted
"""


def parser() -> argparse.ArgumentParser:
    """The command line that runs a worker."""
    made = Parser(
        prog="llm-do",
        description="Run a worker: a prompt packaged with its configuration, called like a function.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("path", metavar="PATH", help="a project's folder, a .worker file, or a name in LLM_DO_PATH")
    given.add_options(made)
    made.add_argument("--entry", metavar="ID", help="the worker to run (default: the project's entry)")
    made.add_argument("--model", metavar="M", help=MODEL)
    made.add_argument("--json", action="store_true", help="print the result and the run's account as JSON")
    add_loading(made)
    add_state_dir(made)
    instead = made.add_mutually_exclusive_group()
    instead.add_argument("--list-workers", action="store_true", help="list the workers, and run none")
    instead.add_argument("--check", action="store_true", help="look for all that is wrong, and run nothing")
    add_approvals(made)
    add_version(made)
    return made


def main(argv: list[str] | None = None) -> int:
    """Entry point of `llm-do`."""
    words = sys.argv[1:] if argv is None else argv
    if words and words[0] in COMMANDS:
        return guarded(lambda: _command(words[0], words[1:]), "llm-do")
    options = parser().parse_intermixed_args(words or ["--help"])
    if options.check or options.list_workers:
        return guarded(lambda: _looked_at(options), "llm-do")
    return guarded(lambda: asyncio.run(_run(options)), "llm-do")


def _command(name: str, words: list[str]) -> int:
    module = importlib.import_module(f"llm_do_mcp.cli.{COMMANDS[name]}")
    code: int = module.main(words)
    return code


def _looked_at(options: argparse.Namespace) -> int:
    """`--check` and `--list-workers`."""
    from llm_do_mcp.cli.check import check
    from llm_do_mcp.cli.listing import list_workers

    return check(options) if options.check else list_workers(options)


async def _run(options: argparse.Namespace) -> int:
    from llm_do_mcp.cli.front import drive
    from llm_do_mcp.cli.projects import driving, model_named, opened
    from llm_do_mcp.runtime.approvals import of_project
    from llm_do_mcp.serving.surface import worker_declaration, worker_input
    from llm_do_mcp.toolsets.workbench import Workbench

    project = opened(options.path, options)
    name = project.entry if options.entry is None else options.entry
    if name is None:
        raise UsageError(f"{options.path} has no entry worker; name one with --entry")
    approvals = of_project(options.approvals, project.root)
    worker = project.worker(name)
    model = await model_named(options.model, project, options.state_dir)
    bench = Workbench(project, entry=worker.id, model=model, approvals=approvals)
    try:
        bench.check_model(worker)
    except ModelError as error:
        raise UsageError(str(error)) from None
    value = given.arguments(options, worker)
    roots, attachments = given.attached(project, worker, options.attach)
    value = worker_input(worker, value, ()) | ({"attachments": attachments} if attachments else {})
    definition = bench.define_call(worker_declaration(bench, worker, (*project.roots, *roots)), value, ())
    async with driving(bench, options.state_dir) as engine:
        await bench.check(worker)
        run = await engine.start(worker.id, definition)
        return await drive(engine, run, approvals, as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
