"""The person at the terminal: progress on standard error, questions at the prompt."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections.abc import Callable, Sequence

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

_one_at_a_time = asyncio.Lock()


def has_person() -> bool:
    """Whether somebody can be asked here."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def say(line: str) -> None:
    """A line for the person; not part of the result."""
    print(escape(line, lines=True), file=sys.stderr, flush=True)


async def ask(message: str, decisions: Sequence[str], skip: Callable[[], bool] = lambda: False) -> Answer:
    """Put a question at the prompt; one at a time.

    Args:
        message: The question, escaped already.
        decisions: What can be decided.
        skip: Looked at when it is this question's turn: it was settled meanwhile, for the rest of the run.

    Returns:
        The decision, with what was typed behind its key as the note; a dismissed question where input has ended.
    """
    async with _one_at_a_time:
        if skip():
            return Answer("run", by=BY)
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[Answer] = loop.create_future()

        def settle(answer: Answer) -> None:
            if not answered.done():
                answered.set_result(answer)

        def prompt() -> None:
            answer = _prompt(message, tuple(decisions))
            with contextlib.suppress(RuntimeError):  # the loop has ended: nobody waits any more
                loop.call_soon_threadsafe(settle, answer)

        # A daemon: who interrupts at the prompt need not answer it first.
        threading.Thread(target=prompt, name="prompt", daemon=True).start()
        return await answered


def _prompt(message: str, decisions: tuple[str, ...]) -> Answer:
    keys = {KEYS[decision]: decision for decision in decisions}
    offered = "   ".join(f"[{key}] {LABELS[decision]}" for key, decision in keys.items())
    print(f"\n{message}\n{offered}\n(a note may follow the key)", file=sys.stderr)
    while True:
        print("> ", end="", file=sys.stderr, flush=True)
        line = _read_line()
        if not line:
            return Answer(silence="cancelled", by=BY)
        key, _, note = line.strip().partition(" ")
        if key.lower() in keys:
            return Answer(keys[key.lower()], note=note.strip(), by=BY)
        print(f"type one of: {', '.join(keys)}", file=sys.stderr)


def _read_line() -> str:
    # Not through `sys.stdin`: its lock, held by a thread that waits for a line, would abort the interpreter's end.
    with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as keyboard:
        return keyboard.readline().decode("utf-8", "replace")
