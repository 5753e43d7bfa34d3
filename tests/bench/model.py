"""The model of the measurements, in a process of its own: it has a file read again and again, and then says so.

    python -m tests.bench.model

prints its address. How often is said in the first text of a conversation ("read 20 times"), so that one model serves
every loop, and what it answers follows from the request alone.
"""

from __future__ import annotations

import re
import sys
from typing import Any

from tests.models.messages_server import Answer, MessagesServer, message, text, tool_use

TOOL, PATH = "read_file", "in/note.md"


def task(turns: int) -> str:
    """What asks for so many turns, the last one without a call."""
    return f"read {turns - 1} times"


def respond(body: dict[str, Any]) -> Answer:
    """The next turn of a conversation."""
    asked = re.search(r"read (\d+) times", str(body["messages"][0]["content"]))
    done = sum(one["role"] == "assistant" for one in body["messages"])
    if asked is not None and done < int(asked[1]):
        return message(text("Let me look."), tool_use(TOOL, {"path": PATH}, id=f"toolu_{done}"))
    return message(text("It is as it was."))


if __name__ == "__main__":
    with MessagesServer(respond=respond) as server:
        print(server.url, flush=True)
        sys.stdin.read()
