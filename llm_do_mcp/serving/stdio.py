"""What keeps a stdio server alive and lets it end in time.

Standard output is the wire. It is taken away before any code of the project's could print, every text that leaves is
made valid Unicode (a lone surrogate would end the SDK's writer for good), a request that cannot be read is answered
(the SDK passes over it, and its sender would wait for ever), and the end of input is told apart from a cancelled
request: at the end of input runs stay resumable, and the process is gone within two seconds.
"""

from __future__ import annotations

import json
import os
import re
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

import anyio
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError

from llm_do_mcp.serving.wire import Incoming, Outgoing, guard_stdin, guard_stdout

GONE_WITHIN_S = 1.5
"""Seconds after the end of input in which everything is let go of; then the process just ends."""

_SURROGATES = re.compile("[\ud800-\udfff]")


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
async def hardened_stdio(at_end: Callable[[], None]) -> AsyncIterator[tuple[Any, Any]]:
    """The SDK's stdio streams, hardened.

    Args:
        at_end: Called when the input has ended or nobody reads the output any more, before anything that was under
            way is cancelled.

    Raises:
        ExceptionGroup: Of a `ConnectionError`, where nobody reads the output any more.
    """
    incoming: Any = Incoming(guard_stdin())
    outgoing: Any = Outgoing(guard_stdout(), at_end)
    async with stdio_server(incoming, outgoing) as (read, write):
        cleaned = _Cleaned(write)
        yield _Watched(read, at_end, cleaned), cleaned


def unreadable(error: Exception) -> JSONRPCError | None:
    """The answer to a message that is no valid request; None where it has no id to answer to.

    Args:
        error: What the SDK's reader gave in its place.
    """
    inputs = [part["input"] for part in error.errors(include_url=False)] if isinstance(error, ValidationError) else []
    request = next((value for value in inputs if isinstance(value, dict) and "method" in value), None)
    code, message = INVALID_REQUEST, "not a request of JSON-RPC 2.0"
    if request is None:
        code, message = PARSE_ERROR, "not JSON that can be read: it is cut off, too deep, or holds half a character"
        try:
            request = json.loads(inputs[0])
        except (IndexError, TypeError, ValueError, RecursionError):
            return None
    identifier = request.get("id") if isinstance(request, dict) and "method" in request else None
    if isinstance(identifier, bool) or not isinstance(identifier, int | str):
        return None
    return JSONRPCError(jsonrpc="2.0", id=identifier, error=ErrorData(code=code, message=message))


def clean(value: Any) -> Any:
    """A JSON value with every lone surrogate written out; the same object where there is none."""
    if isinstance(value, str):
        return value if value.isascii() else _SURROGATES.sub(_written_out, value)
    if isinstance(value, dict):
        return {clean(key): clean(item) for key, item in value.items()}
    if isinstance(value, list):
        return [clean(item) for item in value]
    return value


def _written_out(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


class _Stream:
    """A stream handed on, to be overridden in part."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, traceback)  # type: ignore[no-any-return]


class _Watched(_Stream):
    """Answers what cannot be read, and tells when the input has ended."""

    def __init__(self, stream: Any, at_end: Callable[[], None], answers: _Cleaned) -> None:
        super().__init__(stream)
        self._at_end = at_end
        self._answers = answers

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        try:
            while isinstance(item := await self._stream.receive(), Exception):
                if (answer := unreadable(item)) is not None:
                    await self._answers.send(SessionMessage(answer))
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            self._at_end()
            raise
        return item

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class _Cleaned(_Stream):
    """Makes every message valid Unicode before it is written."""

    async def send(self, item: SessionMessage) -> None:
        message = item.message
        for part in ("result", "params"):
            value = getattr(message, part, None)
            if value is not None:
                setattr(message, part, clean(value))
        error = getattr(message, "error", None)
        if error is not None:
            error.message = clean(error.message)
        await self._stream.send(item)
