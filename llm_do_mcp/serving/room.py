"""Room for what a client has not read yet.

A client that does not read leaves its messages with the server: answers, errors, news. As long as they are more than a
server should have to keep, nothing further is read from it, and nothing of what it has asked is begun. How large an
answer is, is known only once it is there: so not everything is begun at once, either. What lasts (a worker, a person
who is asked) keeps nobody waiting: it needs no place, or gives it up to the next.

That is for the one client of a stdio server. Of HTTP's many none may keep the others waiting: they share the places
only, and what they do not read has its end in `http/unread.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

ENOUGH = 32 << 20
"""Bytes, about, of messages that wait to be read, beyond which nothing is begun."""
BESIDES = 8 << 10
"""What a message that waits takes besides: about what its task does."""
EACH = 64
"""What each value in it takes, besides the characters of a text."""
AT_ONCE: Mapping[str, int] = {"tools/call": 64, "resources/read": 4, "prompts/get": 4}
"""How many requests of a kind are begun at once, where their answers can be large: as large as whole files, some."""
LASTS_S = 2.0
"""What has no answer after this lasts."""


class Room:
    """What a server has room for.

    Args:
        lasts: Whether calls of a tool last.
    """

    def __init__(self, lasts: Callable[[str], bool]) -> None:
        self._lasts = lasts
        self._taken = 0
        self._free = asyncio.Event()
        self._places = {method: asyncio.Semaphore(count) for method, count in AT_ONCE.items()}
        self._held: dict[object, tuple[asyncio.Semaphore, float]] = {}
        """By request, of which places it holds one, and since when; the oldest first."""
        self._clock: asyncio.TimerHandle | None = None

    async def free(self) -> None:
        """Wait until there is room."""
        while self._taken > ENOUGH:
            self._free.clear()
            await self._free.wait()

    @contextmanager
    def taken(self, *parts: Any) -> Iterator[None]:
        """While the block runs, a message of these parts waits to be read."""
        size = BESIDES + _size(parts)
        self._taken += size
        try:
            yield
        finally:
            self._taken -= size
            self._free.set()

    async def gate(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Begin what was asked once there is room: a middleware of the server's."""
        if (places := self._places.get(ctx.method)) is None:
            return await call_next(ctx)
        if ctx.method == "tools/call" and self._lasts(str((ctx.params or {}).get("name"))):
            await self.free()
            return await call_next(ctx)
        await places.acquire()
        try:
            await self.free()
        except BaseException:
            places.release()
            raise
        request = object()
        self._hold(request, places)
        try:
            return await call_next(ctx)
        finally:
            self._leave(request)

    def _hold(self, request: object, places: asyncio.Semaphore) -> None:
        """Have a request's place given up once it lasts. One clock is for all: most are left long before."""
        loop = asyncio.get_running_loop()
        self._held[request] = places, loop.time()
        if self._clock is None:
            self._clock = loop.call_later(LASTS_S, self._look)

    def _leave(self, request: object) -> None:
        if (held := self._held.pop(request, None)) is not None:
            held[0].release()

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        self._clock = None
        for request, (_, since) in tuple(self._held.items()):
            if loop.time() < since + LASTS_S:
                self._clock = loop.call_at(since + LASTS_S, self._look)
                return
            self._leave(request)


def _size(value: Any) -> int:
    size = EACH
    if isinstance(value, str):
        size += len(value)
    elif isinstance(value, dict):
        size += sum(_size(key) + _size(item) for key, item in value.items())
    elif isinstance(value, list | tuple):
        size += sum(map(_size, value))
    return size
