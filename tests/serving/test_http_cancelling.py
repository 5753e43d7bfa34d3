"""A run is cancelled at whichever instance is asked: behind a balancer nobody knows which one drives it."""

from __future__ import annotations

import asyncio
import signal
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from llm_do_mcp.runtime.store import Store
from tests.serving.clients import GO, PATIENCE_S, Gate, account, client_of, served, shop, text, turn, write
from tests.serving.web import Serve, token, visitor
from tests.toolhost.conftest import is_gone_within

pytestmark = pytest.mark.anyio


async def noted(root: Path, run: str) -> None:
    """Wait until it is in the record that a run is to be cancelled."""
    with closing(Store(root / ".llm-do" / "runs.sqlite3")) as store, anyio.fail_after(PATIENCE_S):
        while not await store.given_up([run]):
            await anyio.lowlevel.checkpoint()


@pytest.mark.proves("HTTP-CANCEL", "HTTP-INSTANCES", "HANDOVER-CANCEL")
async def test_what_a_run_is_doing_at_one_ends_when_it_is_cancelled_at_another(
    tmp_path: Path, gate: Gate, serve: Serve, mode: str
) -> None:
    one, other = (serve(tmp_path, "--call-within", "0.2") for _ in range(2))
    async with visitor(one.url, mode) as here, visitor(other.url, mode) as there:
        run = account(await here.call_tool("shop", GO))["id"]
        tool = await gate.begun()
        cancelled = await there.call_tool("run_cancel", {"run_id": run})
        assert is_gone_within(tool, 0), "what it was doing had ended before the answer"
        waited = [await client.call_tool("run_wait", {"run_id": run}) for client in (here, there)]
        again = await there.call_tool("run_cancel", {"run_id": run})
    assert not cancelled.is_error and account(cancelled)["status"] == "cancelled"
    assert text(cancelled).startswith(f"run {run} was cancelled with run_cancel")
    assert [(one.is_error, text(one).split("\n")[0]) for one in waited] == [(True, text(cancelled))] * 2
    assert again.is_error and "has ended (cancelled)" in text(again)


@pytest.mark.proves("HTTP-CANCEL", "HTTP-PRINCIPALS")
async def test_a_run_that_waits_is_cancelled_at_another_by_its_principal_only(
    tmp_path: Path, serve: Serve, mode: str
) -> None:
    root, file = shop(tmp_path / "shop", turn(write("out/a.txt"))), tmp_path / "tokens"
    ann, bo = token(file, "ann"), token(file, "bo")
    one, other = (serve(root, "--tokens", str(file), "--call-within", "1") for _ in range(2))
    async with visitor(one.url, mode, token=ann) as client:  # which cannot ask
        run = account(await client.call_tool("shop", GO))["id"]
    async with visitor(other.url, mode, token=bo) as client:
        refused = await client.call_tool("run_cancel", {"run_id": run})
        assert (refused.is_error, text(refused)) == (True, f"there is no run {run}")
    async with visitor(other.url, mode, token=ann) as client:
        assert account(await client.call_tool("run_wait", {"run_id": run}))["status"] in ("running", "waiting")
        assert not (await client.call_tool("run_cancel", {"run_id": run})).is_error
    async with visitor(one.url, mode, token=ann) as client:
        assert account(await client.call_tool("run_wait", {"run_id": run}))["status"] == "cancelled"
    assert not (root / "out/a.txt").exists()


@pytest.mark.proves("HTTP-CANCEL", "HTTP-INSTANCES")
async def test_one_that_is_killed_before_it_cancels_is_not_waited_for(tmp_path: Path, serve: Serve, mode: str) -> None:
    root = shop(tmp_path, turn(write("out/a.txt")))
    one, other = serve(root), serve(root)
    async with visitor(one.url, mode) as client:
        run = account(await client.call_tool("shop", GO))["id"]
    async with visitor(other.url, mode) as client:
        one.process.send_signal(signal.SIGSTOP)
        asked = asyncio.create_task(client.call_tool("run_cancel", {"run_id": run}))
        await noted(root, run)
        assert not asked.done()
        one.end(signal.SIGKILL)
        cancelled = await asked
    assert not cancelled.is_error and account(cancelled)["status"] == "cancelled"
    assert not (root / "out/a.txt").exists()


@pytest.mark.proves("HTTP-CANCEL", "TASKS-CANCEL")
async def test_one_that_does_not_come_to_it_is_not_waited_for_without_end(
    tmp_path: Path, serve: Serve, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llm_do_mcp.runtime.engine.CANCELLED_WITHIN_S", 0.1)
    one = serve(shop(tmp_path, turn(write("out/a.txt"))))
    async with visitor(one.url, mode) as client:
        run = account(await client.call_tool("shop", GO))["id"]
    one.process.send_signal(signal.SIGSTOP)
    async with served(tmp_path) as server, client_of(server, mode) as client:
        told = await client.call_tool("run_cancel", {"run_id": run})
        assert told.is_error and text(told).startswith(f"run {run} goes on: its process has been told to end it")
        await server.stop(run)  # as a task is cancelled: that is acknowledged
        one.process.send_signal(signal.SIGCONT)
        with anyio.fail_after(PATIENCE_S):
            while account(await client.call_tool("run_wait", {"run_id": run}))["status"] != "cancelled":
                pass
    assert not (tmp_path / "out/a.txt").exists()
