"""Calls that returned before their runs had ended, so that the same call, made again, joins its run.

A model whose call was handed over may make it again rather than call `run_wait`. On the same connection that is the
same wish, and what was begun is not begun a second time. Where a principal stands for the connection, the next request
may come to another instance: what was handed over is then kept with the runs.
"""

from __future__ import annotations

from typing import Any

from llm_do_mcp.runtime.engine import Engine
from llm_do_mcp.runtime.run import digest_of


class HandedOver:
    """The runs that were handed over and have not ended.

    Args:
        engine: Drives runs here, and has what is kept with those of all instances.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._calls: dict[str, tuple[object, str]] = {}

    async def add(self, run: str, connection: object | None, tool: str, arguments: dict[str, Any]) -> None:
        """A call returned, and its run goes on.

        Args:
            run: The run.
            connection: See `connection_of`.
            tool, arguments: The call.
        """
        call = digest_of(tool, arguments)
        self._calls = {known: other for known, other in self._calls.items() if self._engine.drives(known)}
        self._calls.setdefault(run, (connection, call))
        if isinstance(connection, str):
            await self._engine.hand_over(run, call)

    async def find(self, connection: object | None, tool: str, arguments: dict[str, Any]) -> str | None:
        """The unfinished run of the same call on the same connection, if there is one."""
        if connection is None or not (self._calls or isinstance(connection, str)):
            return None
        call = digest_of(tool, arguments)
        if isinstance(connection, str):
            joined = await self._engine.handed_over(call, connection)
            if joined is not None:
                self._calls.setdefault(joined, (connection, call))
            return joined
        for run, (known, other) in self._calls.items():
            if known is connection and other == call and self._engine.drives(run):
                return run
        return None

    def __contains__(self, run: str) -> bool:
        return run in self._calls
