"""What a model would do here, and what the worker would say that it makes."""

from __future__ import annotations

import base64
import re
from pathlib import PurePosixPath
from typing import Any

__all__ = ["main", "read"]

LETTER = re.compile(r"^letters/\S+\.md$", re.MULTILINE)
MADE = {
    "name": "letter_reader",
    "description": "Says what a letter asks for.",
    "instructions": "Say in one line what the attached letter asks for.",
}


def main(request: dict[str, Any]) -> dict[str, Any]:
    """Answer one turn of `main`."""
    found = results(request)
    letters = sorted(set(LETTER.findall(found[0]))) if found else []
    match request["turn"]:
        case 0:
            return {"tool_calls": [call("te", command="te find letters -name '*.md'")]}
        case 1:
            return {"tool_calls": [call("worker_create", **MADE)]}
        case 2 if "was not run" not in found[1]:
            asked = {"worker": MADE["name"], "input_data": "What does it ask for?"}
            return {"tool_calls": [call("worker_call", **asked, attachments=[letter]) for letter in letters]}
        case 3:
            return {"tool_calls": [call("write_file", path="results/answers.md", content=answers(letters, found))]}
        case 4:
            return {"text": answers(letters, found)}
        case _:
            return {"text": found[-1]}


def read(request: dict[str, Any]) -> dict[str, Any]:
    """Answer the one turn of the worker that was made: the last sentence is what a letter is about."""
    letter = next(block for block in request["messages"][0]["content"] if block["type"] == "attachment")
    text = base64.b64decode(letter["data"]).decode()
    return {"text": re.split(r"(?<=[.?]) ", text.strip())[-1]}


def answers(letters: list[str], found: list[str]) -> str:
    """A line for each letter."""
    said = zip(letters, found[2:], strict=False)
    return "".join(f"- {PurePosixPath(letter).stem}: {line}\n" for letter, line in said)


def results(request: dict[str, Any]) -> list[str]:
    """What the calls gave so far."""
    blocks = [block for message in request["messages"] for block in message["content"]]
    return [block["content"] for block in blocks if block["type"] == "tool_result"]


def call(name: str, /, **arguments: Any) -> dict[str, Any]:
    """One call."""
    return {"name": name, "input": arguments}
