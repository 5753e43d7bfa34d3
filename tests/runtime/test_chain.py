"""Who answers a worker's turns, and what it costs: real projects against a server on loopback."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from llm_do_mcp.cli.trace import lines
from llm_do_mcp.cli.trace_html import page
from llm_do_mcp.runtime import account
from llm_do_mcp.runtime.trace_words import summary
from tests.models.messages_server import Answer, MessagesServer, error, message, stall, text, tool_use
from tests.models.test_anthropic import PNG
from tests.models.test_documents import pdf as scan
from tests.project.conftest import worker
from tests.runtime.driving import asked, finished
from tests.runtime.workshop import MAIN, Workshop, approve

pytestmark = pytest.mark.anyio

ONE, TWO = "anthropic:claude-one", "anthropic:claude-two"
CHAIN = f"model: ['{ONE}', '{TWO}']"
PRICES = "prices: {claude-one: {input: 1000, output: 2000}, claude-two: {input: 0, output: 0}}\n"
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
GONE = error(529, "overloaded_error", "busy", x_should_retry="false")
BROKEN = message(tool_use("", {}, id="t0"), usage={"input_tokens": 70})


def project(keys: str = CHAIN, manifest: str = PRICES, **more: str) -> dict[str, str]:
    files = {"main.worker": worker(f"{keys}{MAIN}"), "project.yaml": f"name: shop\nmodel: '{ONE}'\n{manifest}"}
    return files | {f"workers/{name}.worker": worker(keys) for name, keys in more.items()}


def by_model(**answers: list[Answer]) -> Any:
    """Answers by the model that is asked (`one`, `two`), in order."""
    left = {name: iter(given) for name, given in answers.items()}
    return lambda body: next(left[body["model"].removeprefix("claude-")])


@pytest.mark.proves("WORKER-FALLBACK-RECORDED", "WORKER-FALLBACK", "COST-ACCOUNT")
async def test_who_was_passed_over_is_recorded_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with MessagesServer(respond=by_model(one=[GONE], two=[message(text("hi"))])) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        async with Workshop(tmp_path, project()) as shop:
            done = await shop.run("go")
            events = await shop.engine.store.events(done.run)
            found = await shop.engine.trace(done.run)
    (reply,) = [event.data for event in events if event.kind == "model"]
    (passed,) = reply["passed_over"]
    assert passed["model"] == ONE
    assert passed["error"].startswith(f"worker main: model {ONE}: 529 overloaded_error: busy")
    assert found is not None
    (turn,) = [item for _, item in found.walk() if item.kind == "turn"]
    assert turn.facts["passed_over"] == reply["passed_over"]
    shown = lines(found, 200)
    assert f"  turn 1: {passed['error']}" == shown[shown.index("models passed over:") + 1]
    assert "Models passed over" in page(found) and page(found).count("529 overloaded_error: busy") == 1
    assert (done.account["models"], done.account["cost"]) == ([TWO], 0)


@pytest.mark.proves("WORKER-FALLBACK-TIME", "WORKER-FALLBACK")
async def test_a_model_that_hangs_leaves_the_next_one_half_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MessagesServer(respond=by_model(one=[stall], two=[message(text("hi"))])) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        async with Workshop(tmp_path, project(f"{CHAIN}\nlimits: {{timeout_s: 6}}")) as shop:
            done = await shop.run("go")
            events = await shop.engine.store.events(done.run)
        assert server.hung_up.wait(5)
    assert (done.output, done.account["models"]) == ("hi", [TWO])
    (reply,) = [event.data for event in events if event.kind == "model"]
    assert re.search(r"model anthropic:claude-one: no answer within (3|2\.\d+) s", reply["passed_over"][0]["error"])


@pytest.mark.proves("WORKER-FALLBACK-TIME")
async def test_a_model_that_asks_for_more_than_its_time_is_passed_over_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = error(429, "rate_limit_error", "slow", retry_after="400")
    with MessagesServer(respond=by_model(one=[later], two=[message(text("hi"))])) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        async with Workshop(tmp_path, project(f"{CHAIN}\nlimits: {{timeout_s: 700}}")) as shop:
            assert (await shop.run("go")).output == "hi"
    assert [request.body["model"] for request in server.requests] == ["claude-one", "claude-two"]


@pytest.mark.proves("WORKER-FALLBACK-RECORDED")
@pytest.mark.parametrize(
    ("last", "why"), [(TWO, "429 rate_limit_error: slow down"), ("scripted:nowhere.yaml", "nowhere.yaml")]
)
async def test_a_chain_of_which_no_model_answers_fails_with_all_reasons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: str, why: str
) -> None:
    slow = error(429, "rate_limit_error", "slow down", x_should_retry="false")
    with MessagesServer(respond=by_model(one=[GONE], two=[slow])) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        async with Workshop(tmp_path, project(f"model: ['{ONE}', '{last}']")) as shop:
            done = await shop.run("go")
    assert done.status == "failed"
    of_last, _, before = done.error.partition(". Passed over before: ")
    assert of_last.startswith(f"worker main: model {last}: ") and why in of_last
    assert before.startswith(f"worker main: model {ONE}: 529 overloaded_error: busy")
    assert "name a second model" not in done.error, "it has one"


@pytest.mark.proves("WORKER-FALLBACK-BOUND")
@pytest.mark.parametrize("status", [400, 413, 422])
async def test_a_request_that_is_at_fault_is_not_tried_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    with MessagesServer(error(status, "invalid_request_error", "no")) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        async with Workshop(tmp_path, project()) as shop:
            done = await shop.run("go")
    assert done.error.startswith(f"worker main: model {ONE}: {status}")
    assert len(server.requests) == 1


@pytest.mark.proves("WORKER-FALLBACK-BOUND", "WORKER-PAUSED")
async def test_a_paused_turn_goes_on_with_its_model_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}
    paused = message(text("I search."), ran, stop_reason="pause_turn")
    with MessagesServer(respond=by_model(one=[paused, message(text("found"))], two=[])) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        async with Workshop(tmp_path, project()) as shop:
            assert (await shop.run("go")).output == "found"
    assert server.requests[1].body["messages"][-1]["role"] == "assistant", "sent back as it was"
    with MessagesServer(respond=by_model(one=[paused, GONE], two=[message(text("never"))])) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        async with Workshop(tmp_path, project()) as shop:
            done = await shop.run("go")
    assert done.error.startswith(f"worker main: model {ONE}: 529")
    assert done.error.endswith("; try again later"), "a second model could not have gone on"


@pytest.mark.proves("WORKER-FALLBACK", "MODEL-CAPABILITIES")
@pytest.mark.parametrize("name", ["pic.png", "scan.pdf", "nothing"])
async def test_what_a_model_cannot_be_sent_goes_to_the_next_that_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    flags = "model_capabilities: {claude-one: {images: false, documents: false, server_side_tools: false}}\n"
    attached = {"pic.png": PNG, "scan.pdf": scan(1)}.get(name)
    keys = CHAIN if attached else f"{CHAIN}\nserver_side_tools: [{{tool_type: web_search}}]"
    with MessagesServer(message(text("seen"))) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        async with Workshop(tmp_path, project(keys, f"{PRICES}{flags}")) as shop:
            (tmp_path / "in" / name).write_bytes(attached or b"-")
            done = await shop.run("go", attachments=[f"in/{name}"] if attached else [])
    assert (done.output, done.account["models"]) == ("seen", [TWO]), done.error


@pytest.mark.proves("WORKER-THOUGHTS", "WORKER-FALLBACK")
async def test_the_next_model_is_not_sent_the_thoughts_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = tool_use("list_files", {"path": "in"}, id="t1")
    later = tool_use("list_files", {"path": "in"}, id="t2")
    own = {**THOUGHT, "thinking": "Mine."}
    answers = by_model(one=[message(THOUGHT, look), GONE], two=[message(own, later), message(text("end"))])
    with MessagesServer(respond=answers) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        async with Workshop(tmp_path, project()) as shop:
            assert (await shop.run("go")).output == "end"
    said = [
        [block["type"] for block in said["content"]]
        for said in server.requests[-1].body["messages"]
        if said["role"] == "assistant"
    ]
    assert said == [["tool_use"], ["thinking", "tool_use"]]
    effects = [request.body["model"] for request in server.requests]
    assert effects == ["claude-one", "claude-one", "claude-two", "claude-two"]


# ---- cost


@pytest.mark.proves("COST-ACCOUNT", "RUN-ACCOUNT")
async def test_what_models_cost_is_in_the_account_and_the_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = message(tool_use("worker_call", {"worker": "helper"}, id="t1"), usage={"input_tokens": 1000})
    with MessagesServer(calls, message(text("helped")), message(text("end"))) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        async with Workshop(tmp_path, project(f"model: '{ONE}'", helper="description: helps")) as shop:
            done = await shop.run("go")
            found = await shop.engine.trace(done.run)
    assert done.account["tokens"] == {"input": 1020, "output": 15}
    assert done.account["cost"] == pytest.approx(1.05)
    assert "unpriced" not in done.account
    assert account.line(done.account).split(" · ")[1:4] == [ONE, "1,035 tokens", "$1.05"]
    assert found is not None
    costs = [item.facts["cost"] for _, item in found.walk() if item.kind == "turn"]
    assert costs == pytest.approx([1.01, 0.02, 0.02])


@pytest.mark.proves("COST-LOST")
async def test_replies_that_came_to_nothing_are_in_the_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with MessagesServer(respond=by_model(one=[BROKEN, BROKEN], two=[message(text("hi"))])) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        async with Workshop(tmp_path, project()) as shop:
            done = await shop.run("go")
            found = await shop.engine.trace(done.run)
    assert (done.account["models"], done.account["tokens"]) == ([TWO], {"input": 150, "output": 15})
    assert done.account["cost"] == pytest.approx(2 * 0.08)
    assert found is not None
    shown = lines(found, 200)
    assert "10 in, 5 out, 150 for replies that came to nothing  passed over anthropic:claude-one" in "\n".join(shown)


@pytest.mark.proves("COST-LOST", "TRACE-FACTS")
async def test_a_turn_that_no_model_answered_says_who_was_asked_and_what_it_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MessagesServer(respond=by_model(one=[GONE], two=[BROKEN, BROKEN])) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        async with Workshop(tmp_path, project(manifest="prices: {'claude-*': {input: 1000, output: 2000}}\n")) as shop:
            done = await shop.run("go")
            found = await shop.engine.trace(done.run)
    assert (done.status, done.account["models"], done.account["tokens"]) == ("failed", [], {"input": 140, "output": 10})
    assert done.account["cost"] == pytest.approx(0.16)
    assert found is not None
    (turn,) = [item for _, item in found.walk() if item.kind == "turn"]
    assert (turn.state, turn.facts["model"], turn.facts["error"]) == ("failed", TWO, done.error)
    assert [each["model"] for each in turn.facts["passed_over"]] == [ONE]
    assert dict(summary(found))["model"] == f"none (asked without an answer: {ONE}, {TWO})"
    shown = "\n".join(lines(found, 400))
    assert f"worker main: model {ONE}: 529" in shown and f"worker main: model {TWO}: the answer from" in shown
    assert "not finished" not in shown


@pytest.mark.proves("COST-LOST", "LIMIT-TREE")
async def test_replies_that_came_to_nothing_count_for_the_limits_of_the_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = message(tool_use("worker_call", {"worker": "helper"}, id="t1"))
    files = project(f"model: '{ONE}'\nlimits: {{max_tokens: 160}}", helper="description: helps")
    with MessagesServer(calls, BROKEN, BROKEN, message(text("never"))) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        async with Workshop(tmp_path, files) as shop:
            done = await shop.run("go")
    assert done.error.startswith("worker main stopped: its limit max_tokens of 160 was reached")
    assert len(server.requests) == 3


@pytest.mark.proves("COST-ACCOUNT", "PRICE-UNKNOWN")
async def test_an_unknown_price_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with MessagesServer(message(text("hi"))) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        async with Workshop(tmp_path, project(f"model: '{ONE}'", "")) as shop:
            done = await shop.run("go")
            found = await shop.engine.trace(done.run)
    assert (done.account["cost"], done.account["unpriced"]) == (None, [ONE])
    assert f"cost unknown (no price for {ONE})" in account.line(done.account)
    assert found is not None
    assert dict(summary(found))["cost"] == f"unknown (no price for {ONE})"


@pytest.mark.proves("COST-ACCOUNT")
def test_sums_are_shown_as_people_read_them() -> None:
    assert [account.dollars(cost) for cost in (0, 0.00001, 0.0123, 1.005, 12)] == [
        "$0.0000",
        "less than $0.0001",
        "$0.0123",
        "$1.00",
        "$12.00",
    ]


@pytest.mark.proves("COST-LIMIT", "LIMIT-TREE")
async def test_a_limit_of_cost_holds_the_tree_also_over_a_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = tool_use("write_file", {"path": "out/a.md", "content": "x"}, id="w")
    turns = [
        message(tool_use("worker_call", {"worker": "helper"}, id="t1")),
        message(text("helped")),
        message(write),
        message(text("never")),
    ]
    keys = f"model: '{ONE}'\nlimits: {{max_cost: 0.05}}"
    files = project(keys, helper="description: helps")
    with MessagesServer(*turns) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        async with Workshop(tmp_path, files) as shop:
            run = await shop.start("go")
            await asked(shop.engine, run)
        async with Workshop(tmp_path, files) as shop:
            await shop.engine.resume(run)
            done = await finished(shop.engine, run, approve)
    assert done.error.startswith("worker main stopped: its limit max_cost of 0.05 was reached")
    assert len(server.requests) == 3
    assert done.account["cost"] == pytest.approx(0.06)


@pytest.mark.proves("COST-LIMIT", "PRICE-UNKNOWN")
async def test_a_limit_of_cost_that_cannot_be_held_begins_no_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MessagesServer(message(text("hi"))) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        async with Workshop(tmp_path, project(f"model: '{ONE}'\nlimits: {{max_cost: 1}}", "")) as shop:
            done = await shop.run("go")
        assert server.requests == []
    assert done.error == (
        f"worker main: model {ONE}: its price is not known, so limits.max_cost cannot be held; "
        "add it to `prices` in project.yaml, or take the limit away"
    )


@pytest.mark.proves("COST-LIMIT")
async def test_a_script_costs_nothing_and_fits_any_limit(tmp_path: Path) -> None:
    files = {"main.worker": worker(f"limits: {{max_cost: 0.01}}{MAIN}")}
    async with Workshop(tmp_path, files) as shop:
        done = await shop.run(json.dumps({"text": "hi", "usage": {"input_tokens": 10**6}}))
    assert (done.status, done.account["cost"]) == ("done", 0)
