"""Scripts in place of a model: YAML turns, and Python that really runs in the tool host."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from llm_do_mcp.errors import ModelError
from llm_do_mcp.models.attachments import attachment
from llm_do_mcp.models.select import open_model
from llm_do_mcp.models.turn import Model, Reply, Request, ToolSpec, Usage
from llm_do_mcp.toolhost.client import ToolHost
from tests.models.asking import reply_of, request

PYTHON = """
import base64


def reply(request):
    block = request["messages"][-1]["content"][0]
    if block["type"] == "attachment":
        return "%s: %s" % (block["name"], base64.b64decode(block["data"]).decode())
    if request["tools"]:
        return {"tool_calls": [{"name": tool["name"], "input": {"turn": request["turn"]}} for tool in request["tools"]]}
    return {"text": request["worker"] + " was asked: " + block["text"]}


async def keys(request):
    return " ".join(sorted(request))


def endless(request):
    while True:
        pass


def broken(request):
    return {"answer": 42}


def raising(request):
    raise KeyError("deck")
"""

SCRIPT = """
workers:
  main:
    - text: I look.
      tool_calls: [{name: list_files, input: {path: input}}, {name: te}]
      usage: {input_tokens: 3, output_tokens: 2}
    - Done.
    - {text: "Half a", stop_reason: max_tokens}
  computed: {python: "scripted/model.py:reply"}
  keys: {python: "./scripted/model.py:keys"}
  endless: {python: "scripted/model.py:endless"}
  broken: {python: "scripted/model.py:broken"}
  raising: {python: "scripted/model.py:raising"}
  absent: {python: "scripted/model.py:absent"}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "scripted").mkdir(parents=True)
    (root / "scripted" / "model.yaml").write_text(SCRIPT, encoding="utf-8")
    (root / "scripted" / "model.py").write_text(PYTHON, encoding="utf-8")
    return root


@pytest.fixture
async def toolhost(project: Path) -> AsyncIterator[ToolHost]:
    host = ToolHost(str(project))
    yield host
    await host.aclose()


async def no_records(run: str) -> list[object]:
    return []


async def no_client(request: Request) -> Reply:
    raise AssertionError("a script asks no client")


def scripted(project: Path, toolhost: ToolHost, file: str = "scripted/model.yaml") -> Model:
    return open_model(
        f"scripted:{file}", project_root=str(project), toolhost=toolhost, records=no_records, sample=no_client
    )


async def answer(model: Model, worker: str, turn: int = 0, words: str = "Hello") -> Reply:
    return await reply_of(model, request(words, worker=worker, model=model.name, turn=turn))


async def failing(model: Model, worker: str, turn: int = 0, deadline: float | None = None) -> str:
    with anyio.fail_after(10), pytest.raises(ModelError) as caught:
        await reply_of(model, request(worker=worker, model=model.name, turn=turn), deadline=deadline)
    said = str(caught.value)
    assert "\n" not in said
    assert said.startswith(f"worker {worker}: model {model.name}: the script cannot answer: ")
    assert said.endswith("; correct the script")
    return said


@pytest.mark.anyio
@pytest.mark.proves("MODEL-SCRIPT")
async def test_a_script_answers_turn_by_turn(project: Path, toolhost: ToolHost) -> None:
    model = scripted(project, toolhost)
    assert (model.name, model.calls_model) == ("scripted:scripted/model.yaml", False)
    assert [await answer(model, "main", turn) for turn in range(3)] == [
        Reply(
            content=(
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "call_0_0", "name": "list_files", "input": {"path": "input"}},
                {"type": "tool_use", "id": "call_0_1", "name": "te", "input": {}},
            ),
            stop_reason="tool_use",
            usage=Usage(input_tokens=3, output_tokens=2),
            model="scripted:scripted/model.yaml",
        ),
        Reply(({"type": "text", "text": "Done."},), "end_turn", Usage(), "scripted:scripted/model.yaml"),
        Reply(({"type": "text", "text": "Half a"},), "max_tokens", Usage(), "scripted:scripted/model.yaml"),
    ]


@pytest.mark.anyio
@pytest.mark.proves("MODEL-SCRIPT")
async def test_python_answers_from_the_request(project: Path, toolhost: ToolHost) -> None:
    model = scripted(project, toolhost)
    assert (await answer(model, "computed", words="Why?")).content[0]["text"] == "computed was asked: Why?"
    deck = attachment("pipeline/Müller.txt", "Umsatz: 3 Mio. €".encode())
    with_deck = request(worker="computed", messages=({"role": "user", "content": [deck]},))
    assert (await reply_of(model, with_deck)).content[0]["text"] == "pipeline/Müller.txt: Umsatz: 3 Mio. €"
    tools = (ToolSpec("list_files", "Lists.", {"type": "object"}), ToolSpec("te", "Searches.", {"type": "object"}))
    calls = await reply_of(model, request(worker="computed", turn=4, tools=tools))
    assert calls.stop_reason == "tool_use"
    assert [(call["id"], call["name"], call["input"]) for call in calls.content] == [
        ("call_4_0", "list_files", {"turn": 4}),
        ("call_4_1", "te", {"turn": 4}),
    ]
    fields = "messages model output_schema server_side_tools system tools turn worker"
    assert (await answer(model, "keys")).content[0]["text"] == fields


@pytest.mark.anyio
@pytest.mark.proves("MODEL-SCRIPT")
async def test_a_python_file_answers_for_every_worker(project: Path, toolhost: ToolHost) -> None:
    model = scripted(project, toolhost, "scripted/model.py")
    assert (await answer(model, "anyone")).content[0]["text"] == "anyone was asked: Hello"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("worker", "turn", "says"),
    [
        ("main", 3, "turn 4 was asked for, and it has 3 for this worker"),
        ("nobody", 0, "it has no worker nobody; it has main, computed, "),
        ("broken", 0, "scripted/model.py:broken returned something else: a turn is a text, or a mapping of text"),
        ("raising", 0, "KeyError"),
        ("absent", 0, "absent"),
    ],
)
@pytest.mark.proves("MODEL-SCRIPT-ERRORS")
async def test_a_script_that_cannot_answer(
    project: Path, toolhost: ToolHost, worker: str, turn: int, says: str
) -> None:
    assert says in await failing(scripted(project, toolhost), worker, turn)


@pytest.mark.anyio
@pytest.mark.proves("MODEL-SCRIPT-ERRORS", "MODEL-DEADLINE")
async def test_an_endless_script_ends_at_the_deadline(project: Path, toolhost: ToolHost) -> None:
    model = scripted(project, toolhost)
    await answer(model, "computed")  # the tool host is up
    await failing(model, "endless", deadline=anyio.current_time() + 0.2)
    assert (await answer(model, "computed")).stop_reason == "end_turn"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("main: []", "model.yaml:1:1: a script has one key: workers"),
        ("workers: [main]", "model.yaml:1:1: a script has one key: workers"),
        ("workers:\n  main:\n    - Hi\n    - txt: Hi", "model.yaml:4:7: a turn is a text, or a mapping of text"),
        (
            "workers:\n  main:\n    - tool_calls: [{tool: te}]",
            "model.yaml:3:7: a tool call is {name: ..., input: {...}}",
        ),
        ("workers:\n  main:\n    - tool_calls: te", "model.yaml:3:7: tool_calls is a list of {name, input}"),
        ("workers:\n  main:\n    - {text: Hi, stop_reason: done}", "model.yaml:3:7: stop_reason is one of end_turn, "),
        ("workers:\n  main:\n    - {text: Hi, usage: {tokens: 1}}", "model.yaml:3:7: usage is a mapping of numbers"),
        ("workers:\n  main:\n    - {text: [Hi]}", "model.yaml:3:7: text is a text"),
        ("workers:\n  main: {python: model.py}", "model.yaml:2:9: a worker has a list of turns, or {python:"),
        ("workers:\n  main: {python: '../model.py:reply'}", "'..'"),
        ("workers: {", "model.yaml:"),
    ],
)
@pytest.mark.proves("MODEL-SCRIPT-ERRORS", "MODEL-COUNTS")
async def test_a_file_that_is_no_script(project: Path, toolhost: ToolHost, text: str, says: str) -> None:
    (project / "scripted" / "model.yaml").write_text(text, encoding="utf-8")
    assert says in await failing(scripted(project, toolhost), "main")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("scripted/none.yaml", "scripted/none.yaml: "),
        ("../secret.yaml", "'..'"),
        ("/etc/passwd", "not relative to the project"),
        ("scripted/none.py", "scripted/none.py"),
        ("../secret.py", "'..'"),
    ],
)
@pytest.mark.proves("MODEL-SCRIPT-ERRORS")
async def test_a_script_lies_in_the_project(project: Path, toolhost: ToolHost, file: str, says: str) -> None:
    (project.parent / "secret.yaml").write_text("workers: {main: [secret]}")
    (project.parent / "secret.py").write_text("def reply(request): return 'secret'")
    assert says in await failing(scripted(project, toolhost, file), "main")


@pytest.mark.parametrize(
    "name",
    [
        "",
        "claude-haiku-4-5",
        "openai:gpt",
        "anthropic:",
        "anthropic: ",
        "anthropic:a\n\x1b[31mb",
        "scripted:",
        "sampling:",
        "Anthropic:x",
    ],
)
@pytest.mark.proves("MODEL-NAMES")
def test_a_name_that_cannot_be_opened(name: str, project: Path) -> None:
    with pytest.raises(ModelError) as caught:
        open_model(
            name, project_root=str(project), toolhost=ToolHost(str(project)), records=no_records, sample=no_client
        )
    said = str(caught.value)
    assert said.startswith(f"model {name!r} cannot be opened; allowed: anthropic:<model>")
    assert said.endswith("scripted:<file>, replay:<run>, or sampling (the client's model)")
