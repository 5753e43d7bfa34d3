"""The SDK's server class as all of our servers have it: with sealed states, news, completions and tasks, and with the
ways to run it made fit for what goes wrong. What `mcp run`, `mcp dev` and `llm-do-mcp` serve is served by these.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.mcpserver import MCPServer, RequestStateSecurity
from mcp.server.request_state import RequestStateCodec
from mcp.types import Completion, CompletionArgument

from llm_do_mcp.serving.news import Lists, News
from llm_do_mcp.serving.reading import Reference, completes
from llm_do_mcp.serving.room import Room
from llm_do_mcp.serving.stdio import ends_in_time, hardened_stdio, interrupts
from llm_do_mcp.serving.tasks import Tasks

if TYPE_CHECKING:  # only where a server listens
    from llm_do_mcp.serving.http.app import Authentication
    from llm_do_mcp.serving.http.serve import Listening


STATE_TTL_S = 7 * 24 * 3600.0
AUDIENCE = "llm-do"
"""Whom states are for: all servers of a project, whatever else they serve and are called. Its keys tell it apart."""
FRESH_MS = 5000
"""How long what is listed may be taken as it is; who wants to know at once listens for changes."""
CACHED: tuple[CacheableMethod, ...] = (
    *("tools/list", "prompts/list", "resources/list", "resources/templates/list", "server/discover"),
)


class HardenedServer(MCPServer[None]):
    """A server that runs over stdio or HTTP until it is ended, and then lets go of everything.

    Args:
        name: Its name.
        instructions: What clients are told when they connect.
        codec: Seals request states.
        tasks: Calls of workers as tasks; None where the server in front has them.
    """

    def __init__(self, name: str, instructions: str, codec: RequestStateCodec, tasks: Tasks | None) -> None:
        from llm_do_mcp import __version__

        lists: Lists = {"tools": self.list_tools, "prompts": self.list_prompts, "resources": self.list_resources}
        self.news = News(lists, self.stirred, self.traced, self.grows)
        # Before the SDK has its own: that breaks a line of the log into pieces that fit a terminal.
        logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
        super().__init__(
            name,
            version=__version__,
            instructions=instructions,
            request_state_security=RequestStateSecurity(codec=codec, ttl=STATE_TTL_S, audience=AUDIENCE),
            log_level="WARNING",
            cache_hints={method: CacheHint(FRESH_MS) for method in CACHED},
            subscriptions=self.news.bus,
            extensions=[] if tasks is None else [tasks],
        )
        self.news.attach(self._lowlevel_server)
        completes(self, self.complete)

    # ---- what it is of

    async def complete(self, reference: Reference, argument: CompletionArgument) -> Completion:
        """The values that an argument could have."""
        raise NotImplementedError

    async def stirred(self) -> None:
        """Wait until files may have changed."""
        raise NotImplementedError

    async def traced(self, uri: str) -> str | None:
        """The run whose trace is at a URI, None where there is another resource.

        Raises:
            RunError: It is not the caller's, or there is none.
        """
        raise NotImplementedError

    async def grows(self, run: str) -> bool:
        """Wait until a run has come further; whether it still goes on here."""
        raise NotImplementedError

    def lasts(self, tool: str) -> bool:
        """Whether calls of a tool may take as long as a worker does, or a person who is asked."""
        raise NotImplementedError

    def just_reads(self, tool: str) -> bool:
        """Whether calls of a tool read one file and ask nobody."""
        raise NotImplementedError

    # ---- how it runs

    def guard(self) -> None:
        """Keep secrets out of what the process logs."""
        raise NotImplementedError

    def leave(self) -> None:
        """Whoever asked is gone: from now on what is cancelled was not cancelled by a client."""
        raise NotImplementedError

    def end(self) -> None:
        """The server is about to end: calls in flight return now, and say how the results of their runs are had; who
        listens for news is told that there will be none."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """Let go of all that the server holds."""
        raise NotImplementedError

    async def run_stdio_async(self) -> None:
        """Serve over stdio, hardened, and let go of everything at the end of input."""
        self.guard()
        with ends_in_time() as clock:
            once, room = threading.Lock(), Room(self.lasts)
            self._lowlevel_server.middleware.append(room.gate)

            def at_end() -> None:
                if once.acquire(blocking=False):
                    self.leave()
                    clock.start()

            try:
                with interrupts(at_end):
                    async with hardened_stdio(at_end, room) as (read, write):
                        options = self._lowlevel_server.create_initialization_options()
                        await self._lowlevel_server.run(read, write, options)
            finally:
                await self.aclose()

    async def run_streamable_http_async(self, *, host: str = "127.0.0.1", port: int = 8000, **_: Any) -> None:
        """Serve over Streamable HTTP on the loopback interface, as `mcp run --transport streamable-http` does."""
        from llm_do_mcp.serving.http.serve import Listening

        await self.run_http_async(Listening.at(f"{host}:{port}"))

    async def run_http_async(
        self,
        listening: Listening,
        *,
        allowed_hosts: Sequence[str] = (),
        authentication: Authentication | None = None,
    ) -> None:
        """Serve over Streamable HTTP until a signal comes, and let go of everything; see `http/serve.py`."""
        from llm_do_mcp.serving.http.serve import serve

        self.guard()
        await serve(self, listening, allowed_hosts=allowed_hosts, authentication=authentication)
