"""Reads one streamed message to its end, and lets nothing through that is not whole.

Streaming, because a long answer then neither times out nor has to fit the SDK's limit for unstreamed ones. The
price: the SDK hands out what it has when a stream simply ends, and parses tool input leniently, so that half a
`write_file` call looks like a call. A call that is not complete JSON, or a message without a stop reason, is a
`BrokenReply` here.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from llm_do_mcp.models.turn import Reply, Usage

if TYPE_CHECKING:
    from anthropic.lib.streaming import AsyncMessageStream

_CUT = {"max_tokens", "model_context_window_exceeded", "refusal"}
"""Stop reasons after which the last block may be incomplete; the worker loop runs no call then."""


class BrokenReply(Exception):
    """A reply that is not a whole message. Nothing was done with it: the turn may be asked again."""


async def read_reply(stream: AsyncMessageStream[None]) -> Reply:
    """Read a stream to its end.

    Raises:
        BrokenReply: It broke off, or is no message of the Messages API.
    """
    inputs: defaultdict[int, str] = defaultdict(str)  # block → the JSON of a tool's input
    events = 0
    try:
        async for event in stream:
            events += 1
            if event.type == "content_block_delta" and event.delta.type == "input_json_delta":
                inputs[event.index] += event.delta.partial_json
        if not events:
            raise BrokenReply("the server sent no events")
        message = await stream.get_final_message()
        content = tuple(block.to_dict(mode="json", warnings=False) for block in message.content)
        usage = _usage(message.usage)
    except BrokenReply:
        raise
    except Exception as error:  # the SDK raises whatever a malformed event makes its accumulator trip over
        raise BrokenReply(str(error) or type(error).__name__) from error
    if message.stop_reason is None:
        raise BrokenReply("the stream ended before the message did")
    if message.stop_reason not in _CUT:
        _check_calls(content, inputs)
    return Reply(content=content, stop_reason=message.stop_reason, usage=usage, model=message.model)


def _check_calls(content: tuple[Mapping[str, Any], ...], inputs: Mapping[int, str]) -> None:
    """Every call has an id of its own, a name, and an input that came through whole."""
    seen: set[str] = set()
    for index, block in enumerate(content):
        if block["type"] != "tool_use":
            continue
        identifier, name = block.get("id"), block.get("name")
        if not identifier or not name or identifier in seen:
            raise BrokenReply(f"call {index + 1} has no id and name of its own")
        seen.add(identifier)
        try:
            complete = json.loads(inputs.get(index) or "{}") == block["input"] and isinstance(block["input"], dict)
        except ValueError:
            complete = False
        if not complete:
            raise BrokenReply(f"the input of the call of {name} is not a whole JSON object: {inputs.get(index)}")


def _usage(usage: Any) -> Usage:
    by_provider = usage.server_tool_use
    return Usage(  # local servers leave out what they do not count
        input_tokens=usage.input_tokens or 0,
        output_tokens=usage.output_tokens or 0,
        cache_read_tokens=usage.cache_read_input_tokens or 0,
        cache_write_tokens=usage.cache_creation_input_tokens or 0,
        web_searches=by_provider.web_search_requests or 0 if by_provider is not None else 0,
    )
