"""`llm-do test`: play the tests that a project brings along, or record a run for one."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from llm_do_mcp.cli.exits import DONE, FAILED
from llm_do_mcp.cli.options import Parser, add_loading, add_state_dir
from llm_do_mcp.cli.projects import load, opened, python_options, reading, run_named, state_of

if TYPE_CHECKING:
    from llm_do_mcp.project.load import Project
    from llm_do_mcp.testing.play import Played
    from llm_do_mcp.testing.suite import Case

EPILOG = """\
Each test is played in a copy of the project, so that nothing in the project changes and no test sees what another
wrote. Exit codes: 0 all passed, 1 one failed, 2 they cannot be played.
"""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = Parser(
        prog="llm-do test",
        description="Play the tests of a project: its files tests/*.yaml.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        "path", nargs="?", metavar="PROJECT", help="the project (default: LLM_DO_PROJECT, else the working directory)"
    )
    made.add_argument("--only", metavar="TEXT", default="", help="only tests whose title has this in it")
    made.add_argument("--list", action="store_true", help="list the tests, and play none")
    made.add_argument("--model", metavar="M", help="the model of all workers, whatever the tests name")
    made.add_argument("--junit", metavar="FILE", help="also write the outcome as JUnit XML")
    help = "write a run into a file of the project, such as tests/ada.json, for tests with `model: replay:FILE`"
    made.add_argument("--record", nargs=2, metavar=("RUN", "FILE"), help=help)
    add_loading(made)
    add_state_dir(made)
    return made


def main(given: list[str]) -> int:
    """Entry point of `llm-do test`."""
    options = parser().parse_intermixed_args(given)
    return asyncio.run(_record(options) if options.record else _test(options))


async def _record(options: argparse.Namespace) -> int:
    from llm_do_mcp.runtime.hint import of_project
    from llm_do_mcp.runtime.redact import redactor
    from llm_do_mcp.testing.recording import record

    name, file = options.record
    project = opened(options.path, options)
    with reading(state_of(project, options.state_dir)) as store:
        row = await run_named(store, name, of_project(project, options.state_dir))
        assert store is not None  # it has the run
        await record(store, row, redactor(os.environ, project.manifest), project.root, file)
    print(f"recorded run {row.id} in {file}; look through it before you commit it")
    return DONE


async def _test(options: argparse.Namespace) -> int:
    from llm_do_mcp.runtime.redact import guard_log, redactor
    from llm_do_mcp.testing import suite
    from llm_do_mcp.testing.junit import report

    original = opened(options.path, options)
    cases = suite.read(original.root, only=options.only)
    if options.list:
        for case in cases:
            print(case.title)
        return DONE
    redact = redactor(os.environ, original.manifest)
    guard_log(lambda: redact)
    played = []
    for case in cases:
        one = await _play(replace(case, model=options.model or case.model), original, options)
        played.append(one)
        _show(one)
    failed = sum(bool(one.failures) for one in played)
    called = sum(one.model_called for one in played)
    asked = f"a model was called in {called}" if called else "no model was called"
    print(f"{len(played)} tests: {len(played) - failed} passed, {failed} failed ({asked})")
    if options.junit:
        with open(options.junit, "w", encoding="utf-8") as file:
            file.write(report(played))
    return FAILED if failed else DONE


async def _play(case: Case, original: Project, options: argparse.Namespace) -> Played:
    from llm_do_mcp.testing.copies import copied
    from llm_do_mcp.testing.play import play

    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(copied(original.root))
        python = replace(python_options(options), state_folder=lambda root: os.path.join(root, ".llm-do"))
        return await play(case, load(folder, libs=options.libs, python=python))


def _show(one: Played) -> None:
    print(f"{'FAILED' if one.failures else 'ok    '} {one.case.title} ({one.seconds:.1f} s)", flush=True)
    for line in one.failures:
        print(f"       {line}")
