"""What a model would do here; the worker that it makes counts the words of what is attached."""

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
            return {"tool_calls": [{"name": "list_files", "input": {"path": "input"}}]}
        case 1:
            made = {
                "name": "word_counter",
                "description": "Counts the words of a text.",
                "instructions": "Count the words of the attached text.",
            }
            return {"tool_calls": [{"name": "worker_create", "input": made}]}
        case 2:
            listed = next(
                block for message in request["messages"] for block in message["content"] if "tool_use_id" in block
            )
            files = [file["path"] for file in json.loads(listed["content"])["files"]]
            asked = [{"worker": "word_counter", "input_data": "count", "attachments": [path]} for path in files]
            return {"tool_calls": [{"name": "worker_call", "input": given} for given in asked]}
        case 3:
            writes = [
                {"path": f"output/{PurePosixPath(given['attachments'][0]).stem}.md", "content": block["content"]}
                for given, block in zip(calls(request), found, strict=True)
            ]
            return {"tool_calls": [{"name": "write_file", "input": write} for write in writes]}
        case _:
            return {"text": f"{len(found)} texts counted."}


def word_counter(request):
    file = request["messages"][0]["content"][0]
    return {"text": f"{len(base64.b64decode(file['data']).split())} words"}
