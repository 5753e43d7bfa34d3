"""Reads one streamed message to its end, and lets nothing through that is not whole.

Streaming, because a long answer then neither times out nor has to fit the SDK's limit for unstreamed ones. The events
are put together here and not by the SDK, which hands out what it has when a stream simply ends, parses tool input
leniently, so that half a `write_file` call looks like a call, and takes any usage for a number. What is only unusual
is taken: local servers leave out usage, or give a whole input at once. A message that is not whole, a call without a
JSON object, a count that is none is a `BrokenReply`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import anyio

from llm_do_mcp.models.turn import Reply, Usage, json_value
from llm_do_mcp.toolhost.results import clean

if TYPE_CHECKING:
    from anthropic import AsyncStream
    from anthropic.types import RawMessageStreamEvent

_CUT = {"max_tokens", "model_context_window_exceeded", "refusal"}
"""Stop reasons after which the last block may be incomplete; the worker loop runs no call then."""
_PIECES = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}
"""Deltas that are pieces of a text → where they have it."""
_MOST_COUNTED = 10**12
_CLOSED_WITHIN_S = 0.2
"""How long a server may take to end the stream behind a message: then its connection can be used again."""
_NO_FORM = "an event is not of a form that the Messages API has"


class BrokenReply(Exception):
    """A reply that is not a whole message. Nothing was done with it: the turn may be asked again."""


async def read_reply(stream: AsyncStream[RawMessageStreamEvent], lost: list[Usage]) -> Reply:
    """Read a stream to the end of its message; what comes behind that is no part of it.

    Args:
        stream: The answer.
        lost: What it took is added, as far as that is known, where no reply comes of it.

    Raises:
        BrokenReply: It broke off, or is no message of the Messages API.
        anthropic.APIStatusError: The server reported an error in the middle of it.
    """
    from anthropic import APIStatusError

    message = _Message()
    try:
        await _read(stream, message)
        if not message.begun:
            kind = stream.response.headers.get("content-type", "").partition(";")[0]
            raise BrokenReply("the server sent no events" + (f", but {kind}" if kind != "text/event-stream" else ""))
        return message.reply()
    except BaseException as error:  # it is also paid for where it came too late
        lost += message.taken()
        if not isinstance(error, Exception) or isinstance(error, BrokenReply | APIStatusError):
            raise
        raise BrokenReply(_in_words(error)) from error


async def _read(stream: AsyncStream[RawMessageStreamEvent], message: _Message) -> None:
    """Take the events of a message; what becomes of the stream behind it does not matter."""
    with anyio.CancelScope() as reading:
        try:
            async for event in stream:
                if not message.ended:
                    message.add(event)
                    if message.ended:
                        reading.deadline = anyio.current_time() + _CLOSED_WITHIN_S
        except Exception:
            if not message.ended:
                raise


def _in_words(error: Exception) -> str:
    """What a malformed event makes the SDK or the lines below trip over."""
    if isinstance(error, json.JSONDecodeError):
        return f"an event is not JSON ({error})"
    if isinstance(error, ArithmeticError | AttributeError | LookupError | RecursionError | TypeError):
        return _NO_FORM
    return str(error) or type(error).__name__


class _Message:
    """A message as far as it has come."""

    def __init__(self) -> None:
        self.begun = self.ended = False
        self._model: Any = ""
        self._stop_reason: Any = None
        self._usage: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._pieces: defaultdict[tuple[int, str], list[str]] = defaultdict(list)

    def add(self, event: Any) -> None:
        """Take the next event; of a kind that is not known it adds nothing."""
        if event.type == "message_start":
            if self.begun:
                raise BrokenReply("the server began a second message before the first had ended")
            self.begun = True
            start = _plain(event.message)
            self._model, self._stop_reason = start.get("model"), start.get("stop_reason")
            self._blocks = dict(enumerate(start.get("content") or ()))
            self._count(event.message.usage)
        elif not self.begun:
            raise BrokenReply(f"{event.type} came before message_start")
        elif event.type == "content_block_start":
            if type(event.index) is not int or event.index < 0 or event.index in self._blocks:
                raise BrokenReply(f"a block has the index {event.index!r}, which is no place of its own")
            self._blocks[event.index] = _plain(event.content_block)
        elif event.type == "content_block_delta":
            if event.index not in self._blocks:
                raise BrokenReply(f"a piece came of block {event.index!r}, which had not begun")
            self._extend(event.index, event.delta)
        elif event.type == "message_delta":
            self._stop_reason = event.delta.stop_reason
            self._count(event.usage)
        elif event.type == "message_stop":
            self.ended = True

    def _extend(self, index: int, delta: Any) -> None:
        block = self._blocks[index]
        if delta.type in _PIECES:
            field = _PIECES[delta.type]
            self._pieces[index, field].append(getattr(delta, field) or "")
        elif delta.type == "signature_delta":
            block["signature"] = delta.signature
        elif delta.type == "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), _plain(delta.citation)]

    def _count(self, usage: Any) -> None:
        """Later counts replace earlier ones: they are of the whole message."""
        if usage is not None:
            counts = _plain(usage, mode="python")  # as JSON, NaN would be None
            self._usage |= {name: count for name, count in counts.items() if count is not None}

    def taken(self) -> list[Usage]:
        """What it took so far, where that was told."""
        try:
            usage = _usage(self._usage)
        except (BrokenReply, AttributeError):
            return []
        return [usage] if usage != Usage() else []

    def reply(self) -> Reply:
        """The whole of it.

        Raises:
            BrokenReply: It is not whole.
        """
        if self._stop_reason is None:
            raise BrokenReply("the stream ended before the message did")
        if not isinstance(self._stop_reason, str):
            raise BrokenReply(f"it stopped for a reason that is no text: {self._stop_reason!r}")
        cut = self._stop_reason in _CUT
        content = tuple(clean(self._block(index, block, cut)) for index, block in sorted(self._blocks.items()))
        _check_calls(content)
        model = self._model if isinstance(self._model, str) else ""
        return Reply(content, self._stop_reason, _usage(self._usage), clean(model))

    def _block(self, index: int, block: dict[str, Any], cut: bool) -> dict[str, Any]:
        if not isinstance(block.get("type"), str):
            raise BrokenReply(f"a block has the type {block.get('type')!r}")
        for field in ("text", "thinking"):
            if block["type"] == field:
                block[field] = (block.get(field) or "") + "".join(self._pieces[index, field])
        if block["type"].endswith("tool_use"):
            block["input"] = _input(block, "".join(self._pieces[index, "partial_json"]), cut)
        return block


def _plain(model: Any, mode: str = "json") -> dict[str, Any]:
    """A part of an event as JSON."""
    if not hasattr(model, "to_dict"):
        raise BrokenReply(_NO_FORM)
    plain: dict[str, Any] = model.to_dict(mode=mode, warnings=False)
    return plain


def _input(block: Mapping[str, Any], document: str, cut: bool) -> dict[str, Any]:
    """The input of a call: in pieces, or as some local servers give it, whole at the block's start, or null."""
    try:
        value = json_value(document) if document.strip() else block.get("input")
    except (ValueError, RecursionError):
        value = document
    if value is None:
        return {}
    if isinstance(value, dict):
        return value
    if cut:
        return {}
    shown = document or json.dumps(value)
    raise BrokenReply(f"the input of the call of {block.get('name')} is not a whole JSON object: {shown}")


def _check_calls(content: tuple[Mapping[str, Any], ...]) -> None:
    """Every call has an id of its own, and a name."""
    seen: set[str] = set()
    for index, block in enumerate(content):
        if block["type"] != "tool_use":
            continue
        identifier, name = block.get("id"), block.get("name")
        if not (isinstance(identifier, str) and isinstance(name, str) and identifier and name) or identifier in seen:
            raise BrokenReply(f"call {index + 1} has no id and name of its own")
        seen.add(identifier)


def _usage(given: Mapping[str, Any]) -> Usage:
    """What was counted; local servers leave out what they do not count."""
    return Usage(
        input_tokens=_counted(given, "input_tokens"),
        output_tokens=_counted(given, "output_tokens"),
        cache_read_tokens=_counted(given, "cache_read_input_tokens"),
        cache_write_tokens=_counted(given, "cache_creation_input_tokens"),
        web_searches=_counted(given.get("server_tool_use") or {}, "web_search_requests"),
    )


def _counted(given: Mapping[str, Any], name: str) -> int:
    """A count, which limits and costs are reckoned with."""
    count = given.get(name)
    if isinstance(count, float) and count.is_integer():
        count = int(count)
    if count is None:
        return 0
    if type(count) is not int or not 0 <= count <= _MOST_COUNTED:
        raise BrokenReply(f"usage.{name} is {count!r}, which is no number of tokens")
    return count
