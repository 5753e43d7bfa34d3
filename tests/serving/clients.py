"""What the tests of the MCP front share: small projects, people who answer, and clients of both protocol eras.

Everything is real: the projects are files, the model is a script of the project's that runs in its tool host, the
clients are the SDK's own, in memory or before a child process. Only `Wire` speaks the protocol by hand, for what a
well-behaved client does not do.
"""

from __future__ import annotations

import asyncio
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from mcp.client.session import ClientRequestContext
from mcp.client.stdio import StdioServerParameters, get_default_environment, stdio_client
from mcp.types import CallToolResult, ElicitRequestFormParams, ElicitResult, ErrorData, TextContent

from llm_do_mcp.project.load import load_project
from llm_do_mcp.serving.results import ACCOUNT
from llm_do_mcp.serving.server import ProjectServer

HANDSHAKE, MODERN = "legacy", "2026-07-28"
ERAS = (HANDSHAKE, MODERN)
PATIENCE_S = 20.0
"""No test waits longer than this for anything."""

# ---- projects

REPLAY = '''\
"""A model that makes the calls of turns.json, and then says what came of them."""
import json
from pathlib import Path


def reply(request):
    turns = json.loads(Path("turns.json").read_text()).get(request["worker"], [])
    if request["turn"] < len(turns):
        return turns[request["turn"]]
    blocks = [block for message in request["messages"] for block in message["content"]]
    return "\\n".join(block["content"] for block in blocks if block["type"] == "tool_result") or "nothing was called"
'''

Turn = str | dict[str, Any]


def turn(*calls: tuple[str, dict[str, Any]]) -> Turn:
    """A turn that makes these calls, all at once."""
    return {"tool_calls": [{"name": name, "input": given} for name, given in calls]}


def write(path: str, content: str = "new") -> tuple[str, dict[str, Any]]:
    """A call of a worker that writes a file."""
    return "write_file", {"path": path, "content": content}


def worker(keys: Mapping[str, Any] | None = None, body: str = "Do it.") -> str:
    """A worker's file."""
    return f"---\n{json.dumps(keys or {})}\n---\n{body}\n"


GO = {"input": "go"}
"""What the main worker is called with."""
READ = {"name": "files_in_read_text", "arguments": {"path": "stock.txt"}}
"""A call that needs no worker."""
PATHS = {"in": {"root": "./in", "mode": "ro"}, "out": {"root": "./out", "mode": "rw"}}
FILES = {"filesystem": {}}


def shop(root: Path, *turns: Turn, files: Mapping[str, str] | None = None, **manifest: Any) -> Path:
    """A project `shop` whose main worker makes these turns and then says what came of its calls.

    Args:
        root: Where to write it.
        turns: Of the main worker; those of others go into `turns.json` by `turns_of`.
        files: Further files, or others in place of the usual ones.
        manifest: Keys of the manifest.
    """
    keys = {"name": "shop", "model": "scripted:model.py", "sandbox": {"paths": PATHS}, **manifest}
    usual = {
        "project.yaml": json.dumps(keys),
        "main.worker": worker({"description": "Runs the shop.", "toolsets": FILES}),
        "model.py": REPLAY,
        "turns.json": json.dumps({"main": turns}),
        "in/stock.txt": "three pears\n",
        "out/ledger.txt": "opened\n",
    }
    for name, text in {**usual, **(files or {})}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return root


SLOW = """\
import os
from llm_do_mcp import ToolContext, tool


@tool(risk="read")
def slow(ctx: ToolContext) -> str:
    ctx.log(f"pid {os.getpid()}")
    with open("begun", "w") as begun:
        print(os.getpid(), file=begun)
    with open("gate", "rb", buffering=0) as gate:
        gate.read(1)
    return "slow but sure"
"""


class Gate:
    """A shop with the tool `slow`, which tells when it has begun and waits at a gate. In terms of FIFOs: no polling.

    Args:
        root: Where to make the shop.
        calls: How often the worker's first turn calls the tool.
    """

    def __init__(self, root: Path, calls: int = 1) -> None:
        keys = {"toolsets": {"custom": ["slow"]}}
        shop(root, turn(*[("slow", {})] * calls), files={"tools.py": SLOW, "main.worker": worker(keys)})
        os.mkfifo(root / "begun")
        os.mkfifo(root / "gate")
        # Open in both directions, neither side ever waits for the other to open.
        self._begun, self._gate = (os.open(root / name, os.O_RDWR | os.O_NONBLOCK) for name in ("begun", "gate"))

    async def begun(self) -> int:
        """Wait until the tool runs; the id of its process."""
        with anyio.fail_after(PATIENCE_S):
            await anyio.wait_readable(self._begun)
        return int(os.read(self._begun, 100).split()[-1])

    def open(self) -> None:
        """Let one call of the tool end."""
        os.write(self._gate, b".")

    def close(self) -> None:
        os.close(self._begun)
        os.close(self._gate)


# ---- people

Answering = ElicitResult | ErrorData | Callable[[ElicitRequestFormParams], ElicitResult] | None


def accept(content: dict[str, Any] | None) -> ElicitResult:
    return ElicitResult(action="accept", content=content)


def decide(decision: str, note: str | None = None) -> ElicitResult:
    """The form, filled in."""
    return accept({"decision": decision} if note is None else {"decision": decision, "note": note})


YES = {"action": "accept", "content": {"decision": "once"}}
"""`decide("once")` as it goes over the wire."""


class Person:
    """Someone in front of a client.

    Args:
        answers: To the questions in the order in which they come; the last one to all further ones. None never
            answers.

    Attributes:
        asked: The forms so far.
        called: Set once there is one.
        withdrawn: Set once a question that was not answered was taken back.
    """

    def __init__(self, *answers: Answering) -> None:
        self._answers = answers
        self.asked: list[ElicitRequestFormParams] = []
        self.called = anyio.Event()
        self.withdrawn = anyio.Event()

    async def __call__(self, _: ClientRequestContext, form: Any) -> ElicitResult | ErrorData:
        answer = self._answers[min(len(self.asked), len(self._answers) - 1)]
        self.asked.append(form)
        self.called.set()
        if answer is None:
            try:
                await anyio.sleep_forever()
            finally:
                self.withdrawn.set()
        return answer(form) if callable(answer) else answer

    @property
    def forms(self) -> list[ElicitRequestFormParams]:
        """What it was asked; an invitation to the approval page is no question."""
        return [form for form in self.asked if form.mode == "form"]

    @property
    def messages(self) -> list[str]:
        return [form.message for form in self.asked]


class Desk:
    """The browser at somebody's desk: has the addresses that it was told to open. Made where an event loop runs."""

    def __init__(self) -> None:
        self.addresses: list[str] = []
        self._opened = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def __call__(self, address: str) -> bool:
        self.addresses.append(address)
        self._loop.call_soon_threadsafe(self._opened.set)
        return True

    async def address(self) -> str:
        """The last address; waits for the first."""
        with anyio.fail_after(PATIENCE_S):
            await self._opened.wait()
        return self.addresses[-1]


# ---- clients


@asynccontextmanager
async def served(root: Path, **options: Any) -> AsyncIterator[ProjectServer]:
    """A server of a project, in this process; with the defaults that hold outside CI."""
    server = ProjectServer(load_project(root), **{"when_nobody_can_answer": "pause", **options})
    try:
        yield server
    finally:
        await server.aclose()


def client_of(server: Any, mode: str, person: Person | None = None) -> Client:
    """The SDK's client of a server in this process, or behind a transport."""
    return Client(server, mode=mode, elicitation_callback=person, read_timeout_seconds=PATIENCE_S)


@asynccontextmanager
async def serving(root: Path, mode: str, person: Person | None = None, **options: Any) -> AsyncIterator[Client]:
    """A client of a project in this process."""
    async with served(root, **options) as server, client_of(server, mode, person) as client:
        yield client


def command(root: Path, *options: str) -> list[str]:
    """What starts a server as a child process."""
    return [sys.executable, "-m", "llm_do_mcp.cli.serve", str(root), *options]


def process(root: Path, mode: str, person: Person | None = None, *options: str) -> Client:
    """The SDK's client of a project in a child process, over stdio."""
    first, *rest = command(root, *options)
    return client_of(stdio_client(StdioServerParameters(command=first, args=rest)), mode, person)


# ---- results


def text(result: CallToolResult) -> str:
    """The first text of a result."""
    block = result.content[0]
    assert isinstance(block, TextContent)
    return block.text


def texts(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


def named(text: str, what: str) -> str:
    """What a text names: the run of `run_id '…'`, the key of `question '…'`."""
    return text.partition(f"{what} '")[2].partition("'")[0]


def account(result: CallToolResult) -> dict[str, Any]:
    """The account of the run that gave a result."""
    assert result.meta is not None
    return dict(result.meta[ACCOUNT])


# ---- the bare wire


class Wire:
    """A server as a child process, spoken to line by line.

    Args:
        command: What starts it.
        mode: The era to speak.
        capabilities: What the client says it can do.
        env: Variables besides the basic ones.
        cwd: Where it is started.
    """

    def __init__(
        self,
        command: Sequence[str],
        mode: str = HANDSHAKE,
        *,
        capabilities: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self._mode, self._capabilities, self._ids = mode, dict(capabilities or {}), 0
        self.passed: list[dict[str, Any]] = []
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**get_default_environment(), **(env or {})},
            cwd=cwd,
        )
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._said: list[bytes] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._hearer = threading.Thread(target=self._hear, daemon=True)
        self._hearer.start()

    def hello(self) -> list[dict[str, Any]]:
        """What opens a session."""
        if self._mode == MODERN:
            return [self.message("server/discover")]
        info = {"name": "tests", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": self._capabilities, "clientInfo": info}
        return [self.message("initialize", params), {"jsonrpc": "2.0", "method": "notifications/initialized"}]

    def listen(self) -> None:
        """Begin to read."""
        self._reader.start()

    def open(self) -> None:
        """Begin to read, and open a session."""
        self.listen()
        first, *rest = self.hello()
        self.write(first)
        self.answer(first["id"])
        for message in rest:
            self.write(message)

    def write(self, message: Any) -> None:
        """Send a message, or bytes as they are."""
        assert self.process.stdin is not None
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def message(self, method: str, params: Mapping[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
        """A request with an id of its own, not sent yet."""
        self._ids += 1
        if self._mode == MODERN:
            prefix = "io.modelcontextprotocol"
            meta |= {
                f"{prefix}/protocolVersion": MODERN,
                f"{prefix}/clientInfo": {"name": "tests", "version": "1"},
                f"{prefix}/clientCapabilities": self._capabilities,
            }
        whole = {**(params or {}), **({"_meta": meta} if meta else {})}
        return {"jsonrpc": "2.0", "id": self._ids, "method": method, "params": whole}

    def send(self, method: str, params: Mapping[str, Any] | None = None, **meta: Any) -> int:
        """Send a request; its id."""
        message = self.message(method, params, **meta)
        self.write(message)
        return int(message["id"])

    def call(self, tool: str, arguments: Any, **meta: Any) -> int:
        """Send a call of a tool; its id."""
        return self.send("tools/call", {"name": tool, "arguments": arguments}, **meta)

    def receive(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The next message that is wanted; the others are kept in `passed`, and looked through the next time."""
        for index, message in enumerate(self.passed):
            if wanted(message):
                return self.passed.pop(index)
        while True:
            try:
                line = self._lines.get(timeout=PATIENCE_S)
            except queue.Empty:
                raise AssertionError(f"the server said nothing more; passed: {self.passed[-3:]}") from None
            assert line, f"the server ended: {self.stderr()}"
            message = json.loads(line)
            if wanted(message):
                return dict(message)
            self.passed.append(message)

    def answer(self, identifier: int | str) -> dict[str, Any]:
        """The answer to a request, result or error."""
        return self.receive(lambda message: message.get("id") == identifier and "method" not in message)

    def request(self, method: str, params: Mapping[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
        """Send a request and wait for its result."""
        answer = self.answer(self.send(method, params, **meta))
        assert "result" in answer, answer
        return dict(answer["result"])

    def progress(self) -> dict[str, Any]:
        """The next notice of progress."""
        return dict(self.receive(lambda message: message.get("method") == "notifications/progress")["params"])

    def asked(self) -> dict[str, Any]:
        """The next question of a handshake-era server."""
        return self.receive(lambda message: message.get("method") == "elicitation/create")

    def end_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def stderr(self) -> str:
        """What the server has said on its error output; all of it once it has ended."""
        if self.process.poll() is not None:
            self._hearer.join(PATIENCE_S)
        return b"".join(self._said).decode()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def _hear(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._said.append(line)


def everything(root: Path) -> dict[str, bytes | None]:
    """All files and folders below a folder, with the files' content."""
    return {
        os.fsdecode(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in root.rglob("*")
    }
