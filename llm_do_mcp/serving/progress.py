"""Progress for a caller that asked for it: each step as it begins, and a sign of life every few seconds."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from llm_do_mcp.runtime.engine import Engine

HEARTBEAT_S = 5.0
FASTEST_S = 0.05
"""Lines that come faster than this are told together."""


class Progress:
    """Sends progress of a run to the client of one request.

    Args:
        context: The request's context.
    """

    def __init__(self, context: Any) -> None:
        self._context = context
        self._lines: list[str] = []
        self._news = asyncio.Event()
        self._sent = 0

    def of(self, engine: Engine, run: str) -> AbstractAsyncContextManager[None]:
        """While the block runs, tell the client how the run gets on, if it asked for that."""
        meta = self._context.request_context.meta or {}
        return contextlib.nullcontext() if meta.get("progress_token") is None else self._told(engine, run)

    @asynccontextmanager
    async def _told(self, engine: Engine, run: str) -> AsyncIterator[None]:
        began = time.monotonic()
        with engine.listening(run, self._listen):
            sender = asyncio.create_task(self._send(engine, run, began))
            try:
                yield
            finally:
                sender.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await sender
            await self._tell()

    def _listen(self, line: str) -> None:
        self._lines.append(line)
        self._news.set()

    async def _send(self, engine: Engine, run: str, began: float) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HEARTBEAT_S):
                    await self._news.wait()
            self._news.clear()
            if not self._lines:
                waiting = len(engine.questions(run))
                state = f"waiting for {waiting} approvals" if waiting else "working"
                self._lines.append(f"{state}, {time.monotonic() - began:.0f} s")
            await self._tell()
            await asyncio.sleep(FASTEST_S)

    async def _tell(self) -> None:
        while self._lines:
            self._sent += 1
            await self._context.report_progress(self._sent, None, self._lines.pop(0))
