"""A run as a journal: what is recorded is not done again, and what may have been done is asked about."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import math
import sqlite3
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llm_do_mcp.errors import FunctionFailed, RunError
from llm_do_mcp.runtime.engine import Asks, Working
from llm_do_mcp.runtime.limits import Limits
from llm_do_mcp.runtime.question import Answer
from llm_do_mcp.runtime.run import Run
from llm_do_mcp.runtime.tree import Leave
from tests.runtime.driving import asked, asking, define, definition, ended, engine, giving

pytestmark = pytest.mark.anyio

PLACES = 8
"""How many steps of a tree run at once."""


def recorded(folder: Path) -> list[tuple[str, str]]:
    """Keys and states as another process sees them now."""
    with sqlite3.connect(folder / "runs.sqlite3") as db:
        found = db.execute("SELECT key, state FROM event ORDER BY rowid").fetchall()
    db.close()
    return found


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """While the block runs, nothing can be written into the record."""
    db = sqlite3.connect(folder / "runs.sqlite3", isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        db.close()


@pytest.mark.proves("RUN-ASKED")
async def test_a_question_is_shown_when_it_is_recorded_and_no_sooner(tmp_path: Path) -> None:
    async def body(run: Run) -> Any:
        begun.set()
        await full.wait()
        return (await run.ask("ok", {}, asking())).decision

    begun, full = asyncio.Event(), asyncio.Event()
    async with engine(tmp_path, body) as driver:
        run = await driver.start("main", definition())
        await begun.wait()  # its definition is recorded
        with held(tmp_path):
            full.set()
            assert await driver.advance(run, timeout=0.2) == Working(run)
            assert driver.questions(run) == () and ("ok", "asked") not in recorded(tmp_path)
        (question,) = await asked(driver, run)
        assert ("ok", "asked") in recorded(tmp_path)
        await driver.answer(run, question.key, Answer("once"))
        assert (await ended(driver, run)).output == "once"


# ---- replay


@pytest.mark.proves("RUN-REPLAY")
async def test_what_a_run_has_done_is_not_done_again_when_it_goes_on(tmp_path: Path) -> None:
    done: list[Any] = []

    async def body(run: Run) -> Any:
        one = await run.step("one", "read", {}, giving(1, done), once=False)
        two = await run.step("two", "write", {}, giving(2, done), once=True, in_doubt=asking("in_doubt"))
        answer = await run.ask("ok", {}, asking())
        return [one, two, answer.decision, answer.note]

    async with engine(tmp_path, body) as first:
        run = await first.start("main", definition())
        await asked(first, run)
    async with engine(tmp_path, body) as second:
        await second.resume(run)
        (question,) = await asked(second, run)
        await second.answer(run, question.key, Answer("once", note="fine", by="client"))
        assert (await ended(second, run)).output == [1, 2, "once", "fine"]
    assert done == [1, 2]


@pytest.mark.proves("RUN-REPLAY")
async def test_a_failure_and_an_answer_come_back_as_they_were(tmp_path: Path) -> None:
    tried: list[int] = []

    async def fail(_: Leave) -> Any:
        tried.append(1)
        raise FunctionFailed("no such thing")

    async def body(run: Run) -> Any:
        try:
            await run.step("f", "write", {}, fail, once=True, in_doubt=asking("in_doubt"))
        except FunctionFailed as error:
            first = await run.ask("ok", {}, asking())
            await run.ask("last", {}, asking())
            return [str(error), first.decision]

    async with engine(tmp_path, body) as first:
        run = await first.start("main", definition())
        (question,) = await asked(first, run)
        await first.answer(run, question.key, Answer("deny"))
        (last,) = await asked(first, run)
    async with engine(tmp_path, body) as second:
        await second.resume(run)
        assert [question.key for question in await asked(second, run)] == [last.key]
        await second.answer(run, last.key, Answer("once"))
        assert (await ended(second, run)).output == ["no such thing", "deny"]
    assert tried == [1]


@pytest.mark.proves("RUN-DIVERGED")
@pytest.mark.parametrize(("kind", "arguments"), [("write", {"path": "b"}), ("delete", {"path": "a"})])
async def test_a_replay_that_asks_for_something_else_stops(tmp_path: Path, kind: str, arguments: Any) -> None:
    wanted: tuple[str, Any] = ("write", {"path": "a"})

    async def body(run: Run) -> Any:
        await run.step("s", *wanted, giving(1), once=True, in_doubt=asking("in_doubt"))
        await run.ask("ok", {}, asking())

    async with engine(tmp_path, body) as first:
        run = await first.start("main", definition())
        await asked(first, run)
    wanted = (kind, arguments)
    async with engine(tmp_path, body) as second:
        await second.resume(run)
        done = await ended(second, run)
    assert done.status == "failed"
    assert done.error.startswith(f"run {run} cannot be replayed: at s it did write (")


# ---- effects


@pytest.mark.proves("RUN-INTENT")
async def test_an_effect_is_announced_in_the_record_before_it_happens(tmp_path: Path) -> None:
    seen: list[list[tuple[str, str]]] = []

    async def look(_: Leave) -> Any:
        seen.append(recorded(tmp_path))

    async def body(run: Run) -> Any:
        await run.step("w", "write", {}, look, once=True, in_doubt=asking("in_doubt"))
        seen.append(recorded(tmp_path))

    async with engine(tmp_path, body) as driver:
        await ended(driver, await driver.start("main", definition()))
    assert seen == [[("definition", "done"), ("w", "started")], [("definition", "done"), ("w", "done")]]


class Effect:
    """An effect that happens and does not return the first `stuck` times: the process dies behind it."""

    def __init__(self, stuck: int) -> None:
        self.happened, self.stuck = 0, stuck
        self.under_way = asyncio.Event()

    async def __call__(self, _: Leave) -> Any:
        self.happened += 1
        if self.happened <= self.stuck:
            self.under_way.set()
            await asyncio.Event().wait()
        return f"effect {self.happened}"


def effecting(effect: Effect, *, once: bool = True) -> Any:
    async def body(run: Run) -> Any:
        return await run.step("w", "write", {}, effect, once=once, in_doubt=asking("in_doubt"))

    return body


async def cut_short(folder: Path, body: Any, effect: Effect) -> str:
    """A run whose process dies in the middle of the effect."""
    async with engine(folder, body) as first:
        run = await first.start("main", definition())
        await effect.under_way.wait()
    effect.under_way.clear()
    return run


@pytest.mark.proves("RUN-IN-DOUBT")
@pytest.mark.parametrize(
    ("answer", "status", "happened", "words"),
    [
        (Answer("done"), "done", 1, "a person confirmed"),
        (Answer("again"), "done", 2, "effect 2"),
        (Answer("stop"), "failed", 1, "write out/a.md was cut short, and the run was stopped there"),
    ],
)
async def test_an_effect_that_was_cut_short_is_asked_about(
    tmp_path: Path, answer: Answer, status: str, happened: int, words: str
) -> None:
    effect = Effect(stuck=1)
    body = effecting(effect)
    run = await cut_short(tmp_path, body, effect)
    async with engine(tmp_path, body) as second:
        await second.resume(run)
        (question,) = await asked(second, run)
        assert (question.kind, effect.happened) == ("in_doubt", 1)
        await second.answer(run, question.key, answer)
        done = await ended(second, run)
    assert (done.status, effect.happened) == (status, happened)
    assert words in (done.error or str(done.output))


@pytest.mark.proves("RUN-IN-DOUBT")
@pytest.mark.parametrize("answer", [Answer(silence="declined"), Answer(silence="malformed"), Answer("once")])
async def test_without_a_decision_what_is_in_doubt_stays_open(tmp_path: Path, answer: Answer) -> None:
    effect = Effect(stuck=1)
    body = effecting(effect)
    run = await cut_short(tmp_path, body, effect)
    async with engine(tmp_path, body) as second:
        await second.resume(run)
        (question,) = await asked(second, run)
        assert not await second.answer(run, question.key, answer)
        assert second.questions(run) == (question,)
        assert await second.answer(run, question.key, Answer("done"))
        assert (await ended(second, run)).status == "done"


@pytest.mark.proves("RUN-IN-DOUBT")
async def test_an_effect_that_is_cut_short_again_is_asked_about_again(tmp_path: Path) -> None:
    effect = Effect(stuck=2)
    body = effecting(effect)
    run = await cut_short(tmp_path, body, effect)
    async with engine(tmp_path, body) as second:
        await second.resume(run)
        (first_question,) = await asked(second, run)
        await second.answer(run, first_question.key, Answer("again"))
        await effect.under_way.wait()
    async with engine(tmp_path, body) as third:
        await third.resume(run)
        (question,) = await asked(third, run)
        assert question.key != first_question.key
        assert effect.happened == 2
        await third.answer(run, question.key, Answer("again"))
        assert (await ended(third, run)).output == "effect 3"


@pytest.mark.proves("RUN-IN-DOUBT")
async def test_a_decision_in_doubt_survives_a_crash_before_it_was_followed(tmp_path: Path) -> None:
    effect = Effect(stuck=1)
    body = effecting(effect)
    run = await cut_short(tmp_path, body, effect)
    async with engine(tmp_path, body) as second:
        await second.resume(run)
        (question,) = await asked(second, run)
        # Recorded, and let go of before the run's own task has a turn.
        await second._trees[run].answer(question.key, Answer("done"))
    async with engine(tmp_path, body) as third:
        if (await third.store.get(run)).status in ("running", "waiting"):  # type: ignore[union-attr]
            await third.resume(run)
        assert (await ended(third, run)).status == "done"
    assert effect.happened == 1


@pytest.mark.proves("RUN-REPEAT")
async def test_what_may_run_twice_is_simply_repeated(tmp_path: Path) -> None:
    effect = Effect(stuck=1)
    body = effecting(effect, once=False)
    run = await cut_short(tmp_path, body, effect)
    async with engine(tmp_path, body) as second:
        await second.resume(run)
        assert (await ended(second, run)).output == "effect 2"


@pytest.mark.proves("RUN-IN-DOUBT")
async def test_a_step_that_still_waited_for_its_turn_is_in_no_doubt(tmp_path: Path) -> None:
    full = asyncio.Event()
    under_way: list[int] = []

    async def stuck(_: Leave) -> Any:
        under_way.append(1)
        if len(under_way) == PLACES:
            full.set()
        await asyncio.Event().wait()

    async def body(run: Run) -> Any:
        steps = [
            run.step(f"w{n}", "write", n, stuck, once=True, in_doubt=asking("in_doubt")) for n in range(PLACES + 4)
        ]
        return await run.gather(steps)  # type: ignore[arg-type]

    async with engine(tmp_path, body) as first:
        run = await first.start("main", definition())
        await full.wait()
    states = [state for key, state in recorded(tmp_path) if key.startswith("w")]
    assert states == ["started"] * PLACES
    async with engine(tmp_path, body) as second:
        await second.resume(run)
        doubts: list[str] = []
        while len(doubts) < PLACES:
            doubts += [question.key for question in await asked(second, run, seen=doubts)]
        assert await second.advance(run, seen=doubts, timeout=0.2) == Working(run)


# ---- sub-workers


@pytest.mark.proves("RUN-CHILD")
async def test_a_sub_worker_that_has_ended_does_not_run_again(tmp_path: Path) -> None:
    done: list[Any] = []

    async def helper(run: Run) -> Any:
        if run.chain[-1] == "broken":
            raise FunctionFailed("broken on purpose")
        return await run.step("s", "read", {}, giving(" > ".join(run.chain), done), once=False)

    async def body(run: Run) -> Any:
        good = await run.child("a", "helper", {}, define(name="helper"), helper)
        try:
            await run.child("b", "broken", {}, define(name="broken"), helper)
        except FunctionFailed as error:
            await run.ask("ok", {}, asking())
            return [good, str(error)]

    async with engine(tmp_path, body) as first:
        run = await first.start("main", definition())
        await asked(first, run)
    async with engine(tmp_path, body) as second:
        await second.resume(run)
        (question,) = await asked(second, run)
        await second.answer(run, question.key, Answer("once"))
        assert (await ended(second, run)).output == ["main > helper", "broken on purpose"]
    assert done == ["main > helper"]


@pytest.mark.proves("RUN-CHILD", "RUN-DEFINITION")
async def test_a_sub_worker_that_was_under_way_goes_on_with_the_definition_that_it_had(tmp_path: Path) -> None:
    inputs: list[str] = []

    async def helper(run: Run) -> Any:
        answer = await run.ask("ok", {}, asking())
        return [run.definition.input, answer.decision]

    async def body(run: Run) -> Any:
        made = define(name="helper", input=inputs[-1])
        return await run.child("a", "helper", {}, made, helper)

    inputs.append("as it was")
    async with engine(tmp_path, body) as first:
        run = await first.start("main", definition())
        await asked(first, run)
    inputs.append("edited since")
    async with engine(tmp_path, body) as second:
        await second.resume(run)
        (question,) = await asked(second, run)
        await second.answer(run, question.key, Answer("once"))
        assert (await ended(second, run)).output == ["as it was", "once"]


@pytest.mark.proves("RUN-DEFINITION")
async def test_the_first_record_is_the_definition_and_a_resume_uses_it(tmp_path: Path) -> None:
    seen: list[Any] = []

    async def body(run: Run) -> Any:
        seen.append(run.definition)
        await run.ask("ok", {}, asking())

    given = definition(instructions="be brief", models=("scripted:a", "scripted:b"), limits=Limits(max_turns=7))
    async with engine(tmp_path, body) as first:
        run = await first.start("main", given)
        await asked(first, run)
    assert recorded(tmp_path)[0] == ("definition", "done")
    async with engine(tmp_path, body) as second:
        await second.resume(run)
        await asked(second, run)
    assert seen == [given, given]


# ---- branches, places, questions


@pytest.mark.proves("RUN-CONCURRENT")
async def test_branches_run_at_once_eight_steps_in_a_tree_and_come_back_in_order(tmp_path: Path) -> None:
    running, most = 0, 0
    full = asyncio.Event()

    def step(number: int) -> Any:
        async def perform(_: Leave) -> Any:
            nonlocal running, most
            running += 1
            most = max(most, running)
            if running == PLACES:
                full.set()
            await full.wait()
            running -= 1
            return number

        return perform

    async def body(run: Run) -> Any:
        return await run.gather([run.step(f"s{n}", "read", n, step(n), once=False) for n in range(30)])

    async with engine(tmp_path, body) as driver:
        done = await ended(driver, await driver.start("main", definition()))
    assert done.output == list(range(30))
    assert most == PLACES


@pytest.mark.proves("A099", "RUN-CONCURRENT")
async def test_forty_five_steps_that_wait_for_calls_of_their_own_all_finish(tmp_path: Path) -> None:
    async def body(run: Run) -> Any:
        def outer(number: int) -> Any:
            async def perform(leave: Leave) -> Any:
                leave()
                return await run.step(f"s{number}/in", "read", number, giving(number), once=False)

            return perform

        return await run.gather([run.step(f"s{n}", "read", n, outer(n), once=False) for n in range(45)])

    async with engine(tmp_path, body) as driver:
        assert (await ended(driver, await driver.start("main", definition()))).output == list(range(45))


@pytest.mark.proves("RUN-CONCURRENT")
async def test_a_branch_that_stops_the_run_stops_the_others(tmp_path: Path) -> None:
    stopped: list[int] = []
    waiting = asyncio.Event()

    async def wait(_: Leave) -> Any:
        waiting.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(1)

    async def stop(_: Leave) -> Any:
        await waiting.wait()
        raise RunError("enough")

    async def body(run: Run) -> Any:
        await run.gather([run.step("a", "read", 1, wait, once=False), run.step("b", "read", 2, stop, once=False)])

    async with engine(tmp_path, body) as driver:
        done = await ended(driver, await driver.start("main", definition()))
    assert (done.status, done.error, stopped) == ("failed", "enough", [1])


@pytest.mark.proves("RUN-FIRST-ANSWER")
async def test_the_first_answer_wins(tmp_path: Path) -> None:
    async def body(run: Run) -> Any:
        return (await run.ask("ok", {}, asking())).decision

    async with engine(tmp_path, body) as driver:
        run = await driver.start("main", definition())
        (question,) = await asked(driver, run)
        answers = [Answer("deny"), Answer("once"), Answer("run")]
        won = await asyncio.gather(*(driver.answer(run, question.key, answer) for answer in answers))
        assert won == [True, False, False]
        assert (await ended(driver, run)).output == "deny"
        assert not await driver.answer(run, question.key, Answer("once"))


@pytest.mark.proves("RUN-FIRST-ANSWER")
async def test_a_question_of_a_branch_that_was_stopped_is_withdrawn(tmp_path: Path) -> None:
    async def helper(run: Run) -> Any:
        async def fail() -> Any:
            await answered.wait()
            raise FunctionFailed("the other branch fails")

        await run.gather([run.ask("a", {}, asking()), fail()])

    async def body(run: Run) -> Any:
        try:
            await run.child("c", "helper", {}, define(name="helper"), helper)
        except FunctionFailed:
            await run.ask("b", {}, asking())

    answered = asyncio.Event()
    async with engine(tmp_path, body) as driver:
        run = await driver.start("main", definition())
        (first,) = await asked(driver, run)
        answered.set()
        assert [question.key for question in await asked(driver, run, seen={first.key})] == ["b"]
        assert [question.key for question in driver.questions(run)] == ["b"]


@pytest.mark.proves("RUN-GATHER")
async def test_questions_are_gathered_until_nothing_else_can_happen(tmp_path: Path) -> None:
    async def slow(_: Leave) -> Any:
        await release.wait()

    async def body(run: Run) -> Any:
        async def worked_first() -> Any:
            await run.step("s", "read", {}, slow, once=False)
            return await run.ask("c", {}, asking())

        return await run.gather([run.ask("a", {}, asking()), run.ask("b", {}, asking()), worked_first()])

    release = asyncio.Event()
    async with engine(tmp_path, body) as driver:
        run = await driver.start("main", definition())
        first = await asked(driver, run)
        assert {question.key for question in first} <= {"a", "b"}
        # One branch still works: the wait ends by its time.
        assert {question.key for question in await asked(driver, run, gather=0.02)} == {"a", "b"}
        gathered = asyncio.create_task(asked(driver, run, gather=math.inf))
        release.set()
        assert {question.key for question in await gathered} == {"a", "b", "c"}


@pytest.mark.proves("RUN-GATHER")
async def test_a_question_that_was_seen_does_not_come_up_again(tmp_path: Path) -> None:
    async def body(run: Run) -> Any:
        await run.gather([run.ask("a", {}, asking()), run.ask("b", {}, asking())])

    async with engine(tmp_path, body) as driver:
        run = await driver.start("main", definition())
        await asked(driver, run, gather=math.inf)
        assert [question.key for question in await asked(driver, run, seen={"a"})] == ["b"]
        assert await driver.advance(run, seen={"a", "b"}, timeout=0.01) == Working(run)


# ---- time, cancelling, the end


@pytest.mark.proves("RUN-DRIVEN-TIME")
async def test_time_does_not_count_while_a_person_thinks(tmp_path: Path) -> None:
    async def body(run: Run) -> Any:
        return (await run.ask("ok", {}, asking())).decision

    async with engine(tmp_path, body) as driver:
        run = await driver.start("main", definition(limits=Limits(timeout_s=0.15)))
        (question,) = await asked(driver, run)
        await asyncio.sleep(0.3)  # the person thinks for longer than the run may work
        await driver.answer(run, question.key, Answer("once"))
        assert (await ended(driver, run)).output == "once"


@pytest.mark.proves("RUN-DRIVEN-TIME")
async def test_work_that_takes_too_long_is_stopped_and_says_which_limit(tmp_path: Path) -> None:
    stopped: list[int] = []

    async def endless(_: Leave) -> Any:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(1)

    async def body(run: Run) -> Any:
        await run.step("s", "read", {}, endless, once=False)

    async with engine(tmp_path, body) as driver:
        done = await ended(driver, await driver.start("main", definition(limits=Limits(timeout_s=0.05))))
    assert (done.status, stopped) == ("failed", [1])
    assert done.error == "worker main stopped: its limit timeout_s of 0.05 was reached (during read)"


@pytest.mark.proves("RUN-DRIVEN-TIME")
async def test_work_before_and_behind_a_question_counts_together(tmp_path: Path) -> None:
    async def work(_: Leave) -> Any:
        await asyncio.sleep(0.3)

    async def body(run: Run) -> Any:
        await run.step("a", "read", {}, work, once=False)
        await run.ask("ok", {}, asking())
        await run.step("b", "read", {}, work, once=False)

    async with engine(tmp_path, body) as driver:
        run = await driver.start("main", definition(limits=Limits(timeout_s=0.5)))
        (question,) = await asked(driver, run)
        await driver.answer(run, question.key, Answer("once"))
        error = (await ended(driver, run)).error
    assert error == "worker main stopped: its limit timeout_s of 0.5 was reached (during read)"


@pytest.mark.proves("RUN-DRIVEN-TIME", "RUN-LIMIT-BELOW")
async def test_a_parent_goes_on_when_only_its_sub_workers_time_is_up(tmp_path: Path) -> None:
    async def endless(_: Leave) -> Any:
        await asyncio.Event().wait()

    async def helper(run: Run) -> Any:
        await run.step("s", "read", {}, endless, once=False)

    async def body(run: Run) -> Any:
        try:
            await run.child("a", "helper", {}, define(name="helper", limits=Limits(timeout_s=0.05)), helper)
        except FunctionFailed as error:
            return str(error)

    async with engine(tmp_path, body) as driver:
        done = await ended(driver, await driver.start("main", definition()))
    assert done.output == "worker helper stopped: its limit timeout_s of 0.05 was reached (during read)"


@pytest.mark.proves("RUN-CANCEL")
async def test_a_cancelled_run_stops_and_cannot_be_resumed(tmp_path: Path) -> None:
    effect = Effect(stuck=1)
    body = effecting(effect)
    async with engine(tmp_path, body) as driver:
        run = await driver.start("main", definition())
        await effect.under_way.wait()
        await driver.cancel(run, "cancelled by the client")
        done = await ended(driver, run)
        said = f"run {run} was cancelled by the client; cut short, and may have happened: write"
        assert (done.status, done.error) == ("cancelled", said)
        assert done.account["in_doubt"] == [{"function": "write", "target": ""}]
        with pytest.raises(RunError, match="has ended"):
            await driver.cancel(run)
    async with engine(tmp_path, body) as second:
        with pytest.raises(RunError, match=r"has ended \(cancelled\)"):
            await second.resume(run)
        assert (await ended(second, run)).status == "cancelled"


@pytest.mark.proves("RUN-CANCEL")
async def test_a_run_that_is_cancelled_while_its_end_is_written_has_ended(tmp_path: Path) -> None:
    async def body(run: Run) -> Any:
        run.tree.tell("at its end")
        return "done"

    async with engine(tmp_path, body) as driver:
        run = await driver.start("main", definition())
        at_end = asyncio.Event()
        with driver.listening(run, lambda _: at_end.set()):
            await at_end.wait()
            await driver.cancel(run)
        assert (await asyncio.wait_for(ended(driver, run), 5)).status in ("done", "cancelled")


@pytest.mark.proves("RUN-LIVES")
async def test_a_run_that_lives_elsewhere_or_never_was_says_so(tmp_path: Path) -> None:
    async def body(run: Run) -> Any:
        await run.ask("ok", {}, asking())

    async with engine(tmp_path, body) as first, engine(tmp_path, body) as second:
        run = await first.start("main", definition())
        await asked(first, run)
        with pytest.raises(RunError, match="driven by a living process"):
            await second.resume(run)
        with pytest.raises(RunError, match="another process drives it; to answer what it asks: llm-do approve "):
            await second.advance(run)
        with pytest.raises(RunError, match="there is no run nonesuch"):
            await second.resume("nonesuch")
        with pytest.raises(RunError, match="there is no run nonesuch"):
            await second.advance("nonesuch")


@pytest.mark.proves("RUN-KEY")
async def test_calls_with_one_key_are_one_run(tmp_path: Path) -> None:
    begun: list[int] = []

    async def body(run: Run) -> Any:
        begun.append(1)
        return (await run.ask("ok", {}, asking())).decision

    async with engine(tmp_path, body) as first:
        runs = set(await asyncio.gather(*(first.start("main", definition(), key="mine") for _ in range(5))))
        assert len(runs) == 1
        (run,) = runs
        await asked(first, run)
    async with engine(tmp_path, body) as second:
        assert await second.start("main", definition(), key="mine") == run
        (question,) = await asked(second, run)
        await second.answer(run, question.key, Answer("once"))
        await ended(second, run)
        assert await second.start("main", definition(), key="mine") == run
        assert (await ended(second, run)).output == "once"
    assert len(begun) == 2  # begun, and driven again: never begun twice


@pytest.mark.proves("RUN-FAULT")
async def test_a_fault_of_ours_ends_that_run_and_no_other(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def body(run: Run) -> Any:
        if run.definition.input == "bad":
            raise ZeroDivisionError("on purpose")
        if run.definition.input == "no JSON":
            return {1, 2}
        if run.definition.input == "not to be counted":
            reply = {"model": "scripted:x", "usage": {"input_tokens": "many", "output_tokens": 1}}
            return await run.step("t0", "model", [], giving(reply), once=False)
        return "fine"

    async with engine(tmp_path, body) as driver:
        given_in = ("bad", "no JSON", "not to be counted", "good")
        runs = {given: await driver.start("main", definition(input=given)) for given in given_in}
        done = {given: await asyncio.wait_for(ended(driver, run), 5) for given, run in runs.items()}
    assert (done["bad"].status, done["bad"].error) == ("failed", "internal error: ZeroDivisionError: on purpose")
    assert done["no JSON"].status == done["not to be counted"].status == "failed"
    assert (done["good"].status, done["good"].output) == ("done", "fine")
    assert "met a fault of ours" in caplog.text


@pytest.mark.proves("A104")
async def test_a_full_disk_fails_the_run_and_loses_nothing_that_can_be_written_later(tmp_path: Path) -> None:
    async def body(run: Run) -> Any:
        size = run.definition.input
        return await run.step("s", "write", size, giving("x" * size), once=True, in_doubt=asking("in_doubt"))

    async with engine(tmp_path, body) as driver:
        await driver.store._do(lambda db: db.execute("PRAGMA max_page_count=40").fetchone())
        done = await ended(driver, await driver.start("main", definition(input=1_000_000)))
        assert done.status == "failed"
        assert "the record of runs cannot be written: database or disk is full" in done.error
        small = await ended(driver, await driver.start("main", definition(input=10)))
        assert (small.status, small.output) == ("done", "x" * 10)


@pytest.mark.proves("RUN-ACCOUNT")
async def test_the_account_counts_what_was_done_even_what_a_person_confirmed(tmp_path: Path) -> None:
    stuck = Effect(stuck=1)
    usage = {"input_tokens": 10, "output_tokens": 5}
    reply = {"model": "scripted:a.yaml", "usage": usage}

    async def body(run: Run) -> Any:
        await run.step("t0", "model", {}, giving(reply), once=False)
        written = {"path": "out/b.md", "bytes": 1, "created": True}
        await run.step("t0.0", "files.write", {}, giving(written), once=True, in_doubt=asking("in_doubt"))
        await run.step("t0.1", "files.write", {}, stuck, once=True, in_doubt=asking("in_doubt"))

    run = await cut_short(tmp_path, body, stuck)
    async with engine(tmp_path, body) as second:
        await second.resume(run)
        (question,) = await asked(second, run)
        await second.answer(run, question.key, Answer("done", note="it is there", by="terminal"))
        account = (await ended(second, run)).account
    assert account == {
        "id": run,
        "status": "done",
        "models": ["scripted:a.yaml"],
        "tokens": {"input": 10, "output": 5},
        "cost": 0,
        "calls": 2,
        "approvals": [
            {
                "function": "files.write",
                "target": "out/a.md",
                "decision": "done",
                "by": "terminal",
                "note": "it is there",
            }
        ],
        "files_changed": ["out/b.md", "out/a.md"],
        "note": "no model was called",
    }


@pytest.mark.proves("RUN-LISTENING")
async def test_progress_waits_for_whoever_listens_next(tmp_path: Path) -> None:
    async def body(run: Run) -> Any:
        run.tree.tell("one")
        await run.ask("ok", {}, asking())
        run.tree.tell("two")

    heard: list[str] = []
    async with engine(tmp_path, body) as driver:
        run = await driver.start("main", definition())
        (question,) = await asked(driver, run)
        with driver.listening(run, heard.append):
            assert isinstance(await driver.advance(run), Asks)
            await driver.answer(run, question.key, Answer("once"))
            await ended(driver, run)
    assert heard == ["one", "two"]


@pytest.mark.proves("RUN-FREED")
async def test_a_run_that_has_ended_is_freed_at_once(tmp_path: Path) -> None:
    made: list[weakref.ref[Run]] = []

    async def body(run: Run) -> Any:
        made.append(weakref.ref(run))
        return await run.step("one", "read", {}, giving(1), once=False)

    gc.disable()
    try:
        async with engine(tmp_path, body) as driver:
            await ended(driver, await driver.start("main", definition()))
            await asyncio.sleep(0)  # the task that drove it ends
            assert [run() for run in made] == [None]
    finally:
        gc.enable()
