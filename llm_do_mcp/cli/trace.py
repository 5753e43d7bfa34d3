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
from llm_do_mcp.errors import RunError, UsageError
from llm_do_mcp.runtime.account import NO_MODEL
from llm_do_mcp.runtime.display import cut, escape
from llm_do_mcp.runtime.trace import Item, ItemState, Trace, trace

LAST = "last"
WIDTH = 160
"""Columns of a line where the output is no terminal."""

STATES: dict[ItemState, str] = {
    "done": "",
    "failed": "failed",
    "running": "running",
    "waiting": "waits for a person",
    "refused": "refused",
    "not_made": "not made",
    "in_doubt": "in doubt",
    "unfinished": "not finished",
    "withdrawn": "withdrawn",
}
"""What became of an item, in words; nothing where it went well."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="llm-do trace",
        description="Show what happened in a run: turns, calls, questions, with their times. "
        "Secrets of the environment and what the manifest's `redact` names are left out.",
    )
    made.add_argument("run", metavar="RUN", help=f"the run's id, as `llm-do runs` lists it, or `{LAST}`")
    made.add_argument(
        "--project", metavar="DIR", help="the project (default: LLM_DO_PROJECT, else the working directory)"
    )
    made.add_argument("--state-dir", metavar="DIR", help="where runs are recorded (default: .llm-do/ in the project)")
    form = made.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument(
        "--html",
        nargs="?",
        const="",
        metavar="FILE",
        help="write one self-contained page (default: trace-RUN.html; `-` is standard output)",
    )
    return made


def main(given: list[str]) -> int:
    """Entry point of `llm-do trace`."""
    options = parser().parse_intermixed_args(given)
    found = asyncio.run(_read(options))
    if options.json:
        print(json.dumps(found.to_json(), ensure_ascii=False, indent=2))
    elif options.html is not None:
        _write_page(found, options.html or f"trace-{found.run}.html")
    else:
        columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDTH
        print("\n".join(lines(found, columns)))
    return DONE


async def _read(options: argparse.Namespace) -> Trace:
    from llm_do_mcp.cli.projects import load
    from llm_do_mcp.runtime.lease import Lease
    from llm_do_mcp.runtime.redact import redactor
    from llm_do_mcp.runtime.state import state_folder
    from llm_do_mcp.runtime.store import Store

    project = load(options.project)
    redact = redactor(os.environ, project.manifest)
    folder = state_folder(Path(project.root), options.state_dir)
    path = folder / "runs.sqlite3"
    if not path.exists():
        raise RunError(f"project {project.name} has no runs yet")
    store, lease = Store(path), Lease(folder)
    try:
        newest = (await store.runs())[:1] if options.run == LAST else []
        row = newest[0] if newest else await store.get(options.run)
        if row is None:
            raise RunError(f"there is no run {options.run}; `llm-do runs` lists them")
        events = await store.events(row.id)
        return trace(row, events, driven=lease.alive(row.owner), now=time.time(), redact=redact)
    finally:
        store.close()
        lease.release()


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


# ---- in words; also what the page uses


def duration(seconds: float) -> str:
    """A length of time, as short as it can be read: `4 ms`, `1.3 s`, `2 min 5 s`, `3 h 20 min`."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    if seconds < 3599.5:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, rest = divmod(round(seconds / 60), 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"


def title(item: Item) -> str:
    """An item's name, for people: turns are counted from 1."""
    if item.kind == "turn":
        return f"turn {int(item.key.rpartition('/')[2][1:]) + 1}"
    if item.kind == "question":
        return f"{item.name} {item.facts['target']}".rstrip()
    return item.name


def tokens(item: Item) -> str:
    """What a turn took; "" where that is not known."""
    if not item.facts.get("input_tokens") and not item.facts.get("output_tokens"):
        return ""
    return f"{item.facts['input_tokens']:,} in, {item.facts['output_tokens']:,} out"


def decided(item: Item) -> str:
    """Who answered a question, what, and how long that took."""
    if "decision" not in item.facts:
        return "no answer yet" if item.ended is None else f"no answer, withdrawn after {_took(item)}"
    note = f" “{item.facts['note']}”" if item.facts["note"] else ""
    by = f", by {item.facts['by']}" if item.facts["by"] else ""
    return f"{str(item.facts['decision']).replace('_', ' ')}{note}{by}, after {_took(item)}"


def stopped(item: Item) -> str:
    """Why a model stopped, where it did not simply end its turn."""
    reason = item.facts.get("stop_reason", "end_turn")
    return "" if reason in ("end_turn", "tool_use") else f"stopped: {reason}"


def _took(item: Item) -> str:
    return "" if item.ended is None else duration(item.ended - item.started)


def summary(found: Trace) -> list[tuple[str, str]]:
    """What a run amounts to: (label, value)."""
    account = found.account
    whole = found.until - found.started
    models = ", ".join(account["models"]) or "none"
    return [
        ("took", duration(whole)),
        ("waiting for a person", duration(found.person_s)),
        ("model", f"{models} ({NO_MODEL})" if account.get("note") else models),
        ("tokens", f"{account['tokens']['input']:,} in, {account['tokens']['output']:,} out"),
        ("turns", str(found.turns())),
        ("calls", str(account["calls"])),
        ("questions", str(len(account["approvals"]))),
        ("files changed", str(len(account["files_changed"]))),
    ]


def status(found: Trace) -> str:
    """How the run stands: its status, and whether a process that is gone left it so."""
    left = found.status in ("running", "waiting") and not found.driven
    return f"{found.status}, left by its process" if left else found.status


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
        "failed": [f"{title(item)}: {item.facts.get('error', '')}" for item in found.of("failed")],
        "in doubt, and may have happened": [_place(item) for item in found.of("in_doubt")],
        "questions": [f"{title(item)}: {decided(item)}" for item in found.questions()],
        "files changed": list(found.account["files_changed"]),
    }
    for head, entries in listed.items():
        if entries:
            shown += ["", f"{head}:", *(f"  {entry}" for entry in entries)]
    return [_fit(line, columns) for line in shown]


def _branches(items: Sequence[Item], indent: str, *, root: bool = False) -> Iterator[tuple[Item, str]]:
    for index, item in enumerate(items):
        last = index == len(items) - 1
        stem, below = ("", "") if root else ("└─ ", "   ") if last else ("├─ ", "│  ")
        yield item, indent + stem + _line(item)
        yield from _branches(item.children, indent + below)


def _line(item: Item) -> str:
    if item.kind == "question":
        return f"? {title(item)}: {decided(item)}"
    took = "" if item.state == "not_made" else _took(item)
    parts = [title(item), STATES[item.state], took, tokens(item), stopped(item)]
    facts = item.facts
    head = "  ".join(part for part in parts if part)
    given = facts.get("arguments") or (facts.get("input") if item.kind == "worker" else "") or ""
    gave = facts.get("error") or facts.get("result") or facts.get("output") or facts.get("text") or ""
    return " ".join(part for part in (head, cut(given, 80), f"→ {gave}" if gave else "") if part)


def _place(item: Item) -> str:
    return f"{item.name} {item.facts.get('arguments') or ''}".rstrip()


def _offset(found: Trace, item: Item) -> str:
    return f"{item.started - found.started:8.3f}"


def _fit(line: str, columns: int) -> str:
    line = escape(line)
    return line if len(line) <= columns else f"{line[: columns - 1]}…"
