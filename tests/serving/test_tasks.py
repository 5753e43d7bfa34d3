"""The tasks extension: a worker's run under another name, for clients that declare it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llm_do_mcp.serving.tasks import IDENTIFIER
from tests.cli.commands import LLM_DO
from tests.serving.clients import MODERN, PATIENCE_S, YES, Gate, Wire, command, named, shop, turn, write
from tests.serving.conftest import Open

CAN = {"extensions": {IDENTIFIER: {}}}
ASKS = {**CAN, "elicitation": {"form": {}}}


def task(wire: Wire, tool: str = "shop") -> dict[str, Any]:
    """Call a worker; the task that this becomes."""
    made = wire.request("tools/call", {"name": tool, "arguments": {"input": "go"}})
    assert made["resultType"] == "task", made
    return made


def polls(wire: Wire, identifier: str) -> Iterator[dict[str, Any]]:
    """How a task stands, as often as it is asked."""
    while True:
        yield wire.request("tasks/get", {"taskId": identifier})


def until(wire: Wire, identifier: str, status: str) -> dict[str, Any]:
    """A task once it has a status."""
    end = time.monotonic() + PATIENCE_S
    for found in polls(wire, identifier):
        if found["status"] == status:
            return found
        assert time.monotonic() < end, found
    raise AssertionError


def error(wire: Wire, method: str, **params: Any) -> dict[str, Any]:
    return dict(wire.answer(wire.send(method, params))["error"])


@pytest.mark.proves("TASKS-RESULT")
def test_a_task_gives_the_result_that_the_call_would(tmp_path: Path, open_wire: Open) -> None:
    shop(tmp_path, {"text": "hello"})
    wire = open_wire(command(tmp_path), MODERN, capabilities=CAN)
    made = task(wire)
    done = until(wire, made["taskId"], "completed")
    assert done["result"]["content"][0]["text"] == "hello" and not done["result"].get("isError")
    assert done["result"]["_meta"]["llm-do/run"]["id"] == made["taskId"]
    read = wire.request("tools/call", {"name": "files_in_list", "arguments": {}})
    assert read["resultType"] == "complete", "what is no worker answers at once"
    wrong = wire.request("tools/call", {"name": "shop", "arguments": {}})
    assert wrong["isError"] and "input" in wrong["content"][0]["text"]
    again = open_wire(command(tmp_path), MODERN, capabilities=CAN)
    assert until(again, made["taskId"], "completed")["result"] == done["result"], "also after a restart"


@pytest.mark.anyio
@pytest.mark.proves("TASKS-CREATED", "TASKS-RESTART")
async def test_a_task_can_be_asked_about_from_the_moment_it_is_told(
    gate: Gate, tmp_path: Path, open_wire: Open
) -> None:
    wire = open_wire(command(tmp_path), MODERN, capabilities=CAN)
    identifier = task(wire)["taskId"]
    wire.process.kill()
    wire.process.wait()
    again = open_wire(command(tmp_path), MODERN, capabilities=CAN)
    assert again.request("tasks/get", {"taskId": identifier})["status"] == "working"
    await gate.begun()
    gate.open()
    gate.open()  # the call that was cut short waits at it, too, where it still does
    assert until(again, identifier, "completed")["result"]["content"][0]["text"] == "slow but sure"


@pytest.mark.proves("TASKS-CREATED")
def test_what_a_task_came_to_is_told_when_it_is_asked(tmp_path: Path, open_wire: Open) -> None:
    shop(tmp_path, {"text": "hello"})
    wire = open_wire(command(tmp_path), MODERN, capabilities=CAN)
    call = {"name": "shop", "arguments": {"input": "go"}}
    made = wire.request("tools/call", call, **{"llm-do/key": "monday"})
    until(wire, made["taskId"], "completed")
    again = wire.request("tools/call", call, **{"llm-do/key": "monday"})
    assert (again["resultType"], again["taskId"], again["status"]) == ("task", made["taskId"], "completed")
    assert again.keys().isdisjoint({"result", "error", "inputRequests"})


@pytest.mark.proves("TASKS-KEPT")
def test_a_task_is_kept_until_its_run_is_pruned(tmp_path: Path, open_wire: Open) -> None:
    shop(tmp_path, {"text": "hello"})
    wire = open_wire(command(tmp_path), MODERN, capabilities=CAN)
    done = until(wire, task(wire)["taskId"], "completed")
    assert done["ttlMs"] is None
    wire.close()
    again = open_wire(command(tmp_path), MODERN, capabilities=CAN)
    assert again.request("tasks/get", {"taskId": done["taskId"]})["status"] == "completed"
    prune = [*LLM_DO, "runs", "prune", "--keep", "0", "--project", str(tmp_path)]
    subprocess.run(prune, check=True, capture_output=True)
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        assert error(again, method, taskId=done["taskId"])["code"] == -32602


@pytest.mark.proves("TASKS-LATER")
def test_a_call_goes_on_as_a_task(tmp_path: Path, open_wire: Open) -> None:
    shop(tmp_path, turn(write("out/new.txt")))
    plain = open_wire(command(tmp_path), MODERN, capabilities={"elicitation": {"form": {}}})
    call = {"name": "shop", "arguments": {"input": "go"}}
    asked = plain.request("tools/call", call)
    [key] = asked["inputRequests"]
    plain.close()
    wire = open_wire(command(tmp_path), MODERN, capabilities=ASKS)
    brought = {"requestState": asked["requestState"], "inputResponses": {key: YES}}
    made = wire.request("tools/call", {**call, **brought})
    assert made["resultType"] == "task" and made.keys().isdisjoint({"requestState", "inputRequests"})
    assert not until(wire, made["taskId"], "completed")["result"].get("isError")
    assert (tmp_path / "out" / "new.txt").read_text() == "new"


@pytest.mark.proves("TASKS-ASK")
@pytest.mark.parametrize("decision", ["once", "deny"])
def test_a_question_is_an_input_request_of_the_task(tmp_path: Path, open_wire: Open, decision: str) -> None:
    shop(tmp_path, turn(write("out/new.txt")))
    wire = open_wire(command(tmp_path), MODERN, capabilities=ASKS)
    identifier = task(wire)["taskId"]
    [(key, request)] = until(wire, identifier, "input_required")["inputRequests"].items()
    assert request["method"] == "elicitation/create" and "out/new.txt" in request["params"]["message"]
    answer = {"action": "accept", "content": {"decision": decision}}
    wire.request("tasks/update", {"taskId": identifier, "inputResponses": {key: answer}})
    until(wire, identifier, "completed")
    assert (tmp_path / "out" / "new.txt").exists() == (decision == "once")


@pytest.mark.proves("TASKS-ASK")
@pytest.mark.parametrize("response", [{}, 5, {"action": "accept", "content": {"decision": "yes"}}])
def test_what_is_no_answer_approves_nothing(tmp_path: Path, open_wire: Open, response: Any) -> None:
    shop(tmp_path, turn(write("out/new.txt")))
    wire = open_wire(command(tmp_path, "--when-nobody-can-answer", "deny"), MODERN, capabilities=ASKS)
    identifier = task(wire)["taskId"]
    [key] = until(wire, identifier, "input_required")["inputRequests"]
    wire.request("tasks/update", {"taskId": identifier, "inputResponses": {key: response, "other": response}})
    until(wire, identifier, "completed")
    assert not (tmp_path / "out" / "new.txt").exists()


@pytest.mark.proves("TASKS-ASK")
@pytest.mark.parametrize("can", [CAN, ASKS], ids=["cannot ask", "never answers"])
def test_who_cannot_ask_or_never_answers_is_told_what_waits(tmp_path: Path, open_wire: Open, can: Any) -> None:
    shop(tmp_path, turn(write("out/new.txt")))
    options = ("--when-nobody-can-answer", "pause", "--answer-within", "0.2")
    wire = open_wire(command(tmp_path, *options), MODERN, capabilities=can)
    told = until(wire, task(wire)["taskId"], "completed")["result"]
    assert told["isError"] and "llm-do approve" in told["content"][0]["text"]
    assert not (tmp_path / "out" / "new.txt").exists()


@pytest.mark.proves("TASKS-END")
@pytest.mark.parametrize("end", ["answered", "cancelled"])
def test_a_task_that_has_ended_stays_so_whatever_becomes_of_its_run(tmp_path: Path, open_wire: Open, end: str) -> None:
    shop(tmp_path, turn(write("out/new.txt")))
    options = ("--when-nobody-can-answer", "pause", "--approve-tool")
    wire = open_wire(command(tmp_path, *options), MODERN, capabilities=CAN)
    identifier = task(wire)["taskId"]
    told = until(wire, identifier, "completed")["result"]
    key = named(told["content"][0]["text"], "question")
    if end == "answered":
        answer = {"run_id": identifier, "question": key, "decision": "once"}
        wire.request("tools/call", {"name": "run_approve", "arguments": answer})
        waited = wire.request("tools/call", {"name": "run_wait", "arguments": {"run_id": identifier}})
        assert not waited.get("isError") and (tmp_path / "out" / "new.txt").read_text() == "new"
    else:
        wire.request("tasks/cancel", {"taskId": identifier})
    again = open_wire(command(tmp_path), MODERN, capabilities=ASKS)
    for client in (wire, again):
        found = client.request("tasks/get", {"taskId": identifier})
        assert (found["status"], found["result"]) == ("completed", told)


@pytest.mark.proves("TASKS-ASK")
def test_each_task_has_its_own_time_for_its_questions(tmp_path: Path, open_wire: Open) -> None:
    shop(tmp_path, turn(write("out/new.txt")))
    options = ("--when-nobody-can-answer", "pause", "--answer-within", "1")
    wire = open_wire(command(tmp_path, *options), MODERN, capabilities=ASKS)
    first = task(wire)["taskId"]
    [key] = until(wire, first, "input_required")["inputRequests"]
    wire.request("tasks/update", {"taskId": first, "inputResponses": {key: YES}})
    until(wire, first, "completed")
    second = task(wire)["taskId"]
    assert [*until(wire, second, "input_required")["inputRequests"]] == [key], "a key is one of its run"
    told = until(wire, second, "completed")["result"]
    assert told["isError"] and "llm-do approve" in told["content"][0]["text"]


@pytest.mark.anyio
@pytest.mark.proves("TASKS-CANCEL")
async def test_a_task_is_cancelled(gate: Gate, tmp_path: Path, open_wire: Open) -> None:
    wire = open_wire(command(tmp_path), MODERN, capabilities=CAN)
    identifier = task(wire)["taskId"]
    await gate.begun()
    assert wire.request("tasks/get", {"taskId": identifier})["status"] == "working"
    wire.request("tasks/cancel", {"taskId": identifier})
    assert wire.request("tasks/get", {"taskId": identifier})["status"] == "cancelled"
    assert wire.request("tasks/cancel", {"taskId": identifier})["resultType"] == "complete", "it stays so"
    assert wire.request("tasks/get", {"taskId": identifier})["status"] == "cancelled"


@pytest.mark.proves("TASKS-DECLARED")
def test_only_who_declares_the_extension_is_given_tasks(tmp_path: Path, open_wire: Open, mode: str) -> None:
    shop(tmp_path, {"text": "hello"})
    plain = open_wire(command(tmp_path), mode)
    called = plain.request("tools/call", {"name": "shop", "arguments": {"input": "go"}})
    assert called["content"][0]["text"] == "hello"
    refused = error(plain, "tasks/get", taskId=called["_meta"]["llm-do/run"]["id"])
    assert refused["code"] == (-32021 if mode == MODERN else -32601)
    if mode == MODERN:
        declaring = open_wire(command(tmp_path), mode, capabilities=CAN)
        assert IDENTIFIER in declaring.request("server/discover")["capabilities"]["extensions"]
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            assert error(declaring, method, taskId="0123456789abcdef")["code"] == -32602
