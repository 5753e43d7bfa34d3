"""A call as the tool host sees it, and the `ToolContext` that its tool is given.

What a tool asks of the server (`call`, `ask`) leaves as a question; the thread waits for the answer by itself and holds
no place that another call could need, so that calls may nest as deep as limits allow.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from llm_do_mcp import errors
from llm_do_mcp.toolhost.authoring import ToolContext
from llm_do_mcp.toolhost.frames import Frame
from llm_do_mcp.toolhost.results import checked_result, clean_text

MAX_LOG_LINES = 1_000
MAX_LOG_CHARACTERS = 10_000
PROGRESS_INTERVAL_S = 0.1
_ENDED = "the call that this context belongs to has ended"


class Cancelled(BaseException):
    """Ends a tool that waits while its call is cancelled. No `except Exception` of a tool keeps it."""


class Call:
    """One call under way: its questions, and whether it is still wanted.

    Args:
        number: The server's name for it.
        send: Sends a frame to the server.
    """

    def __init__(self, number: int, send: Callable[[Frame], None]) -> None:
        self.number = number
        self._send = send
        self._lock = threading.Lock()
        self._questions: dict[int, Future[Any]] = {}
        self._asked = 0
        self._task: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None
        self.thread_id: int | None = None
        self.cancelled = False
        self.finished = False

    def say(self, what: str, /, **fields: Any) -> None:
        """Tells the server something about this call."""
        self._send({"call": self.number, "say": what, **fields})

    def ask(self, what: str, /, **fields: Any) -> Future[Any]:
        """Asks the server something; the future has the answer."""
        future: Future[Any] = Future()
        with self._lock:
            if self.cancelled:
                raise Cancelled
            if self.finished:
                raise errors.CallError(_ENDED)
            self._asked += 1
            question = self._asked
            self._questions[question] = future
        self.say("question", question=question, what=what, **fields)
        return future

    def answer(self, question: int, answer: Frame) -> None:
        """Delivers the server's answer. It may come too late; then nobody waits for it."""
        with self._lock:
            future = self._questions.pop(question, None)
        if future is None:
            return
        if "error" in answer:
            kind = getattr(errors, answer["kind"], errors.CallError)
            _fail(future, kind(answer["error"]))
        elif future.set_running_or_notify_cancel():
            future.set_result(answer["value"])

    def run_as(self, loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> None:
        """Notes that the call runs as a task, which is what a cancellation then ends."""
        with self._lock:
            self._task = (loop, task)
            cancelled = self.cancelled
        if cancelled:
            task.cancel()

    def cancel(self) -> None:
        """The server no longer wants the result: whatever waits, ends; what computes may look at `cancelled`."""
        with self._lock:
            self.cancelled = True
            task = self._task
            waiting = list(self._questions.values())
            self._questions.clear()
        if task is not None:
            task[0].call_soon_threadsafe(task[1].cancel)
            return
        for future in waiting:
            _fail(future, Cancelled())

    def finish(self) -> None:
        """Nothing is asked in the name of this call any more; a thread that the tool left waiting goes on."""
        with self._lock:
            self.finished = True
            waiting = list(self._questions.values())
            self._questions.clear()
        for future in waiting:
            _fail(future, errors.CallError(_ENDED))


def _fail(future: Future[Any], error: BaseException) -> None:
    if future.set_running_or_notify_cancel():  # else the tool itself gave up waiting
        future.set_exception(error)


class CallContext(ToolContext):
    """The `ToolContext` of one call."""

    def __init__(self, call: Call, project_root: str) -> None:
        self._call = call
        self._root = Path(project_root)
        self._log_lines = 0
        self._last_progress = 0.0

    def call(self, name: str, input: Any = None) -> Any:
        return self._answer(self._call.ask("call", name=clean_text(str(name)), input=checked_result(input)))

    def ask(self, question: str) -> Any:
        return self._answer(self._call.ask("ask", text=clean_text(str(question))))

    def log(self, message: str) -> None:
        self._log_lines += 1
        if self._log_lines < MAX_LOG_LINES:
            self._call.say("log", text=clean_text(str(message))[:MAX_LOG_CHARACTERS])
        elif self._log_lines == MAX_LOG_LINES:
            self._call.say("log", text=f"(after {MAX_LOG_LINES - 1:,} lines, the rest of this call's log is dropped)")

    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        now = time.monotonic()
        if now - self._last_progress >= PROGRESS_INTERVAL_S or done == total:
            self._last_progress = now
            self._call.say("progress", done=done, total=total, text=clean_text(str(message))[:MAX_LOG_CHARACTERS])

    @property
    def cancelled(self) -> bool:
        return self._call.cancelled

    @property
    def project_root(self) -> Path:
        return self._root

    @staticmethod
    def _answer(future: Future[Any]) -> Any:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return future.result()
        return asyncio.wrap_future(future)  # in an async function: to be awaited
