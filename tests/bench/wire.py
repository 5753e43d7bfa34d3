"""The smallest clients there are: one JSON-RPC message, one line on the pipes of a child process, or one HTTP request.

What a real client does besides (validating, tasks, streams) costs more than a server's answer does and would hide the
difference between two servers. `sdk.py` has the figures through the SDK's own client.
"""

from __future__ import annotations

import json
import select
import selectors
import socket
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from types import TracebackType
from typing import IO, Any, Literal, Self

Era = Literal["2025-11-25", "2026-07-28"]
ERAS: tuple[Era, ...] = ("2025-11-25", "2026-07-28")
CLIENT = {"name": "bench", "version": "1"}
ENDS_WITHIN_S = 10
HTTP_PATH = "/mcp"


class Spoken(ABC):
    """A server as a child process, and what all ways to speak to one have in common.

    Args:
        command: What starts it.
        era: The revision of the protocol to speak.
        errors: Where its standard error goes; None for ours.
    """

    def __init__(self, command: list[str], era: Era, errors: IO[bytes] | int | None = None) -> None:
        self._modern = era == "2026-07-28"
        self._era = era
        self._requests = 0
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)

    @property
    def pid(self) -> int:
        """Of the server."""
        return self._process.pid

    def tools(self) -> list[str]:
        """Connect and list the names of the tools."""
        return [tool["name"] for tool in self.listed()]

    def listed(self) -> list[dict[str, Any]]:
        """Connect and list the tools."""
        if self._modern:
            self.request("server/discover", {})
        else:
            self.request("initialize", {"protocolVersion": self._era, "capabilities": {}, "clientInfo": CLIENT})
            self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        listed: list[dict[str, Any]] = self.request("tools/list", {})["tools"]
        return listed

    def kill(self) -> None:
        """End the server without a warning."""
        self._process.kill()
        self._process.wait()

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        """Call a tool and return its text.

        Raises:
            RuntimeError: The call failed: what is measured is not what was meant.
        """
        return _text(name, self.request("tools/call", {"name": name, "arguments": arguments}))

    def calls(self, name: str, arguments: dict[str, Any], text: str, count: int, at_once: int) -> list[float]:
        """Call a tool so many times, with so many calls under way at any moment.

        Returns:
            The milliseconds that each took.

        Raises:
            RuntimeError: One of them failed, or gave another text.
        """
        sent: dict[int, float] = {}
        took: list[float] = []
        for _ in range(min(at_once, count)):
            number = self._ask("tools/call", {"name": name, "arguments": arguments})
            sent[number] = time.perf_counter()
        while sent:
            answer = self._receive()
            if answer.get("id") not in sent:
                continue
            took.append(1000 * (time.perf_counter() - sent.pop(answer["id"])))
            if len(took) + len(sent) < count:
                number = self._ask("tools/call", {"name": name, "arguments": arguments})
                sent[number] = time.perf_counter()
            if _text(name, _result("tools/call", answer)) != text:
                raise RuntimeError(f"{name} gave another text")
        return took

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """One request and its result; notifications in between are passed over."""
        number = self._ask(method, params)
        while (answer := self._receive()).get("id") != number:
            pass
        return _result(method, answer)

    def _ask(self, method: str, params: dict[str, Any]) -> int:
        self._requests += 1
        if self._modern:
            envelope = {"protocolVersion": self._era, "clientInfo": CLIENT, "clientCapabilities": {}}
            meta = {f"io.modelcontextprotocol/{name}": value for name, value in envelope.items()}
            params = {**params, "_meta": meta}
        self._send({"jsonrpc": "2.0", "id": self._requests, "method": method, "params": params})
        return self._requests

    def end(self) -> float:
        """Have the server end as its host would; the seconds until it is gone.

        Raises:
            RuntimeError: It has not ended in time; it is killed.
        """
        began = time.perf_counter()
        limit = threading.Timer(ENDS_WITHIN_S, self._process.kill)  # with a limit, `wait` looks every 50 ms only
        limit.start()
        self._leave()
        self._process.wait()
        limit.cancel()
        if (took := time.perf_counter() - began) >= ENDS_WITHIN_S:
            raise RuntimeError(f"the server did not end within {ENDS_WITHIN_S} s")
        return took

    @abstractmethod
    def _send(self, message: dict[str, Any]) -> None: ...

    @abstractmethod
    def _receive(self) -> dict[str, Any]:
        """The next message."""

    @abstractmethod
    def _leave(self) -> None:
        """Tell the server that it is not needed any more."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self.end()
        finally:
            self.kill()
            self._process.stdin.close()
            self._process.stdout.close()


class Wire(Spoken):
    """A server that is spoken to over stdio; it ends when its input does."""

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message: dict[str, Any] = json.loads(line)
            return message
        raise RuntimeError("the server ended before it answered")

    def _leave(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()


class Web(Spoken):
    """A server that is spoken to over Streamable HTTP on loopback; it ends at SIGTERM.

    Connections are kept and used again; each has one request under way.

    Args:
        command: What starts it.
        era: The revision of the protocol to speak.
        errors: Where its standard error goes; None for ours.
        port: Where it will listen.
    """

    def __init__(self, command: list[str], era: Era, errors: IO[bytes] | int | None = None, *, port: int) -> None:
        super().__init__(command, era, errors)
        self._port = port
        self._session: str | None = None
        self._idle: list[socket.socket] = []
        self._busy = selectors.DefaultSelector()
        self._came: dict[socket.socket, bytes] = {}
        self._messages: deque[dict[str, Any]] = deque()

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps(message).encode()
        headers = {
            "Host": f"127.0.0.1:{self._port}",
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "Accept": "application/json, text/event-stream",
        }
        if message["method"] != "initialize":
            headers["MCP-Protocol-Version"] = self._era
        if self._modern:
            headers["Mcp-Method"] = message["method"]
            if "name" in message.get("params", {}):
                headers["Mcp-Name"] = message["params"]["name"]
        if self._session is not None:
            headers["Mcp-Session-Id"] = self._session
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        connection = self._kept() or self._connected()
        self._came[connection] = b""
        self._busy.register(connection, selectors.EVENT_READ)
        connection.sendall(f"POST {HTTP_PATH} HTTP/1.1\r\n{head}\r\n".encode() + body)
        if "id" not in message:
            while connection not in self._idle:
                self._read()

    def _receive(self) -> dict[str, Any]:
        while not self._messages:
            self._read()
        return self._messages.popleft()

    def _read(self) -> None:
        """Take what has come on any connection."""
        for key, _ in self._busy.select():
            connection = key.fileobj
            assert isinstance(connection, socket.socket)
            if not (chunk := connection.recv(1 << 16)):
                raise RuntimeError("the server closed a connection before it answered")
            self._came[connection] += chunk
            head, _, body = self._came[connection].partition(b"\r\n\r\n")
            status, *lines = head.decode().lower().split("\r\n")
            headers = dict(line.split(": ", 1) for line in lines)
            chunked = headers.get("transfer-encoding") == "chunked"
            if not (body.endswith(b"0\r\n\r\n") if chunked else len(body) == int(headers.get("content-length", -1))):
                continue
            if " 20" not in status:
                raise RuntimeError(f"{status}: {body[:500]!r}")
            self._session = headers.get("mcp-session-id", self._session)
            self._busy.unregister(connection)
            self._idle.append(connection)
            body = _joined(body) if chunked else body
            events = headers.get("content-type", "").startswith("text/event-stream")
            texts = [line[6:] for line in body.splitlines() if line.startswith(b"data: ")] if events else [body]
            self._messages.extend(json.loads(text) for text in texts if text)

    def _kept(self) -> socket.socket | None:
        """A connection that is there already: a server closes those that were not used for some seconds."""
        while self._idle:
            connection = self._idle.pop()
            if not select.select([connection], [], [], 0)[0]:
                return connection
        return None

    def _connected(self) -> socket.socket:
        while True:
            try:
                connection = socket.create_connection(("127.0.0.1", self._port))
            except ConnectionRefusedError:
                if self._process.poll() is not None:
                    raise RuntimeError("the server ended before it listened") from None
                time.sleep(0.001)  # nothing tells when another's server listens
                continue
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection

    def _leave(self) -> None:
        self._process.terminate()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            super().__exit__(kind, error, traceback)
        finally:
            self._busy.close()
            for connection in self._came:
                connection.close()


def _result(method: str, answer: dict[str, Any]) -> dict[str, Any]:
    if "error" in answer:
        raise RuntimeError(f"{method}: {answer['error']}")
    result: dict[str, Any] = answer["result"]
    return result


def _text(name: str, result: dict[str, Any]) -> str:
    if result.get("isError"):
        raise RuntimeError(f"{name}: {result['content']}")
    return str(result["content"][0]["text"])


def _joined(chunks: bytes) -> bytes:
    """A body that came in chunks."""
    parts = []
    while chunks:
        size, _, chunks = chunks.partition(b"\r\n")
        length = int(size, 16)
        parts.append(chunks[:length])
        chunks = chunks[length + 2 :]
    return b"".join(parts)
