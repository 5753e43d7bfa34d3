"""`llm-do approvals lock RUN`: what a person approved in a run, written into the project's `approvals.lock`."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections import Counter
from typing import TYPE_CHECKING

from llm_do_mcp.cli import terminal
from llm_do_mcp.cli.exits import DONE
from llm_do_mcp.cli.options import RUN, add_project
from llm_do_mcp.cli.parser import Parser
from llm_do_mcp.cli.projects import named, recorded
from llm_do_mcp.errors import RunError, UsageError

if TYPE_CHECKING:
    from llm_do_mcp.runtime.lock import Entry


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = Parser(
        "llm-do approvals",
        "Write approvals.lock, for --approvals locked, from a run that a person approved.",
        usage="lock RUN [OPTION]…",
        notes=(
            "An argument is locked exactly as it was. --pattern widens it: of a path `alias/pattern` (`notes/*.md` is "
            "not notes/a/b.md, `notes/**` is), of other texts with `*`, `?` and `[…]` (one of these characters; `[[]` "
            "is a bracket); `*` alone is any value. An argument that holds a secret is locked by its sha256.",
        ),
        examples={
            "llm-do approvals lock last": "exactly what was approved",
            "llm-do approvals lock last --pattern 'files.write:content=*'": "whatever is written there",
        },
        environment=("LLM_DO_PROJECT",),
        more="In CI",
    )
    made.add_argument("action", choices=("lock",), help="add what was approved in a run to approvals.lock")
    made.add_argument("run", metavar="RUN", help=RUN)
    made.add_argument(
        "--pattern",
        metavar="[FUNCTION:]ARGUMENT=GLOB",
        action="append",
        default=[],
        help="allow this argument to be whatever fits the pattern; may be repeated",
    )
    add_project(made)
    return made


def main(given: list[str]) -> int:
    """Entry point of `llm-do approvals`."""
    return asyncio.run(_lock(parser().parse_intermixed_args(given)))


async def _lock(options: argparse.Namespace) -> int:
    from llm_do_mcp.runtime import lock
    from llm_do_mcp.runtime.display import counted
    from llm_do_mcp.runtime.redact import redactor

    project = named(options)
    async with recorded(project, options.state_dir, options.run) as (store, row):
        approved, secrets = lock.approved(await store.events(row.id)), await store.secrets(row.id)
    if not approved:
        raise RunError(f"nothing in run {row.id} was approved by a person; there is nothing to lock")
    entries = _widened([entry for entry, _ in approved], options.pattern)
    before = lock.read(project.root) or lock.Lock()
    redact = redactor(os.environ, project.manifest).knowing(secrets)
    after = before.merged(entries).without_secrets(redact).merged(())
    lock.write(project.root, after)
    gone = sum(entry not in after.entries for entry in before.entries)
    new = sum(entry not in before.entries for entry in after.entries)
    print(f"{lock.NAME}: {counted(len(after.entries), 'approval')} ({new} new, {gone} replaced)")
    by = Counter(answer.by for _, answer in approved)
    who = ", ".join(f"{name} ({count})" for name, count in by.items())
    terminal.say(f"approved in the run by: {who}. Review {lock.NAME} before you commit it")
    return DONE


def _widened(entries: list[Entry], given: list[str]) -> list[Entry]:
    from llm_do_mcp.runtime.lock import widened

    for pattern in given:
        left, equals, glob = pattern.partition("=")
        function, colon, argument = left.rpartition(":")
        if not equals or not argument or not glob or (colon and not function):
            raise UsageError(
                f"--pattern {pattern!r} is not of the form [FUNCTION:]ARGUMENT=GLOB, such as path=notes/*.md"
            )
        found = [widened(entry, function or "*", argument, glob) for entry in entries]
        if all(wider is None for wider in found):
            raise UsageError(f"--pattern {pattern!r} fits no argument that was approved in this run")
        entries = [wider or entry for wider, entry in zip(found, entries, strict=True)]
    return entries
