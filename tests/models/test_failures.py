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
from llm_do_mcp.models.anthropic import AnthropicModel
from llm_do_mcp.models.turn import Usage
from tests.models.asking import MODEL, NAME, ask, reply_of, request, use
from tests.models.messages_server import (
    Answer,
    MessagesServer,
    cut_off,
    error,
    error_in_stream,
    events,
    hang_after,
    left_open,
    message,
    raw,
    reset,
    sent_to,
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


START = (
    "message_start",
    {"type": "message_start", "message": {"type": "message", "role": "assistant", "content": [], "model": "m"}},
)
END = (
    ("message_delta", {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}),
    ("message_stop", {"type": "message_stop"}),
)
LISTED = {"stop_reason": ["end_turn"]}


def block(index: int | None) -> tuple[str, dict[str, Any]]:
    return "content_block_start", {"type": "content_block_start", "index": index, "content_block": text("")}


def piece(index: int | None, words: str = "x") -> tuple[str, dict[str, Any]]:
    delta = {"type": "text_delta", "text": words}
    return "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}


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
        "try again later, or call fewer workers at once, or name a second model after it",
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
    "a second beginning": Case(
        events(START, block(0), START, *END),
        "unusable, twice: the server began a second message before the first had ended",
        "check that it speaks the Messages API",
        requests=2,
    ),
    "an event without a form": Case(
        events(START, ("content_block_delta", {"type": "content_block_delta", "index": [0], "delta": "x"})),
        "unusable, twice: an event is not of a form that the Messages API has",
        "check that it speaks the Messages API",
        requests=2,
    ),
    "an event that is not JSON": Case(
        raw(200, "text/event-stream", b"event: message_start\ndata: {]\n\n"),
        "unusable, twice: an event is not JSON (",
        "check that it speaks the Messages API",
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
    "call whose name is a number": message({**HALF_A_CALL, "name": 5, "input": {}}),
    "call whose id is a number": message({**HALF_A_CALL, "id": 5, "input": {}}),
    "begun anew": events(START, block(0), piece(0), START, block(0), piece(0), *END),
    "one place twice": events(START, block(0), block(0), piece(0), *END),
    "place before the first": events(START, block(-1), piece(-1), *END),
    "no place": events(START, block(None), piece(None), *END),
    "piece of nothing": events(START, block(0), piece(-1), *END),
    "block of no type": events(START, ("content_block_start", {**block(0)[1], "content_block": {"type": None}}), *END),
    "stopped by a list": events(START, block(0), piece(0), ("message_delta", {**END[0][1], "delta": LISTED}), END[1]),
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


BEHIND = {
    "nothing": (),
    "a call": (
        ("content_block_start", {"type": "content_block_start", "index": 1, "content_block": {**HALF_A_CALL}}),
        *END,
    ),
    "an error": (("error", {"type": "error", "error": {"type": "api_error", "message": "late"}}),),
    "another message": (START, block(0), piece(0), *END),
    "nonsense": (("message_start", {"type": "message_start", "message": 5}),),
}


@pytest.mark.anyio
@pytest.mark.parametrize("behind", BEHIND.values(), ids=BEHIND.keys())
@pytest.mark.proves("MODEL-END")
async def test_a_message_ends_where_it_says_so(monkeypatch: pytest.MonkeyPatch, behind: Any) -> None:
    with MessagesServer(left_open(text("Here I am."), behind=behind)) as server, anyio.fail_after(5):
        use(server, monkeypatch)
        reply = await ask(request())
        assert server.hung_up.wait(5)
    assert (reply.content, reply.stop_reason, len(server.requests)) == ((text("Here I am."),), "end_turn", 1)


@pytest.mark.anyio
@pytest.mark.proves("MODEL-END")
async def test_the_connection_of_a_message_that_ended_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with MessagesServer(message(text("ok"))) as server:
        use(server, monkeypatch)
        model = AnthropicModel(MODEL)
        for _ in range(3):
            await reply_of(model, request())
        await model.aclose()
        assert (len(server.requests), server.connections) == (3, 1)


@pytest.mark.anyio
@pytest.mark.proves("MODEL-UNUSUAL", "MODEL-PARALLEL-CALLS")
async def test_blocks_are_put_together_by_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = events(START, block(2), block(1), piece(2, "second"), piece(1, "first"), *END)
    with MessagesServer(answer) as server:
        use(server, monkeypatch)
        reply = await ask(request())
    assert reply.content == (text("first"), text("second"))


@pytest.mark.anyio
@pytest.mark.proves("COST-LOST")
async def test_what_a_reply_took_that_could_not_be_used_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    broken, lost = message(HALF_A_CALL, usage={"input_tokens": 70}), Usage(70, 5)
    with MessagesServer(broken, message(text("ok")), broken) as server:
        use(server, monkeypatch)
        assert (await ask(request())).lost == (lost,)
        assert (await failing()).lost == (lost, lost)


@pytest.mark.anyio
@pytest.mark.proves("COST-LOST", "MODEL-DEADLINE")
async def test_what_a_reply_took_that_came_too_late_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with MessagesServer(hang_after(text("I was going to"), after=4)) as server:
        use(server, monkeypatch)
        raised = await failing(deadline=anyio.current_time() + 0.5)
    assert "no answer within 0.5 s" in str(raised)
    assert raised.lost == (Usage(1, 1),)


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
@pytest.mark.proves("MODEL-KEY-STAYS", "MODEL-ERRORS")
async def test_a_redirect_to_another_address_takes_nothing_along(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Gateway: gate-secret")
    with MessagesServer(message(text("ok"))) as other, MessagesServer(sent_to(f"{other.url}/v1?x=1")) as server:
        use(server, monkeypatch)
        raised = await failing()
    assert f"{server.url} sends to {other.url}/v1, and nothing is sent to an address that you did not" in str(raised)
    assert str(raised).endswith("; correct ANTHROPIC_BASE_URL")
    assert type(raised) is ModelUnavailable
    assert (len(server.requests), other.requests) == (1, [])


@pytest.mark.anyio
@pytest.mark.proves("MODEL-KEY-STAYS")
async def test_a_redirect_within_an_address_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    with MessagesServer(sent_to("/v2/messages"), message(text("ok"))) as server:
        use(server, monkeypatch)
        assert (await ask(request())).content == (text("ok"),)
    assert [received.path for received in server.requests] == ["/v1/messages", "/v2/messages"]


@pytest.mark.anyio
@pytest.mark.proves("MODEL-KEY", "MODEL-ERRORS")
@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("ANTHROPIC_API_KEY", "  ", "ANTHROPIC_API_KEY is no key: it is blank"),
        ("ANTHROPIC_API_KEY", "sk-test\n", "ANTHROPIC_API_KEY is no key"),
        ("ANTHROPIC_AUTH_TOKEN", "tok\u00e9n", "ANTHROPIC_AUTH_TOKEN is no key"),
        ("ANTHROPIC_BASE_URL", "http://127.0.0.1:99999", "is no address of a server; write http://HOST:PORT"),
    ],
)
async def test_a_variable_that_cannot_be_used_is_named(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, says: str
) -> None:
    monkeypatch.setenv(variable, value)
    raised = await failing()
    assert says in str(raised)
    assert str(raised).endswith("; correct the ANTHROPIC_* variables, or base_url in project.yaml")


@pytest.mark.anyio
@pytest.mark.proves("MODEL-ERRORS")
async def test_a_name_of_a_model_cannot_write_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    with MessagesServer(error(404, "not_found_error", "no such model")) as server:
        use(server, monkeypatch)
        with pytest.raises(ModelError) as caught:
            await ask(request(model="anthropic:a\n\x1b[31mb"))
    assert str(caught.value).startswith("worker reports/summarizer: model anthropic:a [31mb: 404 ")


@pytest.mark.anyio
@pytest.mark.proves("MODEL-ERRORS")
async def test_text_that_cannot_be_sent_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with MessagesServer(message(text("ok"))) as server:
        use(server, monkeypatch)
        with pytest.raises(ModelError, match=r"worker reports/summarizer: .* could not be sent: .*surrogate"):
            await ask(request("\udc80"))
    assert server.requests == []
