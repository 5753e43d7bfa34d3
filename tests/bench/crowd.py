"""A crowd of calls at once: 100 conversations of three turns with a model that takes 50 ms for each of its answers.

Measured are our worker and an agent of `pydantic-ai`, each without a server, and each as a tool of one over stdio: of
ours, and of `fastmcp`. Each of the four has a process of its own, which lives through all rounds; in a round they take
turns, and all calls begin at once. Peak memory is that of the whole process, with the SDKs that it imports.

    python -m tests.bench.crowd [ROUNDS]
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.loops import ours, peer, write_project
from tests.bench.memory import peak_megabytes
from tests.bench.model import ANSWER, running, task
from tests.bench.wire import Wire

CALLS, TURNS, LATENCY_S = 100, 3, 0.05
TOOL = "noted"
OURS, OURS_SERVED = "ours, with journal", "ours, served"
PEER, PEER_SERVED = "pydantic-ai", "pydantic-ai, served by fastmcp"
PAIRS = ((OURS, PEER), (OURS_SERVED, PEER_SERVED))

Round = Callable[[str], None]
"""Makes all calls of a round, with an input."""


# ---- the processes that are measured


async def _at_once(run: Callable[[str], Awaitable[Any]]) -> None:
    """Serve a parent: each line is the input of a round, and is answered by a line when all calls are done."""
    while given := await asyncio.to_thread(sys.stdin.readline):
        await asyncio.gather(*(run(given) for _ in range(CALLS)))
        print("done", flush=True)


async def _engine(root: Path) -> None:
    async with ours(root) as run:
        await _at_once(run)


async def _agents(root: Path) -> None:
    from anthropic import AsyncAnthropic

    async with AsyncAnthropic() as client:
        agent = peer(client, root)

        async def run(given: str) -> None:
            assert len((await agent.run(given)).all_messages()) == 2 * TURNS

        await _at_once(run)


def _fastmcp(root: Path) -> None:
    from anthropic import AsyncAnthropic
    from fastmcp import FastMCP

    server, agent = FastMCP(TOOL), peer(AsyncAnthropic(), root)

    @server.tool(name=TOOL)
    async def noted(input: str) -> str:
        """Answers questions about the note."""
        return str((await agent.run(input)).output)

    server.run(transport="stdio", show_banner=False, log_level="ERROR")


# ---- measuring


@contextlib.contextmanager
def _in_process(kind: str, root: Path) -> Iterator[tuple[int, Round]]:
    command = [sys.executable, "-m", "tests.bench.crowd", kind, str(root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        into, out = process.stdin, process.stdout

        def round_of(given: str) -> None:
            print(given, file=into, flush=True)
            if out.readline() != "done\n":
                raise RuntimeError(f"{kind} failed")

        yield process.pid, round_of


@contextlib.contextmanager
def _served(command: list[str]) -> Iterator[tuple[int, Round]]:
    with Wire(command, "2025-11-25") as wire:
        assert TOOL in wire.tools()

        def round_of(given: str) -> None:
            wire.calls(TOOL, {"input": given}, ANSWER, CALLS, CALLS)

        yield wire.pid, round_of


def measure(rounds: int) -> tuple[dict[str, list[float]], dict[str, float | None]]:
    """Seconds for each round, and peak megabytes, by what was measured; of the others only what is installed."""
    with contextlib.ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="llm-do-bench-")))
        os.environ["ANTHROPIC_BASE_URL"] = stack.enter_context(running(LATENCY_S))
        os.environ["ANTHROPIC_API_KEY"] = "unused"
        write_project(root)
        measured = {
            OURS: _in_process("engine", root),
            OURS_SERVED: _served([sys.executable, "-m", "llm_do_mcp.cli.serve", str(root)]),
        }
        if find_spec("pydantic_ai") is not None:
            measured[PEER] = _in_process("agents", root)
            if find_spec("fastmcp") is not None:
                measured[PEER_SERVED] = _served([sys.executable, "-m", "tests.bench.crowd", "fastmcp", str(root)])
        crowds = {name: stack.enter_context(started) for name, started in measured.items()}
        took: dict[str, list[float]] = {name: [] for name in crowds}
        for number in range(rounds + 1):
            for name in list(crowds) if number % 2 else reversed(crowds):
                began = time.perf_counter()
                crowds[name][1](f"Round {number}: {task(TURNS)}")
                if number:  # the first round warms up
                    took[name].append(time.perf_counter() - began)
        return took, {name: peak_megabytes(pid) for name, (pid, _) in crowds.items()}


def report(rounds: int) -> bool:
    """Print what a round takes; whether ours is as quick as each of the others that it is measured beside."""
    took, peaks = measure(rounds)
    print(
        f"\n{CALLS} calls at once, {TURNS} turns each, of a model that takes {1000 * LATENCY_S:.0f} ms "
        f"(median of {rounds}; added: beyond the model's time, for each of the {CALLS * TURNS} turns)"
    )
    print(f"{'':32}{'in all':>11}{'added':>14}{'peak':>11}")
    for name, figures in took.items():
        added = 1000 * (median(figures) - TURNS * LATENCY_S) / (CALLS * TURNS)
        peak = "" if peaks[name] is None else f"{peaks[name]:8.1f} MB"
        print(f"{name:32}{1000 * median(figures):8.0f} ms{added:11.2f} ms{peak}")
    met = True
    for mine, other in PAIRS:
        if other not in took:
            print(f"{other} is not installed (the dependency group `bench`): nothing to compare with")
            continue
        ratio = median(our / its for our, its in zip(took[mine], took[other], strict=True))
        held = ratio <= 1.0
        met = met and held
        print(f"{mine} takes {ratio:.2f} of the time of {other} (target: at most 1.00){'' if held else '   missed'}")
    return met


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["engine", root]:
            asyncio.run(_engine(Path(root)))
        case ["agents", root]:
            asyncio.run(_agents(Path(root)))
        case ["fastmcp", root]:
            _fastmcp(Path(root))
        case arguments:
            sys.exit(0 if report(int(arguments[0]) if arguments else 7) else 1)
