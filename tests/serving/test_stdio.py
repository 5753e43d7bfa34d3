"""The server as a child process: a whole session in both eras, how it ends, and what must not make it deaf."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.types import InputRequiredResult

from llm_do_mcp.runtime.store import Store
from tests.descriptors import is_readable_within, is_writable_within
from tests.models.messages_server import MessagesServer
from tests.models.messages_server import message as answer
from tests.models.messages_server import text as said
from tests.serving.clients import (
    HANDSHAKE,
    MODERN,
    PATIENCE_S,
    YES,
    Gate,
    Person,
    Wire,
    account,
    command,
    decide,
    everything,
    process,
    shop,
    texts,
    turn,
    worker,
    write,
)
from tests.serving.conftest import Open
from tests.toolhost.conftest import is_gone_within

REPOSITORY = Path(__file__).parents[2]


# ---- a session


@pytest.mark.proves("STDIO-SESSION")
@pytest.mark.anyio
async def test_a_client_lists_calls_and_answers_over_stdio(tmp_path: Path, mode: str) -> None:
    root = shop(
        tmp_path, turn(write("out/a.txt", "a\r\nb\n"), write("out/b.txt")), turn(("list_files", {"path": "out"}))
    )
    person = Person(decide("once"), decide("deny", "no"))
    async with process(root, mode, person) as client:
        assert "shop" in {tool.name for tool in (await client.list_tools()).tools}
        result = await client.call_tool("shop", {"input": "go"})
    assert len(person.asked) == 2 and "no model was called" in texts(result)
    (written,) = account(result)["files_changed"]
    assert {"out/a.txt": "a\r\nb\n", "out/b.txt": "new"}[written].encode() == (root / written).read_bytes()


@pytest.mark.proves("STDIO-NOTHING-WRITTEN")
def test_looking_at_a_server_writes_nothing(tmp_path: Path, open_wire: Open, mode: str) -> None:
    root = shop(tmp_path / "shop", files={"tools.py": "def f() -> str:\n    return ''\n"})
    before = everything(tmp_path)
    wire = open_wire(command(root), mode, env={"HOME": str(tmp_path), "TMPDIR": str(tmp_path)})
    assert wire.request("tools/list")["tools"]
    wire.end_input()
    assert wire.process.wait(10) == 0
    assert everything(tmp_path) == before


# ---- the end


def _gone(wire: Wire, *children: int) -> float:
    """End the input and wait until the server and its children are gone: seconds that it took."""
    began = time.monotonic()
    wire.end_input()
    wire.process.wait(10)
    assert all(is_gone_within(child, 10) for child in children)
    return time.monotonic() - began


def _statuses(root: Path) -> list[str]:
    async def read() -> list[str]:
        store = Store(root / ".llm-do" / "runs.sqlite3")
        try:
            return [row.status for row in await store.runs()]
        finally:
            store.close()

    return anyio.run(read)


@pytest.mark.proves("A093", "STDIO-END")
def test_an_idle_server_ends_with_its_input(tmp_path: Path, open_wire: Open, mode: str) -> None:
    wire = open_wire(command(shop(tmp_path)), mode)
    assert _gone(wire) < 2
    assert wire.process.returncode == 0 and wire.stderr() == ""


LOOPING = """\
import os, time
from llm_do_mcp import ToolContext


def loop(ctx: ToolContext) -> str:
    \"\"\"Never ends, and heeds nobody.\"\"\"
    ctx.log(f"pid {os.getpid()}")
    while True:
        pass
"""


def _looping(root: Path, calls: int = 1) -> Path:
    keys = {"toolsets": {"custom": {"loop": {"pre_approved": True}}}}
    return shop(root, turn(*[("loop", {})] * calls), files={"tools.py": LOOPING, "main.worker": worker(keys)})


def _pid(wire: Wire) -> int:
    """The tool host's process, which its tool has told."""
    while "pid " not in (message := wire.progress()["message"]):
        pass
    return int(message.rpartition(" ")[2])


@pytest.mark.proves("A093", "STDIO-END")
@pytest.mark.parametrize("calls", [1, 3])
def test_a_tool_that_never_ends_ends_with_the_input(tmp_path: Path, open_wire: Open, mode: str, calls: int) -> None:
    wire = open_wire(command(_looping(tmp_path, calls)), mode)
    wire.call("shop", {"input": "go"}, progressToken=1)
    assert _gone(wire, _pid(wire)) < 2
    assert _statuses(tmp_path) == ["running"], "left as it was: it can be resumed"


@pytest.mark.proves("A093", "STDIO-END")
def test_a_run_that_asks_stays_open_when_the_input_ends(tmp_path: Path, open_wire: Open, mode: str) -> None:
    wire = open_wire(command(shop(tmp_path, turn(write("out/a.txt")))), mode, capabilities={"elicitation": {}})
    call = wire.call("shop", {"input": "go"})
    if mode == HANDSHAKE:
        wire.asked()
    else:
        assert wire.answer(call)["result"]["resultType"] == "input_required"
    assert _gone(wire) < 2
    assert _statuses(tmp_path) == ["waiting"] and not (tmp_path / "out/a.txt").exists()


@pytest.mark.proves("A093", "STDIO-END")
@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells when the search has begun")
def test_a_search_that_takes_long_ends_with_the_input(tmp_path: Path, open_wire: Open, mode: str) -> None:
    root = shop(tmp_path)
    with open(root / "in" / "endless.txt", "wb") as file:
        file.truncate(15 << 30)
    wire = open_wire(command(root), mode)
    wire.call("te", {"command": "grep pears in/endless.txt"})
    deadline = time.monotonic() + PATIENCE_S
    while not (children := _children(wire.process.pid)):
        assert time.monotonic() < deadline, "no search has begun"
    assert _gone(wire, *children) < 2


def _children(process: int) -> list[int]:
    """The processes that a process has started."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            if f"\nPPid:\t{process}\n" in status.read_text():
                found.append(int(status.parent.name))
    return found


@pytest.mark.proves("A092", "A093", "STDIO-END")
def test_a_client_that_does_not_read_cannot_keep_the_server(tmp_path: Path, mode: str) -> None:
    root = shop(tmp_path, files={"in/big.txt": "x" * 1_000_000})
    wire = Wire(command(root), mode)
    stdout = wire.process.stdout
    assert stdout is not None
    try:
        for message in wire.hello():
            wire.write(message)
        assert b"shop" in stdout.readline()
        wire.call("files_in_read_text", {"path": "big.txt", "max_chars": 1_000_000})
        assert is_readable_within(stdout.fileno(), PATIENCE_S), "it has begun to write more than the pipe takes"
        assert _gone(wire) < 2
    finally:
        wire.close()


def _deaf(root: Path, mode: str) -> Wire:
    """A client that has opened a session and reads nothing more."""
    wire = Wire(command(root), mode)
    stdout = wire.process.stdout
    assert stdout is not None
    for message in wire.hello():
        wire.write(message)
    assert b"shop" in stdout.readline()
    return wire


def _takes_no_more(wire: Wire, lines: bytes) -> int:
    """Write until everything is sent, or the server reads nothing more; how much was sent."""
    assert wire.process.stdin is not None
    pipe, sent = wire.process.stdin.fileno(), 0
    os.set_blocking(pipe, False)
    while sent < len(lines) and is_writable_within(pipe, 1):
        sent += os.write(pipe, lines[sent : sent + 4096])
    return sent


@pytest.mark.proves("A092", "A093", "STDIO-END")
@pytest.mark.parametrize("calls", [200, 4000])
def test_the_end_is_seen_behind_calls_that_were_not_come_to(tmp_path: Path, mode: str, calls: int) -> None:
    wire = _deaf(shop(tmp_path, files={"in/long.txt": "pear tree\n" * 2000}), mode)
    try:
        call = wire.message("tools/call", {"name": "te", "arguments": {"command": "grep -n pear in/long.txt"}})
        _takes_no_more(wire, b"".join(json.dumps({**call, "id": 10 + n}).encode() + b"\n" for n in range(calls)))
        assert _gone(wire) < 2.5
    finally:
        wire.close()


@pytest.mark.proves("A092", "STDIO-ROOM")
@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells how much memory a process has")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("resources/read", {"uri": "llm-do://files/in/big.txt"}),
        ("tools/call", {"name": "files_in_read_text", "arguments": {"path": "big.txt", "max_chars": 1_000_000}}),
    ],
)
def test_what_a_client_does_not_read_has_an_end(tmp_path: Path, mode: str, method: str, params: dict[str, Any]) -> None:
    wire = _deaf(shop(tmp_path, files={"in/big.txt": "pear tree\n" * 100_000}), mode)
    try:
        asked = wire.message(method, params)
        _takes_no_more(wire, b"".join(json.dumps({**asked, "id": 10 + n}).encode() + b"\n" for n in range(250)))
        assert _grown_by(wire.process.pid) < 270_000, "kB, of 250 answers of a million characters and more"
        wire.listen()
        for number in range(250):
            assert "result" in wire.answer(10 + number), "all of them are answered once it reads"
    finally:
        wire.close()


@pytest.mark.proves("A092", "STDIO-ROOM")
@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells how much memory a process has")
@pytest.mark.parametrize("method", ["tools/list", "x" * 8000], ids=["short answers", "errors"])
def test_so_have_short_answers_and_errors(tmp_path: Path, mode: str, method: str) -> None:
    wire = _deaf(shop(tmp_path), mode)
    try:
        asked = wire.message(method)
        lines = b"".join(json.dumps({**asked, "id": 10 + n}).encode() + b"\n" for n in range(10_000))
        sent = lines[: _takes_no_more(wire, lines)].count(b"\n")
        assert sent < 10_000 and _grown_by(wire.process.pid) < 200_000, "kB"
        wire.listen()
        for number in range(sent):
            wire.answer(10 + number)  # all that was read is answered
    finally:
        wire.close()


def _grown_by(process: int) -> int:
    """How far the memory of a process goes up, in kB, until it stays for a second what it is."""
    grown, since = 0, time.monotonic()
    while time.monotonic() - since < 1:
        now = int(Path(f"/proc/{process}/status").read_text().partition("VmRSS:")[2].split()[0])
        if now > grown + 1000:
            grown, since = now, time.monotonic()
    return grown


@pytest.mark.proves("A093", "STDIO-END")
def test_a_client_that_has_closed_its_end_is_gone(tmp_path: Path, mode: str) -> None:
    wire = Wire(command(_looping(tmp_path)), mode)
    stdout = wire.process.stdout
    assert stdout is not None
    try:
        for message in wire.hello():
            wire.write(message)
        wire.call("shop", {"input": "go"}, progressToken=1)
        while b"pid " not in (line := stdout.readline()):
            assert line, "the tool has not begun"
        child = int(json.loads(line)["params"]["message"].rpartition(" ")[2])
        stdout.close()
        wire.send("tools/list")  # its answer finds nobody
        assert wire.process.wait(2) == 0
        assert is_gone_within(child, 10) and wire.stderr() == ""
        assert _statuses(tmp_path) == ["running"], "not cancelled: it can be resumed"
    finally:
        wire.close()


@pytest.mark.proves("A093", "STDIO-END")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_signal_ends_the_server_and_its_children(tmp_path: Path, open_wire: Open, number: signal.Signals) -> None:
    wire = open_wire(command(_looping(tmp_path)))
    wire.call("shop", {"input": "go"}, progressToken=1)
    child = _pid(wire)
    began = time.monotonic()
    wire.process.send_signal(number)
    wire.process.wait(10)
    assert is_gone_within(child, 10) and time.monotonic() - began < 2
    assert _statuses(tmp_path) == ["running"]


# ---- restarts


@pytest.mark.proves("STATE-RESTART")
@pytest.mark.anyio
async def test_an_answer_after_a_restart_goes_on_with_the_run(tmp_path: Path) -> None:
    root = shop(tmp_path, turn(("read_file", {"path": "in/stock.txt"})), turn(write("out/a.txt"), write("out/b.txt")))
    async with process(root, MODERN, Person(decide("once"))) as client:
        asked = await client.session.call_tool("shop", {"input": "go"}, allow_input_required=True)
        assert isinstance(asked, InputRequiredResult) and asked.input_requests
    key_file = root / ".llm-do" / "request-state.key"
    assert key_file.stat().st_mode & 0o777 == 0o600
    key = key_file.read_bytes()
    (root / "turns.json").write_text("{}")  # what the model said before is not asked of it again
    answers: dict[str, Any] = {name: decide("once") for name in asked.input_requests}
    async with process(root, MODERN, Person(decide("deny"))) as client:
        result = await client.call_tool(
            "shop", {"input": "go"}, input_responses=answers, request_state=asked.request_state
        )
    assert sorted(account(result)["files_changed"]) == ["out/a.txt", "out/b.txt"]
    assert key_file.read_bytes() == key


@pytest.mark.proves("STATE-RESTART")
@pytest.mark.parametrize("change", ["arguments", "tool", "state"])
def test_a_state_is_only_good_for_its_own_call(tmp_path: Path, open_wire: Open, change: str) -> None:
    wire = open_wire(command(shop(tmp_path)), MODERN, capabilities={"elicitation": {}})
    given = {"path": "a.txt", "content": "x"}
    asked = wire.answer(wire.call("files_out_write_text", given))["result"]
    answer = dict.fromkeys(asked["inputRequests"], YES)
    state = asked["requestState"]
    tool = "files_out_read_text" if change == "tool" else "files_out_write_text"
    arguments = {**given, "content": "y"} if change == "arguments" else given
    if change == "state":
        state = state[:-8] + ("A" * 8 if state[-8:] != "A" * 8 else "B" * 8)
    params = {"name": tool, "arguments": arguments, "inputResponses": answer, "requestState": state}
    assert wire.answer(wire.send("tools/call", params))["error"]["code"] == -32602
    assert not (tmp_path / "out/a.txt").exists()


# ---- what must not make it deaf


@pytest.mark.proves("A019", "STDIO-UNICODE")
def test_names_and_texts_that_are_no_unicode_leave_the_server_alive(tmp_path: Path, open_wire: Open, mode: str) -> None:
    root = shop(tmp_path)
    (root / "in" / os.fsdecode(b"caf\xe9.txt")).write_text("coffee")
    wire = open_wire(command(root), mode)
    listed = wire.request("tools/call", {"name": "files_in_list", "arguments": {}})
    shown = [file["path"] for file in listed["structuredContent"]["files"]]
    assert shown == ["caf\\xe9.txt", "stock.txt"]
    read = wire.request("tools/call", {"name": "files_in_read_text", "arguments": {"path": shown[0]}})
    assert read["content"][0]["text"] == "coffee"
    found = wire.request("tools/call", {"name": "te", "arguments": {"command": "grep coffee in"}})
    assert "coffee" in found["content"][0]["text"]
    assert wire.request("tools/list")["tools"]


@pytest.mark.proves("STDIO-UNICODE")
def test_half_a_character_in_an_answer_does_not_end_the_writer(tmp_path: Path, open_wire: Open, mode: str) -> None:
    with MessagesServer(answer(said("half \ud83d of one"))) as model:
        root = shop(tmp_path, model="anthropic:claude-haiku-4-5")
        wire = open_wire(command(root), mode, env={"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "sk-test"})
        result = wire.request("tools/call", {"name": "shop", "arguments": {"input": "x"}})
    assert result["content"][0]["text"] == "half \\ud83d of one"
    assert "no model was called" not in result["content"][1]["text"]
    assert wire.request("tools/list")["tools"]


NOISY = """\
import logging, os, subprocess, sys

print("hello from the import")
os.write(1, b"and past Python")
sys.stderr.write("and on the error output")
sys.stdout = sys.__stdout__
subprocess.run(["echo", "and from a child"])
logging.basicConfig(stream=sys.stdout, level=0)
logging.info("and a log")
os.chdir("/")


def f() -> str:
    \"\"\"Prints.\"\"\"
    print("and from a call", flush=True)
    raise SystemExit(3)
"""


@pytest.mark.proves("A057", "STDIO-PRINTS")
def test_what_project_code_prints_does_not_reach_the_wire(tmp_path: Path, open_wire: Open, mode: str) -> None:
    keys = {"toolsets": {"custom": {"f": {"pre_approved": True}}}}
    root = shop(tmp_path, turn(("f", {})), files={"tools.py": NOISY, "main.worker": worker(keys)})
    wire = open_wire(command(root), mode)
    result = wire.request("tools/call", {"name": "shop", "arguments": {"input": "x"}})
    assert result["content"][0]["text"] == "tools.py:16: SystemExit: 3"
    assert wire.request("tools/list")["tools"]
    wire.end_input()
    wire.process.wait(10)
    for words in ("hello from the import", "and past Python", "and from a child", "and a log", "and from a call"):
        assert words in wire.stderr()


@pytest.mark.proves("A098", "A099", "STDIO-BUSY")
def test_sixty_slow_calls_do_not_hold_up_the_rest(tmp_path: Path, open_wire: Open, mode: str) -> None:
    gate = Gate(tmp_path)
    try:
        wire = open_wire(command(tmp_path), mode)
        calls = [wire.call("shop", {"input": "go"}, progressToken=number) for number in range(60)]
        begun: set[int] = set()
        while len(begun) < 60:
            notice = wire.progress()
            if "pid " in notice["message"]:
                begun.add(notice["progressToken"])
        began = time.monotonic()
        for _ in range(5):
            if mode == HANDSHAKE:
                wire.request("ping")
            assert wire.request("tools/list")["tools"]
            read = wire.request("tools/call", {"name": "files_in_read_text", "arguments": {"path": "stock.txt"}})
            assert read["content"][0]["text"] == "three pears\n"
        assert time.monotonic() - began < 1, "five rounds of quick requests"
        for _ in calls:
            gate.open()
        done = [wire.answer(call)["result"]["content"][0]["text"] for call in calls]
        assert done == ["slow but sure"] * 60
    finally:
        gate.close()


@pytest.mark.proves("A098", "STDIO-BUSY")
def test_what_is_quick_does_not_queue_behind_what_lasts(tmp_path: Path, open_wire: Open, mode: str) -> None:
    gate = Gate(tmp_path)
    try:
        wire = open_wire(command(tmp_path), mode)
        wire.request("tools/list")
        for _ in range(300):
            wire.call("shop", {"input": "go"})
        began = time.monotonic()
        read = wire.request("tools/call", {"name": "files_in_read_text", "arguments": {"path": "stock.txt"}})
        assert read["content"][0]["text"] == "three pears\n"
        assert wire.request("tools/call", {"name": "run_cancel", "arguments": {"run_id": "none"}})["isError"]
        assert time.monotonic() - began < 4, "none of the 300 is answered by then"
        wire.end_input()
        wire.process.wait(10)
    finally:
        gate.close()


@pytest.mark.proves("A099", "STDIO-BUSY")
def test_45_tools_that_wait_for_workers_that_wait_for_tools_finish(tmp_path: Path, open_wire: Open) -> None:
    tools = (
        "from llm_do_mcp import ToolContext, tool\n\n\n@tool(risk='read')\n"
        "def outer(ctx: ToolContext, n: int) -> str:\n"
        "    return ctx.call('worker_call', {'worker': 'inner', 'input_data': str(n)})\n\n\n"
        "@tool(risk='read')\ndef leaf() -> str:\n    return 'leaf'\n"
    )
    outer = {"toolsets": {"custom": ["outer"], "delegation": {"allow_workers": ["inner"]}}}
    files = {
        "tools.py": tools,
        "main.worker": worker(outer),
        "workers/inner.worker": worker({"toolsets": {"custom": ["leaf"]}}),
        "turns.json": json.dumps(
            {"main": [turn(*[("outer", {"n": number}) for number in range(45)])], "inner": [turn(("leaf", {}))]}
        ),
    }
    wire = open_wire(command(shop(tmp_path, files=files)))
    result = wire.request("tools/call", {"name": "shop", "arguments": {"input": "go"}})
    assert result["content"][0]["text"].splitlines() == ["leaf"] * 45


@pytest.mark.proves("A092", "STDIO-BUSY")
def test_calls_that_are_sent_without_waiting_are_all_answered(tmp_path: Path, open_wire: Open, mode: str) -> None:
    wire = open_wire(command(shop(tmp_path)), mode)
    calls = [wire.call("files_in_read_text", {"path": "stock.txt"}) for _ in range(2000)]
    for call in calls:
        assert wire.answer(call)["result"]["content"][0]["text"] == "three pears\n"


# ---- other ways to start it


@pytest.mark.proves("START-MCP-RUN")
def test_mcp_run_serves_the_module_with_the_same_hardening(tmp_path: Path, open_wire: Open, mode: str) -> None:
    root = _looping(tmp_path)
    run = [f"{sysconfig.get_path('scripts')}/mcp", "run", str(REPOSITORY / "llm_do_mcp" / "server.py")]
    wire = open_wire(run, mode, env={"LLM_DO_PROJECT": str(root)}, cwd=Path("/"))
    assert "shop" in {tool["name"] for tool in wire.request("tools/list")["tools"]}
    wire.call("shop", {"input": "go"}, progressToken=1)
    assert _gone(wire, _pid(wire)) < 2


LOGGING = """\
import logging, os
from llm_do_mcp.server import mcp

list_tools = mcp.list_tools


async def telling():
    logging.getLogger("httpx").error("sent %s " + "far " * 60, os.environ["SHOP_KEY"])
    return await list_tools()


mcp.list_tools = telling
"""


@pytest.mark.proves("START-MCP-RUN", "REDACT-LOG", "LOG-LINES")
def test_mcp_run_keeps_secrets_out_of_the_log_which_is_in_whole_lines(tmp_path: Path, open_wire: Open) -> None:
    root = shop(tmp_path, files={"served.py": LOGGING})
    run = [f"{sysconfig.get_path('scripts')}/mcp", "run", str(tmp_path / "served.py")]
    wire = open_wire(run, env={"LLM_DO_PROJECT": str(root), "SHOP_KEY": "sk-very-secret-value"})
    assert wire.request("tools/list")["tools"]
    wire.end_input()
    wire.process.wait(10)
    assert "[redacted SHOP_KEY]" in wire.stderr() and "sk-very" not in wire.stderr()
    (line,) = [line for line in wire.stderr().splitlines() if "redacted" in line]
    assert line.endswith("ERROR sent [redacted SHOP_KEY] " + "far " * 60)


@pytest.mark.proves("START-MCP-RUN")
def test_without_a_project_the_module_says_so_in_one_line(tmp_path: Path) -> None:
    started = Wire([sys.executable, "-c", "import llm_do_mcp.server"], env={"LLM_DO_PROJECT": str(tmp_path)})
    try:
        assert started.process.wait(20) == 2
        assert started.stderr().startswith("llm-do-mcp: no project in ") and started.stderr().count("\n") == 1
    finally:
        started.close()


@pytest.mark.proves("START-EXAMPLE-CONFIG")
def test_the_example_configuration_starts_when_its_placeholders_are_filled_in(tmp_path: Path, open_wire: Open) -> None:
    scripts = Path(sysconfig.get_path("scripts"))
    project = tmp_path / "pitchdeck_eval"
    shutil.copytree(
        REPOSITORY / "projects/pitchdeck_eval", project, ignore=shutil.ignore_patterns(".llm-do", "*.md", "__pycache__")
    )
    example = (REPOSITORY / "claude_desktop_config.example.json").read_text()
    filled = example.replace("/ABSOLUTE/PATH/TO/llm-do-mcp/.venv/bin", scripts.as_posix())
    filled = filled.replace("/ABSOLUTE/PATH/TO/llm-do-mcp/projects", tmp_path.as_posix()).replace("YOUR-", "")
    assert "/PATH/TO/" not in filled, "a placeholder that nobody knows of"
    for name, server in json.loads(filled)["mcpServers"].items():
        # As a desktop application does it: from the top, and with hardly any environment.
        wire = open_wire([server["command"], *server["args"]], env=server["env"], cwd=Path("/"))
        assert name in {tool["name"] for tool in wire.request("tools/list")["tools"]}
