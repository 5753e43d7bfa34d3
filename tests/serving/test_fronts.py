"""Every front in both eras: who answers, who does not, and what comes of either; many questions in one call."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import anyio
import pytest
from mcp import Client
from mcp.types import CallToolResult, ElicitResult, InputRequiredResult

from llm_do_mcp.runtime.engine import Asks, Done, Engine
from llm_do_mcp.runtime.question import Answer
from llm_do_mcp.serving.server import ProjectServer
from tests.serving.clients import (
    HANDSHAKE,
    MODERN,
    PATIENCE_S,
    Answering,
    Desk,
    Person,
    accept,
    account,
    client_of,
    decide,
    served,
    serving,
    shop,
    text,
    turn,
    write,
)

pytestmark = pytest.mark.anyio

Decision = Literal["once", "run", "deny"]
ELSEWHERE = "another process"
WRITTEN: dict[Decision, list[str]] = {"once": ["out/a.txt"], "run": ["out/a.txt", "out/b.txt"], "deny": []}
"""What is written of two files, where the first question is answered so, and the second, if it comes, with `deny`."""


async def _call(client: Client, server: ProjectServer, mode: str, front: str, desk: Desk) -> CallToolResult:
    """The first result of the call. A 2026-07-28 client that never answers has none; it asks for its run later."""
    if front == "silent" and mode == MODERN:
        asked = await client.session.call_tool("shop", {"input": "go"}, allow_input_required=True)
        assert isinstance(asked, InputRequiredResult)
        await desk.address()
        (run,) = [row.id for row in await server.engine.store.runs()]
        server.call_within = 0.1
        return await client.call_tool("run_wait", {"run_id": run})
    return await client.call_tool("shop", {"input": "go"})


async def _answered_elsewhere(server: ProjectServer, elsewhere: Engine, run: str, decision: Decision) -> None:
    """Somebody answers through the store: the first question so, the next with `deny`."""
    seen: set[str] = set()
    for answer in (decision, "deny"):
        event = await server.engine.advance(run, seen=seen, timeout=PATIENCE_S)
        if isinstance(event, Done):
            return
        assert isinstance(event, Asks)
        (question,) = event.questions
        seen.add(question.key)
        await server.engine.store.get(run)  # comes behind the commit of the question, which others must see
        assert await elsewhere.answer(run, question.key, Answer(answer, note="a word", by=ELSEWHERE))


@pytest.mark.proves("FRONT-TABLE", "A080", "A081", "A082", "A083")
@pytest.mark.parametrize("decision", WRITTEN)
@pytest.mark.parametrize("front", ["elicitation", "none", "silent", "declines", "malformed"])
async def test_every_front_answers_or_is_told_apart(tmp_path: Path, mode: str, front: str, decision: Decision) -> None:
    answers: dict[str, tuple[Answering, ...]] = {
        "elicitation": (decide(decision, "a word"), decide("deny", "a word")),
        "silent": (None,),
        "declines": (ElicitResult(action="decline"),),
        "malformed": (accept({"decision": decision.upper()}),),
    }
    person = Person(*answers[front]) if front in answers else None
    root = shop(tmp_path, turn(write("out/a.txt")), turn(write("out/b.txt")))
    desk = Desk()
    within = 0.2 if front == "silent" else PATIENCE_S
    async with served(root, answer_within=within, browse=desk) as server, client_of(server, mode, person) as client:
        first = await _call(client, server, mode, front, desk)
        run = account(first)["id"]
        elsewhere = Engine(server.engine.folder, server.bench.body)
        try:
            if front in ("none", "silent"):
                assert first.is_error and account(first)["status"] == "waiting"
                assert text(first).startswith(f"run {run} waits for a person") and f"llm-do approve {run}" in text(
                    first
                )
                assert "create the file out/a.txt" in text(first)
                assert not (root / "out/a.txt").exists()
                server.call_within = PATIENCE_S
                await _answered_elsewhere(server, elsewhere, run, decision)
                result = await client.call_tool("run_wait", {"run_id": run})
                made, by = WRITTEN[decision], ELSEWHERE
            else:
                result, by = first, "client"
                made = WRITTEN[decision] if front == "elicitation" else []
            key = next(event.key for event in await elsewhere.store.events(run) if event.kind == "ask")
            late = await elsewhere.answer(run, key, Answer(decision, by="too late"))
            question = await elsewhere.store.event(run, key)
        finally:
            await elsewhere.aclose()
    assert not result.is_error
    assert account(result)["files_changed"] == made
    assert sorted(path.name for path in (root / "out").iterdir()) == [*(p[4:] for p in made), "ledger.txt"]
    given = {"elicitation": decision, "none": decision, "silent": decision, "declines": "declined"}
    told = account(result)["approvals"][0]
    assert (told["decision"], told["by"]) == (given.get(front, "malformed"), by)
    assert told["note"] == ("a word" if made or by == ELSEWHERE or front == "elicitation" else "")
    assert not late and question is not None
    assert [answer["by"] for answer in question.data["late"]] == ["too late"]
    if front == "silent":
        assert person is not None and len(person.forms) == (mode == HANDSHAKE), "a silent client is not asked again"


@pytest.mark.proves("FRONT-ROUNDS")
async def test_fourteen_questions_one_after_the_other_finish_in_a_modern_client(tmp_path: Path) -> None:
    root = shop(tmp_path, *(turn(write(f"out/{number}.txt")) for number in range(14)))
    person = Person(decide("once"))
    async with serving(root, MODERN, person) as client:
        result = await client.call_tool("shop", {"input": "go"})
        run = account(result)["id"]
        with anyio.fail_after(PATIENCE_S):
            while account(result)["status"] == "waiting":
                assert result.is_error and f"run_wait with run_id {run!r}" in text(result)
                result = await client.call_tool("run_wait", {"run_id": run})
    assert not result.is_error and len(account(result)["files_changed"]) == 14 == len(person.asked)


@pytest.mark.proves("FRONT-BATCH", "A084")
async def test_twenty_questions_at_once_come_in_one_round(tmp_path: Path) -> None:
    root = shop(tmp_path, turn(*(write(f"out/{number}.txt") for number in range(20))))
    async with serving(root, MODERN, Person(decide("once"))) as client:
        first = await client.session.call_tool("shop", {"input": "go"}, allow_input_required=True)
        assert isinstance(first, InputRequiredResult) and len(first.input_requests or ()) == 20
        answers: dict[str, Any] = {key: decide("once") for key in first.input_requests or ()}
        last = await client.session.call_tool(
            "shop", {"input": "go"}, input_responses=answers, request_state=first.request_state
        )
    assert len(account(last)["files_changed"]) == 20


@pytest.mark.proves("FRONT-BATCH")
async def test_who_answers_one_of_many_dialogs_is_given_time_for_the_others(tmp_path: Path) -> None:
    """Some clients show one after the other: each of these takes a third of what one may take, four more than that."""

    class OneByOne(Person):
        def __init__(self) -> None:
            super().__init__(decide("once"))
            self._turn = anyio.Lock()

        async def __call__(self, context: Any, form: Any) -> Any:
            async with self._turn:
                await anyio.sleep(0.5)
                return await super().__call__(context, form)

    root = shop(tmp_path, turn(*(write(f"out/{number}.txt") for number in range(4))))
    async with serving(root, HANDSHAKE, OneByOne(), answer_within=1.5) as client:
        result = await client.call_tool("shop", {"input": "go"})
    assert not result.is_error and len(account(result)["files_changed"]) == 4
