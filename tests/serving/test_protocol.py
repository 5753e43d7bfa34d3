"""The protocol between the eras, and what a server is like after a long day."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp.types import INVALID_REQUEST

from tests.serving.clients import HANDSHAKE, MODERN, Wire, command, shop, turn, write
from tests.serving.conftest import Open

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}
UNSUPPORTED = -32022
"""The code of the revision 2026-07-28 for a protocol version that is not served."""


# ---- eras


@pytest.mark.proves("ERA-ONCE", "A089")
def test_initialize_after_discover_is_refused_in_words_and_the_connection_goes_on(
    tmp_path: Path, open_wire: Open
) -> None:
    wire = open_wire(command(shop(tmp_path)), MODERN)  # which begins with server/discover
    wire.write({"jsonrpc": "2.0", "id": "late", "method": "initialize", "params": HELLO})
    error = wire.answer("late")["error"]
    assert error["code"] == UNSUPPORTED and MODERN in error["data"]["supported"]
    assert wire.request("tools/list")["tools"]


@pytest.mark.proves("ERA-ONCE", "A089")
def test_a_request_of_the_other_era_is_refused_after_the_handshake(tmp_path: Path, open_wire: Open) -> None:
    wire = open_wire(command(shop(tmp_path)), HANDSHAKE)
    prefix = "io.modelcontextprotocol"
    meta = {f"{prefix}/protocolVersion": MODERN, f"{prefix}/clientCapabilities": {}}
    wire.write({"jsonrpc": "2.0", "id": "other", "method": "tools/list", "params": {"_meta": meta}})
    assert wire.answer("other")["error"]["code"] == INVALID_REQUEST
    assert wire.request("tools/list")["tools"]


# ---- two copies


@pytest.mark.proves("START-TWICE", "A101")
def test_a_host_that_starts_two_copies_at_once_can_use_both(tmp_path: Path, open_wire: Open, mode: str) -> None:
    allow = [{"function": "files.write", "subject": "out/**", "decision": "allow"}]
    root = shop(tmp_path, turn(write("out/a.md")), approvals=allow)
    copies = [Wire(command(root), mode) for _ in range(2)]  # both start before either is spoken to
    try:
        for copy in copies:
            copy.open()
        calls = [(copy, copy.call("shop", {"input": "go"})) for copy in copies for _ in range(3)]
        accounts = [copy.answer(call)["result"]["_meta"]["llm-do/run"] for copy, call in calls]
        assert [account["status"] for account in accounts] == ["done"] * 6
        assert len({account["id"] for account in accounts}) == 6
        for copy in copies:
            for account in accounts:  # each knows the runs of the other
                told = copy.request("tools/call", {"name": "run_wait", "arguments": {"run_id": account["id"]}})
                assert told["_meta"]["llm-do/run"]["status"] == "done"
            copy.end_input()
            assert copy.process.wait(10) == 0 and copy.stderr() == ""
    finally:
        for copy in copies:
            copy.close()


# ---- a long day


def _held(wire: Wire) -> tuple[int, int, int]:
    """Descriptors, threads and kilobytes of memory that a server holds."""
    process = Path("/proc", str(wire.process.pid))
    status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    return len(os.listdir(process / "fd")), int(status["Threads"]), int(status["VmRSS"].split()[0])


MIXED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("files_in_read_text", {"path": "stock.txt"}),
    ("files_in_list", {}),
    ("te", {"command": "te grep pears"}),
    ("files_in_read_text", {"path": "../stock.txt"}),
    ("files_in_read_text", {"pathh": 1}),
    ("no_such_tool", {}),
    ("run_wait", {"run_id": "0123456789abcdef"}),
)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
@pytest.mark.proves("A111")
@pytest.mark.torture
def test_what_a_server_holds_is_flat_after_many_mixed_calls(
    tmp_path: Path, open_wire: Open, mode: str, torture_scaled: Callable[[int, int], int]
) -> None:
    wire = open_wire(command(shop(tmp_path, "done")), mode)

    def call(times: int) -> None:
        for number in range(times):
            # A worker now and then: its run is kept for a while, two hundred of them at most.
            tool, arguments = ("shop", {"input": "x"}) if number % 20 == 0 else MIXED[number % len(MIXED)]
            answer = wire.answer(wire.call(tool, arguments))
            assert "result" in answer or tool == "no_such_tool"

    call(torture_scaled(1400, 5000))
    files, threads, memory = _held(wire)
    call(torture_scaled(700, 10_000))
    after = _held(wire)
    assert after[0] <= files + 2 and after[1] <= threads + 2
    assert after[2] <= memory * 1.05
