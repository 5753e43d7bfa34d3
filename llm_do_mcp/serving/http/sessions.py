"""Sessions of the handshake revisions.

The SDK answers each of their requests with a stream of events, which takes longer than to read a file, and keeps what
it has answered. Those of ours differ in this:

- An answer that comes soon, with nothing before it, goes out by itself, as JSON. What asks, tells how far it is or
  takes its time gets a stream, which keeps what lies between awake and sees that its client has left.
- The SDK finds the stream of a request by its id. Of two with the same one the answer that is there first would go out
  as the second's, and whoever waits for the first would wait for ever: as long as one has no answer, even if its client
  has left, no other one gets its id. Requests of 2026-07-28 stand alone.
- An answer to a question is taken by the call that asked, which knows its own caller only; so whether who brings it may
  approve, or still may, is asked here, as it comes. In 2026-07-28 answers come with a call of their own.
- What was answered is forgotten. The SDK holds on to a session's last message until there is another one: for half an
  hour, where a client has gone away, and an answer can be as large as a whole file.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any

import anyio
import pydantic_core
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp.server.streamable_http import (
    CONTENT_TYPE_SSE,
    GET_STREAM_KEY,
    MCP_SESSION_ID_HEADER,
    REQUEST_STREAM_BUFFER_SIZE,
    EventMessage,
    StreamableHTTPServerTransport,
    check_accept_headers,
)
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types import (
    INTERNAL_ERROR,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
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


def spare_streams(manager: StreamableHTTPSessionManager) -> None:
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
        elif isinstance(message, JSONRPCRequest) and self._is_taken(str(message.id)):
            shown = cut(escape(str(message.id)), 80)
            told = f"the session has a request with the id {shown!r} already, which has no answer yet"
            await self._create_error_response(told, HTTPStatus.BAD_REQUEST)(scope, receive, send)
        elif isinstance(message, JSONRPCRequest) and message.method != "initialize" and self._is_in_order(request):
            await self._answer(message, request, send)
        else:
            await super()._handle_post_request(scope, request, receive, send)

    def _is_taken(self, identifier: str) -> bool:
        return identifier in self._request_streams or identifier == GET_STREAM_KEY

    def _is_in_order(self, request: Request) -> bool:
        """Whether the headers of a request are as they should be; where they are not, the SDK says what is wrong."""
        takes_both = all(check_accept_headers(request))
        return takes_both and self._check_content_type(request) and self._get_session_id(request) == self.mcp_session_id

    async def _answer(self, message: JSONRPCRequest, request: Request, send: Send) -> None:
        identifier = str(message.id)
        sender, events = anyio.create_memory_object_stream[EventMessage](REQUEST_STREAM_BUFFER_SIZE)
        self._request_streams[identifier] = sender, events
        try:
            response = await self._response(message, request, events)
            await response(request.scope, request.receive, send)
        finally:
            if self._request_streams.get(identifier) == (sender, events):  # its client has left
                self._request_streams[identifier] = _Left(self, identifier), events  # type: ignore[assignment]
            sender.close()
            events.close()

    async def _response(
        self, message: JSONRPCRequest, request: Request, events: MemoryObjectReceiveStream[EventMessage]
    ) -> Response:
        """Have a request dispatched: its answer, or the stream on which it will come."""
        assert self._read_stream_writer is not None  # a session is connected before it is asked something
        identifier, first = str(message.id), None
        try:
            await self._read_stream_writer.send(self._create_session_message(message, request, identifier, ""))
            with anyio.move_on_after(ALONE_WITHIN_S):
                first = await events.receive()
        except _ENDED:
            told = "Session terminated before the request completed"
            return self._create_error_response(told, HTTPStatus.INTERNAL_SERVER_ERROR, INTERNAL_ERROR)
        if first is not None and _is_answer(first):
            self._request_streams.pop(identifier, None)
            response = self._create_json_response(first.message)
            _forget(first)
            return response
        headers = {"Content-Type": CONTENT_TYPE_SSE, "Cache-Control": "no-cache, no-transform"}
        headers[MCP_SESSION_ID_HEADER] = self.mcp_session_id or ""
        return EventSourceResponse(self._events(identifier, first, events), headers=headers)

    async def _events(
        self, identifier: str, first: EventMessage | None, further: MemoryObjectReceiveStream[EventMessage]
    ) -> AsyncIterator[dict[str, Any]]:
        """What a request has as its stream, up to its answer; the first of it may be there already."""
        if first is not None:
            yield self._create_event_data(first)
        try:
            while not _is_answer(event := await further.receive()):
                yield self._create_event_data(event)
        except _ENDED:
            return
        self._request_streams.pop(identifier, None)  # before the client has the answer, and may use the id again
        data = self._create_event_data(event)
        _forget(event)
        yield data


class _Left:
    """Stands for the stream of a request whose client has left, until it is answered.

    Args:
        session: The request's session.
        identifier: Its id.
    """

    def __init__(self, session: _Session, identifier: str) -> None:
        self._session, self._identifier = session, identifier

    async def send(self, event: EventMessage) -> None:
        """Take what nobody waits for."""
        if _is_answer(event):
            self._session._request_streams.pop(self._identifier, None)
            _forget(event)

    async def aclose(self) -> None:
        """There is nothing to close."""


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
