"""`make bench`: a project of 25 workers beside a bare MCP server with one echo tool; then what has modules of its own.

These are other servers that do the same work (`peers.py`), a large project (`large.py`), the loop (`loops.py`), a crowd
of calls (`crowd.py`), the journal (`runs.py`), and `te` (`ranking.py`, `searching.py`); each can be run by itself.
Everything is measured in pairs that run in turns, so that whatever else the machine does falls on both; the ratio is
the median over the pairs. Exit code 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from statistics import median

from tests.bench import crowd, large, loops, peers, ranking, runs, sdk, searching
from tests.bench.memory import megabytes
from tests.bench.wire import ERAS, Era, Wire
from tests.bench.workload import ECHO, ECHO_ARGUMENTS, READ, READ_ARGUMENTS, TEXT, WORKERS, write_project

MEMORY_CALLS = 100

Pairs = dict[str, list[tuple[float, float]]]
"""What was measured → one (bare, ours) for each pair."""

TARGETS = {"start": 1.3, "call": 2.0, "memory, listed": 1.3, "memory, called": 1.3}
ROWS = {
    "start": ("spawn to tools/list", "ms"),
    "call": ("read_text against echo", "ms"),
    "memory, listed": ("memory after tools/list", "MB"),
    "memory, called": (f"memory after {MEMORY_CALLS} calls", "MB"),
}


def measure(bare: list[str], ours: list[str], era: Era, calls: int, ours_first: bool, into: Pairs) -> None:
    """One pair over the bare wire: started one after the other, then called in turns."""
    took: dict[bool, float] = {}
    wires: dict[bool, Wire] = {}
    try:
        for is_ours in (ours_first, not ours_first):
            began = time.perf_counter()
            wires[is_ours] = Wire(ours if is_ours else bare, era)
            wires[is_ours].tools()
            took[is_ours] = 1000 * (time.perf_counter() - began)
        into["start"].append((took[False], took[True]))
        _memory(wires, "memory, listed", into)
        jobs = {False: (ECHO, ECHO_ARGUMENTS), True: (READ, READ_ARGUMENTS)}
        spent: dict[bool, list[float]] = {False: [], True: []}
        for turn in range(calls):
            if turn == MEMORY_CALLS:
                _memory(wires, "memory, called", into)
            for is_ours, job in jobs.items():
                began = time.perf_counter()
                text = wires[is_ours].call(*job)
                spent[is_ours].append(1000 * (time.perf_counter() - began))
                assert text == TEXT
        into["call"].append((median(spent[False]), median(spent[True])))
    finally:
        for wire in wires.values():
            wire.__exit__(None, None, None)


def _memory(wires: dict[bool, Wire], name: str, into: Pairs) -> None:
    found = megabytes(wires[False].pid), megabytes(wires[True].pid)
    if found[0] is not None and found[1] is not None:
        into[name].append((found[0], found[1]))


def table(title: str, pairs: Pairs, *, targets: bool) -> bool:
    """Print what was measured; returns whether every target was met."""
    met = True
    print(f"\n{title}\n{'':26}{'bare':>10}{'ours':>10}{'ratio':>9}{'target' if targets else '':>9}")
    for name, (label, unit) in ROWS.items():
        if not (measured := pairs.get(name)):
            continue
        ratio = median(ours / bare for bare, ours in measured)
        bare, ours = (median(column) for column in zip(*measured, strict=True))
        print(f"{label:26}{bare:7.1f} {unit}{ours:7.1f} {unit}{ratio:8.2f}x", end="")
        if targets:
            held = ratio <= TARGETS[name]
            met = met and held
            print(f"{TARGETS[name]:8.1f}x{'' if held else '   missed'}", end="")
        print()
    return met


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--pairs", type=int, default=15, help="of each era and client (default 15)")
    parser.add_argument("--calls", type=int, default=200, help="of each server in a pair (default 200)")
    parser.add_argument("--no-sdk", action="store_true", help="only the minimal client")
    options = parser.parse_args()
    met = True
    with tempfile.TemporaryDirectory(prefix="llm-do-bench-") as folder:
        project = write_project(Path(folder))
        bare = [sys.executable, str(Path(__file__).with_name("echo.py"))]
        ours = [sys.executable, "-m", "llm_do_mcp.cli.serve", str(project)]
        print(
            f"{options.pairs} pairs of each; {WORKERS} workers against one echo tool; Python {sys.version.split()[0]}"
        )
        measure(bare, ours, ERAS[0], 1, False, defaultdict(list))  # fills caches: bytecode, files
        for era in ERAS:
            pairs: Pairs = defaultdict(list)
            for number in range(options.pairs):
                measure(bare, ours, era, max(options.calls, MEMORY_CALLS + 1), bool(number % 2), pairs)
            met = table(f"minimal client (JSON lines over pipes), {era}", pairs, targets=True) and met
        for era in () if options.no_sdk else ERAS:
            through: Pairs = defaultdict(list)
            for _ in range(options.pairs):
                for name, figures in asyncio.run(sdk.pair(bare, ours, era, MEMORY_CALLS)).items():
                    through[name].append(figures)
            table(f"the SDK's client, {era}", through, targets=False)
    met = peers.report(options.pairs) and met
    met = large.report(options.pairs) and met
    met = loops.report(options.pairs) and met
    met = crowd.report(max(5, options.pairs // 2)) and met
    runs.report(5)
    met = ranking.report([], ranking.HELD_OUT, misses=False) and met
    met = searching.report(options.pairs) and met
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
