"""Which requests come from the same client: what was begun for one, shown to one, or left unanswered by one."""

from __future__ import annotations

import sys
from typing import Any

from mcp.server.mcpserver import Context

from llm_do_mcp.serving.caller import caller

MODERN = "2026-07-28"
"""The revision whose requests stand alone."""
_PIPE = object()


def connection_of(context: Context[None, Any]) -> object | None:
    """What stands for the connection of a request: the same object for all that come over it.

    Clients of the handshake revisions introduce themselves once for each connection. A request of 2026-07-28 stands
    alone, but for a pipe, which has one client. Over HTTP those of one principal belong together; without
    authentication nothing tells one client from another, and there is None.
    """
    if context.protocol_version != MODERN:
        introduced: object | None = context.session.client_params
        return introduced
    return _PIPE if context.headers is None else sys.intern(caller().principal) or None


def name_of_client(context: Context[None, Any]) -> str | None:
    """What the client of a request calls itself; None for one that did not introduce itself."""
    introduced = context.session.client_params
    return None if introduced is None else introduced.client_info.name
