"""The same call made again joins its run; how long a call may take follows the client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.types import CallToolResult, Implementation

from llm_do_mcp.serving.hosts import call_within
from tests.serving.clients import (
    GO,
    HANDSHAKE,
    PATIENCE_S,
    Gate,
    account,
    client_of,
    served,
    serving,
    shop,
    text,
    turn,
    write,
)

pytestmark = pytest.mark.anyio


async def runs(server: Any) -> int:
    return len(await server.engine.store.runs())


@pytest.mark.proves("JOIN-IDENTICAL")
async def test_the_same_call_again_joins_the_run_that_was_handed_over(tmp_path: Path, gate: Gate, mode: str) -> None:
    async with served(tmp_path, call_within=0.2) as server, client_of(server, mode) as client:
        handed = await client.call_tool("shop", GO)
        again = await client.call_tool("shop", GO)
        assert handed.is_error and again.is_error and account(handed)["id"] == account(again)["id"]
        server.call_within = PATIENCE_S
        await gate.begun()
        gate.open()
        joined = await client.call_tool("shop", GO)
        assert (text(joined), account(joined)["id"]) == ("slow but sure", account(handed)["id"])
        assert await runs(server) == 1


@pytest.mark.proves("JOIN-IDENTICAL")
async def test_a_run_that_has_ended_is_joined_no_more(tmp_path: Path, gate: Gate, mode: str) -> None:
    async with served(tmp_path, call_within=0.2) as server, client_of(server, mode) as client:
        first = account(await client.call_tool("shop", GO))["id"]
        await gate.begun()
        gate.open()
        await server.engine.advance(first)
        second = account(await client.call_tool("shop", GO))["id"]
        assert first != second


@pytest.mark.proves("JOIN-IDENTICAL", "CALL-AT-ONCE")
async def test_what_differs_or_was_not_handed_over_is_a_run_of_its_own(tmp_path: Path, mode: str) -> None:
    Gate(tmp_path, 1).close()
    async with served(tmp_path, call_within=0.2) as server, client_of(server, mode) as client:
        results: list[CallToolResult] = []

        async def call(arguments: dict[str, Any]) -> None:
            results.append(await client.call_tool("shop", arguments))

        async with anyio.create_task_group() as group:  # neither has been handed over when the other begins
            group.start_soon(call, GO)
            group.start_soon(call, GO)
        await call({"input": "something else"})
        assert len({account(result)["id"] for result in results}) == 3


@pytest.mark.proves("JOIN-CONNECTION")
async def test_another_connection_does_not_join(tmp_path: Path) -> None:
    Gate(tmp_path, 1).close()
    async with (
        served(tmp_path, call_within=0.2) as server,
        client_of(server, HANDSHAKE) as one,
        client_of(server, HANDSHAKE) as other,
    ):
        mine = account(await one.call_tool("shop", GO))["id"]
        assert account(await other.call_tool("shop", GO))["id"] != mine
        assert account(await one.call_tool("shop", GO))["id"] == mine


@pytest.mark.proves("JOIN-CANCEL", "HANDOVER-CANCEL")
async def test_to_cancel_a_call_that_joined_does_not_stop_the_run(tmp_path: Path, gate: Gate, mode: str) -> None:
    async with served(tmp_path, call_within=0.2) as server, client_of(server, mode) as client:
        run = account(await client.call_tool("shop", GO))["id"]
        await gate.begun()
        server.call_within = PATIENCE_S
        with anyio.move_on_after(0.2) as joined:
            await client.call_tool("shop", GO)
        assert joined.cancelled_caught and server.engine.drives(run)
        gate.open()
        done = await client.call_tool("run_wait", {"run_id": run})
    assert text(done) == "slow but sure"


@pytest.mark.proves("JOIN-IDENTICAL")
async def test_a_call_that_waits_for_a_person_is_joined_too(tmp_path: Path, mode: str) -> None:
    root = shop(tmp_path, turn(write("out/a.txt")))
    async with (
        served(root, when_nobody_can_answer="pause") as server,
        client_of(server, mode) as client,
    ):
        first, again = [await client.call_tool("shop", GO) for _ in range(2)]
        assert "waits for a person" in text(first) and text(first) == text(again)
        assert await runs(server) == 1


# ---- the clocks of hosts


KNOWN = {
    "claude-ai": (60, None),
    "claude-code": (300, 1800),
    "codex-mcp-client": (60, None),
    "cursor-vscode": (60, None),
    "goose": (60, None),
    "Visual Studio Code": (60, None),
    "Zed": (60, None),
    "some editor": (60, None),
    None: (60, None),
}
"""By a host's name: seconds after which it gives up, and what a call may take where progress starts that anew."""


@pytest.mark.proves("HOST-CLOCKS")
@pytest.mark.parametrize("host", KNOWN)
def test_a_call_hands_over_before_its_host_gives_up(host: str | None) -> None:
    limit, in_sight = KNOWN[host]
    assert call_within(host, progress=False) == 0.8 * limit
    assert call_within(host, progress=True) == (in_sight or 0.8 * limit)
    assert call_within(host, progress=False) == call_within((host or "").upper(), progress=False)


@pytest.mark.proves("HOST-CLOCKS")
@pytest.mark.parametrize(
    ("name", "progress", "given", "within"),
    [
        ("claude-code", True, None, 1800),
        ("claude-code", False, None, 240),
        ("some editor", True, None, 48),
        ("claude-code", True, 0.5, 0.5),
    ],
)
async def test_the_clock_follows_the_clients_name_its_progress_and_the_option(
    tmp_path: Path, mode: str, name: str, progress: bool, given: float | None, within: float
) -> None:
    waited: list[float | None] = []
    async with served(shop(tmp_path, "done"), call_within=given) as server:
        advance = server.engine.advance

        async def noting(run: str, **options: Any) -> Any:
            waited.append(options["timeout"])
            return await advance(run, **options)

        server.engine.advance = noting  # type: ignore[method-assign]
        info = Implementation(name=name, version="1")
        async with Client(server, mode=mode, client_info=info) as client:
            await client.call_tool("shop", GO, meta={"progressToken": "t"} if progress else None)
    assert waited[0] is not None and within - 2 < waited[0] <= within


@pytest.mark.proves("HOST-CLOCKS", "HANDOVER")
async def test_waiting_for_a_run_comes_in_slices_of_the_same_clock(tmp_path: Path, gate: Gate, mode: str) -> None:
    async with serving(tmp_path, mode, call_within=0.2) as client:
        run = account(await client.call_tool("shop", GO))["id"]
        for _ in range(3):
            with anyio.fail_after(PATIENCE_S):
                slice_ = await client.call_tool("run_wait", {"run_id": run})
            assert slice_.is_error and account(slice_)["status"] == "running"
        await gate.begun()
        gate.open()
