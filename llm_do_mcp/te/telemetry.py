"""The log of commands: one line of JSON for each, appended with a single write, so that processes do not mix.

It holds what was asked (flags, patterns, paths) and how large the answer was; never a line of a file. Nothing in it is
changed later: what a command shows about the one before it in its session is an event of its own, which names that one.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress

from llm_do_mcp.te.regular import opened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, BinaryIO

    Event = dict[str, Any]

SCORES = {"proceeds": 2, "uses_handle": 1, "repeats": -1, "asks_for_help": -2}
"""What each next action says of the answer before it. Commands cannot show that a person was asked for help; a host
that sees it may append such an event."""
TAIL = 256 << 10
"""Bytes at the end of a log in which the command before is looked for."""
_TEXTS = {"command": ("id", "session_id", "cmd", "mode"), "next_action": ("of", "action")}
"""The kinds of events, and what is a text in each."""
_MOST_ARGUMENTS = 50
_LONGEST_ARGUMENT = 300
_SIMILAR = 0.5
_WRITTEN_WITHIN = (0.0, 0.001, 0.002, 0.005, 0.01, 0.02)
"""Seconds between looks at a line that has no end yet."""


class Log:
    """One log.

    Args:
        base: The folder that it must lie in.
        path: Its path below that.
    """

    def __init__(self, base: str, path: str) -> None:
        self._base = base
        self._path = os.path.join(base, path)

    def append(self, event: Event) -> None:
        """Write one event; a log that cannot be written is not worth failing for."""
        line = json.dumps(event, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        with suppress(OSError, ValueError):
            folder = os.path.dirname(self._path)
            base = os.path.realpath(self._base)
            if os.path.commonpath((base, os.path.realpath(folder))) != base:
                return
            os.makedirs(folder, exist_ok=True)
            with self._open(os.O_RDWR | os.O_APPEND | os.O_CREAT) as file:
                # Whoever wrote last may have been stopped in the middle: that line is lost, but not this one.
                os.write(file.fileno(), b"\n" + line if _is_torn(file.fileno()) else line)

    def events(self, most: int | None = None) -> Iterator[Event]:
        """All events, or those in the last `most` bytes; lines that are none are passed over."""
        with suppress(OSError), self._open(os.O_RDONLY) as file:
            if most is not None and (size := os.fstat(file.fileno()).st_size) > most:
                file.seek(size - most)
                file.readline()
            for line in file:
                with suppress(ValueError, RecursionError):
                    event = json.loads(line)
                    if _is_event(event):
                        yield event

    def _open(self, flags: int) -> BinaryIO:
        return open(opened(self._path, flags, links=False), "rb")

    def record(self, event: Event) -> None:
        """Write a command's event, and before it what the command shows about the one before it in the session."""
        before, told = None, set()
        for earlier in self.events(TAIL) if event["session_id"] else ():
            if earlier["event"] == "next_action":
                told.add(earlier["of"])
            elif earlier["session_id"] == event["session_id"] and _precedes(earlier, event):
                before = earlier
        if before is not None and before["id"] not in told and (action := next_action(before, event)):
            shown = {name: event[name] for name in ("timestamp", "agent_id", "session_id")}
            self.append({"event": "next_action", "of": before["id"], **shown, "action": action})
        self.append(event)


def _is_torn(handle: int) -> bool:
    """Whether a log's last line has no end, and is not being written at this moment: then the end comes at once."""
    for wait in _WRITTEN_WITHIN:
        time.sleep(wait)
        if not os.fstat(handle).st_size:
            return False
        os.lseek(handle, -1, os.SEEK_END)
        if os.read(handle, 1) == b"\n":
            return False
    return True


def command_event(
    arguments: Sequence[str],
    *,
    agent: str,
    session: str,
    command: str,
    mode: str,
    input_size: int | None = None,
    answer: str | None = None,
    truncated: bool = False,
    handle: str = "",
    seconds: float | None = None,
    error: str,
    strategy: str = "",
) -> Event:
    """What is told of one command.

    Args:
        arguments: As it was given.
        agent: Its agent's id.
        session: Its session's id.
        command: Its name.
        mode: `enriched`, `raw`, or `error` where nothing is answered.
        input_size: Bytes that the tool below had to tell; None where nobody counts them.
        answer: What was answered; only its size is told. None where the tool itself answers.
        truncated: Whether something was left out.
        handle: The handle that was made, or that was asked for.
        seconds: How long it took; None where it goes on.
        error: The error's code, or "".
        strategy: The coach's choice, or "".
    """
    now = time.time()
    return {
        "event": "command",
        "id": os.urandom(8).hex(),
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03d}Z",
        "agent_id": agent or "unknown",
        "session_id": session,
        "cmd": command,
        "arguments": [argument[:_LONGEST_ARGUMENT] for argument in arguments[:_MOST_ARGUMENTS]],
        "mode": mode,
        "input_size": input_size,
        "output_size": None if answer is None else len(answer.encode()),
        "truncated": truncated,
        "handle_created": bool(handle) and command != "handle",
        "handle": handle or None,
        "latency_ms": None if seconds is None else round(seconds * 1000),
        "error": error or None,
        "strategy": strategy or None,
    }


def _precedes(earlier: Event, event: Event) -> bool:
    """Whether a command shows something about an earlier one: a handle does about the answer that it is from."""
    if event["cmd"] != "handle":
        return True
    return earlier["cmd"] != "handle" and event["handle"] is not None and earlier.get("handle") == event["handle"]


def next_action(before: Event, now: Event) -> str:
    """What a command shows about the one before it: a key of `SCORES`, or "" for nothing."""
    if before["mode"] == "error" or _asks_about_te(before) or _asks_about_te(now):
        return ""
    if now["cmd"] == "handle":
        return "uses_handle"
    if before["cmd"] == now["cmd"] and _similar(before, now):
        return "repeats"
    return "" if now["mode"] == "error" else "proceeds"  # what fails leads nowhere


def _asks_about_te(event: Event) -> bool:
    """Whether it is a report, or help, and no step of a task."""
    return event["cmd"] in ("coach", "te") or _words(event) == ["--help"]


def _is_event(event: object) -> bool:
    """Whether it is one of ours, with all that is read of it."""
    if not isinstance(event, dict) or event.get("event") not in ("command", "next_action"):
        return False
    if not all(isinstance(event.get(name), str) for name in _TEXTS[event["event"]]):
        return False
    if event["event"] == "next_action":
        return event["action"] in SCORES
    arguments, strategy = event.get("arguments"), event.get("strategy")
    texts = isinstance(arguments, list) and all(isinstance(argument, str) for argument in arguments)
    return texts and (strategy is None or isinstance(strategy, str))


def _similar(one: Event, other: Event) -> bool:
    """Whether two commands of one name ask for nearly the same."""
    first, second = _meant(one), _meant(other)
    if not first or not second:
        return first == second
    return len(first & second) >= _SIMILAR * min(len(first), len(second))


def _meant(event: Event) -> set[str]:
    """The words of a command without its flags and name, in small letters."""
    words = "".join(
        character.lower() if character.isalnum() else " "
        for argument in _words(event)
        if not argument.startswith("-")
        for character in f"{argument} "
    )
    return set(words.split())


def _words(event: Event) -> list[str]:
    """What stands behind the name of a command, before which a form may stand."""
    arguments: list[str] = event["arguments"]
    return arguments[arguments.index(event["cmd"]) + 1 :] if event["cmd"] in arguments else arguments
