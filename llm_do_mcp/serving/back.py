"""Requests to a client of the handshake revisions, in the middle of its call.

What belongs to a call goes on the call's own stream: over HTTP a client need not open another. It outlives the call
where that is handed over; what is to be said then (that a question is withdrawn) goes on the stream that the client may
have opened besides. Over a pipe the two are one.
"""

from __future__ import annotations

import asyncio
import itertools
from typing import Any, TypeVar

import anyio
from mcp.server.mcpserver import Context
from mcp.server.session import ServerSession
from mcp.shared.dispatcher import Outbound
from mcp.types import CreateMessageRequest, ElicitRequest
from pydantic import BaseModel

R = TypeVar("R", bound=BaseModel)

TOLD_WITHIN_S = 5
"""How long it may take to tell a client that does not read that something is no longer wanted."""

_numbers = itertools.count(1)


async def ask(context: Context[None, Any], request: ElicitRequest | CreateMessageRequest, result: type[R]) -> R:
    """Send a request to the client of a call. Cancelled, it is followed by a word that its answer is not wanted.

    Args:
        context: The call.
        request: What is asked.
        result: What the answer has to be.

    Raises:
        MCPError: The client answered with an error, or is gone.
        ValidationError: Its answer is something else.
    """
    sent = request.model_dump(by_alias=True, mode="json", exclude_none=True)
    identifier = f"llm-do-{next(_numbers)}"
    try:
        answer = await _channel(context.session).send_raw_request(
            sent["method"], sent["params"], {"request_id": identifier, "cancel_on_abandon": False}
        )
    except asyncio.CancelledError:
        with anyio.move_on_after(TOLD_WITHIN_S, shield=True):
            unwanted = {"requestId": identifier, "reason": "no longer wanted"}
            await _channel(context.session).notify("notifications/cancelled", unwanted)
        raise
    return result.model_validate(answer, by_name=False)


def _channel(session: ServerSession) -> Outbound:
    # The session's own methods choose once and for all; whether the call has returned meanwhile is known here only.
    return session._request_outbound if session.can_send_request else session._connection.outbound
