"""Tool code that was edited while its run lay still: what has an effect is asked about, never just done."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from llm_do_mcp.runtime.engine import Asks, Done
from llm_do_mcp.runtime.question import Answer, Question
from tests.project.conftest import worker
from tests.runtime.driving import asked, finished
from tests.runtime.test_worker import call
from tests.runtime.workshop import MAIN, Workshop, approve, refuse

pytestmark = pytest.mark.anyio

TOOLS = """
import time

from llm_do_mcp import tool


def _note(what):
    with open("effects.txt", "a") as file:
        file.write(what + "\\n")


@tool
def record(what: str) -> str:
    _note("old " + what)
    return "old"


@tool
def stuck(what: str) -> str:
    _note("old " + what)
    open("begun", "w").close()
    time.sleep(1000)
    return "old"


@tool(risk="read")
def look(what: str) -> str:
    return "old look"
"""
EDITED = TOOLS.replace("old", "new").replace("time.sleep(1000)", "pass")
RISKIER = EDITED.replace('@tool(risk="read")', "@tool").replace(
    'return "new look"', '_note("new look")\n    return "x"'
)
GONE = EDITED.replace("def record", "def another")
BROKEN = "import nowhere_to_be_found"
KEYS = f"{MAIN}approvals: [{{function: custom.*, decision: allow}}]\n".replace(
    "delegation:", "custom: all\n  delegation:"
)
ASKING = KEYS.replace("decision: allow", "decision: ask")
FIRST = call("write_file", path="out/a.md", content="x")
"""Asked about: here the run is left."""


SCRIPT = """
import json
from pathlib import Path


def reply(request):
    turns = json.loads(Path("turns.json").read_text())
    if request["turn"] < len(turns):
        return turns[request["turn"]]
    return request["messages"][-1]["content"][0]["content"]
"""
"""Says in the end what the last call gave."""


def project(tools: str, then: Any, keys: str = KEYS) -> dict[str, str]:
    files = {"main.worker": worker(keys), "turns.json": json.dumps([FIRST, then])}
    return {**files, "script.py": SCRIPT, "tools.py": tools}


def effects(root: Path) -> list[str]:
    path = root / "effects.txt"
    return path.read_text().splitlines() if path.exists() else []


async def left(root: Path, then: Any, keys: str = KEYS) -> str:
    """A run that was left at its first question, before it came to call a tool of the code that was."""
    async with Workshop(root, project(TOOLS, then, keys)) as shop:
        run = await shop.start()
        await asked(shop.engine, run)
    return run


async def left_at_the_tool(root: Path) -> tuple[str, Question]:
    """A run that was left when it asked about the call of a tool of the code that was, and that question."""
    async with Workshop(root, project(TOOLS, RECORD, ASKING)) as shop:
        run = await shop.start()
        (write,) = await asked(shop.engine, run)
        await shop.engine.answer(run, write.key, approve(write))
        (question,) = await asked(shop.engine, run)
    return run, question


async def resumed(
    root: Path, run: str, tools: str, then: Any, decide: Any, keys: str = KEYS
) -> tuple[Done, list[Question]]:
    """How it ends with other code, and what it asked besides the write."""
    questions: list[Question] = []

    def deciding(question: Question) -> Answer:
        if question.function == "files.write":
            return approve(question)
        questions.append(question)
        answer: Answer = decide(question)
        return answer

    async with Workshop(root, project(tools, then, keys)) as shop:
        await shop.engine.resume(run)
        return await finished(shop.engine, run, deciding), questions


RECORD = call("record", what="x")


@pytest.mark.proves("CODE-CHANGED", "A102")
@pytest.mark.parametrize(
    ("decide", "output", "happened"),
    [(approve, "new", ["new x"]), (refuse, "custom.record was not run: the person refused it", [])],
)
async def test_an_effect_that_policy_allows_is_asked_about_when_its_code_is_another(
    tmp_path: Path, decide: Any, output: str, happened: list[str]
) -> None:
    run = await left(tmp_path, RECORD)
    done, (question,) = await resumed(tmp_path, run, EDITED, RECORD, decide)
    assert (done.output, effects(tmp_path)) == (output, happened)
    said = r"The code behind it has been edited since this run began: sha256 ([0-9a-f]{12}) then, ([0-9a-f]{12}) now"
    match = re.search(said, question.detail)
    assert match is not None and match[1] != match[2]
    assert question.function_code.startswith(match[2])


@pytest.mark.proves("CODE-CHANGED")
async def test_an_approval_that_was_given_for_other_code_does_not_count(tmp_path: Path) -> None:
    """The process ended between the approval and the call."""
    run, question = await left_at_the_tool(tmp_path)
    async with Workshop(tmp_path, project(TOOLS, RECORD, ASKING)) as shop:
        assert await shop.engine.answer(run, question.key, Answer("run", by="test"))  # the run is driven by nobody
    done, (again,) = await resumed(tmp_path, run, EDITED, RECORD, refuse, ASKING)
    assert again.key != question.key and again.function_code != question.function_code
    assert effects(tmp_path) == [] and done.status == "done"


@pytest.mark.proves("CODE-CHANGED")
async def test_a_question_about_the_code_that_was_is_taken_back(tmp_path: Path) -> None:
    run, question = await left_at_the_tool(tmp_path)
    async with Workshop(tmp_path, project(EDITED, RECORD, ASKING)) as shop:
        await shop.engine.resume(run)
        (again,) = await asked(shop.engine, run)
        assert [waiting.question.key for waiting in await shop.engine.waiting()] == [again.key]
        assert not await shop.engine.answer(run, question.key, Answer("once"))
        await shop.engine.answer(run, again.key, Answer("once"))
        done = await shop.engine.advance(run)
    assert isinstance(done, Done) and effects(tmp_path) == ["new x"]
    assert [one["decision"] for one in done.account["approvals"]] == ["once", "once"], "nothing is open, nor refused"


@pytest.mark.proves("CODE-CHANGED", "ASK-NOTE")
@pytest.mark.parametrize(("decision", "happened"), [("again", ["old x", "new x"]), ("done", ["old x"])])
async def test_an_effect_in_doubt_is_asked_about_with_the_difference(
    tmp_path: Path, decision: str, happened: list[str]
) -> None:
    then = call("stuck", what="x")
    async with Workshop(tmp_path, project(TOOLS, then)) as shop:
        run = await shop.start()
        (write,) = await asked(shop.engine, run)
        heard: list[str] = []
        with shop.engine.listening(run, heard.append):
            await shop.engine.answer(run, write.key, approve(write))
            while not (tmp_path / "begun").exists():
                assert not isinstance(await shop.engine.advance(run, timeout=0.02), Asks)
    done, (question,) = await resumed(
        tmp_path, run, EDITED, then, lambda _: Answer(decision, note="it is there", by="test")
    )
    assert done.output.endswith("\n(note of the person who was asked: it is there)"), "the worker is told"
    assert question.kind == "in_doubt" and "has been edited since this run began" in question.detail
    assert (done.status, effects(tmp_path)) == ("done", happened)


@pytest.mark.proves("CODE-CHANGED")
async def test_what_only_reads_is_read_with_the_code_that_is_there(tmp_path: Path) -> None:
    then = call("look", what="x")
    run = await left(tmp_path, then)
    done, questions = await resumed(tmp_path, run, EDITED, then, refuse)
    assert (done.output, questions) == ("new look", [])


@pytest.mark.proves("CODE-CHANGED")
async def test_what_used_to_read_only_and_now_has_an_effect_is_asked_about(tmp_path: Path) -> None:
    then = call("look", what="x")
    run = await left(tmp_path, then)
    _, (question,) = await resumed(tmp_path, run, RISKIER, then, refuse)
    assert "its risk was read, and is write" in question.detail
    assert effects(tmp_path) == []


@pytest.mark.proves("CODE-CHANGED")
@pytest.mark.parametrize(
    ("tools", "why"), [(GONE, "there is no tool 'record' in tools.py"), (BROKEN, "nowhere_to_be_found")]
)
async def test_what_is_no_longer_there_is_a_failure_and_nobody_is_asked(tmp_path: Path, tools: str, why: str) -> None:
    run = await left(tmp_path, RECORD)
    done, questions = await resumed(tmp_path, run, tools, RECORD, approve)
    assert (done.status, questions) == ("done", [])
    assert (
        done.output.startswith("record was not run. The code that this run began with is gone: ") and why in done.output
    )


@pytest.mark.proves("CODE-CHANGED")
async def test_code_that_is_as_it_was_is_not_asked_about(tmp_path: Path) -> None:
    run = await left(tmp_path, RECORD)
    done, questions = await resumed(tmp_path, run, TOOLS, RECORD, refuse)
    assert (done.output, questions, effects(tmp_path)) == ("old", [], ["old x"])
