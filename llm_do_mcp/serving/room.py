"""Room for what a client has not read yet.

A client that does not read leaves its answers with the server. As long as they are more than a server should have to
keep, nothing further is read from it, and nothing of what it has asked is begun. How large an answer is, is known only
once it is there: so not everything is begun at once, either. What lasts (a worker, a person who is asked) gives up its
place to the next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

ENOUGH = 16 << 20
"""Characters of answers that wait to be read, beyond which nothing is begun."""
AT_ONCE: Mapping[str, int] = {"tools/call": 64, "resources/read": 4, "prompts/get": 4}
"""How many requests of a kind are begun at once, where their answers can be large: as large as whole files, some."""
LASTS_S = 2.0
"""What has no answer after this lasts."""


class Room:
    """What one connection has room for."""

    def __init__(self) -> None:
        self._taken = 0
        self._free = asyncio.Event()
        self._places = {method: asyncio.Semaphore(count) for method, count in AT_ONCE.items()}

    async def free(self) -> None:
        """Wait until there is room."""
        while self._taken > ENOUGH:
            self._free.clear()
            await self._free.wait()

    @contextmanager
    def taken(self, answer: Any) -> Iterator[None]:
        """While the block runs, an answer waits to be read."""
        size = _characters(answer)
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
        await places.acquire()
        with ExitStack() as place:
            place.callback(places.release)
            await self.free()
            lasts = asyncio.get_running_loop().call_later(LASTS_S, place.close)
            try:
                return await call_next(ctx)
            finally:
                lasts.cancel()


def _characters(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(_characters(item) for item in value.values())
    return sum(_characters(item) for item in value) if isinstance(value, list) else 0
