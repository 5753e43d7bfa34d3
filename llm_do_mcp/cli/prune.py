"""`llm-do runs prune`: remove runs that have ended and are old."""

from __future__ import annotations

import argparse
import json

from llm_do_mcp.cli.exits import DONE
from llm_do_mcp.cli.options import add_project
from llm_do_mcp.cli.parser import Parser
from llm_do_mcp.cli.projects import named, state_of
from llm_do_mcp.runtime.prune import DAY_S, OLDER_THAN_DAYS, Pruned, prune


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = Parser(
        "llm-do runs prune",
        "Remove runs that have ended, with their attachments.",
        usage="[OPTION]…",
        notes=("A run that can go on is never removed.",),
        examples={"llm-do runs prune --older-than 7 --dry-run": "", "llm-do runs prune --keep 20": ""},
        environment=("LLM_DO_PROJECT",),
        more="Runs",
    )
    made.add_argument(
        "--older-than",
        metavar="DAYS",
        type=_days,
        help=f"those that ended so many days ago (default: {OLDER_THAN_DAYS:g}; with --keep alone: however new)",
    )
    made.add_argument("--keep", metavar="N", type=_count, help="the newest N ended runs stay, however old")
    made.add_argument("--dry-run", action="store_true", help="only say what would be removed")
    made.add_argument("--json", action="store_true", help="print JSON")
    add_project(made)
    return made


def main(given: list[str]) -> int:
    """Entry point of `llm-do runs prune`."""
    from llm_do_mcp.runtime.lease import Lease
    from llm_do_mcp.runtime.state import RECORD

    options = parser().parse_args(given)
    days = options.older_than
    if days is None:
        days = OLDER_THAN_DAYS if options.keep is None else 0.0
    folder = state_of(named(options), options.state_dir)
    path = folder / RECORD
    pruned = Pruned((), 0, 0, False)
    if path.exists():
        lease = Lease(folder)
        try:
            pruned = prune(
                path, lease.alive, older_than_s=days * DAY_S, keep=options.keep or 0, dry_run=options.dry_run
            )
        finally:
            lease.release()
    if options.json:
        print(json.dumps({**vars(pruned), "dry_run": options.dry_run}, indent=2))
        return DONE
    what = "would be removed" if options.dry_run else "removed"
    print(f"{len(pruned.runs)} runs and {pruned.blobs} attachments {what}, {pruned.freed:,} bytes freed")
    if pruned.driven:
        print("a run is being driven: attachments and the size of the file are left for the next time")
    return DONE


def _days(text: str) -> float:
    try:
        days = float(text)
    except ValueError:
        days = -1.0
    if not 0 <= days < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of days")
    return days


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of runs")
    return int(text)
