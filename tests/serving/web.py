"""Servers over HTTP as real processes, who asks them, and a balancer in front of several."""

from __future__ import annotations

import asyncio
import os
import queue
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from llm_do_mcp.serving.http.serve import Listening
from tests.forked import run, start
from tests.serving.clients import PATIENCE_S, Person, command, served

BARE = "2026-07-28"
"""The revision that `ask` speaks."""
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "tests", "version": "1"},
}
"""What a client of the revisions with sessions says first."""


class Service:
    """A server as a child process, at a port of its own.

    Args:
        root: The project.
        options: Of `llm-do-mcp`.
        beside: Other projects, served together with it.
        env: Variables besides those of the tests.
    """

    def __init__(
        self, root: Path, *options: str, beside: Sequence[Path] = (), env: Mapping[str, str] | None = None
    ) -> None:
        line = [
            *command(root, *map(str, beside), "--http", "127.0.0.1:0"),
            "--when-nobody-can-answer",
            "pause",
            *options,
        ]
        variables = {**os.environ, **(env or {})}
        reads, writes = os.pipe()
        self._stderr = open(reads, "rb")  # noqa: SIM115
        with open(writes, "wb") as stderr, open(os.devnull, "wb") as stdout:
            self.process = start(line, stdout=stdout.fileno(), stderr=stderr.fileno(), env=variables)
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.said: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.url = self.line("serving at ").partition("serving at ")[2].strip()
        self.port = int(self.url.removesuffix("/mcp").rpartition(":")[2])

    def line(self, wanted: str) -> str:
        """Wait for a line on the error output."""
        while True:
            line = self._lines.get(timeout=PATIENCE_S)
            assert line, f"the server ended: {self.said}"
            if wanted in line:
                return line

    def end(self, number: int = signal.SIGTERM) -> int:
        """End it with a signal, and wait; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        return code

    def close(self) -> None:
        self.end(signal.SIGKILL)
        self._stderr.close()

    def _read(self) -> None:
        for line in self._stderr:
            self.said.append(line.decode())
            self._lines.put(line.decode())
        self._lines.put("")


@asynccontextmanager
async def over_http(root: Path, **options: Any) -> AsyncIterator[int]:
    """A server in this process: its port."""
    listening = Listening.at("127.0.0.1:0")
    async with served(root) as server:
        task = asyncio.create_task(server.run_http_async(listening, **options))
        try:
            yield listening.address.port
        finally:
            task.cancel()
            await asyncio.wait((task,))


Serve = Callable[..., Service]
"""The fixture `serve`."""


def token(file: Path, name: str, scopes: str = "call,write,approve") -> str:
    """A token that the command makes."""
    line = [sys.executable, "-m", "llm_do_mcp.cli.serve", "token", name, "--tokens", str(file), "--scopes", scopes]
    made = run(line, env=os.environ, timeout=PATIENCE_S)
    made.check_returncode()
    return made.stdout.strip()


def bearer(token: str | None) -> dict[str, str]:
    return {} if token is None else {"Authorization": f"Bearer {token}"}


@asynccontextmanager
async def visitor(
    url: str, mode: str, person: Person | None = None, token: str | None = None, *, keeps: bool = True
) -> AsyncIterator[Client]:
    """The SDK's client at an address; with `keeps` it uses a connection again, else each request has a new one."""
    once = {} if keeps else {"Connection": "close"}
    async with (
        httpx2.AsyncClient(headers={**bearer(token), **once}, timeout=PATIENCE_S) as http,
        Client(
            streamable_http_client(url, http_client=http),
            mode=mode,
            elicitation_callback=person,
            read_timeout_seconds=PATIENCE_S,
        ) as client,
    ):
        yield client


def body(method: str, params: Mapping[str, Any] | None = None, capabilities: Any = None) -> dict[str, Any]:
    """A request of the revision whose requests stand alone."""
    prefix = "io.modelcontextprotocol"
    meta = {
        f"{prefix}/protocolVersion": BARE,
        f"{prefix}/clientInfo": {"name": "tests", "version": "1"},
        f"{prefix}/clientCapabilities": capabilities or {},
    }
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**(params or {}), "_meta": meta}}


def headers(method: str, name: str | None = None, **more: str) -> dict[str, str]:
    """What goes with it."""
    given = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": BARE,
        "Mcp-Method": method,
    }
    if name is not None:
        given["Mcp-Name"] = name
    return {**given, **more}


class Balancer:
    """Passes each connection on to the next of several servers that takes it.

    Args:
        ports: Of the servers, on the loopback interface.
    """

    def __init__(self, ports: Sequence[int]) -> None:
        self.ports, self._next = list(ports), 0
        self.served: list[int] = []
        self._server: asyncio.Server

    async def __aenter__(self) -> str:
        self._server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/mcp"

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in self.ports:
            port = self.ports[self._next % len(self.ports)]
            self._next += 1
            with suppress(OSError):
                there, here = await asyncio.open_connection("127.0.0.1", port)
                break
        else:
            writer.close()
            return
        self.served.append(port)
        await asyncio.gather(_pump(reader, here), _pump(there, writer))


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    with suppress(OSError, RuntimeError):
        sink.close()
