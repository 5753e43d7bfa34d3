"""A process that drives one run of the crash test, and can be made to die at any of its crash points.

    python -m tests.runtime.crashing

reads lines of JSON, `{"folder": PROJECT, "run": ID or null, "die_at": N or null}`, forks a process for each, and
answers with a line when it is gone: how it ended. Forked, since importing everything takes longer than a run does;
killed with SIGKILL by themselves, in the middle of what they do, with nothing flushed or closed.

A crash point is a moment between two things that outlive the process: before and behind each commit of the record, and
before and behind each effect. They are put in here, around the store's and the effects' own functions; the product has
none. The person in front approves, and where something is in doubt looks at what has happened before deciding.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from llm_do_mcp.project.load import load_project
from llm_do_mcp.runtime import engine, store
from llm_do_mcp.runtime.engine import Asks, Done, Engine
from llm_do_mcp.runtime.question import Answer, Question
from llm_do_mcp.sandbox.files import Sandbox
from llm_do_mcp.toolhost.client import ToolHost
from llm_do_mcp.toolsets.workbench import Workbench


class Points:
    """The names of the crash points that were passed, and the death at one.

    Args:
        die_at: At which, counted from 1; None for never.
    """

    def __init__(self, die_at: int | None) -> None:
        self.passed: list[str] = []
        self.die_at = die_at

    def __call__(self, name: str) -> None:
        self.passed.append(name)
        if len(self.passed) == self.die_at:
            os.kill(os.getpid(), signal.SIGKILL)


def note(folder: Path, **what: Any) -> None:
    """Write down what happened, in one write that outlives this process."""
    with open(folder / "log.jsonl", "ab", buffering=0) as log:
        log.write(json.dumps(what).encode() + b"\n")


def noted(folder: Path) -> list[dict[str, Any]]:
    """All that was written down."""
    log = folder / "log.jsonl"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def effects(folder: Path) -> list[str]:
    """What has happened in the world, each time it did."""
    tool = folder / "effects.txt"
    files = [one["wrote"] for one in noted(folder) if "wrote" in one]
    return sorted([*(tool.read_text().split() if tool.exists() else ()), *files])


def put_in(points: Points, folder: Path) -> None:
    """Put the crash points around what outlives this process."""

    def around(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            points(f"before {name}")
            result = function(*arguments, **options)
            points(f"behind {name}")
            return result

        return wrapped

    def around_async(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        async def wrapped(*arguments: Any, **options: Any) -> Any:
            points(f"before {name}")
            result = await function(*arguments, **options)
            points(f"behind {name}")
            return result

        return wrapped

    engine.NOTED_EVERY_S = math.inf  # the points are those of the run, however slow the machine is
    for name in ("write", "answer", "claim"):
        setattr(store.Store, name, around_async(name, getattr(store.Store, name)))
    write = Sandbox.write_text

    def wrote(self: Sandbox, alias: str, rel: str, content: str, **options: Any) -> Any:
        written = write(self, alias, rel, content, **options)
        note(folder, wrote=f"{alias}/{rel}")
        return written

    Sandbox.write_text = around("files.write", wrote)  # type: ignore[method-assign]
    ToolHost.call = around_async("custom.record", ToolHost.call)  # type: ignore[method-assign]


def _told(question: Question, answer: Answer) -> dict[str, str]:
    return {"function": question.function, "decision": answer.decision}


async def drive(folder: Path, run: str | None, points: Points) -> None:
    """Begin the run, or go on with it, to its end."""
    bench = Workbench(load_project(folder))
    driver = Engine(folder / ".llm-do", bench.body)
    try:
        if run is None:
            worker = bench.project.worker("main")
            run = await driver.start("main", await bench.define(worker, "go", {}))
        else:
            await driver.resume(run)
        while not isinstance(event := await driver.advance(run), Done):
            assert isinstance(event, Asks)
            for question in event.questions:
                answer = decided(folder, question)
                if await driver.answer(run, question.key, answer):
                    note(folder, answered=question.key, kind=question.kind, **_told(question, answer))
        note(folder, ended=event.status, output=event.output, error=event.error, points=points.passed)
    finally:
        await driver.aclose(bench.kill)
        await bench.aclose()


def decided(folder: Path, question: Question) -> Answer:
    """What the person decides, who can see what has happened."""
    if question.kind != "in_doubt":
        return Answer("once", by="test")
    there = question.target if question.function == "files.write" else "recorded"
    return Answer("done" if there in effects(folder) else "again", by="test")


def main() -> None:
    """Fork a process for each line."""
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                folder, points = Path(order["folder"]), Points(order["die_at"])
                put_in(points, folder)
                asyncio.run(drive(folder, order["run"], points))
                code = 0
            except BaseException as error:  # told on the test's output, and by the code
                print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
