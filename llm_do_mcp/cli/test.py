"""`llm-do test`: play the tests that a project brings along, or record a run for one."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import tempfile
from dataclasses import replace
from typing import TYPE_CHECKING, TextIO

from llm_do_mcp.cli.exits import DONE, FAILED, USAGE
from llm_do_mcp.cli.options import PROJECT, add_loading, add_state_dir, filled
from llm_do_mcp.cli.parser import Parser
from llm_do_mcp.cli.projects import load, opened, python_options, recorded
from llm_do_mcp.errors import UsageError

if TYPE_CHECKING:
    from llm_do_mcp.project.load import Project
    from llm_do_mcp.testing.play import Played
    from llm_do_mcp.testing.suite import Case


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = Parser(
        "llm-do test",
        "Play the tests of a project, its files tests/*.yaml, or record a run for one.",
        usage=("[PROJECT] [OPTION]…", "[PROJECT] --record RUN FILE"),
        notes=("Each test is played in a copy of the project: it changes nothing, and sees nothing of another test.",),
        examples={
            "llm-do test my-notes --only summary": "those whose title has this in it",
            "llm-do test my-notes --record last tests/monday.json": "for `model: replay:tests/monday.json`",
        },
        environment=("LLM_DO_PROJECT", "LLM_DO_PATH", "LLM_DO_LIBS"),
        exits={DONE: "all passed", FAILED: "one failed", USAGE: "they cannot be played"},
        more="Check and test",
    )
    made.add_argument("path", nargs="?", metavar="PROJECT", help=PROJECT)
    made.add_argument("--only", metavar="TEXT", default="", help="only tests whose title has this in it")
    made.add_argument("--list", action="store_true", help="list the tests, and play none")
    made.add_argument("--model", type=filled, metavar="M", help="the model of all workers, whatever the tests name")
    made.add_argument("--junit", metavar="FILE", help="also write the outcome as JUnit XML")
    help = "write a run into a file of the project, for tests with `model: replay:FILE`"
    made.add_argument("--record", nargs=2, metavar=("RUN", "FILE"), help=help)
    add_state_dir(made)
    add_loading(made)
    return made


def main(given: list[str]) -> int:
    """Entry point of `llm-do test`."""
    options = parser().parse_intermixed_args(given)
    return asyncio.run(_record(options) if options.record else _test(options))


async def _record(options: argparse.Namespace) -> int:
    from llm_do_mcp.runtime.redact import redactor
    from llm_do_mcp.testing.recording import record

    name, file = options.record
    project = opened(options.path, options)
    async with recorded(project, options.state_dir, name) as (store, row):
        await record(store, row, redactor(os.environ, project.manifest), project.root, file)
    ended = "" if row.status == "done" else f", which is {row.status}, not done,"
    print(f"recorded run {row.id}{ended} in {file}; look through it before you commit it")
    return DONE


async def _test(options: argparse.Namespace) -> int:
    from llm_do_mcp.runtime.display import counted
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
    with _report(options.junit) as junit:
        for case in cases:
            one = await _play(replace(case, model=options.model or case.model), original, options)
            played.append(one)
            _show(one)
        if junit is not None:
            junit.write(report(played))
    failed = sum(bool(one.failures) for one in played)
    called = sum(one.model_called for one in played)
    asked = f"a model was called in {called}" if called else "no model was called"
    print(f"{counted(len(played), 'test')}: {len(played) - failed} passed, {failed} failed ({asked})")
    return FAILED if failed else DONE


def _report(name: str | None) -> contextlib.AbstractContextManager[TextIO | None]:
    """The file of `--junit`, opened before anything is played: a report of before is none of these tests."""
    if name is None:
        return contextlib.nullcontext()
    try:
        return open(name, "w", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--junit: {name} cannot be written: {error.strerror}") from None


async def _play(case: Case, original: Project, options: argparse.Namespace) -> Played:
    from llm_do_mcp.testing.copies import copied
    from llm_do_mcp.testing.play import play

    with copied(original.root) as folder, tempfile.TemporaryFile() as printed:
        python = replace(
            python_options(options),
            state_folder=lambda root: os.path.join(root, ".llm-do"),
            prints_to=printed.fileno(),
        )
        return await play(case, load(folder, libs=options.libs, python=python), original.root, printed)


def _show(one: Played) -> None:
    print(f"{'FAILED' if one.failures else 'ok    '} {one.case.title} ({one.seconds:.1f} s)", flush=True)
    for line in one.failures:
        print(f"       {line}")
    if one.failures and one.printed:
        print("       printed:")
        for line in one.printed:
            print(f"         {line}")
