"""What goes into one turn of a model and what comes out: plain data, in the shapes of the Messages API.

Everything that answers (`anthropic.py`, `scripted.py`) implements `Model`, so the worker loop, the journal and a
replay never know which one it was. Content blocks stay the dicts that came off the wire: thinking blocks carry
signatures and must be sent back exactly as they were.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

LONGEST_TURN_S = 600.0
"""How long a turn may take, in seconds, where another model can be asked instead, or a client's person looks at it."""

Block = Mapping[str, Any]
"""A content block of the Messages API, or an attachment (see `attachments.py`)."""


@dataclass(frozen=True)
class ToolSpec:
    """A tool as a model is told of it.

    Args:
        name: What the model calls it: `^[a-zA-Z0-9_-]{1,64}$`.
        description: What it does, for the model.
        input_schema: JSON Schema of the input; an object at the root.
        strict: The model should be held to the schema, where it and the schema allow that.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]
    strict: bool = False


@dataclass(frozen=True)
class Request:
    """All that a model is asked in one turn.

    Args:
        worker: Id of the worker that asks; named in errors, and what a script is chosen by.
        model: The model's full name, `anthropic:claude-haiku-4-5`.
        system: The worker's rendered instructions.
        messages: The conversation so far: `{"role": ..., "content": [blocks]}`. A block may be an attachment,
            `{"type": "attachment", "name", "media_type", "data": bytes}`, as `attachments.attachment` makes it.
        tools: What the model may call.
        server_side_tools: Tools that the model's provider runs, as the worker's file has them: `tool_type` and limits.
        output_schema: JSON Schema that the final text has to fit, or None where it is free text.
        turn: Which turn of the worker's conversation this is, counted from 0.
        key: The turn's place in the whole run.
        digest: Of all that is asked, as the run's record has it; only where a replay has to compare it.
        alone: The worker has no other model, and could have one that answers where this one does not.
    """

    worker: str
    model: str
    system: str
    messages: tuple[Mapping[str, Any], ...]
    tools: tuple[ToolSpec, ...] = ()
    server_side_tools: tuple[Mapping[str, Any], ...] = ()
    output_schema: Mapping[str, Any] | None = None
    turn: int = 0
    key: str = ""
    digest: str = ""
    alone: bool = True


def attachments_of(request: Request) -> Iterator[Block]:
    """All that is attached to the messages of a request, in order."""
    for message in request.messages:
        if not isinstance(message["content"], str):
            yield from (block for block in message["content"] if block["type"] == "attachment")


@dataclass(frozen=True)
class Usage:
    """What one turn took. Cached input is counted apart: the whole input is the sum of the three input counts.

    `web_searches` are those that the provider ran in it, which are paid for besides the tokens.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    web_searches: int = 0


@dataclass(frozen=True)
class Reply:
    """What a model answered.

    Args:
        content: Blocks, in order, exactly as they must be sent back.
        stop_reason: Why it stopped. After `max_tokens`, `refusal` or `model_context_window_exceeded` the last block
            may be cut, and no call in it may be made.
        usage: What the turn took.
        model: Which model answered, by its own account.
        lost: What replies took, as far as it was told, that came before this one and could not be used.
    """

    content: tuple[Block, ...]
    stop_reason: str
    usage: Usage
    model: str
    lost: tuple[Usage, ...] = ()


class Model(Protocol):
    """Answers turns. One instance serves many workers at once.

    Attributes:
        name: The full name it was opened by.
        calls_model: False where no model is called (a script, a replay); every place that shows a result says so.
    """

    name: str
    calls_model: bool

    async def reply(self, request: Request, *, deadline: float) -> Reply:
        """Answer one turn. A turn has no effects, so it may be repeated inside; a cancelled one is hung up.

        Args:
            request: What is asked.
            deadline: When the answer must be there, by `anyio.current_time()`, retries included.

        Raises:
            ModelUnavailable: It did not serve the request; another model may.
            ModelError: The request cannot be served, by this or another model.
        """
        ...

    async def aclose(self) -> None:
        """Let go of connections."""
        ...


def json_value(text: str) -> Any:
    """The JSON value that a model, or a person, wrote.

    Raises:
        ValueError: It is none; NaN and its like are none either.
        RecursionError: It is nested too deeply.
    """
    return json.loads(text, parse_constant=_no_constant)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")


def request_json(request: Request) -> dict[str, Any]:
    """The request as JSON, with the bytes of attachments in base64: what a script is given."""
    asked = {
        **asdict(request),
        "messages": _jsonable(request.messages),
        "tools": [asdict(tool) for tool in request.tools],
    }
    del asked["key"], asked["digest"], asked["alone"]  # not asked: where it stands in the record and in a chain
    return asked


def _jsonable(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Mapping):
        return {key: _jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(item) for item in value]
    return value
