"""Starts the approval page, in the event loop of the server, on a free port of the loopback interface."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from llm_do_mcp.runtime.engine import Engine

if TYPE_CHECKING:
    import uvicorn

    from llm_do_mcp.serving.page.app import Doors, Visits

HOST = "127.0.0.1"
IN_SIGHT_S = 15.0
"""A page that was opened, or heard of, in this time is taken to be open: it looks for news more often by itself."""

Browse = Callable[[str], bool]
"""Opens an address in the browser of the person at this machine; whether that worked."""


class ApprovalPage:
    """The page of one server.

    Args:
        engine: Has the questions and takes the answers.
        browse: Opens it for the person at this machine; None where there is no browser.
    """

    def __init__(self, engine: Engine, browse: Browse | None = None) -> None:
        self._engine, self._browse = engine, browse
        self._server: uvicorn.Server | None = None
        self._serving: asyncio.Task[None] | None = None
        self._starting, self._showing = asyncio.Lock(), asyncio.Lock()
        self._doors: Doors
        self._visits: Visits
        self._port = 0
        self._opened: float | None = None

    async def address(self) -> str:
        """An address that opens the page once; starts the page where it is not served yet.

        Raises:
            OSError: No port could be opened.
        """
        async with self._starting:
            if self._server is None:
                await self._start()
        return f"http://{HOST}:{self._port}/?token={self._doors.token()}"

    async def show(self) -> bool:
        """Open the page in the browser, unless the person has it open.

        Returns:
            Whether a browser was opened, now or before.
        """
        if self._browse is None:
            return False
        async with self._showing:
            if self._is_in_sight():
                return True
            if await asyncio.to_thread(self._browse, await self.address()):
                self._opened = time.monotonic()
            return self._opened is not None

    def _is_in_sight(self) -> bool:
        if self._opened is None:
            return False
        heard = max(self._opened, self._visits.looked or 0.0)
        return time.monotonic() - heard < IN_SIGHT_S

    async def aclose(self) -> None:
        """Stop serving; what waits can still be answered with `llm-do approve`."""
        if self._server is not None and self._serving is not None:
            self._server.should_exit = self._server.force_exit = True
            with contextlib.suppress(asyncio.CancelledError, TimeoutError):
                await asyncio.wait_for(self._serving, 1.0)

    async def _start(self) -> None:
        import uvicorn

        from llm_do_mcp.serving.page.app import Doors, Visits, application

        class Server(uvicorn.Server):
            @contextlib.contextmanager
            def capture_signals(self) -> Iterator[None]:
                yield  # signals are the MCP server's

        self._doors, self._visits = Doors(), Visits()
        listening = socket.create_server((HOST, 0))
        self._port = listening.getsockname()[1]
        app = application(self._engine, self._doors, self._visits, self._port)
        server = Server(uvicorn.Config(app, log_config=None, lifespan="off", ws="none"))
        self._serving = asyncio.create_task(server.serve(sockets=[listening]), name="approval page")
        self._server = server


def browser() -> Browse | None:
    """The browser of the person at this machine, or None where nobody could see one."""
    seen = sys.platform in ("win32", "darwin") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if os.environ.get("CI") or not seen:
        return None

    def open_in_browser(address: str) -> bool:
        import webbrowser

        return webbrowser.open(address)

    return open_in_browser
