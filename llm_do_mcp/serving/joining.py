"""Calls that returned before their runs had ended, so that the same call, made again, joins its run.

A model whose call was handed over may make it again rather than call `run_wait`. On the same connection that is the
same wish, and what was begun is not begun a second time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llm_do_mcp.runtime.run import digest_of


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
            connection: See `connection_of`.
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
