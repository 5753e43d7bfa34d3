"""Which clients left a question without an answer, so that the next is not put to them in vain.

Of a connection that holds until it ends, or an answer comes after all. A client of 2026-07-28 over HTTP has none: it is
known by whose it is and what it calls itself, which may be several at once, of a person who comes back; so it is asked
again after a while.
"""

from __future__ import annotations

import math
import sys
import time
from typing import Any

from mcp.server.mcpserver import Context

from llm_do_mcp.serving.connection import connection_of

ASKED_AGAIN_S = 600.0
"""After this a client without a connection is asked again."""


class Silences:
    """The clients that are silent."""

    def __init__(self) -> None:
        self._until: list[tuple[object, float]] = []

    def has(self, client: object | None) -> bool:
        """Whether a client (see `client_of`) is one of them."""
        now = time.monotonic()
        return any(silent is client and now < until for silent, until in self._until)

    def begin(self, client: object | None) -> None:
        """A client left a question without an answer."""
        if client is not None:
            now = time.monotonic()
            self._until = [(silent, until) for silent, until in self._until if silent is not client and now < until]
            self._until.append((client, now + ASKED_AGAIN_S if isinstance(client, str) else math.inf))

    def end(self, client: object | None) -> None:
        """A client brought an answer."""
        self._until = [(silent, until) for silent, until in self._until if silent is not client]


def client_of(context: Context[None, Any]) -> object | None:
    """What stands for the client of a request, as far as it can be told from others: the same object each time."""
    connection, introduced = connection_of(context), context.session.client_params
    if not isinstance(connection, str) or introduced is None:
        return connection
    return sys.intern(f"{connection!r} {introduced.client_info.name!r} {introduced.client_info.version!r}")
