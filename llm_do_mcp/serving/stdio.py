"""What keeps a stdio server alive and lets it end in time.

Standard output is the wire. It is taken away before any code of the project's could print, every text that leaves is
made valid Unicode (a lone surrogate cannot be written), a request that cannot be read is answered
(`unreadable.py`), what a client does not read has an end (`room.py`), and the end of input is told apart from a
cancelled request: at the end of input runs stay resumable, and the process is gone within two seconds.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from llm_do_mcp.serving.room import Room
from llm_do_mcp.serving.unreadable import answer_to
from llm_do_mcp.serving.wire import Incoming, Outgoing, guard_stdin, guard_stdout, when_ended
from llm_do_mcp.toolhost.results import clean

GONE_WITHIN_S = 1.5
"""Seconds after the end of input in which everything is let go of; then the process just ends."""


@contextmanager
def ends_in_time() -> Iterator[threading.Timer]:
    """A clock to be started at the end of input: where the block is not left in time, the process just ends.

    A client that no longer reads blocks the writer's thread for good, and with it an orderly end. Child processes
    notice by themselves that the server is gone.
    """
    clock = threading.Timer(GONE_WITHIN_S, os._exit, (0,))
    clock.daemon = True
    try:
        yield clock
    finally:
        clock.cancel()


@contextmanager
def interrupts(at_end: Callable[[], None]) -> Iterator[None]:
    """While the block runs, SIGINT and SIGTERM end it in order, and are not the client's word to cancel its runs.

    Args:
        at_end: Called at a signal, before anything that was under way is cancelled.
    """
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}
    interrupt = before[signal.SIGINT]
    if threading.current_thread() is not threading.main_thread() or not callable(interrupt):
        yield  # no signal reaches us here
        return

    def interrupted(number: int, frame: FrameType | None) -> None:
        at_end()
        interrupt(number, frame)

    for number in numbers:
        signal.signal(number, interrupted)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, before[number])


@asynccontextmanager
async def hardened_stdio(at_end: Callable[[], None], room: Room) -> AsyncIterator[tuple[Any, Any]]:
    """The two ends of a stdio connection, hardened. The block is left when nobody reads the output any more.

    The SDK's own (`mcp.server.stdio`) have a task for each, which every message has to be handed to: a tenth of the
    time that a short call takes.

    Args:
        at_end: Called when the input has ended or nobody reads the output any more, before anything that was under
            way is cancelled; from any thread, and perhaps several times.
        room: What the client has not read is kept there.
    """
    wire = guard_stdin()
    when_ended(wire, at_end)
    with anyio.CancelScope() as connected:
        writing = _Writing(Outgoing(guard_stdout(), at_end), connected.cancel, room)
        yield _Reading(Incoming(wire), at_end, writing, room), writing


class _Stream:
    """One end of a connection as the SDK wants it; nothing is to be closed."""

    async def aclose(self) -> None:
        """Leave the descriptor open: see `wire.py`."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()


class _Reading(_Stream):
    """What comes in. Answers what cannot be read, and tells when the input has ended; nothing is read while there is no
    room."""

    def __init__(self, lines: Incoming, at_end: Callable[[], None], answers: _Writing, room: Room) -> None:
        self._lines = lines
        self._at_end = at_end
        self._answers = answers
        self._room = room

    async def receive(self) -> SessionMessage:
        await self._room.free()
        async for line in self._lines:
            try:
                return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
            except Exception as unreadable:
                if (answer := answer_to(unreadable)) is not None:
                    await self._answers.send(SessionMessage(answer))
        self._at_end()
        raise anyio.EndOfStream

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class _Writing(_Stream):
    """What goes out. Makes every message valid Unicode, and writes one after the other."""

    def __init__(self, out: Outgoing, gone: Callable[[], None], room: Room) -> None:
        self._out = out
        self._gone = gone
        self._room = room
        self._one = asyncio.Lock()

    async def send(self, item: SessionMessage) -> None:
        message = item.message
        error = getattr(message, "error", None)
        parts = *_cleaned(message, "id", "result", "params"), *_cleaned(error, "message", "data")
        with self._room.taken(*parts):
            async with self._one:
                try:
                    await self._out.write(message.model_dump_json(by_alias=True, exclude_unset=True) + "\n")
                except ConnectionError:
                    self._gone()
                    raise anyio.BrokenResourceError from None


def _cleaned(whole: Any, *parts: str) -> Iterator[Any]:
    """Make parts of a message valid Unicode; those that are there."""
    for part in parts:
        if (value := getattr(whole, part, None)) is not None:
            setattr(whole, part, clean(value))
            yield value
