"""Sessions of the handshake revisions that keep nothing of what they have answered.

The SDK's hold on to the last message of each session until there is another one: for half an hour, where its client
has gone away, and an answer can be as large as a whole file.
"""

from __future__ import annotations

from typing import Any

from mcp.server.streamable_http import EventMessage, StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types import JSONRPCResponse


class _Forgetful(StreamableHTTPServerTransport):
    def _create_event_data(self, event_message: EventMessage) -> dict[str, Any]:
        data = super()._create_event_data(event_message)
        if isinstance(event_message.message, JSONRPCResponse):
            event_message.message.result = {}
        return data


def forget_answers(manager: StreamableHTTPSessionManager) -> None:
    """Have the sessions that a manager opens keep none of their answers."""
    admit = manager._admit_session

    def admitted(requestor: Any) -> StreamableHTTPServerTransport | None:
        if (session := admit(requestor)) is not None:
            session.__class__ = _Forgetful
        return session

    manager._admit_session = admitted  # type: ignore[method-assign]  # it is made, and makes them, within the SDK
