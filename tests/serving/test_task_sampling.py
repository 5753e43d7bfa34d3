"""Tasks whose workers run on the client's model: its turns are input requests of the task, beside the questions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.serving.clients import FILES, MODERN, YES, Wire, command, shop, turn, worker, write
from tests.serving.conftest import Open
from tests.serving.test_sampling import lent
from tests.serving.test_tasks import ASKS, CAN, task, until

LENDS = {"sampling": {"tools": {}}, **CAN}
BOTH = {**LENDS, **ASKS}


def says(words: str) -> dict[str, Any]:
    """A turn of the client's model."""
    return {"role": "assistant", "content": {"type": "text", "text": words}, "model": "lent-1"}


def calls(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """A turn that calls a tool."""
    use = {"type": "tool_use", "id": "c1", "name": name, "input": given}
    return {"role": "assistant", "content": [use], "model": "lent-1", "stopReason": "toolUse"}


def wanted(wire: Wire, identifier: str) -> dict[str, Any]:
    """What a task wants: key → request."""
    return dict(until(wire, identifier, "input_required")["inputRequests"])


def update(wire: Wire, identifier: str, **responses: Any) -> None:
    done = wire.request("tasks/update", {"taskId": identifier, "inputResponses": responses})
    assert done.keys() - {"_meta"} == {"resultType"}, "an acknowledgement, and nothing else"


def result(wire: Wire, identifier: str) -> dict[str, Any]:
    return dict(until(wire, identifier, "completed")["result"])


def text(result: dict[str, Any]) -> str:
    return str(result["content"][0]["text"])


@pytest.mark.proves("TASKS-SAMPLING")
def test_turns_one_after_another_are_requests_with_keys_of_their_own(tmp_path: Path, open_wire: Open) -> None:
    wire = open_wire(command(lent(tmp_path)), MODERN, capabilities=LENDS)
    identifier = task(wire)["taskId"]
    keys = []
    reading = [calls("read_file", {"path": "in/stock.txt"}), calls("list_files", {"path": "in"})]
    for answer in (*reading, says("Three pears.")):
        [(key, request)] = wanted(wire, identifier).items()
        assert request["method"] == "sampling/createMessage" and request["params"]["maxTokens"] > 0
        assert wanted(wire, identifier).keys() == {key}, "who asks again before it answers is given the same"
        keys.append(key)
        update(wire, identifier, **{key: answer})
    done = result(wire, identifier)
    assert (text(done), done["_meta"]["llm-do/run"]["models"]) == ("Three pears.", ["sampling (lent-1)"])
    assert len(set(keys)) == 3
    told = request["params"]["messages"][2]["content"]
    assert told[0]["type"] == "tool_result" and "three pears" in told[0]["content"][0]["text"]


def beside(root: Path) -> Path:
    """A worker that has one sub-worker sampled while another waits for approval."""
    both = [("worker_call", {"worker": name}) for name in ("sampled", "writes")]
    turns = {"main": [turn(*both)], "writes": [turn(write("out/b.md"))]}
    files = {
        "main.worker": worker({"allow_workers": ["sampled", "writes"]}),
        "workers/sampled.worker": worker({"model": "sampling"}),
        "workers/writes.worker": worker({"toolsets": FILES}),
        "turns.json": json.dumps(turns),
    }
    return shop(root, files=files)


@pytest.mark.proves("TASKS-SAMPLING", "TASKS-ASK")
@pytest.mark.parametrize("first", ["elicitation/create", "sampling/createMessage"])
def test_a_turn_and_a_question_wait_at_once(tmp_path: Path, open_wire: Open, first: str) -> None:
    wire = open_wire(command(beside(tmp_path)), MODERN, capabilities=BOTH)
    identifier = task(wire)["taskId"]
    while len(both := wanted(wire, identifier)) < 2:
        pass
    keys = {request["method"]: key for key, request in both.items()}
    answers = {"elicitation/create": YES, "sampling/createMessage": says("sampled")}
    other = next(method for method in keys if method != first)
    update(wire, identifier, **{keys[first]: answers[first]})
    assert wanted(wire, identifier).keys() == {keys[other]}, "what is answered is wanted no more"
    update(wire, identifier, **{keys[other]: answers[other], keys[first]: answers[first], "made-up": says("x")})
    assert text(result(wire, identifier)).startswith("sampled\n")
    assert (tmp_path / "out" / "b.md").read_text() == "new"


@pytest.mark.proves("TASKS-SAMPLING")
@pytest.mark.parametrize("can", [CAN, ASKS], ids=["tasks only", "forms"])
def test_who_declares_tasks_and_lends_no_model_is_told_so(tmp_path: Path, open_wire: Open, can: Any) -> None:
    wire = open_wire(command(lent(tmp_path)), MODERN, capabilities=can)
    told = result(wire, task(wire)["taskId"])
    assert told["isError"] and text(told).startswith("worker main: model sampling: this client lends no model")


@pytest.mark.proves("TASKS-SAMPLING", "TASKS-ASK")
def test_who_lends_a_model_and_asks_nobody_is_told_what_waits_when_the_turn_is_through(
    tmp_path: Path, open_wire: Open
) -> None:
    wire = open_wire(command(beside(tmp_path), "--when-nobody-can-answer", "pause"), MODERN, capabilities=LENDS)
    identifier = task(wire)["taskId"]
    [(key, request)] = wanted(wire, identifier).items()
    assert request["method"] == "sampling/createMessage"
    update(wire, identifier, **{key: says("sampled")})
    told = result(wire, identifier)
    assert told["isError"] and "llm-do approve" in text(told)


@pytest.mark.proves("TASKS-SAMPLING", "A074")
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (YES, "the client's answer is unusable"),
        (5, "the client's answer is unusable"),
        ({**says("x"), "role": "user"}, "answered as user"),
        ({**says("x"), "content": {"type": "image", "data": "aGk=", "mimeType": "image/png"}}, "answered with image"),
    ],
    ids=["a form", "a number", "as a user", "an image"],
)
def test_an_answer_that_is_no_turn_ends_the_run_with_an_error(
    tmp_path: Path, open_wire: Open, answer: Any, words: str
) -> None:
    wire = open_wire(command(lent(tmp_path)), MODERN, capabilities=BOTH)
    identifier = task(wire)["taskId"]
    [key] = wanted(wire, identifier)
    update(wire, identifier, **{key: answer})
    told = result(wire, identifier)
    assert told["isError"] and words in text(told)


@pytest.mark.proves("TASKS-SAMPLING", "WORKER-FALLBACK")
def test_the_next_model_of_a_chain_is_another_request(tmp_path: Path, open_wire: Open) -> None:
    wire = open_wire(command(lent(tmp_path, model=["sampling:a", "sampling:b"])), MODERN, capabilities=LENDS)
    identifier = task(wire)["taskId"]
    [first] = wanted(wire, identifier)
    update(wire, identifier, **{first: {}})
    [second] = wanted(wire, identifier)
    assert second != first, "a key is never used for another request"
    update(wire, identifier, **{first: says("too late"), second: says("in time")})
    assert text(result(wire, identifier)) == "in time"


@pytest.mark.proves("TASKS-SAMPLING", "TASKS-CANCEL")
def test_a_task_that_waits_for_a_turn_is_cancelled(tmp_path: Path, open_wire: Open) -> None:
    wire = open_wire(command(lent(tmp_path)), MODERN, capabilities=LENDS)
    identifier = task(wire)["taskId"]
    [key] = wanted(wire, identifier)
    wire.request("tasks/cancel", {"taskId": identifier})
    update(wire, identifier, **{key: says("too late")})
    assert wire.request("tasks/get", {"taskId": identifier})["status"] == "cancelled"


@pytest.mark.proves("TASKS-SAMPLING", "TASKS-RESTART")
@pytest.mark.parametrize("asks_again", [True, False], ids=["asked about first", "answered at once"])
def test_a_turn_outlives_the_server_that_put_it(tmp_path: Path, open_wire: Open, asks_again: bool) -> None:
    wire = open_wire(command(lent(tmp_path)), MODERN, capabilities=LENDS)
    identifier = task(wire)["taskId"]
    [first] = wanted(wire, identifier)
    update(wire, identifier, **{first: calls("read_file", {"path": "in/stock.txt"})})
    [key] = wanted(wire, identifier)
    wire.process.kill()
    wire.process.wait()
    again = open_wire(command(tmp_path), MODERN, capabilities=LENDS)
    if asks_again:
        assert [*wanted(again, identifier)] == [key], "what was answered is not asked again"
    update(again, identifier, **{key: says("Three pears.")})
    assert text(result(again, identifier)) == "Three pears."


@pytest.mark.proves("SAMPLING-TURNS", "STATE-RESTART")
def test_a_call_brings_the_turn_that_a_server_before_this_one_put(tmp_path: Path, open_wire: Open) -> None:
    call = {"name": "shop", "arguments": {"input": "go"}}
    wire = open_wire(command(lent(tmp_path)), MODERN, capabilities={"sampling": {"tools": {}}})
    asked = wire.request("tools/call", call)
    [key] = asked["inputRequests"]
    wire.process.kill()
    wire.process.wait()
    again = open_wire(command(tmp_path), MODERN, capabilities={"sampling": {"tools": {}}})
    brought = {"requestState": asked["requestState"], "inputResponses": {key: says("Three pears.")}}
    done = again.request("tools/call", {**call, **brought})
    assert (done["resultType"], text(done)) == ("complete", "Three pears."), "it is not asked for once more"
