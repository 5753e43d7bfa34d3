"""A real HTTP server on loopback that speaks the Messages API, and can misbehave in every way a real one does.

    with MessagesServer(message(text("hello"))) as server:
        ...  # ANTHROPIC_BASE_URL=server.url
        assert server.requests[0].body["model"] == "claude-haiku-4-5"

Answers are given in order, the last one again and again; or `respond=` computes one from the request's body. A
request with `stream: true` is answered with server-sent events in small pieces, any other with JSON.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from types import TracebackType
from typing import Any

Block = dict[str, Any]
Answer = Callable[["Exchange"], None]


@dataclass(frozen=True)
class Received:
    """A request as it came in. Names of headers are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


# ---- blocks ----


def text(words: str) -> Block:
    return {"type": "text", "text": words}


def tool_use(name: str, tool_input: Mapping[str, Any] | None = None, *, id: str) -> Block:
    return {"type": "tool_use", "id": id, "name": name, "input": dict(tool_input or {})}


# ---- answers ----


def message(*content: Block, stop_reason: str | None = None, usage: Mapping[str, Any] | None = None) -> Answer:
    """A whole message. Its stop reason follows from its blocks where it is not given."""
    reason = stop_reason or _reason(content)
    counts = {"input_tokens": 10, "output_tokens": 5, **(usage or {})}

    def answer(exchange: Exchange) -> None:
        if exchange.received.body.get("stream"):
            exchange.send_events(_events(exchange.received.body["model"], content, reason, counts))
        else:
            exchange.send_json(
                200, {**_envelope(exchange.received.body["model"], content, counts), "stop_reason": reason}
            )

    return answer


def error(status: int, kind: str, words: str, **headers: str) -> Answer:
    """An error of the API. Headers are named with underscores: `retry_after="0.01"`."""
    body = {"type": "error", "error": {"type": kind, "message": words}, "request_id": "req_1"}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda exchange: exchange.send_json(status, body, {"request-id": "req_1", **named})


def raw(status: int, content_type: str, body: bytes) -> Answer:
    """Anything at all."""
    return lambda exchange: exchange.send(status, {"content-type": content_type}, body)


def sent_to(address: str) -> Answer:
    """A redirect, which a client that follows it repeats its request for."""
    return lambda exchange: exchange.send(307, {"location": address}, b"")


def events(*items: tuple[str, Mapping[str, Any]]) -> Answer:
    """A stream of exactly these events, well ended."""
    return lambda exchange: exchange.send_events(iter(items))


def left_open(*content: Block, behind: tuple[tuple[str, Mapping[str, Any]], ...] = ()) -> Answer:
    """A whole message, perhaps events behind it, and then nothing more, until the client hangs up."""

    def answer(exchange: Exchange) -> None:
        counts = {"input_tokens": 10, "output_tokens": 5}
        whole = _events(exchange.received.body["model"], content, _reason(content), counts)
        exchange.send_events(chain(whole, behind), ended=False)
        stall(exchange)

    return answer


def error_in_stream(kind: str, words: str) -> Answer:
    """An error of the API after the answer began, under its status 200."""
    return events(("error", {"type": "error", "error": {"type": kind, "message": words}}))


def at_once(*content: Block) -> Answer:
    """A message as the barest local servers send it: each block is whole at its start, and nothing is counted."""

    def bare(items: Iterator[tuple[str, dict[str, Any]]]) -> Iterator[tuple[str, dict[str, Any]]]:
        blocks = iter(content)
        for name, data in items:
            if name == "content_block_start":
                yield name, {**data, "content_block": next(blocks)}
            elif name == "message_start":
                yield name, {**data, "message": {**data["message"], "usage": None}}
            else:
                yield name, {key: value for key, value in data.items() if key != "usage"}

    empty = tuple({"type": block["type"], "text": "", "input": ""} for block in content)
    return lambda exchange: exchange.send_events(
        bare(_events(exchange.received.body["model"], empty, _reason(content), {"output_tokens": 1}))
    )


def cut_off(*content: Block, after: int = 3, politely: bool = False) -> Answer:
    """A stream that ends after some events: the connection breaks, or (politely) the body simply ends."""

    def answer(exchange: Exchange) -> None:
        everything = _events(
            exchange.received.body["model"], content, "end_turn", {"input_tokens": 1, "output_tokens": 1}
        )
        exchange.send_events((event for _, event in zip(range(after), everything, strict=False)), ended=politely)

    return answer


def hang_after(*content: Block, after: int) -> Answer:
    """A stream that comes to a stop after some events, until the client hangs up."""
    begun = cut_off(*content, after=after)

    def answer(exchange: Exchange) -> None:
        begun(exchange)
        stall(exchange)

    return answer


def stall(exchange: Exchange) -> None:
    """No answer at all, until the client hangs up."""
    exchange.server.stalled.set()
    if exchange.handler.connection.recv(1) == b"":
        exchange.server.hung_up.set()
    exchange.handler.close_connection = True


def reset(exchange: Exchange) -> None:
    """The connection is reset."""
    linger_for_nothing = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
    exchange.handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_for_nothing)
    exchange.handler.connection.close()
    exchange.handler.close_connection = True


# ---- the server ----


class MessagesServer:
    """The server, as a context manager.

    Attributes:
        url: Its address, for `ANTHROPIC_BASE_URL`.
        requests: What came in, in order.
        connections: How many were made.
        stalled: Set when a request hangs in `stall`.
        hung_up: Set when the client gave up such a request.
    """

    def __init__(self, *answers: Answer, respond: Callable[[dict[str, Any]], Answer] | None = None) -> None:
        self.requests: list[Received] = []
        self.stalled = threading.Event()
        self.hung_up = threading.Event()
        self._answers = answers
        self._respond = respond
        self._lock = threading.Lock()
        self._http = _Http(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def connections(self) -> int:
        return self._http.made

    def __enter__(self) -> MessagesServer:
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._http.close_connections()

    def _answer(self, received: Received) -> Answer:
        with self._lock:
            self.requests.append(received)
            position = len(self.requests) - 1
        if self._respond is not None:
            return self._respond(received.body)
        return self._answers[min(position, len(self._answers) - 1)]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # else each answer waits 40 ms between its head and its body

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                received = Received(self.path, headers, json.loads(body))
                server._answer(received)(Exchange(server, self, received))

            def log_message(self, format: str, *args: Any) -> None:
                """Silent: the tests look at `requests`."""

        return Handler


@dataclass(frozen=True)
class Exchange:
    """One request and the way to answer it."""

    server: MessagesServer
    handler: BaseHTTPRequestHandler
    received: Received

    def send(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self._head(status, {**headers, "content-length": str(len(body))})
        self.handler.wfile.write(body)

    def send_json(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        self.send(status, {"content-type": "application/json", **(headers or {})}, json.dumps(body).encode())

    def send_events(self, items: Iterator[tuple[str, Mapping[str, Any]]], *, ended: bool = True) -> None:
        """Server-sent events, one chunk each. Without an end the connection is closed in the middle of the body."""
        self._head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"})
        for name, data in items:
            event = f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()
            self.handler.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
        if ended:
            self.handler.wfile.write(b"0\r\n\r\n")
        else:
            self.handler.close_connection = True

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.handler.send_response(status)
        for name, value in headers.items():
            self.handler.send_header(name, value)
        self.handler.end_headers()


class _Http(ThreadingHTTPServer):
    """Knows its open connections, so that nothing that still waits on one outlives the server."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(address, handler)
        self.made = 0
        self._connections: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self.made += 1
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Silent: a client that hangs up in the middle is what some tests are about."""

    def close_connections(self) -> None:
        for connection in list(self._connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # its thread was quicker


def _reason(content: tuple[Block, ...]) -> str:
    return "tool_use" if any(block["type"] == "tool_use" for block in content) else "end_turn"


def _envelope(model: str, content: tuple[Block, ...], usage: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": list(content),
        "stop_reason": None,
        "stop_sequence": None,
        "usage": dict(usage),
    }


def _events(
    model: str, content: tuple[Block, ...], stop_reason: str, usage: Mapping[str, Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events of a message. Texts and tool inputs come in several pieces, as they do in life."""
    at_start = {**usage, "output_tokens": 1}
    yield "message_start", {"type": "message_start", "message": _envelope(model, (), at_start)}
    yield "ping", {"type": "ping"}
    for index, block in enumerate(content):
        empty, deltas = _pieces(block)
        yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in deltas:
            yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": stop_reason, "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": delta, "usage": {"output_tokens": usage["output_tokens"]}}
    yield "message_stop", {"type": "message_stop"}


def _pieces(block: Block) -> tuple[Block, list[Block]]:
    """A block as it starts, and what is added to it."""
    match block["type"]:
        case "text":
            return {**block, "text": ""}, [{"type": "text_delta", "text": part} for part in _split(block["text"])]
        case "tool_use":
            # Scripted tests may give the JSON itself, to break it.
            document = block["input"] if isinstance(block["input"], str) else json.dumps(block["input"])
            parts = [{"type": "input_json_delta", "partial_json": part} for part in ["", *_split(document)]]
            return {**block, "input": {}}, parts
        case "thinking":
            thoughts = [{"type": "thinking_delta", "thinking": part} for part in _split(block["thinking"])]
            return {**block, "thinking": "", "signature": ""}, [
                *thoughts,
                {"type": "signature_delta", "signature": block["signature"]},
            ]
    return block, []


def _split(words: str) -> list[str]:
    middle = len(words) // 2
    return [part for part in (words[:middle], words[middle:]) if part]
