"""The person at the terminal: progress on standard error, questions at the prompt."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence

from llm_do_mcp.runtime.display import escape
from llm_do_mcp.runtime.question import LABELS, Answer

KEYS = {
    "once": "a",
    "run": "s",
    "deny": "d",
    "done": "y",
    "again": "r",
    "stop": "q",
    "answer": "a",
    "decline": "d",
}
BY = "terminal"

_COMMANDS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

_one_at_a_time = asyncio.Lock()
_LOOKS_EVERY_S = 0.1
"""How often the thread that waits for a line looks whether the line is still wanted."""


def has_person() -> bool:
    """Whether somebody can be asked here."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def say(line: str) -> None:
    """A line for the person; not part of the result. While a question is at the prompt it waits."""
    if _screen.held is None:
        print(escape(line, lines=True), file=sys.stderr, flush=True)
    else:
        _screen.held.append(line)


def result(text: str) -> str:
    """A result as it is printed: where a person reads it, nothing in it commands the terminal, or hides what is above.

    Characters that only join or direct others stay: many scripts need them.
    """
    if not sys.stdout.isatty():
        return text
    return _COMMANDS.sub(lambda found: escape(found[0]), text.replace("\r\n", "\n"))


class _Screen:
    """Keeps what is said out of the line in which a person types an answer."""

    held: list[str] | None = None

    @contextlib.contextmanager
    def prompting(self) -> Iterator[None]:
        self.held = []
        try:
            yield
        finally:
            held, self.held = self.held, None
            for line in held:
                say(line)


_screen = _Screen()


class Log(logging.Handler):
    """Says what is logged."""

    def emit(self, record: logging.LogRecord) -> None:
        say(self.format(record))


async def ask(
    message: str,
    decisions: Sequence[str],
    *,
    skip: Callable[[], bool] = lambda: False,
    elsewhere: Callable[[], Awaitable[Answer | None]] = lambda: asyncio.Future(),
) -> Answer | None:
    """Put a question at the prompt; one at a time.

    Args:
        message: The question, escaped already.
        decisions: What can be decided.
        skip: Looked at when it is this question's turn: it was settled meanwhile, for the rest of the run.
        elsewhere: Waits until the question is open no longer; gives the answer of another front, if there is any.

    Returns:
        The decision, with what was typed behind its key as the note; a dismissed question where input has ended; None
        where the question was withdrawn, which the person has been told then.
    """
    async with _one_at_a_time:
        if skip():
            return Answer("run", by=BY)
        with _screen.prompting():
            here = asyncio.ensure_future(_prompt(message, tuple(decisions)))
            there = asyncio.ensure_future(elsewhere())
            try:
                done, _ = await asyncio.wait((here, there), return_when=asyncio.FIRST_COMPLETED)
                if here in done:
                    return here.result()
            finally:
                here.cancel()
                there.cancel()
                await asyncio.wait((here,))  # the keyboard is let go of before the person is told
            print(escape(_settled(there.result())), file=sys.stderr)
        return None


def _settled(answer: Answer | None) -> str:
    if answer is None:
        return "this question is open no longer"
    note = f" “{answer.note}”" if answer.note else ""
    return f"answered already, by {answer.by}: {LABELS.get(answer.decision, 'no decision')}{note}"


async def _prompt(message: str, decisions: tuple[str, ...]) -> Answer:
    keys = {KEYS[decision]: decision for decision in decisions}
    offered = "   ".join(f"[{key}] {LABELS[decision]}" for key, decision in keys.items())
    print(f"\n{message}\n{offered}\nType a key, a note behind it if you like, and Enter.", file=sys.stderr)
    _forget_what_was_typed()  # nobody had seen this question then
    while True:
        print("> ", end="", file=sys.stderr, flush=True)
        try:
            line = await _line()
        except asyncio.CancelledError:
            print(file=sys.stderr)  # what is told now does not belong behind the prompt
            raise
        if not line:
            print(file=sys.stderr)
            return Answer(silence="cancelled", by=BY)
        key, _, note = line.strip().partition(" ")
        if key.lower() in keys:
            return Answer(keys[key.lower()], note=note.strip(), by=BY)
        print(f"type one of: {', '.join(keys)}", file=sys.stderr)


async def _line() -> str:
    """The next line that is typed, "" at the end of input. Cancelled, it leaves the line to whoever reads next."""
    loop = asyncio.get_running_loop()
    typed: asyncio.Future[str] = loop.create_future()
    unwanted = threading.Event()

    def settle(line: str) -> None:
        if not typed.done():
            typed.set_result(line)

    def read() -> None:
        line = _read_line(unwanted)
        with contextlib.suppress(RuntimeError):  # the loop has ended: nobody waits any more
            loop.call_soon_threadsafe(settle, line)

    # A daemon: who interrupts at the prompt need not answer it first.
    threading.Thread(target=read, name="prompt", daemon=True).start()
    try:
        return await typed
    except asyncio.CancelledError:
        unwanted.set()
        _forget_what_was_typed()
        raise


def _read_line(unwanted: threading.Event) -> str:
    typed = False
    while not typed and not unwanted.is_set():
        typed = _is_typed()
    if unwanted.is_set():
        return ""  # whatever is there now is for who reads next
    # Not through `sys.stdin`: its lock, held by a thread that waits for a line, would abort the interpreter's end.
    with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as keyboard, contextlib.suppress(OSError):
        return keyboard.readline().decode("utf-8", "replace")
    return ""  # the terminal is gone


def _is_typed() -> bool:
    """Whether a line can be read, or (Windows) one is being typed; looks for a moment."""
    if sys.platform == "win32":
        import msvcrt
        import time

        time.sleep(0.0 if msvcrt.kbhit() else _LOOKS_EVERY_S)
        return msvcrt.kbhit()
    import select

    return bool(select.select([sys.stdin.fileno()], [], [], _LOOKS_EVERY_S)[0])


def _forget_what_was_typed() -> None:
    """Drop what has been typed and not been read, with the line that is being typed: it was for something else."""
    if sys.platform == "win32":
        import msvcrt

        while msvcrt.kbhit():
            msvcrt.getwch()
        return
    import termios

    with contextlib.suppress(termios.error):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
