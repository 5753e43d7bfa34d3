"""Listens, serves, and ends in order.

At SIGTERM or SIGINT `/health` says so and nothing new is taken; calls in flight return at once, saying how the results
of their runs are had; what still hangs on a connection after a moment is cut off. Runs stay resumable, and another
instance on the same store takes them over with the first `run_wait`.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from llm_do_mcp.errors import UsageError
from llm_do_mcp.serving.hardened import HardenedServer
from llm_do_mcp.serving.http.address import Address, parse, security
from llm_do_mcp.serving.http.app import PATH, Authentication, application

REQUEST_WITHIN_S = 30.0
"""A request that has not come in as a whole after this is given up, with its connection."""
ENDS_WITHIN_S = 2
"""How long answers may take to reach their clients once the server is about to end."""


@dataclass(frozen=True)
class Listening:
    """An open port.

    Args:
        address: Where.
        socket: The socket.
    """

    address: Address
    socket: socket.socket

    @classmethod
    def at(cls, text: str, *, authenticated: bool = False) -> Listening:
        """Listen.

        Args:
            text: `HOST:PORT`.
            authenticated: Callers are asked who they are.

        Raises:
            UsageError: It is no address, others could reach it without being asked who they are, or it is taken.
        """
        address = parse(text)
        if not address.is_loopback and not authenticated:
            raise UsageError(
                f"--http {text}: other machines could reach it; have callers say who they are (--tokens FILE, or "
                "--oauth-issuer, --oauth-audience and --oauth-jwks), or listen on 127.0.0.1"
            )
        family = socket.AF_INET6 if address.family_is_6 else socket.AF_INET
        try:
            opened = socket.create_server((address.host, address.port), family=family, backlog=2048)
        except OSError as error:
            raise UsageError(f"--http {text}: cannot listen there: {error.strerror or error}") from None
        return cls(Address(address.host, opened.getsockname()[1]), opened)


async def serve(
    server: HardenedServer,
    listening: Listening,
    *,
    allowed_hosts: Sequence[str] = (),
    authentication: Authentication | None = None,
) -> None:
    """Serve until a signal comes.

    Args:
        server: What is served; it is let go of at the end.
        listening: Where.
        allowed_hosts: `--allowed-host`.
        authentication: How callers are asked who they are.

    Raises:
        UsageError: The server would answer to no name.
    """
    settings = security(listening.address, allowed_hosts)
    ending = asyncio.Event()

    def at_end() -> None:
        ending.set()
        server.end()

    app = application(server, settings, authentication, ending.is_set)
    config = uvicorn.Config(
        app,
        http=_Impatient,
        ws="none",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        reset_contextvars=True,  # pipelined requests would else see who sent the one before
        timeout_graceful_shutdown=ENDS_WITHIN_S,
    )
    print(f"llm-do-mcp: serving at http://{listening.address.named}{PATH}", file=sys.stderr, flush=True)
    try:
        await _Server(config, at_end).serve(sockets=[listening.socket])
    finally:
        await server.aclose()


class _Server(uvicorn.Server):
    """Tells what it serves that it is about to end.

    Args:
        config: See uvicorn.
        at_end: Called when a signal has come, before connections are waited for.
    """

    def __init__(self, config: uvicorn.Config, at_end: Callable[[], None]) -> None:
        super().__init__(config)
        self._at_end = at_end

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._at_end()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        with super().capture_signals():
            yield
            self._captured_signals.clear()  # an end in order, not one by the signal


class _Impatient(H11Protocol):
    """Does not wait for ever for a request that comes in drop by drop."""

    _clock: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._wait()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._clock is not None:
            self._clock.cancel()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
        self._clock = self.loop.call_later(REQUEST_WITHIN_S, self._late)

    def _late(self) -> None:
        if self.cycle is None or self.cycle.response_complete or self.cycle.more_body:
            self.transport.close()
