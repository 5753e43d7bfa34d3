"""What a model would do here, by the first word of what it is told: add, sign, change, find, report."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["keep", "sum_up"]


def keep(request: dict[str, Any]) -> dict[str, Any]:
    """Answer one turn of `keeper`."""
    word, _, rest = said(request).partition(" ")
    path, _, text = rest.partition(": ")
    found, turn = results(request), request["turn"]
    match word, turn:
        case "add", 0:
            slug = rest.split()[0].lower()
            return write((f"notes/inbox/{slug}.md", f"# {rest}\n"), (f"journal/{slug}.md", f"added {rest}\n"))
        case "change", 0:
            return write((path, f"{text}\n"))
        case "sign", 0:
            return {"tool_calls": [call("read_file", path="private/signature.txt")]}
        case "sign", 1 if not is_refused(found[-1]):
            return write((path, f"{text}\n\n{found[-1]}"))
        case "find", 0:
            return {"tool_calls": [call("te", command=f"te grep -n '{rest}' notes")]}
        case "report", 0:
            return {"tool_calls": [call("worker_call", worker="reports/weekly", input_data="this week")]}
        case _:
            return {"text": "\n".join(found) or "I can add, change, sign, find and report."}


def sum_up(request: dict[str, Any]) -> dict[str, Any]:
    """Answer one turn of `reports/weekly`."""
    found = results(request)
    match request["turn"]:
        case 0:
            return {"tool_calls": [call("list_files", path="notes", pattern="inbox/*.md")]}
        case 1:
            paths = [file["path"] for file in json.loads(found[0])["files"]]
            return {"tool_calls": [call("read_file", path=path) for path in paths]}
        case 2:
            lines = [note.splitlines()[0].lstrip("# ") for note in found[1:]]
            return write(("notes/weekly.md", "".join(f"- {line}\n" for line in lines)))
        case _:
            return {"text": found[-1]}


def said(request: dict[str, Any]) -> str:
    """What the worker was told."""
    return next(block["text"] for block in request["messages"][0]["content"] if block["type"] == "text")


def results(request: dict[str, Any]) -> list[str]:
    """What the calls gave so far."""
    blocks = [block for message in request["messages"] for block in message["content"]]
    return [block["content"] for block in blocks if block["type"] == "tool_result"]


def is_refused(result: str) -> bool:
    """Whether a call was not made."""
    return "was not run" in result


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """One call."""
    return {"name": name, "input": arguments}


def write(*files: tuple[str, str]) -> dict[str, Any]:
    """A turn that writes files."""
    return {"tool_calls": [call("write_file", path=path, content=text) for path, text in files]}
