"""What a model would do here. It has no eyes: it looks for the letters of `make_board.py` in the pixels."""

from __future__ import annotations

import base64
import json
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from make_board import DOT, LETTERS, MARGIN

__all__ = ["coordinate", "plan"]


def coordinate(request: dict[str, Any]) -> dict[str, Any]:
    """Answer one turn of `main`."""
    found = results(request)
    if not found:
        return {"tool_calls": [call("list_files", path="boards")]}
    boards = [file["path"] for file in json.loads(found[0]["content"])["files"]]
    if request["turn"] == 1:
        return {"tool_calls": [call("worker_call", worker="planner", attachments=[board]) for board in boards]}
    answers, writes = found[1 : 1 + len(boards)], found[1 + len(boards) :]
    names = [board.removeprefix("boards/").rpartition(".")[0] for board in boards]
    given = [(name, one["content"]) for name, one in zip(names, answers, strict=True) if not one["is_error"]]
    if given and not writes:
        return {"tool_calls": [call("write_file", path=f"plans/{name}.md", content=plan) for name, plan in given]}
    plans = sum(not one["is_error"] for one in writes)
    failed = [one["content"] for one in found if one["is_error"]]
    made = f"{plans} plan{'s' * (plans != 1)}, made by a script: no model was called."
    return {"text": "\n".join([made, *failed])}


def plan(request: dict[str, Any]) -> dict[str, Any]:
    """Answer one turn of `planner`."""
    blocks = request["messages"][0]["content"]
    pictures = [block for block in blocks if block["type"] == "attachment" and block["media_type"] == "image/png"]
    if not pictures:
        return {"text": "No picture is attached."}
    title, *steps = read(base64.b64decode(pictures[0]["data"]))
    return {"text": f"# {title}\n" + "".join(f"{number}. {step}\n" for number, step in enumerate(steps, start=1))}


def read(png: bytes) -> list[str]:
    """The lines that `make_board.py` has drawn."""
    width, height = struct.unpack(">II", png[16:24])
    data, position = b"", 8
    while position < len(png):
        (length,) = struct.unpack(">I", png[position : position + 4])
        if png[position + 4 : position + 8] == b"IDAT":
            data += png[position + 8 : position + 8 + length]
        position += 12 + length
    pixels = zlib.decompress(data)
    by_dots = {dots: letter for letter, dots in LETTERS.items()}

    def dots_at(column: int, top: int) -> str:
        places = [(top + DOT * row, column + DOT * dot) for row in range(5) for dot in range(3)]
        return "".join("1" if pixels[y * (width + 1) + 1 + x] < 128 else "0" for y, x in places)

    tops = range(MARGIN, height - MARGIN, 5 * DOT + MARGIN)
    columns = range(MARGIN, width - MARGIN, 4 * DOT)
    return ["".join(by_dots[dots_at(column, top)] for column in columns).strip() for top in tops]


def results(request: dict[str, Any]) -> list[dict[str, Any]]:
    """What the calls gave so far."""
    blocks = [block for message in request["messages"] for block in message["content"]]
    return [block for block in blocks if block["type"] == "tool_result"]


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """One call."""
    return {"name": name, "input": arguments}
