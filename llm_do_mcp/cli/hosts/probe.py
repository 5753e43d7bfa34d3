"""A server spoken to as a host does, by hand: what it says on its output and error output is all there is to see.

It may be any program that a host's file names: one that says nothing, or writes without end. So each wait has its time,
and what is read and kept has its measure.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from llm_do_mcp.cli.hosts.start import Start, bare
from llm_do_mcp.sandbox.names import one_line

HANDSHAKE, MODERN = "2025-11-25", "2026-07-28"
ERAS = (HANDSHAKE, MODERN)
PATIENCE_S = 30.0
"""Seconds for one answer; hosts give up after about a minute."""
END_S = 5.0
"""Seconds in which a server has to be gone after the end of its input."""
ROOM = 32_000_000
"""Bytes of output that are read; the lists of a thousand workers are a tenth of it."""
_OF_A_LINE = 100
"""Bytes that a line takes besides what is in it."""
MOST_LINES, LINE_BYTES = 1000, 10_000
"""What is kept of lines that are no messages: so many, and of each so much."""
_LISTS = {"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources"}
_PREFIX = "io.modelcontextprotocol"
_CLIENT = {"name": "llm-do-mcp-doctor", "version": "1"}


@dataclass
class Heard:
    """What came of speaking to a server in one era.

    Args:
        problem: Why it could not be spoken to, in one line, or "".
        seconds: From its start to its first answer.
        lists: "tools", "prompts", "resources" → what is in them; without those that it does not have.
        strays: Lines on its output that are no messages; the first ones.
        errors: Lines on its error output; the last ones, as the last one tells what it died of.
        silent: Whether it had not answered at all when patience ended.
    """

    problem: str = ""
    seconds: float = 0.0
    lists: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    strays: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    silent: bool = False


class _Silence(Exception):
    """An answer that did not come, or came as an error."""


def speak(begun: Start, era: str) -> Heard:
    """Start a server with no variables but those of its entry, ask for its lists, and end its input."""
    heard, began = Heard(), time.monotonic()
    if not os.path.isdir(begun.folder):
        heard.problem = f"{begun.command[0]} cannot be started: there is no folder {begun.folder}"
        return heard
    try:
        process = subprocess.Popen(
            begun.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=begun.folder,
            env=bare(begun.env),
            start_new_session=sys.platform != "win32",  # so that what it starts ends with it
        )
    except (OSError, ValueError) as error:  # of a NUL in a word there is only what Python says
        heard.problem = f"{begun.command[0]} cannot be started: {getattr(error, 'strerror', None) or error}"
        return heard
    conversation = _Conversation(process, era, heard)
    try:
        capabilities = conversation.hello().get("capabilities")
        heard.seconds = time.monotonic() - began
        for method, kind in _LISTS.items():
            if isinstance(capabilities, dict) and kind in capabilities:
                heard.lists[kind] = conversation.listed(method, kind)
        conversation.end()
    except _Silence as error:
        heard.problem = str(error)
    finally:
        conversation.close()
    return heard


def _result(method: str, answer: Mapping[str, Any]) -> dict[str, Any]:
    error, result = answer.get("error"), answer.get("result")
    if isinstance(error, dict):
        raise _Silence(f"{method}: {one_line(str(error.get('message')), 300)}")
    if not isinstance(result, dict):
        raise _Silence(f"{method}: its answer has neither a result nor an error")
    return result


class _Conversation:
    def __init__(self, process: subprocess.Popen[bytes], era: str, heard: Heard) -> None:
        self._process, self._era, self._heard, self._ids = process, era, heard, 0
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._flooded = False
        self._threads = [threading.Thread(target=read, daemon=True) for read in (self._read, self._hear)]
        for thread in self._threads:
            thread.start()

    def hello(self) -> dict[str, Any]:
        if self._era == MODERN:
            return self.ask("server/discover")
        params = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": _CLIENT}
        answer = self.ask("initialize", params)
        if answer.get("protocolVersion") != HANDSHAKE:
            raise _Silence(f"it speaks {answer.get('protocolVersion')!r} and not {HANDSHAKE}")
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        self._ids += 1
        whole = dict(params or {})
        if self._era == MODERN:
            about = {"protocolVersion": MODERN, "clientInfo": _CLIENT, "clientCapabilities": {}}
            whole["_meta"] = {f"{_PREFIX}/{name}": value for name, value in about.items()}
        asked = {"jsonrpc": "2.0", "id": self._ids, "method": method, "params": whole}
        self._write(asked)
        until = time.monotonic() + PATIENCE_S
        while True:
            line = self._next(until, method)
            if not line:
                flood = f"it writes without end: more than {ROOM:,} bytes before it answered {method}"
                raise _Silence(flood if self._flooded else f"it ended before it answered {method}")
            message = self._message(line)
            if message == asked:
                raise _Silence("it is no MCP server: it only says again what it is told")
            if message is not None and message.get("id") == self._ids and "method" not in message:
                return _result(method, message)

    def _next(self, until: float, method: str) -> bytes:
        """The next line of its output; nothing where there will be no more."""
        with contextlib.suppress(queue.Empty):
            if (left := until - time.monotonic()) > 0:
                return self._lines.get(timeout=left)
        self._heard.silent = not self._heard.seconds
        raise _Silence(f"no answer to {method} within {PATIENCE_S:g} s")

    def listed(self, method: str, kind: str) -> list[dict[str, Any]]:
        """What a list has, each with its name."""
        items = self.ask(method).get(kind)
        if isinstance(items, list) and all(isinstance(one, dict) and "name" in one for one in items):
            return items
        raise _Silence(f"{method}: its answer is no list of {kind} with names")

    def end(self) -> None:
        """End its input, and see that it goes."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            raise _Silence(f"it is still there {END_S:g} s after the end of its input") from None

    def close(self) -> None:
        try:
            # One that ended by itself first says all that it has to say.
            self._process.wait(0.5 if self._heard.problem == "" else 0.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._process.wait()
        if sys.platform != "win32":  # what it started; no new group can have this id while one of it lives
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        for thread in self._threads:
            thread.join(END_S)
        if any(thread.is_alive() for thread in self._threads):
            return  # a process that left the group holds the pipes open: they are closed with this one
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None
            with contextlib.suppress(OSError):  # what was still to be written has no reader any more
                pipe.close()

    def _write(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise _Silence(f"it ended before {message['method']} was sent") from None

    def _message(self, line: bytes) -> dict[str, Any] | None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        if isinstance(message, dict) and message.get("jsonrpc") == "2.0":
            return message
        if len(self._heard.strays) < MOST_LINES:
            self._heard.strays.append(line[:LINE_BYTES].decode(errors="replace").strip())
        return None

    def _read(self) -> None:
        assert self._process.stdout is not None
        room = ROOM
        while room > 0 and (line := self._process.stdout.readline(room)):
            room -= len(line) + _OF_A_LINE
            self._lines.put(line)
        self._flooded = room <= 0
        self._lines.put(b"")

    def _hear(self) -> None:
        assert self._process.stderr is not None
        errors = self._heard.errors
        while line := self._process.stderr.readline(LINE_BYTES):
            errors.append(line.decode(errors="replace").rstrip())
            del errors[:-MOST_LINES]
