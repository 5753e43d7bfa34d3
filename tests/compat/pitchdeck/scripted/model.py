"""What a model would do here. Its verdict on a deck is how many points the procedure has, and how large the deck is."""

from __future__ import annotations

import base64
import json
from pathlib import PurePosixPath


def results(request):
    return [block for block in request["messages"][-1]["content"] if block["type"] == "tool_result"]


def calls(request):
    return [block["input"] for block in request["messages"][-2]["content"] if block["type"] == "tool_use"]


def main(request):
    found = results(request)
    match request["turn"]:
        case 0:
            return {"tool_calls": [{"name": "list_files", "input": {"path": "input", "pattern": "*.pdf"}}]}
        case 1:
            decks = [file["path"] for file in json.loads(found[0]["content"])["files"]]
            asked = [
                {"worker": "pitch_evaluator", "input_data": deck.partition("/")[2], "attachments": [deck]}
                for deck in decks
            ]
            return {"tool_calls": [{"name": "worker_call", "input": given} for given in asked]}
        case 2:
            reports = {
                f"evaluations/{PurePosixPath(given['input_data']).stem}.md": block["content"]
                for given, block in zip(calls(request), found, strict=True)
            }
            writes = [{"path": path, "content": content} for path, content in reports.items()]
            return {"tool_calls": [{"name": "write_file", "input": write} for write in writes]}
        case _:
            return {"text": f"{sum(not block['is_error'] for block in found)} of {len(found)} decks are judged."}


def pitch_evaluator(request):
    points = [line for line in request["system"].splitlines() if line[:1].isdigit()]
    deck, name = request["messages"][0]["content"]
    size = len(base64.b64decode(deck["data"]))
    return {"text": f"# {name['text']}\n{len(points)} questions put to {size} bytes of {deck['media_type']}\n"}
