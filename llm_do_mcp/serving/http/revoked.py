"""Streams of news, which end once whoever listens may no longer.

A token is checked as its request comes. That is enough for what is answered and over; a stream of news (a session's
own, or `subscriptions/listen`) goes on for as long as its client likes.
"""

from __future__ import annotations

import asyncio

from anyio import CancelScope
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from llm_do_mcp.serving.caller import LETS_IN

LOOKED_EVERY_S = 5.0
"""How often it is looked whether a token still lets in."""


class Revocable:
    """Ends streams of news whose token has been taken back, or has run out.

    Args:
        inside: What answers requests.
        backend: Knows tokens.
    """

    def __init__(self, inside: ASGIApp, backend: BearerAuthBackend) -> None:
        self._inside, self._backend = inside, backend

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        connection = HTTPConnection(scope)
        if scope["method"] != "GET" and connection.headers.get("mcp-method") != "subscriptions/listen":
            await self._inside(scope, receive, send)
            return
        with CancelScope() as stream:
            looking = asyncio.create_task(self._look(connection, stream))
            try:
                await self._inside(scope, receive, send)
            finally:
                looking.cancel()
        if stream.cancelled_caught:
            await send({"type": "http.response.body", "more_body": False})

    async def _look(self, connection: HTTPConnection, stream: CancelScope) -> None:
        known = True
        while known:
            await asyncio.sleep(LOOKED_EVERY_S)
            found = await self._backend.authenticate(connection)
            known = found is not None and LETS_IN in found[0].scopes
        stream.cancel()
