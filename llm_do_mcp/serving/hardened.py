"""The SDK's server class, with the ways to run it made fit for what goes wrong: what `mcp run`, `mcp dev` and
`llm-do-mcp` serve is served by these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mcp.server.mcpserver import MCPServer

from llm_do_mcp.serving.stdio import ends_in_time, hardened_stdio, interrupts

if TYPE_CHECKING:  # only where a server listens
    from llm_do_mcp.serving.http.app import Authentication
    from llm_do_mcp.serving.http.serve import Listening


class HardenedServer(MCPServer[None]):
    """A server that runs over stdio or HTTP until it is ended, and then lets go of everything."""

    def guard(self) -> None:
        """Keep secrets out of what the process logs."""
        raise NotImplementedError

    def leave(self) -> None:
        """Whoever asked is gone: from now on what is cancelled was not cancelled by a client."""
        raise NotImplementedError

    def end(self) -> None:
        """The server is about to end: calls in flight return now, and say how the results of their runs are had."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """Let go of all that the server holds."""
        raise NotImplementedError

    async def run_stdio_async(self) -> None:
        """Serve over stdio, hardened, and let go of everything at the end of input."""
        self.guard()
        with ends_in_time() as clock:
            ended = False

            def at_end() -> None:
                nonlocal ended
                if not ended:
                    ended = True
                    self.leave()
                    clock.start()

            try:
                with interrupts(at_end):
                    async with hardened_stdio(at_end) as (read, write):
                        options = self._lowlevel_server.create_initialization_options()
                        await self._lowlevel_server.run(read, write, options)
            except* ConnectionError:
                pass  # a client that no longer reads is gone, as one whose input has ended
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
