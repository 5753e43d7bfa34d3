"""What the journal costs: runs per second, its share of a step of a millisecond, and how fast a long run is resumed.

The engine and the embedded store as they are in production, every effect on the disk before the next thing happens;
only the bodies are made here, so that nothing but the journal is measured.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from llm_do_mcp.runtime.definition import Definition
from llm_do_mcp.runtime.engine import Asks, Body, Done, Engine
from llm_do_mcp.runtime.question import Answer, Question
from llm_do_mcp.runtime.run import AskFor, Run
from llm_do_mcp.runtime.tree import Leave

RUNS = 1000
AT_ONCE = 16
STEPS = 500
STEP_S = 0.001

DEFINITION = Definition(kind="worker", name="main", input="x", instructions="Do it. " * 200)


async def _question() -> AskFor:
    return lambda key: Question(key, "in_doubt", ("main",), "work", "work", "", "{}", "d" * 64, 2, "", key)


async def _nothing(_: Leave) -> Any:
    return {"text": "what a tool gave " * 10}


async def _millisecond(_: Leave) -> Any:
    ends = time.perf_counter() + STEP_S
    while time.perf_counter() < ends:  # busy: a sleep of 1 ms takes as long as the timer likes
        pass
    return {"text": "what a tool gave " * 10}


async def two_steps(run: Run) -> Any:
    """A read and an effect."""
    await run.step("a", "files.read", {"path": "in/a.md"}, _nothing, once=False)
    return await run.step("b", "files.write", {"path": "out/a.md"}, _nothing, once=True, in_doubt=_question)


async def many_steps(run: Run) -> Any:
    """So many steps, every other one an effect, and then a person is waited for."""
    for number in range(STEPS):
        once = bool(number % 2)
        await run.step(f"s{number}", "work", number, _nothing, once=once, in_doubt=_question, durable=once)
    return (await run.ask("ok", {}, _question)).decision


def of_milliseconds(once: bool, count: int) -> Body:
    """Steps of a millisecond each."""

    async def body(run: Run) -> Any:
        for number in range(count):
            await run.step(f"s{number}", "work", number, _millisecond, once=once, in_doubt=_question, durable=once)

    return body


async def _ended(engine: Engine, run: str) -> None:
    done = await engine.advance(run)
    assert isinstance(done, Done) and done.status == "done", done


async def runs_per_second(folder: Path, at_once: int, count: int) -> float:
    """Whole runs of two steps, so many at a time."""
    engine = Engine(folder, two_steps)
    left = iter(range(count))

    async def client() -> None:
        for _ in left:
            await _ended(engine, await engine.start("main", DEFINITION))

    try:
        await _ended(engine, await engine.start("main", DEFINITION))  # opens the store
        began = time.perf_counter()
        await asyncio.gather(*(client() for _ in range(at_once)))
        return count / (time.perf_counter() - began)
    finally:
        await engine.aclose()


async def per_step(folder: Path, *, once: bool, count: int = 300) -> float:
    """What the journal adds to a step of a millisecond, in milliseconds."""
    engine = Engine(folder, of_milliseconds(once, count))
    try:
        began = time.perf_counter()
        for _ in range(count):
            await _millisecond(lambda: None)
        bare = time.perf_counter() - began
        began = time.perf_counter()
        await _ended(engine, await engine.start("main", DEFINITION))
        return 1000 * (time.perf_counter() - began - bare) / count
    finally:
        await engine.aclose()


async def resume(folder: Path) -> float:
    """Milliseconds from the claim of a run with all its steps recorded until it asks its question again."""
    engine = Engine(folder, many_steps)
    run = await engine.start("main", DEFINITION)
    assert isinstance(await engine.advance(run), Asks)
    await engine.aclose()
    engine = Engine(folder, many_steps)
    try:
        began = time.perf_counter()
        await engine.resume(run)
        event = await engine.advance(run)
        took = 1000 * (time.perf_counter() - began)
        assert isinstance(event, Asks)
        await engine.answer(run, event.questions[0].key, Answer("done"))
        await _ended(engine, run)
        return took
    finally:
        await engine.aclose()


def flush() -> float:
    """Milliseconds that this disk takes to make a small write safe: what no journal can be quicker than."""
    took = []
    with tempfile.NamedTemporaryFile(prefix="llm-do-bench-") as file:
        for _ in range(50):
            began = time.perf_counter()
            file.write(b"x" * 4096)
            file.flush()
            os.fsync(file.fileno())
            took.append(1000 * (time.perf_counter() - began))
    return median(took)


def report(rounds: int) -> None:
    """Print the figures; they have no targets of their own."""
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        folder = Path(tempfile.mkdtemp(prefix="llm-do-bench-"))
        try:
            measured = {
                "one at a time": asyncio.run(runs_per_second(folder / "one", 1, RUNS // 4)),
                "at once": asyncio.run(runs_per_second(folder / "many", AT_ONCE, RUNS)),
                "read": asyncio.run(per_step(folder / "read", once=False)),
                "effect": asyncio.run(per_step(folder / "effect", once=True)),
                "resume": asyncio.run(resume(folder / "resume")),
                "flush": flush(),
            }
        finally:
            shutil.rmtree(folder)
        for name, figure in measured.items():
            found.setdefault(name, []).append(figure)
    best = {name: median(figures) for name, figures in found.items()}
    shares = {name: f"{best[name]:8.3f} ms {100 * best[name] / (1000 * STEP_S):6.1f} %" for name in ("read", "effect")}
    print(
        f"\nthe journal, on the embedded store (median of {rounds}; a flush of this disk takes {best['flush']:.2f} ms)"
    )
    for label, figure in (
        ("runs of two steps, one of them an effect, one at a time", f"{best['one at a time']:8.0f} / s"),
        (f"the same, {AT_ONCE} at once", f"{best['at once']:8.0f} / s"),
        ("added to a step of 1 ms that only reads", shares["read"]),
        ("added to a step of 1 ms with an effect (two commits)", shares["effect"]),
        (f"resume of a run with {STEPS} recorded steps", f"{best['resume']:8.1f} ms"),
    ):
        print(f"{label:58}{figure}")


if __name__ == "__main__":
    report(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
