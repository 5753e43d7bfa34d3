"""The model of the measurements, in a process of its own: it has a file read again and again, and then says so.

    python -m tests.bench.model [SECONDS]

prints its address; each answer takes so many seconds. How often is said in the first text of a conversation ("read 20
times"), so that one model serves every loop, and what it answers follows from the request alone.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.models.messages_server import Answer, Exchange, MessagesServer, message, text, tool_use

TOOL, PATH = "read_file", "in/note.md"
ANSWER = "It is as it was."


def task(turns: int) -> str:
    """What asks for so many turns, the last one without a call."""
    return f"read {turns - 1} times"


def respond(body: dict[str, Any]) -> Answer:
    """The next turn of a conversation."""
    asked = re.search(r"read (\d+) times", str(body["messages"][0]["content"]))
    done = sum(one["role"] == "assistant" for one in body["messages"])
    if asked is not None and done < int(asked[1]):
        return message(text("Let me look."), tool_use(TOOL, {"path": PATH}, id=f"toolu_{done}"))
    return message(text(ANSWER))


def late(answer: Answer, seconds: float) -> Answer:
    """An answer that takes its time before it begins."""

    def wait(exchange: Exchange) -> None:
        time.sleep(seconds)
        answer(exchange)

    return wait


@contextlib.contextmanager
def running(seconds: float = 0.0) -> Iterator[str]:
    """The model while it runs; gives its address."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-m", "tests.bench.model", str(seconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.communicate()


if __name__ == "__main__":
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 0.0
    with MessagesServer(respond=lambda body: late(respond(body), seconds)) as server:
        print(server.url, flush=True)
        sys.stdin.read()
