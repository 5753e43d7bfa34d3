"""Listens, serves, and ends in order.

At SIGTERM or SIGINT it listens no more, which tells a balancer to go elsewhere; calls in flight return at once, saying
how the results of their runs are had; what still hangs on a connection after a moment is cut off. Runs stay resumable,
and another instance on the same store takes them over with the first `run_wait`.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from llm_do_mcp.errors import UsageError
from llm_do_mcp.serving.hardened import HardenedServer
from llm_do_mcp.serving.http.address import Address, names, parse
from llm_do_mcp.serving.http.app import PATH, Authentication, application, end
from llm_do_mcp.serving.http.unread import Unread

REQUEST_WITHIN_S = 30.0
"""A request that has not come in as a whole after this is given up, with its connection."""
READ_WITHIN_S = 30.0
"""A client that reads nothing of its answer for so long loses its connection, and with it the answer."""
LOOKS_EVERY_S = 0.01
"""How often it is seen, at the end, whether all connections are closed."""
DATED_EVERY_S = 1.0
"""How often the date in the headers of answers is set."""
LARGE = 1 << 16
"""Bytes of what is sent without waiting for more."""
LARGE_PIECE = 1 << 20
"""Bytes of what is allocated by itself, see mallopt(3)."""
_MMAP_THRESHOLD = -3
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
            bound = socket.create_server((address.host, address.port), family=family, backlog=2048)
        except OSError as error:
            raise UsageError(f"--http {text}: cannot listen there: {error.strerror or error}") from None
        # Said to be TCP, or asyncio lets the kernel hold an answer's last packet back until the one before it is
        # acknowledged: 40 ms for every call.
        opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=bound.detach())
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
    app = application(server, names(listening.address, allowed_hosts), authentication)
    config = uvicorn.Config(
        app,
        http=partial(_Impatient, unread=Unread()),  # type: ignore[arg-type]  # what makes one, as a class does
        ws="none",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        reset_contextvars=True,  # pipelined requests would else see who sent the one before
        timeout_graceful_shutdown=ENDS_WITHIN_S + 1,  # for what does not heed that it was cut off
    )
    _give_back_large_pieces()
    print(f"llm-do-mcp: serving at http://{listening.address.named}{PATH}", file=sys.stderr, flush=True)
    try:
        await _Server(config, lambda: end(server)).serve(sockets=[listening.socket])
    finally:
        await server.aclose()


def _give_back_large_pieces() -> None:
    """Have memory for what is as large as a file given back when it is free (glibc): after a moment with many of them
    it else stays with a server that runs for months."""
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(AttributeError, OSError):  # another C library
            ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, LARGE_PIECE)


class _Server(uvicorn.Server):
    """Tells what it serves that it is about to end.

    Args:
        config: See uvicorn.
        at_end: Called when a signal has come, before connections are waited for.
    """

    def __init__(self, config: uvicorn.Config, at_end: Callable[[], None]) -> None:
        super().__init__(config)
        self._at_end = at_end
        self._loop = asyncio.get_running_loop()
        self._signal = asyncio.Event()

    async def main_loop(self) -> None:
        # As uvicorn's, which looks ten times a second whether a signal has come; this one is woken by it.
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DATED_EVERY_S):
                    await self._signal.wait()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # Not as uvicorn's, which at a second signal ends in no order, and repeats the signal once it has ended.
        self.should_exit = True
        self._loop.call_soon_threadsafe(self._signal.set)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # As uvicorn's, which waits a tenth of a second in any case, and then looks ten times a second.
        self._at_end()
        for server in self.servers:
            server.close()
        for listening in sockets or ():
            listening.close()
        for connection in tuple(self.server_state.connections):
            connection.shutdown()
        cut_off = self._loop.call_later(ENDS_WITHIN_S, self._cut_off)
        try:
            async with asyncio.timeout(self.config.timeout_graceful_shutdown):
                while self.server_state.connections or self.server_state.tasks:
                    await asyncio.sleep(LOOKS_EVERY_S)
        except TimeoutError:
            for task in self.server_state.tasks:
                task.cancel()
        cut_off.cancel()
        await self.lifespan.shutdown()

    def _cut_off(self) -> None:
        for connection in tuple(self.server_state.connections):
            connection.transport.abort()  # its request sees that, and ends


class _Joined:
    """A transport that sends what is written in one turn of the event loop as one: an answer's head with its body.

    Each `send` wakes the client and costs about as much as reading a small file.

    Args:
        transport: What sends.
        loop: Where it runs.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._held: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self._held:
            self._loop.call_soon(self.flush)
        self._held.append(data)
        if len(data) > LARGE:  # whoever writes much is to be told when that is too much
            self.flush()

    def flush(self) -> None:
        """Send what is held back."""
        held, self._held = self._held, []
        if held:
            self._transport.write(b"".join(held))

    def close(self) -> None:
        self.flush()
        self._transport.close()


class _Impatient(H11Protocol):
    """Does not wait for ever for a request that comes in drop by drop, nor for an answer to be read.

    Args:
        unread: Of all connections.
        given: See uvicorn.
    """

    _clock: asyncio.TimerHandle | None = None
    _due: float
    _reads: asyncio.TimerHandle | None = None

    def __init__(self, *, unread: Unread, **given: Any) -> None:
        super().__init__(**given)
        self._unread = unread

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        self._joined = _Joined(transport, self.loop)
        super().connection_made(self._joined)  # type: ignore[arg-type]  # all that is asked of a transport
        self._wait()

    def on_response_complete(self) -> None:
        self._joined.flush()
        super().on_response_complete()
        self._wait()

    def send_400_response(self, msg: str) -> None:
        # Of a request only the head may have made sense: what answers that has nobody to tell it to, or has done so.
        if self.cycle is not None:
            self.cycle.disconnected = True
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        self.logger.warning("Unsupported upgrade request.")  # nor would another package help, as uvicorn's words are

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread.add(self.transport)
        self._expect_less()

    def resume_writing(self) -> None:
        self._expect_nothing()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._clock is not None:
            self._clock.cancel()
        self._expect_nothing()
        super().connection_lost(exc)

    def _wait(self) -> None:
        # The clock is not set anew for each request: it looks itself whether it is time.
        self._due = self.loop.time() + REQUEST_WITHIN_S
        if self._clock is None:
            self._clock = self.loop.call_at(self._due, self._late)

    def _expect_less(self) -> None:
        self._reads = self.loop.call_later(READ_WITHIN_S, self._look)

    def _expect_nothing(self) -> None:
        if self._reads is not None:
            self._reads.cancel()
            self._unread.discard(self.transport)

    def _look(self) -> None:
        if self._unread.reads(self.transport):
            self._expect_less()
        else:
            self.transport.abort()  # not closed: that would wait for the reader

    def _late(self) -> None:
        self._clock = None
        if self.loop.time() < self._due:
            self._clock = self.loop.call_at(self._due, self._late)
        elif self.cycle is None or self.cycle.response_complete or self.cycle.more_body:
            self.transport.close()
