"""Threads for blocking work, apart from those that the transport uses.

The SDK reads standard input and writes standard output on anyio's default threads; slow tools there would make the
server deaf. File operations and searches run on a pool of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar

T = TypeVar("T")

THREADS = 16

_limiter: RunVar[anyio.CapacityLimiter] = RunVar("llm-do threads")


async def in_thread(work: Callable[..., T], *arguments: object, stop: Callable[[], None] | None = None) -> T:
    """Run blocking work off the event loop.

    Args:
        work: What blocks.
        arguments: Its arguments.
        stop: Called when the caller is cancelled, so that the work ends early. It is waited for in any case: what
            runs in a thread, or was started from it, does not outlive its call.
    """
    running = anyio.to_thread.run_sync(partial(work, *arguments), limiter=_own())
    if stop is None:
        return await running
    task = asyncio.ensure_future(running)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        stop()
        with anyio.CancelScope(shield=True):
            await asyncio.wait((task,))
        raise


def _own() -> anyio.CapacityLimiter:
    try:
        return _limiter.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(THREADS)
        _limiter.set(limiter)
        return limiter
