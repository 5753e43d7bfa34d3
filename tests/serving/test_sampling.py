"""Workers whose turns the model of the MCP client answers, with the SDK's own client in both protocol eras."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitResult,
    ErrorData,
    ImageContent,
    SamplingCapability,
    SamplingToolsCapability,
    TextContent,
    ToolUseContent,
)

from tests.serving.clients import (
    ERAS,
    FILES,
    HANDSHAKE,
    MODERN,
    PATIENCE_S,
    Person,
    account,
    decide,
    served,
    shop,
    text,
    texts,
    worker,
)

pytestmark = pytest.mark.anyio

WITH_TOOLS = SamplingCapability(tools=SamplingToolsCapability())
Said = CreateMessageResult | CreateMessageResultWithTools | ErrorData


class Lender:
    """A client's model: gives these replies in order, the last one again and again."""

    def __init__(self, *replies: Said) -> None:
        self._replies = replies
        self.asked: list[CreateMessageRequestParams] = []

    async def __call__(self, _: Any, params: CreateMessageRequestParams) -> Said:
        self.asked.append(params)
        return self._replies[min(len(self.asked), len(self._replies)) - 1]


def says(words: str, **more: Any) -> CreateMessageResult:
    block = TextContent(type="text", text=words)
    return CreateMessageResult(**{"role": "assistant", "content": block, "model": "lent-1", **more})


def calls(name: str, given: dict[str, Any], *, id: str = "c1", **more: Any) -> CreateMessageResultWithTools:
    use = ToolUseContent(type="tool_use", id=id, name=name, input=given)
    content = [TextContent(type="text", text="So."), use]
    return CreateMessageResultWithTools(
        **{"role": "assistant", "content": content, "model": "lent-1", "stop_reason": "toolUse", **more}
    )


def lent(root: Path, keys: dict[str, Any] | None = None, model: Any = "sampling", **manifest: Any) -> Path:
    files = {"main.worker": worker({"toolsets": FILES} if keys is None else keys, "Be brief.")}
    return shop(root, files=files, model=model, **manifest)


def client(
    server: Any, mode: str, lender: Callable[..., Any] | None, person: Person | None = None, tools: bool = True
) -> Client:
    return Client(
        server,
        mode=mode,
        sampling_callback=lender,
        sampling_capabilities=WITH_TOOLS if tools and lender else None,
        elicitation_callback=person,
        read_timeout_seconds=PATIENCE_S,
    )


@pytest.mark.proves("SAMPLING-TURNS")
@pytest.mark.parametrize("mode", ERAS)
async def test_a_worker_runs_on_the_clients_model_with_tools_and_questions(tmp_path: Path, mode: str) -> None:
    lender = Lender(
        calls("read_file", {"path": "in/stock.txt"}),
        calls("write_file", {"path": "out/a.md", "content": "pears"}, id="c2"),
        says("Three pears."),
    )
    person = Person(decide("once"))
    async with served(lent(tmp_path, model="sampling:haiku")) as server, client(server, mode, lender, person) as asking:
        result = await asking.call_tool("shop", {"input": "How many?"})
    assert not result.is_error, texts(result)
    assert text(result) == "Three pears."
    assert (tmp_path / "out" / "a.md").read_text() == "pears"
    assert (account(result)["models"], account(result)["cost"]) == (["sampling:haiku (lent-1)"], None)
    first, second, _ = lender.asked
    assert (first.system_prompt or "").strip() == "Be brief."
    assert first.model_preferences is not None and first.model_preferences.hints is not None
    assert [wish.name for wish in first.model_preferences.hints] == ["haiku"]
    assert {tool.name for tool in first.tools or ()} == {"list_files", "read_file", "write_file"}
    assert [message.role for message in second.messages] == ["user", "assistant", "user"]
    (told,) = second.messages[-1].content_as_list
    assert told.type == "tool_result" and told.tool_use_id == "c1"
    assert told.content[0] == TextContent(type="text", text="three pears\n")


@pytest.mark.proves("SAMPLING-TURNS")
@pytest.mark.parametrize("mode", ERAS)
async def test_a_repair_turn_and_results_are_messages_of_their_own(tmp_path: Path, mode: str) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    lender = Lender(says("three"), says('{"n": 3}'))
    root = lent(tmp_path, {"output_schema": schema})
    async with served(root) as server, client(server, mode, lender, tools=False) as asking:
        result = await asking.call_tool("shop", {"input": "How many?"})
    assert result.structured_content == {"n": 3}
    assert '"required": ["n"]' in (lender.asked[0].system_prompt or "")
    assert lender.asked[0].tools is None


@pytest.mark.proves("A074")
@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize(
    ("reply", "says_so"),
    [
        (says("x", content=ImageContent(type="image", data="aGk=", mime_type="image/png")), "answered with image"),
        (says("x", role="user"), "answered as user"),
        (calls("read_file", {}, id=""), "answered with a call without an id of its own"),
    ],
    ids=["an image", "as a user", "no id"],
)
async def test_an_answer_that_is_no_turn_is_refused(tmp_path: Path, mode: str, reply: Said, says_so: str) -> None:
    async with served(lent(tmp_path)) as server, client(server, mode, Lender(reply)) as asking:
        result = await asking.call_tool("shop", {"input": "How many?"})
    assert result.is_error
    assert text(result).startswith("worker main: model sampling: the client ") and says_so in text(result)


@pytest.mark.proves("A074", "SAMPLING-TURNS")
@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("keys", [None, {}], ids=["with tools", "without tools"])
async def test_an_array_of_blocks_is_one_turn(tmp_path: Path, mode: str, keys: dict[str, Any] | None) -> None:
    parts = [TextContent(type="text", text="Three "), TextContent(type="text", text="pears.")]
    whole = CreateMessageResultWithTools(role="assistant", content=parts, model="other\x1b[31m", stop_reason=None)
    async with served(lent(tmp_path, keys)) as server, client(server, mode, Lender(whole)) as asking:
        result = await asking.call_tool("shop", {"input": "How many?"})
    assert text(result) == "Three pears."
    assert account(result)["models"] == ["sampling (other\\x1b[31m)"], "another model is told of, escaped"


@pytest.mark.proves("A074", "WORKER-TRUNCATED")
async def test_what_bounds_a_reply_of_the_clients_model_is_said(tmp_path: Path) -> None:
    cut = Lender(says("Three", stop_reason="maxTokens"))
    async with served(lent(tmp_path)) as server, client(server, HANDSHAKE, cut) as asking:
        result = await asking.call_tool("shop", {"input": "How many?"})
    assert result.is_error
    assert "longer than one may be (8192 tokens where the client's model answers)" in text(result)


@pytest.mark.proves("A074")
@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize(
    ("lender", "keys", "words"),
    [
        (None, {}, "this client lends no model (it has no sampling)"),
        (Lender(says("x")), {"toolsets": FILES}, "this client's model cannot be given tools, and the worker has some"),
        (Lender(says("x")), {"server_side_tools": [{"tool_type": "web_search"}]}, "has no server_side_tools"),
    ],
    ids=["no sampling", "no tools", "server-side tools"],
)
async def test_a_client_that_cannot_answer_is_not_asked(
    tmp_path: Path, mode: str, lender: Lender | None, keys: dict[str, Any], words: str
) -> None:
    root = shop(tmp_path, files={"main.worker": worker(keys)}, model="sampling")
    async with served(root) as server, client(server, mode, lender, tools=False) as asking:
        result = await asking.call_tool("shop", {"input": "How many?"})
    assert result.is_error and words in text(result)
    assert text(result).startswith("worker main: model sampling: ")
    assert lender is None or lender.asked == []


@pytest.mark.proves("A074", "WORKER-FALLBACK")
async def test_after_a_client_that_declines_the_next_model_of_the_chain_answers(tmp_path: Path) -> None:
    declines = Lender(ErrorData(code=-1, message="User rejected sampling request"))
    root = lent(tmp_path)
    async with served(root) as server, client(server, HANDSHAKE, declines) as asking:
        result = await asking.call_tool("shop", {"input": "How many?"})
    assert "the client did not answer: User rejected sampling request" in text(result)
    chain = lent(tmp_path, model=["sampling", "scripted:model.py"])
    async with served(chain) as server, client(server, HANDSHAKE, declines) as asking:
        result = await asking.call_tool("shop", {"input": "How many?"})
    assert not result.is_error
    assert account(result)["models"] == ["scripted:model.py"]


@pytest.mark.proves("SAMPLING-ROUNDS")
async def test_more_turns_than_a_call_can_carry_are_gone_on_with_by_run_wait(tmp_path: Path) -> None:
    turns = [calls("list_files", {"path": "in", "pattern": f"{n}*"}, id=f"c{n}") for n in range(11)]
    lender = Lender(*turns, says("done"))
    async with served(lent(tmp_path)) as server, client(server, MODERN, lender) as asking:
        cut = await asking.call_tool("shop", {"input": "Look a lot."})
        assert cut.is_error
        run = account(cut)["id"]
        assert text(cut).startswith(f"run {run} waits for more answers (1 now) than one call can carry.")
        result = await asking.call_tool("run_wait", {"run_id": run})
    assert (result.is_error, text(result)) == (False, "done")
    assert len(lender.asked) == 12


@pytest.mark.proves("SAMPLING-TURNS", "CANCEL-TREE")
async def test_a_client_hears_that_its_answer_is_no_longer_wanted(tmp_path: Path) -> None:
    begun, withdrawn = anyio.Event(), anyio.Event()

    async def slow(_: Any, params: CreateMessageRequestParams) -> Said:
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            withdrawn.set()
        raise AssertionError

    async with (
        served(lent(tmp_path)) as server,
        client(server, HANDSHAKE, slow) as asking,
        anyio.create_task_group() as group,
    ):
        with anyio.fail_after(PATIENCE_S, shield=True):
            group.start_soon(asking.call_tool, "shop", {"input": "How many?"})
            await begun.wait()
            group.cancel_scope.cancel()
            await withdrawn.wait()


@pytest.mark.proves("SAMPLING-TURNS")
@pytest.mark.parametrize("mode", ERAS)
async def test_sub_workers_are_sampled_beside_each_other(tmp_path: Path, mode: str) -> None:
    class Both(Lender):
        async def __call__(self, _: Any, params: CreateMessageRequestParams) -> Said:
            self.asked.append(params)
            told = (params.system_prompt or "").strip()
            if told != "Be brief.":
                return says(f"I am {told}")
            blocks = [block for message in params.messages for block in message.content_as_list]
            results = [block for block in blocks if block.type == "tool_result"]
            if results:
                return says(json.dumps([block.content[0].text for block in results]))  # type: ignore[union-attr]
            uses = [
                ToolUseContent(type="tool_use", id=name, name="worker_call", input={"worker": name})
                for name in ("a", "b")
            ]
            return CreateMessageResultWithTools(role="assistant", content=uses, model="m", stop_reason="toolUse")

    root = lent(tmp_path, {"allow_workers": ["a", "b"]})
    for name in ("a", "b"):
        (root / "workers").mkdir(exist_ok=True)
        (root / "workers" / f"{name}.worker").write_text(worker({}, name.upper()))
    lender = Both()
    async with served(root) as server, client(server, mode, lender) as asking:
        result = await asking.call_tool("shop", {"input": "go"})
    assert json.loads(text(result)) == ["I am A", "I am B"]


@pytest.mark.proves("SAMPLING-TURNS")
async def test_questions_and_turns_share_a_round(tmp_path: Path) -> None:
    """One sub-worker is sampled while another waits for approval: nothing is lost, whichever comes first."""
    lender = Lender(says("sampled"))
    person = Person(ElicitResult(action="accept", content={"decision": "once"}))
    files = {
        "main.worker": worker({"allow_workers": ["a", "b"], "model": "scripted:model.py"}),
        "workers/a.worker": worker({"model": "sampling"}),
        "workers/b.worker": worker({"model": "scripted:model.py", "toolsets": FILES}),
        "turns.json": json.dumps(
            {
                "main": [
                    {"tool_calls": [{"name": "worker_call", "input": {"worker": name}} for name in ("a", "b")]},
                ],
                "b": [{"tool_calls": [{"name": "write_file", "input": {"path": "out/b.md", "content": "b"}}]}],
            }
        ),
    }
    async with served(shop(tmp_path, files=files)) as server, client(server, MODERN, lender, person) as asking:
        result = await asking.call_tool("shop", {"input": "go"})
    assert not result.is_error, texts(result)
    assert text(result).startswith("sampled\n")
    assert (tmp_path / "out" / "b.md").read_text() == "b"
