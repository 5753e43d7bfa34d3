"""Clients that this project did not write and Python did not make: the Inspector, and `mcpdo`, which answers questions.

In both protocol eras, over stdio and HTTP, with the programs of `tests/javascript`.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from llm_do_mcp.runtime.store import Store
from tests.javascript import program, unavailable
from tests.serving.clients import HANDSHAKE, MODERN, PATIENCE_S, command, process, shop, texts, turn, write
from tests.serving.web import Service

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=str(unavailable()))

REPOSITORY = Path(__file__).parents[2]
SPOKEN = {HANDSHAKE: "legacy", MODERN: "modern"}
TRANSPORTS = ("stdio", "http")
Target = Mapping[str, Any]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return shop(tmp_path / "shop", turn(write("out/a.md")))


@pytest.fixture(params=TRANSPORTS)
def target(root: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., Target]]:
    """`target(*options)`: where a server is to be found, as hosts' configuration files say it."""
    services: list[Service] = []

    def found(*options: str) -> Target:
        if request.param == "http":
            services.append(Service(root, *options))
            return {"type": "streamable-http", "url": services[-1].url}
        first, *rest = command(root, "--when-nobody-can-answer", "pause", *options)
        return {"command": first, "args": rest}

    yield found
    for service in services:
        service.close()


class Program:
    """One of the programs, for somebody whose home is empty.

    Args:
        name: Which.
        home: The home.
        config: A host's configuration file, with the server "shop".
    """

    def __init__(self, name: str, home: Path, config: Path) -> None:
        self._program, self.config = program(name), config
        self.env = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "MCP_INSPECTOR_SECRET_STORE": "file",
            **{name: os.environ[name] for name in ("SYSTEMROOT", "TEMP") if name in os.environ},
        }

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        line = [*self._program, *words]
        return subprocess.run(
            line, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=3 * PATIENCE_S
        )

    def said(self, *words: str, code: int = 0) -> Any:
        """What it says as JSON."""
        done = self.run(*words)
        assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
        return json.loads(done.stdout)


@pytest.fixture
def configured(tmp_path: Path, target: Callable[..., Target]) -> Callable[..., Path]:
    """`configured(*options)`: a host's configuration file with the server "shop"."""

    def write_file(*options: str) -> Path:
        path = tmp_path / "mcp.json"
        path.write_text(json.dumps({"mcpServers": {"shop": target(*options)}}))
        return path

    return write_file


@pytest.fixture
def inspector(tmp_path: Path, configured: Callable[..., Path], mode: str) -> Callable[..., Any]:
    """`inspector(method, *words)`: what the Inspector's command line says, from a host's configuration file."""
    config = configured("--answer-within", "0.5")
    found = Program("inspector", tmp_path, config)

    def run(method: str, *words: str, code: int = 0) -> Any:
        server = ("--config", str(config), "--server", "shop", "--protocol-era", SPOKEN[mode])
        return found.said("--cli", *server, "--method", method, *words, "--format", "json", code=code)["result"]

    return run


@pytest.fixture
def mcpdo(tmp_path: Path, configured: Callable[..., Path], mode: str) -> Iterator[Callable[..., Program]]:
    """`mcpdo(*options)`: connected to a server with these options."""
    started: list[Program] = []

    def connect(*options: str, elicits: str = "form") -> Program:
        found = Program("mcpdo", tmp_path, configured(*options))
        exports = found.run("private").stdout.splitlines()
        found.env |= dict(line.removeprefix("export ").replace("'", "").split("=", 1) for line in exports)
        started.append(found)
        era = ("--config", str(found.config), "--era", SPOKEN[mode], "--elicit", elicits)
        assert found.said("--format", "json", "connect", "shop", *era)["protocolEra"] == SPOKEN[mode]
        return found

    yield connect
    for found in started:
        found.run("daemon", "stop")


def _called(client: Program, tool: str, *arguments: str, code: int = 0) -> Any:
    return client.said("--format", "json", "@shop", "tools/call", tool, *arguments, code=code)


def _asked(client: Program) -> Any:
    """The question that a call of the worker leads to."""
    return _called(client, "shop", "input:=go")["elicitationPending"]


def _answered(client: Program, question: Any, answer: str, code: int = 0) -> Any:
    return client.said("--format", "json", "elicitation/respond", question["elicitationId"], answer, code=code)


def _decisions(result: Any) -> list[str]:
    return [approval["decision"] for approval in result["_meta"]["llm-do/run"]["approvals"]]


# ---- the Inspector


@pytest.mark.proves("CLIENT-INSPECTOR")
def test_the_inspector_lists_strictly_without_a_complaint(
    tmp_path: Path, configured: Callable[..., Path], mode: str
) -> None:
    found = Program("inspector", tmp_path, configured())
    server = ("--config", str(found.config), "--server", "shop", "--protocol-era", SPOKEN[mode])
    done = found.run("--cli", *server, "--method", "tools/list", "--strict", "--format", "json")
    assert done.returncode == 0 and "schema" not in done.stderr.lower(), done.stderr
    names = {tool["name"] for tool in json.loads(done.stdout)["result"]["tools"]}
    assert {"shop", "files_in_list", "files_out_write_text", "te", "run_wait"} <= names


@pytest.mark.proves("CLIENT-INSPECTOR")
def test_the_inspector_calls_a_tool(inspector: Callable[..., Any]) -> None:
    result = inspector("tools/call", "--tool-name", "files_in_read_text", "--tool-arg", "path=stock.txt")
    assert result["content"][0]["text"] == "three pears\n"


@pytest.mark.proves("CLIENT-INSPECTOR")
def test_a_call_of_the_inspector_that_would_ask_says_how_to_answer(root: Path, inspector: Callable[..., Any]) -> None:
    result = inspector("tools/call", "--tool-name", "shop", "--tool-arg", "input=go", code=5)
    assert result["isError"] and "llm-do approve" in result["content"][0]["text"]
    assert not (root / "out/a.md").exists()


# ---- mcpdo


@pytest.mark.proves("CLIENT-MCPDO")
def test_approvals_that_are_declined_denied_and_accepted(root: Path, mcpdo: Callable[..., Program]) -> None:
    client = mcpdo()
    for answer, recorded in (("--decline", "declined"), ("decision:=deny", "deny"), ("decision:=once", "once")):
        question = _asked(client)
        assert "create the file out/a.md" in question["message"] and not (root / "out/a.md").exists()
        assert question["requestedSchema"]["properties"]["decision"]["enum"] == ["once", "run", "deny"]
        result = _answered(client, question, answer)
        assert _decisions(result) == [recorded] and not result["isError"]
    assert (root / "out/a.md").read_text() == "new"


@pytest.mark.proves("CLIENT-MCPDO")
def test_an_approval_that_is_never_answered(root: Path, mcpdo: Callable[..., Program]) -> None:
    client = mcpdo("--answer-within", "0.5", "--when-nobody-can-answer", "deny")
    question = _asked(client)

    async def ended() -> str:
        """What came of the run, as another server has it that waits for it."""
        store = Store(root / ".llm-do" / "runs.sqlite3")
        (run,) = [row.id for row in await store.runs()]
        store.close()
        async with process(root, MODERN) as other:
            return texts(await other.call_tool("run_wait", {"run_id": run}))

    assert "nobody answered in time" in anyio.run(ended)
    assert _decisions(_answered(client, question, "decision:=once")) == ["timed_out"]
    assert not (root / "out/a.md").exists()


@pytest.mark.proves("CLIENT-MCPDO")
def test_a_client_that_cannot_ask_is_told_what_waits(root: Path, mcpdo: Callable[..., Program]) -> None:
    client = mcpdo(elicits="off")
    waits = _called(client, "shop", "input:=go", code=5)
    assert waits["_meta"]["llm-do/run"]["status"] == "waiting"
    assert "llm-do approve" in waits["content"][0]["text"]
    assert not (root / "out/a.md").exists()


# ---- mcp dev


STAND_IN = """\
#!/bin/sh
# {what}
while test "$1" != {first}; do shift; done
{instead}
"""


@pytest.mark.skipif(os.name == "nt", reason="the stand-ins are shell scripts")
@pytest.mark.proves("START-MCP-DEV")
def test_mcp_dev_starts_the_inspector_on_the_module(root: Path, tmp_path: Path) -> None:
    """`npx` and `uv` would fetch what is here already: they are stood in for by what starts that."""
    inspector = shlex.join([*program("inspector"), "--cli"])
    stand_ins = {
        "npx": ("@modelcontextprotocol/inspector", f'shift; exec {inspector} "$@" --method tools/list --strict'),
        "uv": ("mcp", 'exec "$@"'),
    }
    for name, (first, instead) in stand_ins.items():
        path = tmp_path / name
        path.write_text(STAND_IN.format(what=f"{name}, where nothing has to be fetched", first=first, instead=instead))
        path.chmod(0o755)
    scripts = sysconfig.get_path("scripts")
    done = subprocess.run(
        [f"{scripts}/mcp", "dev", str(REPOSITORY / "llm_do_mcp" / "server.py")],
        env={
            "HOME": str(tmp_path),
            "PATH": os.pathsep.join([str(tmp_path), scripts, os.environ["PATH"]]),
        },
        cwd=root,  # the Inspector hands no variables of ours on
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    assert "files_in_read_text" in done.stdout and "run_wait" in done.stdout
