"""The calls that are under way in one tool host process, as the event loop sees them.

The process is watched by threads (`process.py`); here what they receive is handed to the loop, and sorted to the call
that it belongs to.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import anyio

from llm_do_mcp.toolhost.frames import Frame
from llm_do_mcp.toolhost.process import HostProcess

GLANCES = ("keep", "hash")
"""Requests for which none of the project's code runs."""

LAST = ("result", "error", "died")
"""What ends an exchange."""

PLACE_WITHIN_S = 0.3


class NotBegun(Exception):
    """The process ended before a request reached it: nothing was run, and it can be sent to another one."""


class Host:
    """One process with the calls that are under way in it.

    Attributes:
        loaded: What it was asked for of which modules, so that it has imported them, or tried to.
        importing: Held by the one import that is under way: the time that each has begins when it does.
        called: Whether anything has been called in it, which might be lost with it.
        started: None when it is ready, else why it cannot be used.
        killed: Why it was killed, where it was.
    """

    def __init__(
        self,
        python: str,
        root: str,
        env: dict[str, str],
        ended: Callable[[Host], None],
        libraries: Mapping[str, str],
        prints_to: int | None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._exchanges: dict[int, Exchange] = {}
        self._begun = 0
        self._on_end = ended
        self._retired = False
        self._superseded = False
        self._holders = 0
        self._in_trial = False
        self.loaded: set[tuple[str, str]] = set()
        self.importing = anyio.Lock()
        self.called = False
        self.started: asyncio.Future[str | None] = self._loop.create_future()
        self.killed: str | None = None
        self.process = HostProcess(
            python, root, env, lambda frame: self._from_thread(self._receive, frame), libraries, prints_to
        )
        self.process.ended.add_done_callback(lambda ended: self._from_thread(self._died, ended.result()))

    def begin(self, request: Frame) -> Exchange:
        """Starts an exchange with a request.

        Raises:
            NotBegun: The process takes no new calls.
            ValueError, TypeError, RecursionError: JSON cannot carry the request.
        """
        if self._retired:
            raise NotBegun
        self._begun += 1
        exchange = Exchange(self._begun, self.process.send, self._loop, runs_code=request["do"] not in GLANCES)
        exchange.send(request)
        self._exchanges[self._begun] = exchange
        return exchange

    def finish(self, exchange: Exchange) -> None:
        """Forgets an exchange. The last one of a retired process ends it."""
        self._exchanges.pop(exchange.number, None)
        if not exchange.done.done():
            exchange.done.set_result(None)
        self._end_when_idle()

    def exchanges(self) -> list[Exchange]:
        return list(self._exchanges.values())

    @property
    def takes_calls(self) -> bool:
        return not self._retired

    async def admit_call(self) -> None:
        """Notes that something is called in it; waits while an import is under way that may end it."""
        if self._in_trial:
            async with self.importing:
                self.called = True
        self.called = True

    @contextlib.contextmanager
    def trial(self) -> Iterator[None]:
        """While an import is under way that may end it. For whoever holds `importing`, where nothing was called."""
        self._in_trial = True
        try:
            yield
        finally:
            self._in_trial = False

    def hold(self) -> None:
        """Keeps the process, as long as it can be used, for one that needs it and no other."""
        self._holders += 1

    def let_go(self) -> None:
        self._holders -= 1
        self._end_when_idle()

    def supersede(self) -> None:
        """Only its holders will still call it: the process ends when the last one lets go."""
        self._superseded = True
        self._end_when_idle()

    def retire(self) -> None:
        """No new calls come: the process ends with its last one."""
        self._retired = True
        self._end_when_idle()

    def kill(self, reason: str) -> None:
        self.killed = self.killed or reason
        self.process.kill()

    def _end_when_idle(self) -> None:
        if (self._retired or (self._superseded and not self._holders)) and not self._exchanges:
            self.process.kill()

    def _from_thread(self, act: Callable[[Any], None], value: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(act, value)
        except RuntimeError:  # the event loop is closed: nobody is waiting any more
            self.process.kill()

    def _receive(self, frame: Frame) -> None:
        if frame.get("say") in ("ready", "refused"):
            self._set_started(frame.get("text"))
            return
        exchange = self._exchanges.get(frame.get("call", 0))
        if exchange is not None:
            exchange.deliver(frame)

    def _died(self, how: str) -> None:
        self._retired = True
        self._on_end(self)
        self._set_started(f"it ended at once ({how})")
        exchanges = self.exchanges()
        alone = sum(exchange.runs_code for exchange in exchanges) == 1
        for exchange in exchanges:
            exchange.deliver({"say": "died", "how": how, "alone": alone})

    def _set_started(self, refusal: str | None) -> None:
        if not self.started.done():
            self.started.set_result(refusal)


class Exchange:
    """One request and all that is said about it until its end.

    Attributes:
        begun: Whether the request has reached the process.
        done: Set when nobody follows it any more.
        stopping: Whether it is being ended.
        runs_code: Whether code of the project runs for it.
    """

    def __init__(
        self, number: int, send: Callable[[Frame], None], loop: asyncio.AbstractEventLoop, *, runs_code: bool
    ) -> None:
        self.number = number
        self.runs_code = runs_code
        self.done: asyncio.Future[None] = loop.create_future()
        self.begun = False
        self.stopping = False
        self._send = send
        self._frames: asyncio.Queue[Frame] = asyncio.Queue()

    def send(self, frame: Frame) -> None:
        self._send({"call": self.number, **frame})

    def deliver(self, frame: Frame) -> None:
        if frame["say"] == "begun":
            self.begun = True
        else:
            self._frames.put_nowait(frame)

    async def receive(self, within: float | None) -> Frame | None:
        """The next frame, None when none comes within so many seconds."""
        with anyio.move_on_after(None if within is None else max(within, 0)):
            return await self._frames.get()
        return None

    async def place(self) -> str | None:
        """Where in the project's code it is now. What else it says meanwhile is dropped: it is about to be ended."""
        self.send({"do": "where"})
        frame = await self._next(("place", *LAST), PLACE_WITHIN_S)
        if frame is None:
            return None
        if frame["say"] != "place":
            self.deliver(frame)
            return None
        place: str | None = frame["place"]
        return place

    async def ends_within(self, seconds: float) -> bool:
        """Whether it ends within so many seconds."""
        return await self._next(LAST, seconds) is not None

    async def _next(self, kinds: Collection[str], within: float) -> Frame | None:
        """The next frame of some kinds, dropping the others."""
        deadline = time.monotonic() + within
        while (frame := await self.receive(deadline - time.monotonic())) is not None:
            if frame["say"] in kinds:
                return frame
        return None
