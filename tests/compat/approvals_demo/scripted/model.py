"""What a model would do here: it signs with what it was let read, and says what came of each call."""

from __future__ import annotations

import json


def last(request):
    return [block for block in request["messages"][-1]["content"] if block["type"] == "tool_result"]


def main(request):
    if request["turn"] == 0:
        note = request["messages"][0]["content"][-1]["text"]
        call = {"worker": "save_note", "input_data": {"note": note}}
        return {"tool_calls": [{"name": "worker_call", "input": call}]}
    return {"text": last(request)[0]["content"]}


def save_note(request):
    found = last(request)
    if request["turn"] == 0:
        paths = ("notes/log.txt", "private/signature.txt")
        return {"tool_calls": [{"name": "read_file", "input": {"path": path}} for path in paths]}
    if request["turn"] == 1:
        log, signature = found
        signed = "unsigned" if signature["is_error"] else signature["content"].strip()
        note = json.loads(request["messages"][0]["content"][-1]["text"])["note"]
        content = f"{log['content']}{note} ({signed})\n"
        paths = ("notes/log.txt", "notes/log.md")
        return {"tool_calls": [{"name": "write_file", "input": {"path": path, "content": content}} for path in paths]}
    return {"text": "\n".join(block["content"] for block in found)}
