"""`llm-do`: run a worker in the terminal, and look after runs."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import sys

from llm_do_mcp.cli import given
from llm_do_mcp.cli.exits import MEANINGS, guarded
from llm_do_mcp.cli.options import MODEL, add_approvals, add_loading, add_state_dir, add_version, filled
from llm_do_mcp.cli.parser import Parser
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

HELP: dict[str, dict[str, str]] = {
    "Projects": {
        "init": "begin a project, from a template",
        "check": "show what a project amounts to, and what is wrong",
        "list": "list workers and published tools; --policy: what asks",
        "test": "play a project's tests, tests/*.yaml",
        "lib": "install, list, show, remove and lock libraries",
        "demo": "run the example end to end, over MCP",
    },
    "Runs": {
        "runs": "list them; `resume` goes on with one, `prune` removes",
        "trace": "show what happened in one; --html: as a page",
        "approve": "answer what waits for a person",
        "approvals": "lock what was approved, for --approvals locked",
    },
}
"""What is said of each command."""


def parser() -> argparse.ArgumentParser:
    """The command line that runs a worker."""
    made = Parser(
        "llm-do",
        "Run a worker, a prompt packaged with its configuration, as one calls a function.",
        usage=("PROJECT [INPUT] [OPTION]…", "COMMAND …"),
        commands=HELP,
        examples={
            "llm-do init my-notes": "begin a project",
            'llm-do my-notes "What do the notes say?"': "run its entry worker",
            "llm-do trace last --project my-notes": "see what it did",
        },
        environment=(
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_BASE_URL",
            "LLM_DO_MODEL",
            "LLM_DO_PROJECT",
            "LLM_DO_PATH",
            "LLM_DO_LIBS",
            "LLM_DO_DEBUG",
        ),
        exits=MEANINGS,
        more="Your own worker in five minutes",
        notes=["Standard output has the result and nothing else. `llm-do COMMAND --help` tells more of a command."],
    )
    made.add_argument("path", metavar="PROJECT", help="a project's folder, a .worker file, or a name in LLM_DO_PATH")
    given.add_options(made)
    made.add_argument("--entry", metavar="ID", help="the worker to run (default: the project's entry)")
    made.add_argument("--model", type=filled, metavar="M", help=MODEL)
    made.add_argument("--json", action="store_true", help="print the result and the run's account as JSON")
    add_state_dir(made)
    instead = made.add_mutually_exclusive_group()
    instead.add_argument("--list-workers", action="store_true", help="list the workers, and run none")
    instead.add_argument("--check", action="store_true", help="look for all that is wrong, and run nothing")
    add_version(made)
    add_approvals(made)
    add_loading(made)
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
