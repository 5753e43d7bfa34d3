"""What can go wrong with a model, seen through the real SDK: each time one line that says what to do."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any

import anyio
import pytest

from llm_do_mcp.errors import ModelError, ModelUnavailable
from llm_do_mcp.models import anthropic
from tests.models.asking import NAME, ask, request, use
from tests.models.messages_server import (
    Answer,
    MessagesServer,
    cut_off,
    error,
    error_in_stream,
    events,
    message,
    raw,
    reset,
    stall,
    text,
    tool_use,
)

NOW = {"retry_after": "0.001"}


async def failing(**options: Any) -> ModelError:
    """The error of a turn; the checks that hold for every one of them."""
    with anyio.fail_after(5), pytest.raises(ModelError) as caught:
        await ask(request(), **options)
    said = str(caught.value)
    assert "\n" not in said
    assert said.startswith(f"worker reports/summarizer: model {NAME}: ")
    assert "Traceback" not in said
    return caught.value


@dataclass(frozen=True)
class Case:
    """An answer, what is said of it, and how often it was asked for."""

    answer: Answer
    says: str
    to_do: str
    kind: type[ModelError] = ModelUnavailable
    requests: int = 1


CASES = {
    "bad request": Case(
        error(400, "invalid_request_error", "prompt is too long"),
        "400 invalid_request_error: prompt is too long (request req_1)",
        "give it less to read, or name a model with a larger context",
        kind=ModelError,
    ),
    "another bad request": Case(
        error(400, "invalid_request_error", "tools.0.name: too long"),
        "400 invalid_request_error: tools.0.name: too long (request req_1)",
        "change what it names in the worker or its input",
        kind=ModelError,
    ),
    "bad key": Case(
        error(401, "authentication_error", "invalid x-api-key"),
        "401 authentication_error: invalid x-api-key (request req_1)",
        "set ANTHROPIC_API_KEY to a valid key",
    ),
    "forbidden": Case(error(403, "permission_error", "not yours"), "403 permission_error: not yours", "another model"),
    "unknown model": Case(
        error(404, "not_found_error", "model: claude-none"),
        "404 not_found_error: model: claude-none",
        "name a model that the server has: `model` in the worker or project.yaml, LLM_DO_MODEL or --model",
    ),
    "too large": Case(
        error(413, "request_too_large", "over 32 MB"),
        "413 request_too_large: over 32 MB",
        "send fewer or smaller attachments",
        kind=ModelError,
    ),
    "rate limit": Case(
        error(429, "rate_limit_error", "slow down", **NOW),
        "429 rate_limit_error: slow down",
        "try again later, call fewer workers at once",
        requests=3,
    ),
    "fault": Case(
        error(500, "api_error", "Internal\nserver\x1b[31m error", **NOW),
        "500 api_error: Internal server [31m error",
        "try again later",
        requests=3,
    ),
    "overloaded": Case(
        error(529, "overloaded_error", "Overloaded", **NOW),
        "529 overloaded_error: Overloaded",
        "name a second model",
        requests=3,
    ),
    "another server": Case(
        raw(404, "text/html", b"<h1>Not here</h1>"),
        "404: no reason given",
        "check that a Messages API server listens at http://127.0.0.1:",
    ),
    "no messages": Case(
        raw(200, "text/html", b"<h1>Hello</h1>"),
        "unusable, twice: the server sent no events, but text/html",
        "check that it speaks the Messages API",
        requests=2,
    ),
    "not streamed": Case(
        raw(200, "application/json", b'{"type": "message", "content": []}'),
        "unusable, twice: the server sent no events, but application/json",
        "check that it speaks the Messages API",
        requests=2,
    ),
    "bad key in the middle": Case(
        error_in_stream("authentication_error", "expired"),
        "401 authentication_error: expired",
        "set ANTHROPIC_API_KEY to a valid key",
    ),
    "too large in the middle": Case(
        error_in_stream("request_too_large", "no"),
        "413 request_too_large: no",
        "send fewer or smaller attachments",
        kind=ModelError,
    ),
    "overloaded in the middle": Case(
        error_in_stream("overloaded_error", "Overloaded"),
        "529 overloaded_error: Overloaded",
        "name a second model",
        requests=2,
    ),
    "a word for a number": Case(
        message(text("hi"), usage={"input_tokens": "twelve"}),
        "unusable, twice: usage.input_tokens is 'twelve', which is no number of tokens",
        "check that it speaks the Messages API",
        requests=2,
    ),
}


@pytest.mark.anyio
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
@pytest.mark.proves("A073", "MODEL-ERRORS")
async def test_an_error_of_the_server_is_one_line(monkeypatch: pytest.MonkeyPatch, case: Case) -> None:
    with MessagesServer(case.answer) as server:
        use(server, monkeypatch)
        raised = await failing()
    what, _, to_do = str(raised).rpartition("; ")
    assert case.says in what
    assert case.to_do in to_do
    assert type(raised) is case.kind
    assert len(server.requests) == case.requests


HALF_A_CALL = {
    "type": "tool_use",
    "id": "toolu_1",
    "name": "write_file",
    "input": '{"path": "out/a.md", "content": "The',
}

PASSING = {
    "rate limit": error(429, "rate_limit_error", "slow down", **NOW),
    "overloaded": error(529, "overloaded_error", "Overloaded", **NOW),
    "reset": reset,
    "cut": cut_off(text("I was going to")),
    "ended early": cut_off(text("I was going to"), politely=True),
    "overloaded in the middle": error_in_stream("overloaded_error", "Overloaded"),
    "no start": events(("message_delta", {"type": "message_delta"})),
    "nonsense": events(("message_start", {"type": "message_start", "message": "nonsense"})),
    "broken JSON": raw(200, "text/event-stream", b"event: message_start\ndata: {]\n\n"),
    "call without id": message(tool_use("write_file", id="")),
    "call without name": message(tool_use("", id="toolu_1")),
    "same id twice": message(tool_use("read_file", id="toolu_1"), tool_use("read_file", id="toolu_1")),
    "half a call": message(HALF_A_CALL),
    "call with NaN": message({**HALF_A_CALL, "input": '{"size": NaN}'}),
    "deep call": message({**HALF_A_CALL, "input": '{"size": ' + "[" * 20_000 + "]" * 20_000 + "}"}),
    "list of tokens": message(text("hi"), usage={"input_tokens": [1]}),
    "no number of tokens": message(text("hi"), usage={"output_tokens": float("nan")}),
    "part of a token": message(text("hi"), usage={"output_tokens": 2.5}),
    "tokens given back": message(text("hi"), usage={"input_tokens": -5000}),
    "searches given back": message(text("hi"), usage={"server_tool_use": {"web_search_requests": -1}}),
    "all tokens": message(text("hi"), usage={"input_tokens": 10**400}),
    "call with a list": message({**HALF_A_CALL, "input": '["out/a.md"]'}),
}


@pytest.mark.anyio
@pytest.mark.parametrize("first", PASSING.values(), ids=PASSING.keys())
@pytest.mark.proves("A073", "MODEL-RETRIES", "MODEL-COUNTS")
async def test_what_may_pass_is_asked_again(monkeypatch: pytest.MonkeyPatch, first: Answer) -> None:
    with MessagesServer(first, message(text("Here I am."))) as server, anyio.fail_after(5):
        use(server, monkeypatch)
        reply = await ask(request())
    assert reply.content == (text("Here I am."),)
    assert len(server.requests) == 2
    assert server.requests[0].body == server.requests[1].body


@pytest.mark.anyio
@pytest.mark.proves("MODEL-RETRIES", "MODEL-TRUNCATED")
async def test_a_call_that_is_never_whole_never_comes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    with MessagesServer(message(HALF_A_CALL)) as server:
        use(server, monkeypatch)
        raised = await failing()
    assert 'the call of write_file is not a whole JSON object: {"path": "out/a.md", "content": "The;' in str(raised)
    assert type(raised) is ModelUnavailable
    assert len(server.requests) == 2


@pytest.mark.anyio
@pytest.mark.proves("A073", "MODEL-DEADLINE")
async def test_no_answer_ends_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    with MessagesServer(stall) as server:
        use(server, monkeypatch)
        raised = await failing(deadline=anyio.current_time() + 0.3)
        assert server.hung_up.wait(5)
    assert "no answer within 0.3 s; try again, or raise limits.timeout_s" in str(raised)
    assert type(raised) is ModelUnavailable


@pytest.mark.anyio
@pytest.mark.proves("MODEL-DEADLINE")
@pytest.mark.parametrize(
    "headers",
    [
        {"retry_after": "3600"},
        {"retry_after_ms": "3600000", "retry_after": "1"},
        {"retry_after": "inf"},
        {"retry_after": formatdate(time.time() + 3600, usegmt=True)},
    ],
    ids=["seconds", "milliseconds", "for ever", "a date"],
)
async def test_a_wait_past_the_deadline_is_not_begun(monkeypatch: pytest.MonkeyPatch, headers: dict[str, str]) -> None:
    with MessagesServer(error(429, "rate_limit_error", "slow down", **headers)) as server:
        use(server, monkeypatch)
        raised = await failing(deadline=anyio.current_time() + 60)
    assert "429 rate_limit_error: slow down" in str(raised)
    assert len(server.requests) == 1


@pytest.mark.anyio
@pytest.mark.proves("A073", "MODEL-ERRORS")
async def test_a_refused_connection_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://me:secret@127.0.0.1:{port}/")
    monkeypatch.setattr(anthropic, "RETRIES", 0)
    raised = await failing()
    assert f"no connection to http://127.0.0.1:{port}: connection refused" in str(raised)
    assert "secret" not in str(raised)
    assert str(raised).endswith("; check the network and ANTHROPIC_BASE_URL, then try again")
    assert type(raised) is ModelUnavailable
    of_project = await failing(base_url=f"http://127.0.0.1:{port}")
    assert str(of_project).endswith("; check the network and base_url in project.yaml, then try again")


@pytest.mark.anyio
@pytest.mark.proves("A073", "MODEL-ERRORS")
async def test_a_reset_connection_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anthropic, "RETRIES", 0)
    with MessagesServer(reset) as server:
        use(server, monkeypatch)
        raised = await failing()
    assert f"no connection to {server.url}: " in str(raised)


@pytest.mark.anyio
@pytest.mark.proves("A073", "MODEL-KEY")
async def test_a_missing_key_names_the_ways_to_get_a_model() -> None:
    raised = await failing()
    assert "no key for a model was found; set ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL" in str(raised)
    assert str(raised).endswith("or name the model sampling in an MCP client that lends its own")
    assert type(raised) is ModelUnavailable


@pytest.mark.anyio
@pytest.mark.proves("A073", "MODEL-KEY")
async def test_a_credentials_profile_that_is_broken_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_PROFILE", "nobody")
    raised = await failing()
    assert "profile 'nobody'" in str(raised)
    assert str(raised).endswith("; correct the ANTHROPIC_* variables, or base_url in project.yaml")


@pytest.mark.anyio
@pytest.mark.proves("MODEL-KEY")
async def test_a_local_server_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with MessagesServer(message(text("ok"))) as server:
        use(server, monkeypatch, key=None)
        assert (await ask(request())).content == (text("ok"),)


@pytest.mark.anyio
@pytest.mark.proves("MODEL-KEY-STAYS")
async def test_the_users_key_is_not_sent_to_an_address_of_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "tok-secret")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Api-Key: hdr-secret\nX-Gateway: gate-secret")
    with MessagesServer(message(text("ok")), error(401, "authentication_error", "who are you")) as server:
        assert (await ask(request(), base_url=server.url)).content == (text("ok"),)
        raised = await failing(base_url=server.url)
    assert "secret" not in str([received.headers for received in server.requests])
    assert str(raised).endswith("; set ANTHROPIC_BASE_URL to it")


@pytest.mark.anyio
@pytest.mark.proves("MODEL-KEY-STAYS")
async def test_an_address_that_the_user_set_too_gets_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with MessagesServer(message(text("ok"))) as server:
        use(server, monkeypatch)
        await ask(request(), base_url=server.url + "/")
    assert server.requests[0].headers["authorization"] == "Bearer sk-test"


@pytest.mark.anyio
@pytest.mark.proves("MODEL-ERRORS")
async def test_text_that_cannot_be_sent_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with MessagesServer(message(text("ok"))) as server:
        use(server, monkeypatch)
        with pytest.raises(ModelError, match=r"worker reports/summarizer: .* could not be sent: .*surrogate"):
            await ask(request("\udc80"))
    assert server.requests == []
