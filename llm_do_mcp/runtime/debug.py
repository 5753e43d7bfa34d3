"""`LLM_DO_DEBUG=1`: what a model is sent and answers, and where a tool raised, on standard error, for its authors.

Redacted like everything that a person is shown, escaped, and cut. Standard error is never part of a result.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from llm_do_mcp.models.turn import Request
from llm_do_mcp.runtime.definition import Definition
from llm_do_mcp.runtime.display import arguments, cut, escape
from llm_do_mcp.runtime.redact import Redactor

VARIABLE = "LLM_DO_DEBUG"
CHARS = 500
"""How much of each text is shown."""


def enabled() -> bool:
    """Whether it is asked for: the variable is set, and not to 0."""
    return os.environ.get(VARIABLE, "0") not in ("", "0")


def show_request(redact: Redactor, definition: Definition, request: Request) -> None:
    """What a turn asks; of the first one also the instructions, fragments and attachments."""
    _say(redact, request, _request_lines(definition, request))


def show_reply(redact: Redactor, request: Request, reply: Mapping[str, Any]) -> None:
    """What came back: text, tool calls, tokens."""
    _say(redact, request, _reply_lines(reply))


def show_traceback(redact: Redactor, tool: str, traceback: str) -> None:
    """Where a tool of the project raised; "" is nothing to show."""
    for line in redact.text(traceback).splitlines():
        print(f"debug {tool}: {escape(line)}", file=sys.stderr, flush=True)


def _request_lines(definition: Definition, request: Request) -> Iterator[tuple[str, Any]]:
    yield "model", request.model
    if request.turn == 0:
        yield "instructions", definition.instructions
        for text in definition.system_context:
            yield "system fragment", text
        for file in definition.attachments:
            yield "attachment", f"{file.name} ({file.media_type}, {file.size} bytes)"
        for text in definition.context:
            yield "fragment", text
        yield "prompt", definition.prompt
        yield "functions", ", ".join(tool.name for tool in request.tools) or "none"
        return
    for block in request.messages[-1]["content"]:
        if block["type"] == "tool_result":
            yield ("error for" if block["is_error"] else "result for") + f" {block['tool_use_id']}", block["content"]
        elif block["type"] == "text":
            yield "text", block["text"]


def _reply_lines(reply: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    blocks: Sequence[Mapping[str, Any]] = reply["content"]
    for block in blocks:
        if block["type"] == "tool_use":
            yield f"tool call {block['id']}", (block["name"], block["input"])
        elif block["type"] == "text":
            yield "reply", block["text"]
    usage = reply["usage"]
    yield "stopped", f"{reply['stop_reason']}, tokens {usage['input_tokens']} in, {usage['output_tokens']} out"


def _say(redact: Redactor, request: Request, lines: Iterator[tuple[str, Any]]) -> None:
    for label, value in lines:
        if isinstance(value, tuple):
            name, given = value
            shown = f"{name} {arguments(redact.data(given), CHARS)}"
        else:
            shown = cut(escape(redact.text(value)), CHARS)
        print(f"debug {request.worker} turn {request.turn + 1}: {escape(label)}: {shown}", file=sys.stderr, flush=True)
