"""Keeps the requests of one session apart, and lets nobody answer a question who may not, or may not any more.

The SDK's transport finds the stream of a request by its id. Of two that have the same one, the answer that is there
first would go out as the second's, and whoever waits for the first would wait for ever. So as long as one has no answer
no other one gets its id. Requests of 2026-07-28 stand alone, without a session.

A session's answer to a question is taken by the call that asked, which knows its own caller only; so whether who brings
it may approve is asked here, as it comes. In 2026-07-28 answers come with a call of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import pydantic_core
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.types import INVALID_REQUEST, ErrorData, JSONRPCError
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from llm_do_mcp.runtime.display import cut, escape
from llm_do_mcp.serving.caller import caller


class OneEach:
    """Refuses a request whose id another one of its session still has, and an answer of who may not approve.

    Args:
        inside: What answers requests. Bodies come in one piece, or their client has left.
    """

    def __init__(self, inside: ASGIApp) -> None:
        self._inside = inside
        self._open: dict[tuple[str, str], _Open] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["method"] != "POST":
            await self._inside(scope, receive, send)
            return
        read = [await receive()]
        if read[0]["type"] == "http.disconnect" or read[0].get("more_body", False):
            return  # its client left in the middle of it, and waits for no answer

        async def again() -> Message:
            return read.pop() if read else await receive()

        session = Headers(scope=scope).get(MCP_SESSION_ID_HEADER)
        said = {} if session is None else _message(read[0].get("body", b""))
        if _decides(said) and not caller().may("approve"):
            await Response("The token has no scope approve, without which nobody answers", 403)(scope, again, send)
            return
        if session is None or (identifier := _id(said)) is None:
            await self._inside(scope, again, send)
            return
        one = session, identifier
        while (before := self._open.get(one)) is not None:
            if not before.answered:
                await _refusal(identifier)(scope, again, send)
                return
            await before.left.wait()
        mine = self._open[one] = _Open()

        async def answer(message: Message) -> None:
            mine.answered = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        try:
            await self._inside(scope, again, answer)
        finally:
            del self._open[one]
            mine.left.set()


@dataclass
class _Open:
    """A request that the transport knows.

    Args:
        answered: Its client has the whole answer, or is about to.
        left: Set once the transport knows it no more, which is a moment later.
    """

    answered: bool = False
    left: asyncio.Event = field(default_factory=asyncio.Event)


def _message(body: bytes) -> dict[str, Any]:
    """What a body holds; empty for what is no message."""
    try:
        message = pydantic_core.from_json(body)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def _id(message: Mapping[str, Any]) -> str | None:
    """The id of a request, as the transport tells them apart; None for what is none."""
    asks = "method" in message and isinstance(message.get("id"), int | str)
    return str(message["id"]) if asks else None


def _decides(message: Mapping[str, Any]) -> bool:
    """Whether it is an answer to a question; one to anything else that a server may ask of a client has no action."""
    result = message.get("result")
    return isinstance(result, dict) and "action" in result


def _refusal(identifier: str) -> Response:
    told = f"the session has a request with the id {cut(escape(identifier), 80)!r} already, which has no answer yet"
    error = JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=INVALID_REQUEST, message=told))
    text = error.model_dump_json(by_alias=True)
    return Response(text, HTTPStatus.BAD_REQUEST, media_type="application/json")
