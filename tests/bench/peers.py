"""Our server beside `fastmcp` and a bare `MCPServer`: what a host and its person wait for, and what the machine gives.

    python -m tests.bench.peers [--pairs 15]

All three read the same small text file and return it. The two others do nothing else (`reader_sdk.py`,
`reader_fastmcp.py`). Ours serves the 25 workers of `workload.py` besides: each call looks whether the project's files
have changed, keeps to its folder, checks arguments and result, goes through the policy, and records what it did in the
journal of its run. In each pair all three are started one after the other, the first one in turns, and called in turns
while all are alive, over stdio and over HTTP, in both protocol eras. Exit code 1 where our median is above `fastmcp`'s.

Last, what a host puts before its model for each tool: beside the official filesystem server, where Node is there.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Literal

from tests.bench.memory import megabytes
from tests.bench.wire import ERAS, Era, Spoken, Web, Wire
from tests.bench.workload import READ, READ_ARGUMENTS, TEXT, write_project
from tests.javascript import program, unavailable

Transport = Literal["stdio", "HTTP"]
TRANSPORTS: tuple[Transport, ...] = ("stdio", "HTTP")
FASTMCP, OURS = "fastmcp", "ours"
AT_ONCE = (1, 32)
TURNS, CALLS = 4, {1: 50, 32: 160}
"""How often each is called in a pair, and how many calls that are, by how many are under way at once."""
WARM_UP = 64

Figures = dict[str, dict[str, list[float]]]
"""What was measured → server → one figure for each pair."""


@dataclass(frozen=True)
class Server:
    """A server that is measured.

    Args:
        command: What starts it.
        port: What is added to that for HTTP, given a port.
        tool: The name of the tool that reads a file.
    """

    command: list[str]
    port: Callable[[int], list[str]]
    tool: str

    def started(self, transport: Transport, era: Era) -> Spoken:
        """Start it."""
        if transport == "stdio":
            return Wire(self.command, era, subprocess.DEVNULL)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        return Web([*self.command, *self.port(port)], era, subprocess.DEVNULL, port=port)


def servers(project: Path) -> dict[str, Server]:
    """All that can be started here."""
    notes, here = str(project / "notes"), Path(__file__)
    found = {"MCPServer": _reader(here.with_name("reader_sdk.py"), notes)}
    if importlib.util.find_spec("fastmcp") is not None:
        found[FASTMCP] = _reader(here.with_name("reader_fastmcp.py"), notes)
    ours = [sys.executable, "-m", "llm_do_mcp.cli.serve", str(project)]
    found[OURS] = Server(ours, lambda port: ["--http", f"127.0.0.1:{port}"], READ)
    return found


def _reader(script: Path, folder: str) -> Server:
    return Server([sys.executable, str(script), folder], lambda port: [str(port)], "read_text")


def measure(measured: dict[str, Server], transport: Transport, era: Era, into: Figures) -> None:
    """One pair."""
    spoken: dict[str, Spoken] = {}
    took: dict[tuple[int, str], list[float]] = defaultdict(list)
    with ExitStack() as stack:
        for name, server in measured.items():
            began = time.perf_counter()
            spoken[name] = stack.enter_context(server.started(transport, era))
            spoken[name].tools()
            into["spawn to tools/list, ms"][name].append(1000 * (time.perf_counter() - began))
        _memory(spoken, "memory after the list, MB", into)
        for name, server in measured.items():
            spoken[name].calls(server.tool, READ_ARGUMENTS, TEXT, WARM_UP, max(AT_ONCE))
        for at_once in AT_ONCE:
            for _ in range(TURNS):
                for name, server in measured.items():
                    calls = spoken[name].calls(server.tool, READ_ARGUMENTS, TEXT, CALLS[at_once], at_once)
                    took[at_once, name] += calls
        _memory(spoken, "memory after the calls, MB", into)
        for (at_once, name), calls in took.items():
            into[f"a call, {at_once} at once, p50, ms"][name].append(median(calls))
            into[f"a call, {at_once} at once, p99, ms"][name].append(quantiles(calls, n=100)[98])
        for name, one in spoken.items():
            into["gone after the end, ms"][name].append(1000 * one.end())


def _memory(spoken: dict[str, Spoken], label: str, into: Figures) -> None:
    found = {name: megabytes(one.pid) for name, one in spoken.items()}
    for name, figure in found.items():
        if figure is not None:
            into[label][name].append(figure)


def table(title: str, names: Sequence[str], figures: Figures) -> bool:
    """Print medians, and medians of the ratios; whether ours is nowhere above `fastmcp`."""
    met = True
    others = [name for name in names if name != OURS]
    print(f"\n{title}\n{'':32}{''.join(f'{name:>11}' for name in names)}", end="")
    print("".join(f"{f'/ {name}':>13}" for name in others))
    for label, found in figures.items():
        print(f"{label:32}{''.join(f'{median(found[name]):11.2f}' for name in names)}", end="")
        ratios = {
            name: median(mine / theirs for mine, theirs in zip(found[OURS], found[name], strict=True))
            for name in others
        }
        held = ratios.get(FASTMCP, 0.0) <= 1.0
        met = met and held
        print(f"{''.join(f'{ratio:12.2f}x' for ratio in ratios.values())}{'' if held else '   missed'}")
    return met


def characters(project: Path) -> None:
    """Print how long an entry of `tools/list` is, as compact JSON."""
    asked: dict[str, Spoken] = {name: server.started("stdio", ERAS[0]) for name, server in servers(project).items()}
    lists: dict[str, list[dict[str, Any]]] = {}
    if (missing := unavailable()) is None:
        command = [*program("mcp-server-filesystem"), str(project / "notes")]
        asked["filesystem (npm)"] = Wire(command, ERAS[0], subprocess.DEVNULL)
    for name, spoken in asked.items():
        with spoken:
            lists[name] = spoken.listed()
    lists["ours, its folders only"] = [tool for tool in lists[OURS] if tool["name"].startswith("files_")]
    print(f"\n{'characters of tools/list':32}{'tools':>7}{'all':>9}{'a tool':>9}")
    for name, tools in lists.items():
        size = sum(len(json.dumps(tool, separators=(",", ":"), ensure_ascii=False)) for tool in tools)
        print(f"{name:32}{len(tools):7}{size:9}{size / len(tools):9.0f}")
    if missing is not None:
        print(f"the official filesystem server is not there: {missing}")


def report(pairs: int, transports: Sequence[Transport] = TRANSPORTS) -> bool:
    """Measure and print; whether every goal was met."""
    met = True
    with tempfile.TemporaryDirectory(prefix="llm-do-bench-") as folder:
        project = write_project(Path(folder))
        measured = servers(project)
        if FASTMCP not in measured:
            print("fastmcp is not installed (the dependency group `bench`): only the bare server to compare with")
        for transport in transports:
            for era in ERAS:
                figures: Figures = defaultdict(lambda: defaultdict(list))
                order = list(measured)
                measure(measured, transport, era, defaultdict(lambda: defaultdict(list)))  # fills caches
                for _ in range(pairs):
                    order.append(order.pop(0))
                    measure({name: measured[name] for name in order}, transport, era, figures)
                met = table(f"{transport}, {era}: median of {pairs} pairs", list(measured), figures) and met
        characters(project)
    return met


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.peers", description=__doc__)
    parser.add_argument("--pairs", type=int, default=15, help="of each transport and era (default 15)")
    parser.add_argument("--only", choices=TRANSPORTS, help="one transport")
    options = parser.parse_args()
    return 0 if report(options.pairs, (options.only,) if options.only else TRANSPORTS) else 1


if __name__ == "__main__":
    sys.exit(main())
