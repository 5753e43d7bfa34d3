"""A `Request` as the arguments of the SDK's `messages.create`, for a stream.

The only place that knows how our attachments, schemas and tools look on the wire, and what is done where a model
lacks a capability: a schema is said in words, an attachment that it would not see is refused.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from llm_do_mcp.models.attachments import IMAGES, PDF, as_text
from llm_do_mcp.models.capabilities import Capabilities, to_switch_on
from llm_do_mcp.models.failures import failure, unavailable
from llm_do_mcp.models.grammar import grammars
from llm_do_mcp.models.turn import Request
from llm_do_mcp.sandbox.names import shown

SERVER_SIDE = {  # by the names of `settings.SERVER_SIDE_TOOLS`
    "web_search": "web_search_20250305",
    "web_fetch": "web_fetch_20250910",
    "code_execution": "code_execution_20250825",
}
"""The tools that the provider runs, by the names that workers use."""


MOST_BYTES = 32_000_000
"""What a request of the Messages API may have."""


def stream_arguments(request: Request, model: str, can: Capabilities) -> dict[str, Any]:
    """The keyword arguments of `AsyncAnthropic.messages.create`.

    Args:
        request: What is asked.
        model: The model's name without the provider.
        can: What the model can be sent.

    Raises:
        ModelUnavailable: Attachments or tools that this model cannot be sent.
        ModelError: Attachments that no model can be sent, or more than a request may have.
    """
    if request.server_side_tools and not can.server_side_tools:
        what = "the worker's server_side_tools were not sent: this model's provider is not known to have any"
        raise unavailable(request, what, f"take them away, name another model, or {to_switch_on('server_side_tools')}")
    strict_schemas = [tool.input_schema if tool.strict and can.strict_tools else None for tool in request.tools]
    output, strict = grammars(request.output_schema if can.structured_output else None, strict_schemas)
    system = request.system
    arguments: dict[str, Any] = {
        "model": model,
        "max_tokens": can.max_output_tokens,
        "messages": _messages(request, can),
    }
    if output is not None:
        arguments["output_config"] = {"format": {"type": "json_schema", "schema": output}}
    elif request.output_schema is not None:
        system = f"{system}\n\n{schema_in_words(request.output_schema)}".lstrip()
    if system.strip():
        arguments["system"] = system
    tools = [
        {"name": tool.name, "description": tool.description, "input_schema": dict(tool.input_schema)}
        if grammar is None
        else {"name": tool.name, "description": tool.description, "input_schema": grammar, "strict": True}
        for tool, grammar in zip(request.tools, strict, strict=True)
    ]
    tools += map(_server_side, request.server_side_tools)
    if tools:
        arguments["tools"] = tools
    if request.tools and not can.parallel_tools:
        arguments["tool_choice"] = {"type": "auto", "disable_parallel_tool_use": True}
    if can.caching:
        arguments["cache_control"] = {"type": "ephemeral"}
    if (size := _size(arguments)) > MOST_BYTES:
        what = f"it is asked with {size:,} bytes, and a request may have {MOST_BYTES:,}"
        raise failure(request, what, "attach fewer or smaller files, or give it less to read")
    return arguments


def _size(arguments: Mapping[str, Any]) -> int:
    """The bytes of a request as the SDK writes it."""
    body = json.dumps({**arguments, "stream": True}, ensure_ascii=False, separators=(",", ":"), default=dict)
    return len(body) if body.isascii() else len(body.encode("utf-8", "surrogatepass"))


def _server_side(tool: Mapping[str, Any]) -> dict[str, Any]:
    """A tool that the provider runs; its limits have the same names there."""
    name = tool["tool_type"]
    limits = {key: value for key, value in tool.items() if key != "tool_type"}
    return {"type": SERVER_SIDE[name], "name": name, **limits}


def schema_in_words(schema: Mapping[str, Any]) -> str:
    """What a model is told that takes no schema as such."""
    text = json.dumps(schema, ensure_ascii=False)
    return f"Your final answer is one JSON value that fits this JSON Schema, with nothing before or after it:\n{text}"


def _messages(request: Request, can: Capabilities) -> list[dict[str, Any]]:
    """The conversation without what the API refuses: texts of white space only, and messages with nothing in them.

    Models do end a turn with nothing to say, and begin one with empty lines before a call. Neighbours that come to
    have the same role are one turn to the API.
    """
    messages = ({**message, "content": _blocks(message["content"], request, can)} for message in request.messages)
    return [message for message in messages if message["content"]]


def _blocks(content: Any, request: Request, can: Capabilities) -> Any:
    if isinstance(content, str):
        return content
    return [_block(block, request, can) for block in content if block["type"] != "text" or block["text"].strip()]


def _block(block: Mapping[str, Any], request: Request, can: Capabilities) -> dict[str, Any]:
    if block["type"] == "attachment":
        return _attachment(block["name"], block["media_type"], block["data"], request, can)
    if block["type"] == "tool_result" and "content" in block:
        return {**block, "content": _blocks(block["content"], request, can)}
    return dict(block)


def _attachment(name: str, media_type: str, data: bytes, request: Request, can: Capabilities) -> dict[str, Any]:
    if media_type.startswith("text/"):
        # As text, not as a document: every server takes it, and none drops it.
        return {"type": "text", "text": as_text(name, data)}
    if media_type == PDF:
        return {"type": "document", "title": shown(name), "source": _base64(media_type, data)}
    if media_type in IMAGES:
        if not can.images:
            raise unavailable(
                request,
                f"attachment {name} was not sent: this model is not known to take images",
                f"attach text, name another model, or {to_switch_on('images')}",
            )
        return {"type": "image", "source": _base64(media_type, data)}
    raise failure(request, f"attachment {name} is {media_type}", "attach PDF, PNG, JPEG, GIF, WebP or text")


def _base64(media_type: str, data: bytes) -> dict[str, str]:
    return {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode("ascii")}
