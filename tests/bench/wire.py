"""The smallest client there is: one JSON-RPC message, one line, on the pipes of a child process.

What a real client does besides (validating, tasks, streams) costs more than a server's answer does and would hide the
difference between two servers. `sdk.py` has the figures through the SDK's own client.
"""

from __future__ import annotations

import json
import subprocess
from types import TracebackType
from typing import IO, Any, Literal, Self

Era = Literal["2025-11-25", "2026-07-28"]
ERAS: tuple[Era, ...] = ("2025-11-25", "2026-07-28")
CLIENT = {"name": "bench", "version": "1"}


class Wire:
    """A server as a child process, spoken to over stdio.

    Args:
        command: What starts it.
        era: The revision of the protocol to speak.
        errors: Where its standard error goes; None for ours.
    """

    def __init__(self, command: list[str], era: Era, errors: IO[bytes] | None = None) -> None:
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
        if self._modern:
            self.request("server/discover", {})
        else:
            self.request("initialize", {"protocolVersion": self._era, "capabilities": {}, "clientInfo": CLIENT})
            self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return [tool["name"] for tool in self.request("tools/list", {})["tools"]]

    def kill(self) -> None:
        """End the server without a warning."""
        self._process.kill()
        self._process.wait()

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        """Call a tool and return its text.

        Raises:
            RuntimeError: The call failed: what is measured is not what was meant.
        """
        result = self.request("tools/call", {"name": name, "arguments": arguments})
        if result.get("isError"):
            raise RuntimeError(f"{name}: {result['content']}")
        return str(result["content"][0]["text"])

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """One request and its result; notifications in between are passed over."""
        self._requests += 1
        if self._modern:
            envelope = {"protocolVersion": self._era, "clientInfo": CLIENT, "clientCapabilities": {}}
            meta = {f"io.modelcontextprotocol/{name}": value for name, value in envelope.items()}
            params = {**params, "_meta": meta}
        self._send({"jsonrpc": "2.0", "id": self._requests, "method": method, "params": params})
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer: dict[str, Any] = json.loads(line)
            if answer.get("id") == self._requests:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result
        raise RuntimeError(f"the server ended before it answered {method}")

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        finally:
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()
