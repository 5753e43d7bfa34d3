"""What a person was shown is what is done: what has changed meanwhile is asked again, and the same is asked once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llm_do_mcp.runtime.engine import Engine
from llm_do_mcp.runtime.gate import OUTDATED
from llm_do_mcp.runtime.question import Answer, Question
from tests.runtime.driving import asked, ended
from tests.runtime.workshop import MAIN, Workshop, approve, calling

pytestmark = pytest.mark.anyio

WRITE = ("write_file", {"path": "out/a.md", "content": "ours\n"})
THEIRS = "a person's\n"


def edit(path: Path) -> None:
    path.write_text(THEIRS)


def remove(path: Path) -> None:
    path.unlink()


@pytest.mark.proves("A085")
@pytest.mark.parametrize("decision", ["once", "run"])
@pytest.mark.parametrize(
    ("before", "change", "shown"),
    [
        ("old\n", edit, "-a person's\n+ours"),
        (None, edit, "-a person's\n+ours"),
        ("old\n", remove, "--- (no file)"),
    ],
    ids=["edited", "created", "removed"],
)
async def test_a_file_that_changed_since_it_was_shown_is_asked_about_again(
    tmp_path: Path, decision: str, before: str | None, change: Callable[[Path], None], shown: str
) -> None:
    file = tmp_path / "out" / "a.md"
    async with Workshop(tmp_path) as shop:
        if before is not None:
            file.parent.mkdir()
            file.write_text(before)
        run = await shop.start(calling(WRITE))
        (first,) = await asked(shop.engine, run)
        file.parent.mkdir(exist_ok=True)
        change(file)
        await shop.engine.answer(run, first.key, Answer(decision, by="client"))
        (again,) = await asked(shop.engine, run)
        assert again.key != first.key and again.digest == first.digest
        assert again.detail.startswith(OUTDATED) and shown in again.detail
        left = file.read_text() if file.exists() else None
        assert left == (THEIRS if change is edit else None), "nothing is done before the second answer"
        await shop.engine.answer(run, again.key, Answer("deny", by="client"))
        done, trace = await ended(shop.engine, run), await shop.engine.trace(run)
    assert trace is not None and trace.of("in_doubt") == []
    assert [item.name for item in trace.of("refused")] == ["files.write", "change the file"] or change is remove
    assert (file.read_text() if file.exists() else None) == left
    assert [one["decision"] for one in done.account["approvals"]] == [decision, "deny"]
    assert (done.account["calls"], done.account["files_changed"]) == (1, [])


@pytest.mark.proves("A085", "RUN-REPLAY")
@pytest.mark.parametrize("decision", ["once", "deny"])
async def test_the_second_answer_counts_after_a_crash_too(tmp_path: Path, decision: str) -> None:
    file = tmp_path / "out" / "a.md"
    async with Workshop(tmp_path) as shop:
        run = await shop.start(calling(WRITE))
        (first,) = await asked(shop.engine, run)
        edit(file)
        await shop.engine.aclose()
        # The first answer comes while nobody drives the run, the second before it is driven once more.
        shop.engine = Engine(tmp_path / ".llm-do", shop.bench.body)
        await shop.engine.answer(run, first.key, Answer("once", by="client"))
        await shop.engine.resume(run)
        (again,) = await asked(shop.engine, run)
        assert "-a person's" in again.detail
        await shop.engine.aclose()
        shop.engine = Engine(tmp_path / ".llm-do", shop.bench.body)
        assert await shop.engine.store.answer(run, again.key, vars(Answer(decision, by="client"))) is not None
        await shop.engine.resume(run)
        done = await ended(shop.engine, run)
    assert file.read_text() == ("ours\n" if decision == "once" else THEIRS)
    assert [one["decision"] for one in done.account["approvals"]] == ["once", decision]


@pytest.mark.proves("A085", "A100")
async def test_of_two_writes_to_one_file_the_second_is_shown_what_the_first_has_written(tmp_path: Path) -> None:
    writes = [("write_file", {"path": "out/a.md", "content": text}) for text in ("one\n", "two\n")]
    async with Workshop(tmp_path) as shop:
        run = await shop.start(calling(*writes))
        for question in await asked(shop.engine, run, gather=5):
            await shop.engine.answer(run, question.key, approve(question))
        (again,) = await asked(shop.engine, run)
        first, second = ("one", "two") if "-one" in again.detail else ("two", "one")
        assert f"-{first}\n+{second}" in again.detail
        await shop.engine.answer(run, again.key, approve(again))
        await ended(shop.engine, run)
    assert (tmp_path / "out" / "a.md").read_text() == f"{second}\n"


TOOLS = """
from llm_do_mcp import tool


@tool
def send(to: str) -> str:
    return to


@tool(idempotent=True)
def put(to: str) -> str:
    return to
"""


@pytest.mark.proves("A084")
@pytest.mark.parametrize(
    ("call", "questions"),
    [(WRITE, 1), (("put", {"to": "x"}), 1), (("send", {"to": "x"}), 5)],
    ids=["a write", "idempotent", "made five times"],
)
@pytest.mark.parametrize("decision", ["once", "deny"])
async def test_the_same_question_is_put_once_where_made_twice_is_as_made_once(
    tmp_path: Path, call: tuple[str, Any], questions: int, decision: str
) -> None:
    files = {
        "tools.py": TOOLS,
        "main.worker": f"---\n{MAIN}---\nThe main worker.".replace("{}", "{}\n  custom: all", 1),
    }
    put: list[Question] = []

    def decide(question: Question) -> Answer:
        put.append(question)
        return Answer(decision, by="client")

    async with Workshop(tmp_path, files) as shop:
        done = await shop.run(calling(*[call] * 5), decide, gather=20.0)  # until all five wait, as a front does
    assert len(put) == questions
    by = ["client"] * questions + ["the same question"] * (5 - questions)
    assert sorted(one["by"] for one in done.account["approvals"]) == by
    assert {one["decision"] for one in done.account["approvals"]} == {decision}
    assert done.account["calls"] == 1 + (5 if decision == "once" else 0), "the worker's, and each of them"
