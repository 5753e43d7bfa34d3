"""Calls that take longer than their caller's clock: handed over, waited for, cancelled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.types import CallToolResult

from llm_do_mcp.runtime.engine import Asks
from tests.serving.clients import (
    GO,
    HANDSHAKE,
    MODERN,
    PATIENCE_S,
    Gate,
    Person,
    account,
    client_of,
    decide,
    named,
    process,
    served,
    serving,
    shop,
    text,
    texts,
    turn,
    write,
)
from tests.toolhost.conftest import is_gone_within

pytestmark = pytest.mark.anyio


async def _waited_for(client: Client, run: str) -> CallToolResult:
    """The result of a run that ends by itself; each slice of waiting may be too short for it."""
    with anyio.fail_after(PATIENCE_S):
        while True:
            result = await client.call_tool("run_wait", {"run_id": run})
            if account(result)["status"] not in ("running", "waiting"):
                return result


@pytest.mark.proves("HANDOVER", "CALL-ACCOUNT")
async def test_a_long_call_is_handed_over_and_waited_for_in_slices(tmp_path: Path, gate: Gate, mode: str) -> None:
    async with serving(tmp_path, mode, call_within=0.2) as client:
        handed = await client.call_tool("shop", {"input": "go"})
        run = account(handed)["id"]
        assert handed.is_error and account(handed)["status"] == "running"
        assert f"Call run_wait with run_id '{run}'" in text(handed) and "run_cancel" in text(handed)
        assert {"models", "tokens", "cost", "calls", "approvals", "files_changed"} <= set(account(handed))
        waited = await client.call_tool("run_wait", {"run_id": run})
        assert waited.is_error and account(waited)["status"] == "running" and run in text(waited)
        gate.open()
        done = await _waited_for(client, run)
        again = await client.call_tool("run_wait", {"run_id": run})
    assert text(done) == "slow but sure" == text(again)
    assert not done.is_error and "no model was called" in texts(done)


@pytest.mark.proves("HANDOVER-CANCEL", "A090")
async def test_a_run_that_was_handed_over_can_be_cancelled(tmp_path: Path, gate: Gate, mode: str) -> None:
    async with serving(tmp_path, mode, call_within=0.2) as client:
        run = account(await client.call_tool("shop", {"input": "go"}))["id"]
        tool = await gate.begun()
        cancelled = await client.call_tool("run_cancel", {"run_id": run})
        assert not cancelled.is_error and "cancelled" in text(cancelled)
        assert account(cancelled)["status"] == "cancelled"
        assert is_gone_within(tool, 0), "what it was doing had ended before the answer"
        waited = await client.call_tool("run_wait", {"run_id": run})
        again = await client.call_tool("run_cancel", {"run_id": run})
    assert waited.is_error and account(waited)["status"] == "cancelled"
    assert again.is_error and text(again).endswith(
        "has ended (cancelled); there is nothing left of it to go on with, or to stop"
    )


@pytest.mark.proves("HANDOVER-CANCEL")
async def test_who_stops_waiting_does_not_stop_the_run(tmp_path: Path, gate: Gate, mode: str) -> None:
    async with served(tmp_path, call_within=0.2) as server, client_of(server, mode) as client:
        run = account(await client.call_tool("shop", {"input": "go"}))["id"]
        await gate.begun()
        server.call_within = PATIENCE_S
        with anyio.move_on_after(0.2) as waiting:
            await client.call_tool("run_wait", {"run_id": run})
        assert waiting.cancelled_caught
        gate.open()
        done = await _waited_for(client, run)
    assert text(done) == "slow but sure"


@pytest.mark.proves("HANDOVER")
@pytest.mark.parametrize("tool", ["run_wait", "run_cancel"])
async def test_a_run_that_there_is_not_is_an_error_of_the_call(tmp_path: Path, mode: str, tool: str) -> None:
    async with serving(shop(tmp_path), mode) as client:
        result = await client.call_tool(tool, {"run_id": "nothing"})
    assert result.is_error and text(result) == "there is no run nothing"


@pytest.mark.proves("HTTP-END")
async def test_a_call_that_comes_to_wait_once_the_server_ends_returns_at_once(
    tmp_path: Path, gate: Gate, mode: str
) -> None:
    async with served(tmp_path) as server, client_of(server, mode) as client:
        server.end()
        with anyio.fail_after(PATIENCE_S):
            told = text(await client.call_tool("shop", GO))
        assert "about to end" in told and server.engine.drives(named(told, "run_id"))


@pytest.mark.proves("HANDOVER-QUESTION")
@pytest.mark.parametrize("stdio", [False, True], ids=["in memory", "over stdio"])
async def test_a_dialog_stays_valid_when_its_call_was_handed_over(tmp_path: Path, stdio: bool) -> None:
    shop(tmp_path)
    handed_over = anyio.Event()

    class Slow(Person):
        """Answers when the call is over."""

        async def __call__(self, context: Any, form: Any) -> Any:
            self.called.set()
            await handed_over.wait()
            return await super().__call__(context, form)

    person = Slow(decide("once"))
    over_stdio = process(tmp_path, HANDSHAKE, person, "--call-within", "1")
    async with over_stdio if stdio else serving(tmp_path, HANDSHAKE, person, call_within=1.0) as client:
        handed = await client.call_tool("files_out_write_text", {"path": "a.txt", "content": "x"})
        assert handed.is_error and account(handed)["status"] == "waiting"
        assert person.called.is_set() and person.asked == []
        handed_over.set()
        done = await _waited_for(client, account(handed)["id"])
    assert account(done)["files_changed"] == ["out/a.txt"]


@pytest.mark.proves("HANDOVER-QUESTION")
async def test_a_call_without_time_shows_its_question_all_the_same(tmp_path: Path) -> None:
    """The dialog goes out although the request that it came up in is answered at the same moment."""
    person = Person(decide("once"))
    async with served(shop(tmp_path), call_within=0.0) as server, client_of(server, HANDSHAKE, person) as client:
        run = account(await client.call_tool("files_out_write_text", {"path": "a.txt", "content": "x"}))["id"]
        assert isinstance(await server.engine.advance(run), Asks) and person.asked == []
        handed = await client.call_tool("run_wait", {"run_id": run})
        assert handed.is_error and account(handed)["status"] == "waiting"
        with anyio.fail_after(PATIENCE_S):
            await person.called.wait()
        server.call_within = PATIENCE_S
        done = await client.call_tool("run_wait", {"run_id": run})
    assert account(done)["files_changed"] == ["out/a.txt"]


@pytest.mark.proves("HANDOVER-QUESTION")
async def test_a_modern_client_is_asked_by_run_wait(tmp_path: Path) -> None:
    root = shop(tmp_path, turn(write("out/a.txt")))
    async with (
        served(root, call_within=0.0) as server,
        client_of(server, MODERN, person := Person(decide("once"))) as client,
    ):
        handed = await client.call_tool("shop", {"input": "go"})
        assert handed.is_error and person.asked == []
        server.call_within = PATIENCE_S
        done = await client.call_tool("run_wait", {"run_id": account(handed)["id"]})
    assert len(person.asked) == 1 and account(done)["files_changed"] == ["out/a.txt"]


@pytest.mark.proves("HANDOVER-ROUNDS")
async def test_more_rounds_than_a_client_makes_in_one_call_are_carried_on_by_run_wait(tmp_path: Path) -> None:
    root = shop(tmp_path, *(turn(write(f"out/{number}.txt")) for number in range(12)))
    person = Person(decide("once"))
    async with serving(root, MODERN, person) as client:
        cut = await client.call_tool("shop", {"input": "go"})
        assert cut.is_error and account(cut)["status"] == "waiting" and len(account(cut)["files_changed"]) == 9
        assert f"Call run_wait with run_id '{account(cut)['id']}'" in text(cut)
        done = await client.call_tool("run_wait", {"run_id": account(cut)["id"]})
    assert len(account(done)["files_changed"]) == 12 == len(person.asked)


@pytest.mark.proves("HANDOVER")
async def test_run_wait_gives_what_the_call_itself_would_have_given(tmp_path: Path, mode: str) -> None:
    person = Person(decide("once"))
    async with served(shop(tmp_path), call_within=0.0) as server, client_of(server, mode, person) as client:
        handed = await client.call_tool("files_out_write_text", {"path": "a.txt", "content": "x"})
        server.call_within = PATIENCE_S
        fetched = await client.call_tool("run_wait", {"run_id": account(handed)["id"]})
        itself = await client.call_tool("files_out_write_text", {"path": "b.txt", "content": "x"})
    assert handed.is_error and not fetched.is_error and itself.structured_content is not None
    assert fetched.structured_content == {**itself.structured_content, "path": "a.txt"}
    assert texts(fetched) == texts(itself).replace("b.txt", "a.txt")


@pytest.mark.proves("HANDOVER-QUESTION")
async def test_many_questions_of_one_round_wait_no_longer_than_four(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = shop(tmp_path, turn(*(write(f"out/{number}.txt") for number in range(7))))
    async with served(root, answer_within=100.0) as server, client_of(server, MODERN, Person(decide("once"))) as client:
        given, later = [], server._nobody.later

        def watched(run: str, questions: Any, patience: float, context: Any) -> None:
            given.append((len(questions), patience))
            later(run, questions, patience, context)

        monkeypatch.setattr(server._nobody, "later", watched)
        assert not (await client.call_tool("shop", {"input": "go"})).is_error
    assert given == [(7, 400.0)]
