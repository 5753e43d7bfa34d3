"""Progress for who asked for it, and what becomes of a run whose caller no longer wants it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from llm_do_mcp.serving import progress
from tests.serving.clients import (
    HANDSHAKE,
    Gate,
    Person,
    client_of,
    command,
    decide,
    process,
    served,
    shop,
    text,
    turn,
    write,
)
from tests.serving.conftest import Open
from tests.toolhost.conftest import is_gone_within

STEPS = ["client: worker_call main", "main: turn 1", "main: read_file in/stock.txt", "main: turn 2"]


@pytest.mark.proves("A091", "PROGRESS")
def test_progress_rises_with_each_step_where_it_was_asked_for(tmp_path: Path, open_wire: Open, mode: str) -> None:
    root = shop(tmp_path, turn(("read_file", {"path": "in/stock.txt"})))
    wire = open_wire(command(root), mode)
    for token in (0, "", "a", 7):
        wire.answer(wire.call("shop", {"input": "go"}, progressToken=token))
        told = [message["params"] for message in wire.passed if message["method"] == "notifications/progress"]
        assert {notice["progressToken"] for notice in told} == {token}
        values = [notice["progress"] for notice in told]
        assert values == sorted(set(values)) and not any("total" in notice for notice in told)
        assert [notice["message"] for notice in told] == STEPS
        wire.passed.clear()
    wire.answer(wire.call("shop", {"input": "go"}))
    assert wire.passed == [], "nobody asked"


@pytest.mark.proves("PROGRESS")
@pytest.mark.anyio
async def test_a_run_that_waits_gives_a_sign_of_life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "HEARTBEAT_S", 0.02)
    enough = anyio.Event()
    told: list[str] = []

    async def listen(_: float, __: float | None, message: str | None) -> None:
        told.append(message or "")
        if sum("waiting" in line for line in told) == 3:
            enough.set()

    class Thinks(Person):
        async def __call__(self, context: Any, form: Any) -> Any:
            await enough.wait()
            return await super().__call__(context, form)

    root = shop(tmp_path, turn(write("out/a.txt")))
    async with served(root) as server, client_of(server, HANDSHAKE, Thinks(decide("once"))) as client:
        await client.call_tool("shop", {"input": "go"}, progress_callback=listen)
    assert any("waiting for 1 approval" in line for line in told)


async def _status(server: Any) -> str:
    """How the one run that there is stands in the record."""
    ((_, status),) = [(row.id, row.status) for row in await server.engine.store.runs()]
    return str(status)


@pytest.mark.proves("A090", "CANCEL")
@pytest.mark.anyio
async def test_a_call_that_is_cancelled_stops_its_run_and_its_children(tmp_path: Path, gate: Gate, mode: str) -> None:
    async with served(tmp_path) as server, client_of(server, mode) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "shop", {"input": "go"})
            tool = await gate.begun()
            group.cancel_scope.cancel()
        (run,) = [row.id for row in await server.engine.store.runs()]
        done = await server.engine.advance(run)
        assert is_gone_within(tool, 0), "nothing of it runs when it is recorded as cancelled"
        assert (done.status, done.error) == ("cancelled", f"run {run} was cancelled by the client")
        assert done.account["status"] == await _status(server) == "cancelled"
        assert text(await client.call_tool("files_in_read_text", {"path": "stock.txt"})) == "three pears\n"


@pytest.mark.proves("A090", "CANCEL")
@pytest.mark.anyio
async def test_a_call_that_is_cancelled_while_it_asks_withdraws_its_dialogs(tmp_path: Path) -> None:
    root = shop(tmp_path, turn(write("out/a.txt"), write("out/b.txt")))
    person = Person(None)
    async with served(root) as server, client_of(server, HANDSHAKE, person) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "shop", {"input": "go"})
            await person.called.wait()
            group.cancel_scope.cancel()
        await person.withdrawn.wait()
        (run,) = [row.id for row in await server.engine.store.runs()]
        done = await server.engine.advance(run)
    assert done.status == "cancelled" and not (root / "out/a.txt").exists()


@pytest.mark.proves("A090", "CANCEL")
def test_cancelling_what_is_not_there_does_nothing(tmp_path: Path, open_wire: Open, mode: str) -> None:
    wire = open_wire(command(shop(tmp_path)), mode)
    done = wire.call("files_in_read_text", {"path": "stock.txt"})
    wire.answer(done)
    for identifier in (done, 999, "x", None, [1]):
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": identifier}}
        wire.write(cancel)
    assert wire.request("tools/list")["tools"]
    assert all("id" not in message for message in wire.passed)


@pytest.mark.proves("A090", "CANCEL")
@pytest.mark.anyio
async def test_over_stdio_a_cancelled_call_stops_its_run_too(tmp_path: Path, gate: Gate, mode: str) -> None:
    async with process(tmp_path, mode) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "shop", {"input": "go"}, None, None)
            tool = await gate.begun()
            group.cancel_scope.cancel()
        assert await anyio.to_thread.run_sync(is_gone_within, tool, 5)
        assert text(await client.call_tool("files_in_read_text", {"path": "stock.txt"})) == "three pears\n"
