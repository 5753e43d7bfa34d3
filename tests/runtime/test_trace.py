"""The record as a tree: everything that happened, in its place, with what became of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llm_do_mcp.runtime.question import Answer, Question
from llm_do_mcp.runtime.store import Event, RunRow
from llm_do_mcp.runtime.trace import CHARS, Item, Trace, trace
from tests.project.conftest import worker
from tests.runtime.driving import asked
from tests.runtime.workshop import MAIN, Workshop, calling

TOOLS = """
from llm_do_mcp import tool, ToolContext


@tool(risk="read")
def both(context: ToolContext) -> str:
    "Calls two others."
    return context.call("read_file", {"path": "in/notes.md"}) + context.call("helper", "hello")


@tool
def hang() -> str:
    "Does not end."
    import threading

    threading.Event().wait()
"""
FILES = {
    "main.worker": worker(MAIN.replace("toolsets:", "toolsets:\n  custom: all")),
    "workers/helper.worker": worker(MAIN, "Helps."),
    "tools.py": TOOLS,
    "m.yaml": json.dumps(
        {
            "workers": {
                "main": [
                    {
                        "text": "I look.",
                        "tool_calls": [
                            {"name": "read_file", "input": {"path": "in/none.md"}},
                            {"name": "both", "input": {}},
                            {"name": "write_file", "input": {"path": "out/yes.md", "content": "y" * 5000}},
                            {"name": "write_file", "input": {"path": "out/no.md", "content": "n"}},
                            {"name": "nonesuch", "input": {"x": 1}},
                        ],
                        "usage": {"input_tokens": 100, "output_tokens": 20},
                    },
                    "done",
                ],
                "helper": ["helped"],
            }
        }
    ),
}


def decide(question: Question) -> Answer:
    return Answer("deny" if question.target == "out/no.md" else "once", note="enough", by="terminal")


async def traced(made: Workshop, run: str, **options: Any) -> Trace:
    row = await made.engine.store.get(run)
    assert row is not None
    return trace(row, await made.engine.store.events(run), **{"driven": False, "now": row.updated, **options})


def shape(items: tuple[Item, ...]) -> list[Any]:
    return [(item.name, item.state, *([shape(item.children)] if item.children else [])) for item in items]


@pytest.mark.anyio
@pytest.mark.proves("TRACE-TREE")
async def test_workers_turns_calls_and_questions_are_in_their_places(tmp_path: Path) -> None:
    async with Workshop(tmp_path, FILES, model="scripted:m.yaml") as made:
        done = await made.run("go", decide)
        found = await traced(made, done.run)
    (root,) = found.items
    assert (root.kind, root.name, root.state) == ("worker", "main", "done")
    assert root.facts["input"] == "go" and root.facts["output"] == "done"
    first, second = root.children
    assert (first.kind, first.facts["text"], first.facts["input_tokens"]) == ("turn", "I look.", 100)
    assert second.facts["text"] == "done"
    calls = {item.key.rpartition(".")[2]: item for item in first.children}
    assert shape(tuple(calls[str(index)] for index in range(5))) == [
        ("files.read", "failed"),
        ("custom.both", "done", [("files.read", "done"), ("helper", "done", [("model", "done")])]),
        ("files.write", "done", [("create the file", "done")]),
        ("files.write", "refused", [("create the file", "refused")]),
        ("nonesuch", "not_made"),
    ]
    assert calls["0"].facts["error"].startswith("in/none.md: ")
    assert calls["3"].facts["arguments"] == '{"path": "out/no.md", "content": "n"}'
    assert calls["4"].facts["arguments"] == '{"x": 1}'
    assert calls["1"].children[1].kind == "worker"
    assert all(item.ended is not None and item.started <= item.ended for _, item in found.walk())
    assert len({item.key for _, item in found.walk()}) == len(list(found.walk()))


@pytest.mark.anyio
@pytest.mark.proves("TRACE-FACTS")
async def test_questions_files_failures_and_tokens_are_told(tmp_path: Path) -> None:
    async with Workshop(tmp_path, FILES, model="scripted:m.yaml") as made:
        done = await made.run("go", decide)
        found = await traced(made, done.run)
    asked_ = {item.facts["target"]: item for item in found.questions()}
    assert set(asked_) == {"out/yes.md", "out/no.md"}
    assert {(asked_[path].facts["decision"], asked_[path].facts["by"]) for path in asked_} == {
        ("once", "terminal"),
        ("deny", "terminal"),
    }
    assert asked_["out/no.md"].facts["note"] == "enough"
    assert "+" + "n" in asked_["out/no.md"].facts["detail"]
    longest = max((item.ended or 0) - item.started for item in asked_.values())
    assert longest <= found.person_s <= found.until - found.started
    assert found.account["files_changed"] == ["out/yes.md"]
    assert found.account["tokens"] == {"input": 100, "output": 20}
    assert found.turns() == 3
    plain = found.to_json()
    assert json.loads(json.dumps(plain)) == json.loads(json.dumps(plain))
    assert plain["failures"] == [found.of("failed")[0].key]
    assert plain["refused"] and plain["in_doubt"] == []
    (write,) = (item for _, item in found.walk() if item.name == "files.write" and item.state == "done")
    assert write.facts["arguments"].endswith(" more characters)") and len(write.facts["arguments"]) < CHARS + 50


@pytest.mark.anyio
@pytest.mark.proves("TRACE-UNFINISHED")
async def test_what_was_cut_short_is_told_apart_by_what_it_may_have_done(tmp_path: Path) -> None:
    async with Workshop(tmp_path, {**FILES, "m.yaml": ""}) as made:
        run = await made.start(calling(("hang", {}), ("write_file", {"path": "out/a.md", "content": "a"})))
        questions = {question.function: question for question in await asked(made.engine, run, gather=5)}
        working = await traced(made, run, driven=True)
        assert {item.state for item in working.questions()} == {"waiting"}
        await made.engine.answer(run, questions["custom.hang"].key, Answer("once", by="client"))
        while not any(event.kind == "custom.hang" for event in await made.engine.store.events(run)):
            await made.engine.advance(run, seen=[questions["files.write"].key], timeout=0.01)
        working = await traced(made, run, driven=True)
        assert [item.name for item in working.of("running")] == ["main", "custom.hang"]
    async with Workshop(tmp_path, {**FILES, "m.yaml": ""}) as later:
        left = await traced(later, run)
    assert [item.name for item in left.of("in_doubt")] == ["custom.hang"]
    assert [item.name for item in left.of("unfinished")] == ["main"]
    assert [item.name for item in left.of("waiting")] == ["files.write", "create the file"]


@pytest.mark.proves("TRACE-UNFINISHED")
@pytest.mark.parametrize("events", [[], [Event("call", "files.read", "", "started", None, 5.0)]])
def test_a_record_that_ends_at_once_is_a_trace(events: list[Event]) -> None:
    row = RunRow("r", None, "main", "failed", {"output": None, "error": "gone"}, "", 1, 5.0, 6.0)
    found = trace(row, events, driven=False, now=9.0)
    assert (found.error, found.until, len(found.items)) == ("gone", 6.0, len(events))


@pytest.mark.proves("TRACE-FACTS")
def test_time_in_which_two_questions_waited_counts_once() -> None:
    data = {
        "question": {
            "kind": "approval",
            "function": "f",
            "target": "",
            "chain": [],
            "detail": "",
            "action": "a",
        },
        "answer": {"decision": "once", "silence": None, "by": "x", "note": ""},
    }
    spans = [(10.0, 14.0), (12.0, 16.0), (20.0, 21.0)]
    events = [Event(f"t0.{i}.ok", "ask", "", "answered", data, *span) for i, span in enumerate(spans)]
    row = RunRow("r", None, "main", "done", None, "", 1, 9.0, 30.0)
    assert trace(row, events, driven=False, now=30.0).person_s == 7.0
