"""Ways to drive the real engine in tests, with bodies that a test writes itself over the run's verbs.

A crash is an engine that lets go in the middle (`aclose` cancels what runs and writes nothing more) and another one
on the same folder. Real processes that are really killed are in `test_kills.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from llm_do_mcp.runtime.definition import Definition
from llm_do_mcp.runtime.engine import Asks, Body, Done, Engine
from llm_do_mcp.runtime.limits import Limits
from llm_do_mcp.runtime.question import Answer, Kind, Question
from llm_do_mcp.runtime.run import AskFor
from llm_do_mcp.runtime.tree import Leave

Perform = Callable[[Leave], Awaitable[Any]]


def definition(name: str = "main", **changes: Any) -> Definition:
    """A worker's definition, without anything that a test does not give."""
    return Definition(kind="worker", name=name, **{"input": "x", "limits": Limits(), **changes})


def define(**changes: Any) -> Callable[[], Awaitable[Definition]]:
    """What `Run.child` wants: a coroutine that makes the definition."""

    async def made() -> Definition:
        return definition(**changes)

    return made


@contextlib.asynccontextmanager
async def engine(folder: Path, body: Body) -> AsyncIterator[Engine]:
    """An engine that lets go at the end of the block, whatever its runs are doing."""
    made = Engine(folder, body)
    try:
        yield made
    finally:
        await made.aclose()


def giving(value: Any, done: list[Any] | None = None) -> Perform:
    """What a step does: note itself in `done`, and give a value."""

    async def perform(_: Leave) -> Any:
        if done is not None:
            done.append(value)
        return value

    return perform


def asking(kind: Kind = "approval", action: str = "write", scope: str = "") -> Callable[[], Awaitable[AskFor]]:
    """What makes a question for `ask` and for a step in doubt."""

    async def question() -> AskFor:
        return lambda key: Question(
            key, kind, ("main",), "files.write", action, "out/a.md", "{}", "d" * 64, 2, "", scope or key
        )

    return question


async def asked(engine: Engine, run: str, **options: Any) -> tuple[Question, ...]:
    """The questions that the run puts next."""
    event = await engine.advance(run, **options)
    assert isinstance(event, Asks), event
    return event.questions


async def ended(engine: Engine, run: str) -> Done:
    """How the run ends, which must not ask anything more."""
    event = await engine.advance(run)
    assert isinstance(event, Done), event
    return event


async def finished(engine: Engine, run: str, decide: Callable[[Question], Answer], *, gather: float = 0.0) -> Done:
    """How the run ends where every question is decided by a function; `gather` as `Engine.advance` has it."""
    while True:
        event = await engine.advance(run, gather=gather)
        if isinstance(event, Done):
            return event
        assert isinstance(event, Asks)
        for question in event.questions:
            await engine.answer(run, question.key, decide(question))
