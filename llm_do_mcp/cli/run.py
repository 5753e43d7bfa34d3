"""`llm-do`: run a worker in the terminal, and look after runs."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_do_mcp.cli.exits import guarded
from llm_do_mcp.errors import UsageError

if TYPE_CHECKING:
    from llm_do_mcp.project.effective import Worker

EPILOG = """\
commands:
  llm-do PATH [INPUT]        run a project's entry worker, or a single .worker file
  llm-do demo                the example, end to end, over MCP
  llm-do list PATH           the workers and what they may call
  llm-do runs                runs of a project; `llm-do runs resume RUN` goes on with one

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
    made.add_argument("text", nargs="?", metavar="INPUT", help="what the worker is to do")
    made.add_argument("--input", metavar="JSON", help="the input as a JSON object, for a worker with an input schema")
    made.add_argument("--entry", metavar="ID", help="the worker to run (default: the project's entry)")
    made.add_argument("--model", metavar="M", help="the entry worker's model, such as anthropic:claude-haiku-4-5")
    made.add_argument("--json", action="store_true", help="print the result and the run's account as JSON")
    made.add_argument("--no-project", action="store_true", help="take a .worker file for itself, without its project")
    made.add_argument("--state-dir", metavar="DIR", help="where runs are recorded (default: .llm-do/ in the project)")
    approvals = made.add_mutually_exclusive_group()
    approvals.add_argument("--approve-all", action="store_true", help="approve every question without asking")
    approvals.add_argument("--approvals", choices=("ask", "deny"), default="ask", help="ask (default), or refuse")
    return made


def main(argv: list[str] | None = None) -> int:
    """Entry point of `llm-do`."""
    given = sys.argv[1:] if argv is None else argv
    commands: dict[str, Callable[[list[str]], int]] = {"demo": _demo, "runs": _runs, "list": _list}
    if given and given[0] in commands:
        return guarded(lambda: commands[given[0]](given[1:]), "llm-do")
    options = parser().parse_intermixed_args(given or ["--help"])
    return guarded(lambda: asyncio.run(_run(options)), "llm-do")


def _demo(given: list[str]) -> int:
    from llm_do_mcp.cli.demo import main as demo

    return demo(given)


def _runs(given: list[str]) -> int:
    from llm_do_mcp.cli.runs import main as runs

    return runs(given)


def _list(given: list[str]) -> int:
    from llm_do_mcp.cli.listing import main as listing

    return listing(given)


async def _run(options: argparse.Namespace) -> int:
    from llm_do_mcp.cli.front import drive
    from llm_do_mcp.cli.projects import load
    from llm_do_mcp.runtime.engine import Engine
    from llm_do_mcp.runtime.state import state_folder
    from llm_do_mcp.serving.surface import worker_declaration, worker_input
    from llm_do_mcp.toolsets.workbench import Workbench

    project = load(options.path, no_project=options.no_project)
    name = project.entry if options.entry is None else options.entry
    if name is None:
        raise UsageError(f"{options.path} has no entry worker; name one with --entry")
    bench = Workbench(project, model=options.model)
    worker = project.worker(name)
    value = worker_input(worker, _arguments(options, worker), ())
    definition = bench.define_call(worker_declaration(bench, worker, project.roots), value, ())
    engine = Engine(state_folder(Path(project.root), options.state_dir), bench.body)

    try:
        run = await engine.start(worker.id, definition)
        return await drive(engine, run, options)
    finally:
        await engine.aclose()
        await bench.aclose()


def _arguments(options: argparse.Namespace, worker: Worker) -> dict[str, Any]:
    from llm_do_mcp.runtime.schema import problem

    value = _given(options, worker)
    if (wrong := problem(worker.tool_schema, value)) is not None:
        raise UsageError(f"worker {worker.id}: {wrong}")
    return value


def _given(options: argparse.Namespace, worker: Worker) -> dict[str, Any]:
    if options.input is not None:
        if options.text is not None:
            raise UsageError("give INPUT or --input, not both")
        try:
            value = json.loads(options.input)
        except ValueError as error:
            raise UsageError(f"--input is not JSON: {error}") from None
        if not isinstance(value, dict):
            raise UsageError("--input must be a JSON object")
        return value
    if worker.input_schema is not None and options.text is not None:
        raise UsageError(f"worker {worker.id} has an input schema; give its input with --input JSON")
    return {} if worker.input_schema is not None else {"input": options.text or ""}


if __name__ == "__main__":
    sys.exit(main())
