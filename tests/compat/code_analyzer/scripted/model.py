"""What a model would do here: try commands, and say what each printed or why it did not run."""

from __future__ import annotations

import json

COMMANDS = (
    "ls",
    "wc -l main.py shop/till.py",
    "grep -rn TODO .",
    "sort main.py",
    "ls -l",
    "wc -l ../scripted/model.py",
    "grep -c x main.py | sort",
    "rm main.py",
)


def results(request):
    return [block for block in request["messages"][-1]["content"] if block["type"] == "tool_result"]


def main(request):
    if request["turn"] == 0:
        call = {"worker": "code_analyzer", "input_data": "How large is it, and what is left to do?"}
        return {"tool_calls": [{"name": "worker_call", "input": call}]}
    return {"text": results(request)[0]["content"]}


def code_analyzer(request):
    if request["turn"] == 0:
        return {"tool_calls": [{"name": "shell", "input": {"command": command}} for command in COMMANDS]}
    lines = []
    for command, block in zip(COMMANDS, results(request), strict=True):
        said = block["content"] if block["is_error"] else json.loads(block["content"])["stdout"]
        lines.append(f"$ {command}\n{said}")
    return {"text": "\n".join(lines)}
