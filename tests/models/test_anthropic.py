"""One turn through the real SDK against a real server on loopback: what is sent, what comes back."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import anyio
import anyio.to_thread
import pytest

from llm_do_mcp.errors import ModelError
from llm_do_mcp.models.anthropic import AnthropicModel
from llm_do_mcp.models.attachments import attachment
from llm_do_mcp.models.payload import SERVER_SIDE
from llm_do_mcp.models.turn import Reply, ToolSpec, Usage
from llm_do_mcp.project.settings import SERVER_SIDE_TOOLS
from tests.models.asking import MODEL, ask, reply_of, request, use
from tests.models.messages_server import MessagesServer, at_once, message, stall, text, tool_use

PDF = b"%PDF-1.4\n...\nstartxref\n9\n%%EOF\n"
PNG = b"\x89PNG\r\n\x1a\nrest"
SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "integer", "minimum": 1, "maximum": 5}},
    "required": ["score"],
}


@pytest.mark.proves("COMPAT-SERVER-SIDE")
def test_every_tool_of_the_provider_that_a_worker_can_name_is_known_to_its_api() -> None:
    assert set(SERVER_SIDE) == set(SERVER_SIDE_TOOLS)


@pytest.mark.anyio
@pytest.mark.proves("MODEL-TURN")
async def test_a_turn_is_asked_and_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = {"input_tokens": 11, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 3, "output_tokens": 4}
    with MessagesServer(message(text("Good morning."), usage=usage)) as server:
        use(server, monkeypatch)
        reply = await ask(request("Greet me"))
    assert reply == Reply(
        content=({"type": "text", "text": "Good morning."},),
        stop_reason="end_turn",
        usage=Usage(input_tokens=11, output_tokens=4, cache_read_tokens=7, cache_write_tokens=3),
        model=MODEL,
    )
    (received,) = server.requests
    assert received.path == "/v1/messages"
    assert received.headers["authorization"] == "Bearer sk-test"
    assert received.body == {
        "model": MODEL,
        "max_tokens": 32_000,
        "system": "Be brief.",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Greet me"}]}],
        "cache_control": {"type": "ephemeral"},
        "stream": True,
    }


@pytest.mark.anyio
@pytest.mark.proves("MODEL-PARALLEL-CALLS")
async def test_parallel_calls_come_in_order_and_are_sent_back_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    said = (
        {"type": "thinking", "thinking": "Three files, then.", "signature": "c2lnbmF0dXJl"},
        text("I read all three."),
        tool_use("read_file", {"path": "input/ä.txt"}, id="toolu_1"),
        tool_use("list_files", id="toolu_2"),
        tool_use("read_file", {"path": "input/b.txt", "nested": {"deep": [1, 2.5, None]}}, id="toolu_3"),
    )
    with MessagesServer(message(*said), message(text("Done."))) as server:
        use(server, monkeypatch)
        first = await ask(request())
        results = [{"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": f"file {n}"} for n in (1, 2, 3)]
        conversation = (
            *request().messages,
            {"role": "assistant", "content": list(first.content)},
            {"role": "user", "content": results},
        )
        await ask(request(messages=conversation))
    assert first.content == said
    assert first.stop_reason == "tool_use"
    assert server.requests[1].body["messages"][1] == {"role": "assistant", "content": list(said)}
    assert server.requests[1].body["messages"][2]["content"] == results


@pytest.mark.anyio
@pytest.mark.proves("MODEL-BLOCKS")
async def test_attachments_become_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    content = [
        {"type": "text", "text": "Read these."},
        attachment("pipeline/Müller Maschinen GmbH.pdf", PDF),
        attachment("pipeline/logo.png", PNG),
        attachment("pipeline/notes.md", "\ufeffEnough for 18 months".encode()),
    ]
    seen = {"type": "tool_result", "tool_use_id": "t", "content": [attachment("pipeline/chart.png", PNG)]}
    messages = ({"role": "user", "content": content}, {"role": "user", "content": [seen]})
    with MessagesServer(message(text("ok"))) as server:
        use(server, monkeypatch)
        await ask(request(messages=messages))
    sent = server.requests[0].body["messages"]
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjQKLi4uCnN0YXJ0eHJlZgo5CiUlRU9GCg=="}
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgpyZXN0"}}
    assert sent[0]["content"] == [
        {"type": "text", "text": "Read these."},
        {"type": "document", "title": "pipeline/Müller Maschinen GmbH.pdf", "source": pdf},
        image,
        {"type": "text", "text": "Attachment pipeline/notes.md:\n\nEnough for 18 months"},
    ]
    assert sent[1]["content"] == [{"type": "tool_result", "tool_use_id": "t", "content": [image]}]


@pytest.mark.anyio
@pytest.mark.proves("MODEL-CAPABILITIES")
async def test_a_document_is_never_sent_to_a_model_that_would_drop_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = request(messages=({"role": "user", "content": [attachment("pipeline/deck.pdf", PDF)]},))
    with MessagesServer(message(text("ok"))) as server:
        use(server, monkeypatch)
        with pytest.raises(
            ModelError, match=r"pipeline/deck\.pdf was not sent.*known to take documents, and .*project\.yaml"
        ):
            await ask(asked, model="gemma3")
        assert server.requests == []
        await ask(asked, model="gemma3", capabilities={"gemma*": {"documents": True}})
    assert server.requests[0].body["messages"][0]["content"][0]["type"] == "document"


@pytest.mark.anyio
@pytest.mark.proves("MODEL-SCHEMAS")
async def test_schemas_go_as_grammars_where_they_can(monkeypatch: pytest.MonkeyPatch) -> None:
    free_form = {"type": "object", "additionalProperties": {"type": "string"}}
    tools = (
        ToolSpec("score", "Scores.", SCHEMA, strict=True),
        ToolSpec("tag", "Tags.", free_form, strict=True),
        ToolSpec("loose", "Not strict.", SCHEMA),
    )
    with MessagesServer(message(text('{"score": 3}'))) as server:
        use(server, monkeypatch)
        await ask(request(tools=tools, output_schema=SCHEMA))
        await ask(request(output_schema=free_form))
    first, second = (received.body for received in server.requests)
    grammar = {
        "type": "object",
        "properties": {"score": {"type": "integer", "description": "{minimum: 1, maximum: 5}"}},
        "required": ["score"],
        "additionalProperties": False,
    }
    assert first["output_config"] == {"format": {"type": "json_schema", "schema": grammar}}
    assert first["system"] == "Be brief."
    assert first["tools"] == [
        {"name": "score", "description": "Scores.", "input_schema": grammar, "strict": True},
        {"name": "tag", "description": "Tags.", "input_schema": free_form},
        {"name": "loose", "description": "Not strict.", "input_schema": SCHEMA},
    ]
    assert "output_config" not in second
    assert '"additionalProperties": {"type": "string"}' in second["system"]


@pytest.mark.anyio
@pytest.mark.proves("MODEL-CAPABILITIES", "MODEL-SCHEMAS")
async def test_a_model_that_is_not_claude_gets_the_schema_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    tools = (ToolSpec("score", "Scores.", SCHEMA, strict=True),)
    with MessagesServer(message(text('{"score": 3}'))) as server:
        use(server, monkeypatch)
        await ask(request(tools=tools, output_schema=SCHEMA), model="gemma3")
    body = server.requests[0].body
    assert body.keys() == {"model", "max_tokens", "messages", "system", "tools", "stream"}
    assert body["system"].startswith("Be brief.\n\nYour final answer is one JSON value")
    assert body["tools"] == [{"name": "score", "description": "Scores.", "input_schema": SCHEMA}]


@pytest.mark.anyio
@pytest.mark.proves("MODEL-OUTPUT-TOKENS", "MODEL-CAPABILITIES")
@pytest.mark.parametrize(
    ("model", "most"),
    [("claude-haiku-4-5", 32_000), ("claude-opus-5-5", 128_000), ("gemma3", 8192), ("qwen3", 500)],
)
async def test_a_reply_may_be_as_long_as_the_model_or_the_project_lets_it(
    monkeypatch: pytest.MonkeyPatch, model: str, most: int
) -> None:
    given = {"claude-opus-*": {"max_output_tokens": 128_000}, "anthropic:qwen*": {"max_output_tokens": 500}}
    with MessagesServer(message(text("ok"))) as server:
        use(server, monkeypatch)
        await ask(request(), model=model, capabilities=given)
    assert server.requests[0].body["max_tokens"] == most


@pytest.mark.anyio
@pytest.mark.proves("MODEL-EMPTY")
async def test_an_empty_reply_does_not_spoil_the_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    with MessagesServer(message(), message(text("")), message(text(" \n")), message(text("ok"))) as server:
        use(server, monkeypatch)
        said = [list((await ask(request())).content) for _ in range(3)]
        conversation: list[dict[str, Any]] = []
        for content in said:
            conversation += [{"role": "user", "content": "Go on."}, {"role": "assistant", "content": content}]
        await ask(request(messages=tuple(conversation), system=" "))
    assert said == [[], [text("")], [text(" \n")]]
    assert server.requests[3].body["messages"] == [{"role": "user", "content": "Go on."}] * 3
    assert "system" not in server.requests[3].body


@pytest.mark.anyio
@pytest.mark.proves("MODEL-UNUSUAL")
async def test_a_bare_message_of_a_local_server_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    call = tool_use("bump", {"by": 3}, id="t1")
    nulls = {"type": "text", "text": None}, {**call, "id": "t2", "input": None}
    with MessagesServer(at_once(call, *nulls)) as server:
        use(server, monkeypatch)
        reply = await ask(request(), model="gemma3")
    assert reply.content == (call, text(""), tool_use("bump", {}, id="t2"))
    assert (reply.stop_reason, reply.usage) == ("tool_use", Usage())
    assert len(server.requests) == 1


@pytest.mark.anyio
@pytest.mark.proves("MODEL-UNUSUAL")
async def test_whole_numbers_are_counts_however_they_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = {"input_tokens": 2.0, "output_tokens": None, "cache_read_input_tokens": None}
    with MessagesServer(message(text("ok"), usage=usage)) as server:
        use(server, monkeypatch)
        took = (await ask(request())).usage
    assert (took.input_tokens, type(took.input_tokens)) == (2, int)
    assert took.output_tokens == 1, "as it was at the start"


@pytest.mark.anyio
@pytest.mark.proves("MODEL-UNUSUAL")
async def test_half_of_a_surrogate_pair_comes_through_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    half, written = "a\ud800b", "a\\ud800b"
    with MessagesServer(message(text(half), tool_use("write_file", {half: [half]}, id="t1"))) as server:
        use(server, monkeypatch)
        reply = await ask(request())
    assert reply.content == (text(written), tool_use("write_file", {written: [written]}, id="t1"))


@pytest.mark.anyio
@pytest.mark.proves("MODEL-TRUNCATED")
async def test_a_truncated_reply_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    half = {
        "type": "tool_use",
        "id": "toolu_1",
        "name": "write_file",
        "input": '{"path": "out/a.md", "content": "The beg',
    }
    with MessagesServer(message(text("I write."), half, stop_reason="max_tokens")) as server:
        use(server, monkeypatch)
        reply = await ask(request())
    assert reply.stop_reason == "max_tokens"
    assert reply.content[0] == text("I write.")
    assert len(server.requests) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("stop_reason", ["refusal", "pause_turn", "model_context_window_exceeded"])
@pytest.mark.proves("MODEL-TRUNCATED")
async def test_other_stop_reasons_come_through(monkeypatch: pytest.MonkeyPatch, stop_reason: str) -> None:
    with MessagesServer(message(text("I"), stop_reason=stop_reason)) as server:
        use(server, monkeypatch)
        reply = await ask(request())
    assert reply.stop_reason == stop_reason


@pytest.mark.anyio
@pytest.mark.proves("MODEL-CONCURRENT")
async def test_one_model_answers_many_workers_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    replies: dict[str, str] = {}

    with MessagesServer(respond=lambda body: message(text(body["messages"][0]["content"][0]["text"]))) as server:
        use(server, monkeypatch)
        model = AnthropicModel(MODEL)

        async def ask_for(word: str) -> None:
            replies[word] = (await reply_of(model, request(word))).content[0]["text"]

        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(ask_for, f"word {number}")
        await model.aclose()
    assert len(replies) == 20
    assert all(asked == answered for asked, answered in replies.items())


@pytest.mark.anyio
@pytest.mark.proves("MODEL-CANCEL")
async def test_a_cancelled_turn_hangs_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with MessagesServer(stall) as server, anyio.fail_after(5):
        use(server, monkeypatch)
        model = AnthropicModel(MODEL)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reply_of, model, request())
            await anyio.to_thread.run_sync(server.stalled.wait, 5)
            tasks.cancel_scope.cancel()
        assert await anyio.to_thread.run_sync(server.hung_up.wait, 5)
        await model.aclose()


@pytest.mark.proves("MODEL-LAZY")
def test_opening_a_model_does_not_import_the_sdk() -> None:
    program = (
        "import sys\n"
        "from llm_do_mcp.models.select import open_model\n"
        "model = open_model('anthropic:claude-haiku-4-5', project_root='.', toolhost=None, records=None, sample=None)\n"
        "print(model.name, model.calls_model, 'anthropic' in sys.modules, 'httpx2' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["anthropic:claude-haiku-4-5", "True", "False", "False"]
