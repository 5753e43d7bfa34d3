"""What goes to and fro with clients of 2026-07-28, whose requests stand alone.

What a run wants of its client lies in a result, as requests by key; what the client brings for them comes with a
request of its own. That of a call brings a state back, too, which says what run it goes on with. Tasks have the same
requests and answers, and need no state: a task's id is its run's.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp.server.mcpserver import Context
from mcp.types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestParams,
    InputRequest,
    InputResponse,
)
from pydantic import TypeAdapter, ValidationError

from llm_do_mcp.serving.connection import MODERN

Wanted = Mapping[str, ElicitRequestParams | CreateMessageRequestParams]
"""Key → what a run wants: an answer of a person, or a turn of the client's model."""

_RESPONSE: TypeAdapter[InputResponse] = TypeAdapter(InputResponse)


@dataclass(frozen=True)
class State:
    """What a call goes on with. The SDK seals it on its way out, so that what comes back is what went.

    Args:
        run: The run's id.
        round: How often the client has been asked.
    """

    run: str
    round: int

    @classmethod
    def of(cls, context: Context[None, Any] | None) -> State | None:
        """The state that a request brings back; None for one that begins something."""
        if context is None or context.request_state is None or context.protocol_version != MODERN:
            return None
        return cls(**json.loads(context.request_state))

    def to_text(self) -> str:
        """What `of` reads."""
        return json.dumps(dataclasses.asdict(self))


def requests(wanted: Wanted) -> dict[str, InputRequest]:
    """What is wanted, as the protocol's requests."""
    return {
        key: CreateMessageRequest(params=params)
        if isinstance(params, CreateMessageRequestParams)
        else ElicitRequest(params=params)
        for key, params in wanted.items()
    }


def response(value: Any) -> Any:
    """What a client brought for a request, or, where it is no result at all, as it came."""
    try:
        return _RESPONSE.validate_python(value)
    except ValidationError:
        return value
