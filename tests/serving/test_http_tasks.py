"""Tasks over HTTP: whose they are, and the header by which a balancer sends what is about one to one instance."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.serving.clients import PATIENCE_S, YES, shop, turn, write
from tests.serving.test_tasks import ASKS, CAN
from tests.serving.web import Serve, Service, bearer, body, headers, token

Ask = Callable[..., dict[str, Any]]


def asking(service: Service, who: str | None = None, capabilities: Any = ASKS) -> Ask:
    """`ask(method, params, name)` sends a request, with that header, and gives the answer."""

    def ask(method: str, params: dict[str, Any], name: str | None) -> dict[str, Any]:
        given = {**headers(method, name), **bearer(who)}
        answer = httpx2.post(service.url, json=body(method, params, capabilities), headers=given, timeout=PATIENCE_S)
        return dict(answer.json())

    return ask


def begun(ask: Ask) -> str:
    made = ask("tools/call", {"name": "shop", "arguments": {"input": "go"}}, "shop")["result"]
    assert made["resultType"] == "task"
    return str(made["taskId"])


def until(ask: Ask, identifier: str, status: str) -> dict[str, Any]:
    while (found := ask("tasks/get", {"taskId": identifier}, identifier)["result"])["status"] != status:
        assert found["status"] in ("working", "input_required"), found
    return dict(found)


@pytest.mark.proves("TASKS-HTTP", "HTTP-PRINCIPALS")
def test_a_task_is_there_for_who_began_it(tmp_path: Path, serve: Serve) -> None:
    file = tmp_path / "tokens"
    ann, bo = token(file, "ann"), token(file, "bo")
    service = serve(shop(tmp_path / "shop", turn(write("out/a.txt"))), "--tokens", str(file))
    hers, his = asking(service, ann), asking(service, bo)
    identifier = begun(hers)
    [key] = until(hers, identifier, "input_required")["inputRequests"]
    answer = {"taskId": identifier, "inputResponses": {key: YES}}
    refused = [
        his(method, params, identifier)["error"]
        for method, params in (("tasks/get", answer), ("tasks/update", answer), ("tasks/cancel", answer))
    ]
    unknown = his("tasks/get", {"taskId": "0123456789abcdef"}, "0123456789abcdef")["error"]
    assert {error["code"] for error in refused} == {unknown["code"]} == {-32602}
    assert refused[0]["message"] == unknown["message"].replace("0123456789abcdef", identifier)
    assert [*until(hers, identifier, "input_required")["inputRequests"]] == [key]
    hers("tasks/update", answer, identifier)
    assert not until(hers, identifier, "completed")["result"].get("isError")


@pytest.mark.proves("TASKS-HTTP")
@pytest.mark.parametrize("named", [None, "0123456789abcdef"], ids=["missing", "another"])
def test_the_header_names_the_task(tmp_path: Path, serve: Serve, named: str | None) -> None:
    ask = asking(serve(shop(tmp_path, turn(write("out/a.txt")))))
    identifier = begun(ask)
    [key] = until(ask, identifier, "input_required")["inputRequests"]
    answer = {"taskId": identifier, "inputResponses": {key: YES}}
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        assert ask(method, answer, named)["error"]["code"] == -32020
    assert [*until(ask, identifier, "input_required")["inputRequests"]] == [key], "nothing came of it"


@pytest.mark.proves("TASKS-HTTP", "TASKS-RESTART", "HTTP-INSTANCES")
def test_what_a_task_asks_is_answered_at_another_instance(tmp_path: Path, serve: Serve) -> None:
    root = shop(tmp_path, turn(write("out/a.txt")), turn(write("out/b.txt")))
    services = [serve(root) for _ in range(2)]
    here, there = (asking(service) for service in services)
    identifier = begun(here)
    [first] = until(there, identifier, "input_required")["inputRequests"]
    there("tasks/update", {"taskId": identifier, "inputResponses": {first: YES}}, identifier)
    while [first] == [*(asked := until(there, identifier, "input_required")["inputRequests"])]:
        pass
    services[0].end(signal.SIGKILL)
    there("tasks/update", {"taskId": identifier, "inputResponses": dict.fromkeys(asked, YES)}, identifier)
    assert not until(there, identifier, "completed")["result"].get("isError")
    assert all((root / "out" / name).read_text() == "new" for name in ("a.txt", "b.txt"))


@pytest.mark.proves("TASKS-HTTP", "TASKS-CANCEL", "HTTP-CANCEL", "HTTP-PRINCIPALS")
def test_a_task_is_cancelled_at_another_instance(tmp_path: Path, serve: Serve) -> None:
    root, file = shop(tmp_path / "shop", turn(write("out/a.txt"))), tmp_path / "tokens"
    ann, bo = token(file, "ann"), token(file, "bo")
    services = [serve(root, "--tokens", str(file)) for _ in range(2)]
    here, there = (asking(service, ann) for service in services)
    identifier = begun(here)
    until(there, identifier, "input_required")
    refused = asking(services[1], bo)("tasks/cancel", {"taskId": identifier}, identifier)["error"]
    assert refused == {"code": -32602, "message": f"there is no run {identifier}"}
    until(there, identifier, "input_required")
    for ask in (there, here, there):
        assert ask("tasks/cancel", {"taskId": identifier}, identifier)["result"]["resultType"] == "complete"
        assert ask("tasks/get", {"taskId": identifier}, identifier)["result"]["status"] == "cancelled"
    assert not (root / "out/a.txt").exists()


@pytest.mark.proves("TASKS-HTTP", "HTTP-INSTANCES")
@pytest.mark.parametrize("when", ["pause", "deny"])
def test_a_task_that_nobody_can_answer_does_not_hang_at_another_instance(
    tmp_path: Path, serve: Serve, when: str
) -> None:
    root = shop(tmp_path, turn(write("out/a.txt")))
    here, there = (asking(serve(root, "--when-nobody-can-answer", when), capabilities=CAN) for _ in range(2))
    identifier = begun(here)
    said = until(there, identifier, "completed")["result"]["content"][0]["text"]
    assert ("waits for a person" if when == "pause" else "was not run") in said, said
    assert until(here, identifier, "completed")["result"]["content"][0]["text"] == said
    assert not (root / "out/a.txt").exists()


@pytest.mark.proves("TASKS-HTTP", "HTTP-INSTANCES")
def test_what_another_instance_asked_in_vain_does_not_wait_for_ever(tmp_path: Path, serve: Serve) -> None:
    root, file = shop(tmp_path / "shop", turn(write("out/a.txt"))), tmp_path / "tokens"
    ann, options = token(file, "ann"), ("--answer-within", "1", "--tokens", str(file))
    here, there = (asking(serve(root, *options), ann) for _ in range(2))
    identifier = begun(here)
    assert until(there, identifier, "input_required")["inputRequests"]
    assert "waits for a person" in until(there, identifier, "completed")["result"]["content"][0]["text"]
