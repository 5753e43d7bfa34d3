"""Sessions of the handshake revisions, which answer a request with what there is to say.

- An answer that comes soon, with nothing before it, goes out by itself, as JSON; the SDK makes a stream of events of
  each, which takes longer than to read a file. What asks, tells how far it is or takes its time gets a stream, which
  keeps what lies between awake and sees that the client has left. (In 2026-07-28 the SDK does the same.)
- The SDK finds the stream of a request by its id. Of two with the same one the answer that is there first would go out
  as the second's, and whoever waits for the first would wait for ever: as long as one has no answer, no other one gets
  its id. Requests of 2026-07-28 stand alone.
- An answer to a question is taken by the call that asked, which knows its own caller only; so whether who brings it may
  approve, or still may, is asked here, as it comes. In 2026-07-28 answers come with a call of their own.
- They keep nothing of what they have answered. The SDK's hold on to the last message until there is another one: for
  half an hour, where a client has gone away, and an answer can be as large as a whole file.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from http import HTTPStatus
from typing import Any

import anyio
import pydantic_core
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp.server.streamable_http import (
    MCP_SESSION_ID_HEADER,
    REQUEST_STREAM_BUFFER_SIZE,
    EventMessage,
    StreamableHTTPServerTransport,
    check_accept_headers,
)
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, JSONRPCMessage, JSONRPCRequest, JSONRPCResponse, jsonrpc_message_adapter
from sse_starlette import EventSourceResponse
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from llm_do_mcp.runtime.display import cut, escape
from llm_do_mcp.serving.caller import caller

ALONE_WITHIN_S = 1.0
"""An answer that is not there after this becomes a stream."""
_ENDED = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)
"""What streams raise whose session has been ended."""


def answers_alone(manager: StreamableHTTPSessionManager) -> None:
    """Have the sessions that a manager opens be such ones."""
    admit = manager._admit_session

    def admitted(requestor: Any) -> StreamableHTTPServerTransport | None:
        if (session := admit(requestor)) is not None:
            session.__class__ = _Session
        return session

    manager._admit_session = admitted  # type: ignore[method-assign]  # it is made, and makes them, within the SDK


class _Session(StreamableHTTPServerTransport):
    async def _handle_post_request(self, scope: Scope, request: Request, receive: Receive, send: Send) -> None:
        message = _message(await request.body())
        if isinstance(message, JSONRPCResponse) and "action" in message.result and not caller().may("approve"):
            told = "The token has no scope approve, without which nobody answers"
            await Response(told, HTTPStatus.FORBIDDEN)(scope, receive, send)
        elif isinstance(message, JSONRPCRequest) and str(message.id) in self._request_streams:
            shown = cut(escape(str(message.id)), 80)
            told = f"the session has a request with the id {shown!r} already, which has no answer yet"
            await self._create_error_response(told, HTTPStatus.BAD_REQUEST)(scope, receive, send)
        elif isinstance(message, JSONRPCRequest) and message.method != "initialize" and self._is_in_order(request):
            await self._answer(message, request, send)
        else:
            await super()._handle_post_request(scope, request, receive, send)

    def _is_in_order(self, request: Request) -> bool:
        """Whether the headers of a request are as they should be; where they are not, the SDK says what is wrong."""
        takes_both = all(check_accept_headers(request))
        return takes_both and self._check_content_type(request) and self._get_session_id(request) == self.mcp_session_id

    async def _answer(self, message: JSONRPCRequest, request: Request, send: Send) -> None:
        assert self._read_stream_writer is not None  # a session is connected before it is asked something
        identifier, first = str(message.id), None
        streams = anyio.create_memory_object_stream[EventMessage](REQUEST_STREAM_BUFFER_SIZE)
        self._request_streams[identifier] = streams
        unanswered = partial(self._terminate_unanswered_request, message.id)
        metadata = self._message_metadata(request, on_request_unanswered=unanswered)
        response: Response
        try:
            await self._read_stream_writer.send(SessionMessage(message, metadata))
            with anyio.move_on_after(ALONE_WITHIN_S):
                first = await streams[1].receive()
            if first is not None and _is_answer(first):
                self._let_go(identifier)
                response = self._create_json_response(first.message)
                _forget(first)
            else:
                headers = {"Cache-Control": "no-cache, no-transform", MCP_SESSION_ID_HEADER: self.mcp_session_id or ""}
                response = EventSourceResponse(self._events(identifier, first, streams[1]), headers=headers)
            await response(request.scope, request.receive, send)
        except _ENDED:
            response = self._create_error_response("Not Found: Session has been terminated", HTTPStatus.NOT_FOUND)
            await response(request.scope, request.receive, send)
        finally:
            if self._request_streams.get(identifier) is streams:
                self._let_go(identifier)

    async def _events(
        self, identifier: str, event: EventMessage | None, further: MemoryObjectReceiveStream[EventMessage]
    ) -> AsyncIterator[dict[str, Any]]:
        """What a request has as its stream, up to its answer.

        Args:
            identifier: The request's.
            event: The first one; None where there is none yet.
            further: What follows.
        """
        while event is None or not _is_answer(event):
            if event is not None:
                yield self._create_event_data(event)
            try:
                event = await further.receive()
            except _ENDED:
                return
        self._let_go(identifier)  # before the client has the answer, and may use the id again
        data = self._create_event_data(event)
        _forget(event)
        yield data

    def _let_go(self, identifier: str) -> None:
        for stream in self._request_streams.pop(identifier):
            stream.close()


def _message(body: bytes) -> JSONRPCMessage | None:
    """What a body holds; None where that is no message."""
    try:
        return jsonrpc_message_adapter.validate_python(pydantic_core.from_json(body), by_name=False)
    except ValueError:
        return None


def _is_answer(event: EventMessage) -> bool:
    return isinstance(event.message, JSONRPCResponse | JSONRPCError)


def _forget(event: EventMessage) -> None:
    if isinstance(event.message, JSONRPCResponse):
        event.message.result = {}
