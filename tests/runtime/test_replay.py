"""A recorded run in place of a model, in real runs of a real project."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from llm_do_mcp.project.load import load_project
from llm_do_mcp.runtime.engine import Done
from llm_do_mcp.runtime.question import Answer, Question
from llm_do_mcp.toolsets.workbench import Workbench
from tests.project.conftest import worker
from tests.runtime.driving import finished
from tests.runtime.workshop import MAIN, Workshop, approve

TURNS = {
    "main": [
        {"tool_calls": [{"name": "read_file", "input": {"path": "in/notes.md"}}]},
        {
            "tool_calls": [
                {"name": "worker_call", "input": {"worker": "helper", "input_data": "a"}},
                {"name": "worker_call", "input": {"worker": "helper", "input_data": "b"}},
                {"name": "write_file", "input": {"path": "out/a.md", "content": "text"}},
            ]
        },
        {"text": "all done", "usage": {"input_tokens": 30, "output_tokens": 4}},
    ],
    "helper": ["helped"],
}
FILES = {
    "main.worker": worker(MAIN),
    "workers/helper.worker": worker("compatible_models: ['scripted:*']", "Helps."),
    "m.yaml": json.dumps({"workers": TURNS}),
}


class Replayed(Workshop):
    """The same project, driven by what a run of it recorded."""

    def __init__(self, root: Path, run: str) -> None:
        kept = ("main.worker", "workers/helper.worker", "in/notes.md")
        super().__init__(root, {path: (root / path).read_text() for path in kept})
        self.bench = Workbench(load_project(root), model=f"replay:{run}")
        self.engine.body = self.bench.body


async def recorded(root: Path, given: str = "go", decide: Callable[[Question], Answer] = approve) -> Done:
    async with Workshop(root, FILES, model="scripted:m.yaml") as made:
        done = await made.run(given, decide)
    assert done.output == "all done", done.error
    # Whatever answers from here on, it is not the script.
    (root / "m.yaml").unlink()
    return done


async def replayed(root: Path, run: str, given: str = "go", decide: Callable[[Question], Answer] = approve) -> Done:
    async with Replayed(root, run) as made:
        return await finished(made.engine, await made.start(given), decide)


@pytest.mark.anyio
@pytest.mark.proves("REPLAY-ANSWERS")
async def test_a_replay_gives_the_same_for_the_whole_tree_and_calls_no_model(tmp_path: Path) -> None:
    first = await recorded(tmp_path)
    (tmp_path / "out" / "a.md").unlink()
    again = await replayed(tmp_path, first.run)
    assert (again.status, again.output) == ("done", "all done"), again.error
    assert again.account["models"] == [f"replay:{first.run}"]
    assert again.account["note"] == "no model was called"
    assert again.account["tokens"] == first.account["tokens"] == {"input": 30, "output": 4}
    assert again.account["calls"] == first.account["calls"]
    assert (tmp_path / "out" / "a.md").read_text() == "text"
    (tmp_path / "out" / "a.md").unlink()
    once_more = await replayed(tmp_path, again.run)
    assert once_more.output == "all done", "a replay can be replayed"


@pytest.mark.anyio
@pytest.mark.proves("REPLAY-DIFFERS")
@pytest.mark.parametrize(
    ("changed", "text", "words"),
    [
        ("in/notes.md", "four\n", "what files.read gave in turn 1: then 'three\\n', now 'four\\n'"),
        ("main.worker", worker(MAIN, "Another text."), "the instructions: then "),
        ("main.worker", worker(MAIN.replace("filesystem: {}", "te: {}")), "the functions: then 'list_files, read_file"),
    ],
)
async def test_another_request_stops_the_replay_and_shows_the_difference(
    tmp_path: Path, changed: str, text: str, words: str
) -> None:
    first = await recorded(tmp_path)
    (tmp_path / changed).write_text(text)
    again = await replayed(tmp_path, first.run)
    assert again.status == "failed"
    assert words in again.error
    assert f"something else is asked than in run {first.run}" in again.error and "\n" not in again.error


@pytest.mark.anyio
@pytest.mark.proves("REPLAY-DIFFERS")
async def test_another_input_is_named(tmp_path: Path) -> None:
    first = await recorded(tmp_path)
    again = await replayed(tmp_path, first.run, "stop")
    assert "the input: then '[\"go\"]', now '[\"stop\"]'" in again.error


def answering(decision: str, note: str = "") -> Callable[[Question], Answer]:
    """Decides every question so."""
    return lambda question: Answer(decision, note=note, by="client")


NOTED, PLAIN, REFUSED = answering("once", "well kept"), answering("once"), answering("deny")


@pytest.mark.anyio
@pytest.mark.proves("REPLAY-DIFFERS")
@pytest.mark.parametrize(
    ("then", "now", "words"),
    [
        (NOTED, PLAIN, ('"created": true}\\nwell kept\', now ', '"created": true}\'')),
        (PLAIN, NOTED, ('"created": true}\', now ', "asked: well kept)")),
        (PLAIN, REFUSED, ("what files.write gave in turn 2: then ", "now 'files.write out/a.md was not run")),
        (REFUSED, PLAIN, ('a call in turn 2: then it was not made (client), now \'{"path"',)),
    ],
)
async def test_another_answer_of_the_person_is_shown(
    tmp_path: Path,
    then: Callable[[Question], Answer],
    now: Callable[[Question], Answer],
    words: tuple[str, ...],
) -> None:
    first = await recorded(tmp_path, decide=then)
    (tmp_path / "out" / "a.md").unlink(missing_ok=True)
    again = await replayed(tmp_path, first.run, decide=now)
    assert again.status == "failed" and all(piece in again.error for piece in words), again.error
    (tmp_path / "out" / "a.md").unlink(missing_ok=True)
    assert (await replayed(tmp_path, first.run, decide=then)).output == "all done"


@pytest.mark.anyio
@pytest.mark.proves("REPLAY-DIFFERS")
async def test_what_a_run_has_not_recorded_cannot_be_replayed(tmp_path: Path) -> None:
    async with Workshop(tmp_path, FILES, model="scripted:m.yaml") as made:
        other = await made.run("x", name="helper")
    missing = await replayed(tmp_path, "nonesuch")
    assert "worker main: model replay:nonesuch: there is no run nonesuch; name one that" in missing.error
    shorter = await replayed(tmp_path, other.run)
    assert "something else is asked" in shorter.error or "has no turn" in shorter.error


@pytest.mark.anyio
@pytest.mark.proves("REPLAY-DIFFERS", "TRACE-FACTS")
async def test_a_turn_that_no_model_answered_is_none_to_replay(tmp_path: Path) -> None:
    async with Workshop(tmp_path, {**FILES, "m.yaml": "workers: {main: []}"}, model="scripted:m.yaml") as made:
        failed = await made.run("go")
    again = await replayed(tmp_path, failed.run)
    why = "the script cannot answer: turn 1 was asked for, and it has 0 for this worker"
    assert f"run {failed.run} got no answer to turn 1 either: worker main: model scripted:m.yaml: {why}" in again.error
