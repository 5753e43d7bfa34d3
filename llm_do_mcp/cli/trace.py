"""`llm-do trace RUN`: what happened in a run, as a tree in the terminal, as JSON, or as a page to look at."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from llm_do_mcp.cli.exits import DONE
from llm_do_mcp.cli.options import RUN, add_project
from llm_do_mcp.cli.parser import Parser
from llm_do_mcp.cli.projects import living, named, recorded, state_of
from llm_do_mcp.errors import UsageError
from llm_do_mcp.runtime.display import escape
from llm_do_mcp.runtime.trace import Item, Trace, trace
from llm_do_mcp.runtime.trace_words import decided, line, status, summary, title

WIDTH = 160
"""Columns of a line where the output is no terminal."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = Parser(
        "llm-do trace",
        "Show what happened in a run: turns, calls and questions, with their times.",
        usage="RUN [OPTION]…",
        notes=("Secrets of the environment, also of the one it ran in, are left out, and what `redact` names.",),
        examples={"llm-do trace last": "", "llm-do trace last --html run.html": ""},
        environment=("LLM_DO_PROJECT",),
        more="Runs",
    )
    made.add_argument("run", metavar="RUN", help=RUN)
    form = made.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument(
        "--html",
        nargs="?",
        const="",
        metavar="FILE",
        help="write one self-contained page (default: trace-RUN.html; `-` is standard output)",
    )
    add_project(made)
    return made


def main(given: list[str]) -> int:
    """Entry point of `llm-do trace`."""
    options = parser().parse_intermixed_args(given)
    found = asyncio.run(_read(options))
    if options.json:
        shown = json.dumps(found.to_json(), ensure_ascii=False, indent=2)
        print(shown.encode(errors="backslashreplace").decode())  # half a pair of surrogates is written so in JSON too
    elif options.html is not None:
        _write_page(found, options.html or f"trace-{found.run}.html")
    else:
        columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDTH
        print("\n".join(lines(found, columns)))
    return DONE


async def _read(options: argparse.Namespace) -> Trace:
    from llm_do_mcp.runtime.redact import redactor

    project = named(options)
    async with recorded(project, options.state_dir, options.run) as (store, row):
        events, secrets = await store.events(row.id), await store.secrets(row.id)
    driven = bool(living(state_of(project, options.state_dir), (row.owner,)))
    redact = redactor(os.environ, project.manifest).knowing(secrets)
    return trace(row, events, driven=driven, now=time.time(), redact=redact)


def _write_page(found: Trace, name: str) -> None:
    from llm_do_mcp.cli.trace_html import page

    text = page(found)
    if name == "-":
        print(text)
        return
    try:
        Path(name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{name} cannot be written: {error.strerror}") from None
    print(name)


# ---- the terminal


def lines(found: Trace, columns: int) -> list[str]:
    """The tree and what matters in it, each line no longer than `columns`."""
    shown = [f"run {found.run}  {found.name}  {status(found)}"]
    facts = [f"{label} {value}" for label, value in summary(found) if value not in ("0", "0 ms")]
    shown += [" · ".join(facts[:3]), " · ".join(facts[3:])]
    if found.error:
        shown.append(f"error: {found.error}")
    shown += ["", *(f"{_offset(found, item)}  {text}" for item, text in _branches(found.items, "", root=True))]
    listed = {
        "models passed over": [f"{title(item)}: {error}" for item, error in found.passed_over()],
        "failed": [f"{title(item)}: {item.facts.get('error', '')}" for item in found.of("failed")],
        "in doubt, and may have happened": [_place(item) for item in found.of("in_doubt")],
        "questions": [f"{title(item)}: {decided(item)}" for item in found.questions()],
        "files changed": list(found.account["files_changed"]),
    }
    for head, entries in listed.items():
        if entries:
            shown += ["", f"{head}:", *(f"  {entry}" for entry in entries)]
    return [_fit(text, columns) for text in shown]


def _branches(items: Sequence[Item], indent: str, *, root: bool = False) -> Iterator[tuple[Item, str]]:
    for index, item in enumerate(items):
        last = index == len(items) - 1
        stem, below = ("", "") if root else ("└─ ", "   ") if last else ("├─ ", "│  ")
        yield item, indent + stem + line(item)
        yield from _branches(item.children, indent + below)


def _place(item: Item) -> str:
    return f"{item.name} {item.facts.get('arguments') or ''}".rstrip()


def _offset(found: Trace, item: Item) -> str:
    return f"{item.started - found.started:8.3f}"


def _fit(line: str, columns: int) -> str:
    line = escape(line)
    return line if len(line) <= columns else f"{line[: columns - 1]}…"
