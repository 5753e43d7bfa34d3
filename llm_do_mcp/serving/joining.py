"""Calls that returned before their runs had ended, so that the same call, made again, joins its run.

A model whose call was handed over may make it again rather than call `run_wait`. On the same connection that is the
same wish, and what was begun is not begun a second time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcp.server.mcpserver import Context

from llm_do_mcp.runtime.run import digest_of

MODERN = "2026-07-28"
"""The revision whose requests stand alone."""
_PIPE = object()


def connection_of(context: Context[None, Any]) -> object | None:
    """What stands for the connection of a request: the same object for all that come over it.

    Clients of the handshake revisions introduce themselves once for each connection. A request of 2026-07-28 stands
    alone, but for a pipe, which has one client; over HTTP nothing tells one client from another, and there is None.
    """
    if context.protocol_version != MODERN:
        introduced: object | None = context.session.client_params
        return introduced
    return _PIPE if context.headers is None else None


class HandedOver:
    """The runs that were handed over and have not ended.

    Args:
        unfinished: Whether a run still goes on in this process.
    """

    def __init__(self, unfinished: Callable[[str], bool]) -> None:
        self._unfinished = unfinished
        self._calls: dict[str, tuple[object, str]] = {}

    def add(self, run: str, connection: object | None, tool: str, arguments: dict[str, Any]) -> None:
        """A call returned, and its run goes on.

        Args:
            run: The run.
            connection: What stands for the connection, the same object at each call; None where there is none.
            tool, arguments: The call.
        """
        self._calls = {known: call for known, call in self._calls.items() if self._unfinished(known)}
        self._calls.setdefault(run, (connection, digest_of(tool, arguments)))

    def find(self, connection: object | None, tool: str, arguments: dict[str, Any]) -> str | None:
        """The unfinished run of the same call on the same connection, if there is one."""
        if connection is None or not self._calls:
            return None
        digest = digest_of(tool, arguments)
        for run, (known, call) in self._calls.items():
            if known is connection and call == digest and self._unfinished(run):
                return run
        return None

    def __contains__(self, run: str) -> bool:
        return run in self._calls
