"""The one gate: what every call passes, and in which order."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llm_do_mcp.errors import CallError, FunctionFailed, LimitReached
from llm_do_mcp.runtime import gate
from llm_do_mcp.runtime.account import line
from llm_do_mcp.runtime.engine import Done
from llm_do_mcp.runtime.function import Declaration, Function, Preview
from llm_do_mcp.runtime.gate import Call, Functions
from llm_do_mcp.runtime.limits import Limits
from llm_do_mcp.runtime.policy import Rule
from llm_do_mcp.runtime.question import Answer, Question, text
from llm_do_mcp.runtime.run import Run
from tests.runtime.driving import asked, define, definition, ended, engine, finished

pytestmark = pytest.mark.anyio

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


class Bench:
    """Functions that note what they did."""

    def __init__(self) -> None:
        self.done: list[Any] = []

    def function(
        self, name: str, execute: Callable[[Call], Any] | None = None, *, scope: str = "", **changes: Any
    ) -> Function:
        async def note(call: Call) -> Any:
            self.done.append(call.input["text"])
            return call.input["text"].upper()

        async def preview(call: Call) -> Preview:
            return Preview("shout", f"out/{call.input['text']}", f"detail of {call.input['text']}", scope or "out")

        declaration = Declaration(f"custom.{name}", name, "", TEXT, **changes)
        return Function(declaration, execute or note, preview)

    async def run(
        self,
        folder: Path,
        functions: tuple[Function, ...],
        calls: list[tuple[str, Any]],
        decide: Callable[[Question], Answer] = lambda question: Answer("deny"),
        **changes: Any,
    ) -> Done:
        """A run that makes these calls one after the other; its output is what each gave, or the error."""
        async with engine(folder, calling(functions, calls)) as driver:
            run = await driver.start("main", definition(**changes))
            return await finished(driver, run, decide)


def calling(functions: tuple[Function, ...], calls: list[tuple[str, Any]], *, at_once: bool = False) -> Any:
    async def body(run: Run) -> Any:
        table = Functions(functions)

        async def one(index: int, name: str, value: Any) -> Any:
            try:
                return await gate.call(run, f"t0.{index}", table.find(name), value, table, "worker")
            except CallError as error:
                return f"{type(error).__name__}: {error}"

        made = [one(index, name, value) for index, (name, value) in enumerate(calls)]
        return await run.gather(made) if at_once else [await call for call in made]

    return body


def once(question: Question) -> Answer:
    return Answer("once", by="client")


@pytest.fixture
def bench() -> Bench:
    return Bench()


# ---- the order


@pytest.mark.proves("GATE-INPUT")
@pytest.mark.parametrize(
    ("call", "words"),
    [
        (("nope\x1b[31m", {}), "there is no function 'nope\\\\x1b[31m' here; there are: shout"),
        (("shout", {}), "shout: text is missing"),
        (("shout", {"text": 7}), "shout: text: must be a string, not 7"),
        (("shout", None), "shout: must be an object, not null"),
    ],
)
async def test_what_does_not_fit_is_refused_before_anybody_is_asked(
    bench: Bench, tmp_path: Path, call: tuple[str, Any], words: str
) -> None:
    def never(question: Question) -> Answer:
        pytest.fail("a person was asked")

    async def body(run: Run) -> Any:
        table = Functions((bench.function("shout"),))
        try:
            return await gate.call(run, "t0.0", table.find(call[0]), call[1], table, "worker")
        except CallError as error:
            return str(error)

    async with engine(tmp_path, body) as driver:
        done = await finished(driver, await driver.start("main", definition()), never)
    assert done.output == words
    assert bench.done == []


@pytest.mark.proves("GATE-POLICY")
async def test_reading_runs_writing_asks_and_what_is_denied_asks_nobody(bench: Bench, tmp_path: Path) -> None:
    questions: list[str] = []

    def decide(question: Question) -> Answer:
        questions.append(question.function)
        return Answer("once")

    functions = (bench.function("look", risk="read"), bench.function("write"), bench.function("wipe"))
    calls = [("look", {"text": "a"}), ("write", {"text": "b"}), ("wipe", {"text": "c"})]
    rules = (Rule("custom.wipe", "deny", source="tool_rules of worker main"),)
    done = await bench.run(tmp_path, functions, calls, decide, rules=rules)
    assert done.output == ["A", "B", "Refused: wipe was not run: refused by tool_rules of worker main"]
    assert (questions, bench.done) == (["custom.write"], ["a", "b"])


@pytest.mark.proves("GATE-APPROVAL")
async def test_a_question_shows_who_asks_what_would_happen_and_the_digest_of_exactly_that(
    bench: Bench, tmp_path: Path
) -> None:
    value = {"text": "x\u202ey"}
    questions: list[Question] = []

    def decide(question: Question) -> Answer:
        questions.append(question)
        return Answer("once")

    await bench.run(tmp_path, (bench.function("shout"),), [("shout", value)], decide)
    (question,) = questions
    canonical = json.dumps(["custom.shout", value], sort_keys=True, separators=(",", ":"))
    assert question.digest == hashlib.sha256(canonical.encode()).hexdigest()
    assert text(question).splitlines() == [
        "Approval needed: shout out/x\\u202ey",
        "Asked by: main",
        f"Function: custom.shout  (arguments: {question.size} characters, sha256 {question.digest[:12]})",
        'Arguments: {"text": "x\\u202ey"}',
        "  detail of x\\u202ey",
    ]


@pytest.mark.proves("GATE-REFUSED", "A083")
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer("deny"), "the person refused it"),
        (Answer("deny", note="not on Fridays"), "the person refused it (note: not on Fridays)"),
        (Answer(silence="declined"), "the person declined to answer"),
        (Answer(silence="cancelled"), "the person dismissed the question"),
        (Answer(silence="timed_out"), "nobody answered in time"),
        (Answer(silence="malformed"), "the answer was none of once, run, deny"),
        (Answer(silence="failed"), "the question could not be asked"),
        (Answer(silence="policy"), "this run's settings refuse what would need approval"),
        (
            Answer(silence="cannot_ask"),
            'add `{function: custom.shout, subject: "out/a", decision: allow}` to `approvals`',
        ),
        (Answer("yes"), "the person refused it"),
        (Answer("done"), "the person refused it"),
    ],
)
async def test_every_way_of_not_approving_runs_nothing_and_says_which_it_was(
    bench: Bench, tmp_path: Path, answer: Answer, words: str
) -> None:
    done = await bench.run(tmp_path, (bench.function("shout"),), [("shout", {"text": "a"})], lambda question: answer)
    assert done.output[0].startswith("Refused: custom.shout out/a was not run: ")
    assert words in done.output[0]
    assert bench.done == []


@pytest.mark.proves("GATE-OUTPUT")
async def test_a_result_that_does_not_fit_its_schema_is_a_failure_of_the_call(bench: Bench, tmp_path: Path) -> None:
    async def wrong(call: Call) -> Any:
        return {"n": "seven"}

    function = bench.function("count", wrong, risk="read", output_schema=NUMBER)
    done = await bench.run(tmp_path, (function,), [("count", {"text": "a"})])
    expected = 'count gave a result that does not fit its schema: n: must be an integer, not "seven"'
    assert done.output == [f"InvalidOutput: {expected}"]


@pytest.mark.proves("GATE-LIMITS")
async def test_a_call_over_the_limit_stops_the_run_before_it_is_made(bench: Bench, tmp_path: Path) -> None:
    calls = [("look", {"text": text}) for text in "abc"]
    done = await bench.run(tmp_path, (bench.function("look", risk="read"),), calls, limits=Limits(max_tool_calls=2))
    assert (done.status, bench.done) == ("failed", ["a", "b"])
    assert done.error == "worker main stopped: its limit max_tool_calls of 2 was reached"


@pytest.mark.proves("GATE-LIMITS")
async def test_what_was_spent_before_a_crash_is_spent_after_it(bench: Bench, tmp_path: Path) -> None:
    look, write = bench.function("look", risk="read"), bench.function("write")

    async def outer(call: Call) -> Any:
        return [await call.call("look", {"text": text}) for text in "ab"]

    functions = (look, write, bench.function("outer", outer, risk="read"))
    # 4 calls before the question, and the limit is at 5: the last one is too many, in both processes.
    calls = [("outer", {"text": "o"}), ("write", {"text": "w"}), ("look", {"text": "c"}), ("look", {"text": "d"})]
    body = calling(functions, calls)
    async with engine(tmp_path, body) as first:
        run = await first.start("main", definition(limits=Limits(max_tool_calls=5)))
        await asked(first, run)
    async with engine(tmp_path, body) as second:
        await second.resume(run)
        done = await finished(second, run, once)
    assert done.error == "worker main stopped: its limit max_tool_calls of 5 was reached"
    assert bench.done == ["a", "b", "w", "c"]


# ---- for the rest of this run


@pytest.mark.proves("GATE-GRANT", "A084")
async def test_an_approval_for_this_run_covers_the_same_function_and_scope_and_nothing_else(
    bench: Bench, tmp_path: Path
) -> None:
    questions: list[str] = []

    def decide(question: Question) -> Answer:
        questions.append(f"{question.function} {question.target}")
        return Answer("run")

    functions = (bench.function("write"), bench.function("wipe"), bench.function("other", scope="elsewhere"))
    calls = [("write", {"text": text}) for text in "abc"] + [("wipe", {"text": "d"}), ("other", {"text": "e"})]
    done = await bench.run(tmp_path, functions, calls, decide)
    assert done.output == ["A", "B", "C", "D", "E"]
    assert questions == ["custom.write out/a", "custom.wipe out/d", "custom.other out/e"]


@pytest.mark.proves("GATE-GRANT", "A084")
async def test_an_approval_for_this_run_settles_the_open_questions_that_it_covers(bench: Bench, tmp_path: Path) -> None:
    functions = (bench.function("write"), bench.function("wipe"))
    calls = [("write", {"text": text}) for text in "abc"] + [("wipe", {"text": "d"})]
    async with engine(tmp_path, calling(functions, calls, at_once=True)) as driver:
        run = await driver.start("main", definition())
        questions = await asked(driver, run, gather=math.inf)
        assert len(questions) == 4
        write = next(question for question in questions if question.function == "custom.write")
        await driver.answer(run, write.key, Answer("run", note="fine", by="client"))
        (left,) = driver.questions(run)
        assert left.function == "custom.wipe"
        await driver.answer(run, left.key, Answer("deny"))
        done = await ended(driver, run)
    assert done.output[:3] == ["A", "B", "C"]
    decisions = {(asked["decision"], asked["by"]) for asked in done.account["approvals"]}
    assert decisions == {("run", "client"), ("once", "grant"), ("deny", "")}


@pytest.mark.proves("GATE-GRANT")
async def test_an_approval_for_this_run_holds_after_a_crash_and_a_refusal_stays_refused(
    bench: Bench, tmp_path: Path
) -> None:
    functions = (bench.function("write"), bench.function("wipe"))
    calls = [("write", {"text": "a"}), ("write", {"text": "b"}), ("wipe", {"text": "c"}), ("write", {"text": "d"})]
    body = calling(functions, calls)
    async with engine(tmp_path, body) as first:
        run = await first.start("main", definition())
        (no,) = await asked(first, run)
        await first.answer(run, no.key, Answer("deny"))
        (yes,) = await asked(first, run)
        await first.answer(run, yes.key, Answer("run"))
        assert [question.function for question in await asked(first, run)] == ["custom.wipe"]
    async with engine(tmp_path, body) as second:
        await second.resume(run)
        (wipe,) = await asked(second, run)
        assert wipe.function == "custom.wipe"
        await second.answer(run, wipe.key, Answer("once"))
        done = await ended(second, run)
    assert done.output == ["Refused: custom.write out/a was not run: the person refused it", "B", "C", "D"]
    assert bench.done == ["b", "c", "d"]


# ---- calls of a call


@pytest.mark.proves("GATE-INNER")
async def test_what_a_tool_calls_passes_the_same_gate(bench: Bench, tmp_path: Path) -> None:
    async def outer(call: Call) -> Any:
        given = []
        for value in ({"text": "in"}, {"text": 7}):
            try:
                given.append(await call.call("write", value))
            except CallError as error:
                given.append(str(error))
        return given

    functions = (bench.function("write"), bench.function("outer", outer, risk="read"))
    done = await bench.run(tmp_path, functions, [("outer", {"text": "o"})])
    refused = "custom.write out/in was not run: the person refused it"
    assert done.output == [[refused, "write: text: must be a string, not 7"]]
    assert bench.done == []


@pytest.mark.proves("GATE-INNER")
async def test_a_tool_asks_a_question_of_its_own_and_gets_the_note(bench: Bench, tmp_path: Path) -> None:
    async def outer(call: Call) -> Any:
        return await call.ask("Which colour?")

    def decide(question: Question) -> Answer:
        assert (question.kind, question.detail, question.decisions) == (
            "question",
            "Which colour?",
            ("answer", "decline"),
        )
        return Answer("answer", note="green")

    done = await bench.run(tmp_path, (bench.function("outer", outer, risk="read"),), [("outer", {"text": "o"})], decide)
    assert done.output == ["green"]


@pytest.mark.proves("GATE-DOUBT")
async def test_a_call_in_doubt_shows_which_calls_it_had_finished(bench: Bench, tmp_path: Path) -> None:
    stuck = asyncio.Event()

    async def outer(call: Call) -> Any:
        await call.call("write", {"text": "in"})
        stuck.set()
        await asyncio.Event().wait()

    functions = (bench.function("write"), bench.function("outer", outer))
    rules = (Rule("custom.*", "allow"),)
    body = calling(functions, [("outer", {"text": "o"})])
    async with engine(tmp_path, body) as first:
        run = await first.start("main", definition(rules=rules))
        await stuck.wait()
    async with engine(tmp_path, body) as second:
        await second.resume(run)
        (question,) = await asked(second, run)
        assert (question.kind, question.function, question.target) == ("in_doubt", "custom.outer", "out/o")
        assert question.detail == "What it had already called, to its end: custom.write\ndetail of o"
        await second.answer(run, question.key, Answer("done"))
        assert (await ended(second, run)).status == "done"
    assert bench.done == ["in"]


@pytest.mark.proves("GATE-DOUBT")
async def test_a_call_that_is_made_again_does_not_repeat_the_calls_that_it_had_finished(
    bench: Bench, tmp_path: Path
) -> None:
    stuck = asyncio.Event()

    async def outer(call: Call) -> Any:
        inner = await call.call("write", {"text": "in"})
        if not stuck.is_set():
            stuck.set()
            await asyncio.Event().wait()
        return inner

    functions = (bench.function("write"), bench.function("outer", outer))
    body = calling(functions, [("outer", {"text": "o"})])
    async with engine(tmp_path, body) as first:
        run = await first.start("main", definition(rules=(Rule("custom.*", "allow"),)))
        await stuck.wait()
    async with engine(tmp_path, body) as second:
        await second.resume(run)
        (question,) = await asked(second, run)
        await second.answer(run, question.key, Answer("again"))
        assert (await ended(second, run)).output == ["IN"]
    assert bench.done == ["in"]


@pytest.mark.proves("GATE-FAILED")
async def test_what_goes_wrong_in_a_function_is_its_callers_to_handle_and_a_limit_is_not(
    bench: Bench, tmp_path: Path
) -> None:
    async def fail(call: Call) -> Any:
        raise FunctionFailed("no luck")

    async def stop(call: Call) -> Any:
        raise LimitReached("the time is up")

    functions = (bench.function("fail", fail, risk="read"), bench.function("stop", stop, risk="read"))
    done = await bench.run(tmp_path, functions, [("fail", {"text": "a"}), ("stop", {"text": "b"})])
    assert (done.status, done.error) == ("failed", "the time is up")


# ---- the order of questions


@pytest.mark.proves("RUN-ORDER")
async def test_questions_are_put_in_the_order_of_their_calls_whichever_preview_is_ready_first(
    bench: Bench, tmp_path: Path
) -> None:
    """The last call's preview is ready first; a read among the calls, which takes long, holds up none of them."""
    under_way = asyncio.Semaphore(0)

    async def forever(_: Call) -> Any:
        under_way.release()
        await asyncio.Event().wait()

    async def preview(call: Call) -> Preview:
        number = int(call.input["text"])
        if number < 4:
            await ready[number + 1].wait()
        ready[number].set()
        return Preview("shout", call.input["text"])

    write = dataclasses.replace(bench.function("write", forever), preview=preview)
    body = calling(
        (write, bench.function("look", forever, risk="read")),
        [("look", {"text": "0"}), *(("write", {"text": str(number)}) for number in range(1, 5))],
        at_once=True,
    )
    run = ""
    for kind in ("approval", "in_doubt"):
        ready = [asyncio.Event() for _ in range(5)]
        async with engine(tmp_path, body) as driver:
            if run:  # the process died while all four were under way
                await driver.resume(run)
            else:
                run = await driver.start("main", definition())
            put: list[Question] = []
            while len(put) < 4:
                put += await asked(driver, run, seen=[question.key for question in put])
            assert [(question.kind, question.target) for question in put] == [(kind, n) for n in "1234"]
            assert [waiting.question for waiting in await driver.waiting()] == put
            await under_way.acquire()
            for question in put if kind == "approval" else ():
                await driver.answer(run, question.key, Answer("once"))
                await under_way.acquire()


# ---- what an approval is bound to


@pytest.mark.proves("APPROVAL-BOUND", "A076", "A084")
@pytest.mark.parametrize("changed", ["worker", "function"])
async def test_an_approval_for_this_run_ends_with_the_code_it_was_given_for(
    bench: Bench, tmp_path: Path, changed: str
) -> None:
    """A sub-worker that is called a second time, after its file or its tool was edited, is asked about again."""
    questions: list[Question] = []

    def decide(question: Question) -> Answer:
        questions.append(question)
        return Answer("run", by="client")

    async def body(run: Run) -> Any:
        for version in ("1", "1", "2"):
            codes = {"worker": "w1", "function": "f1", changed: version}
            function = bench.function("write", code=codes["function"])

            async def shout(below: Run, function: Function = function) -> Any:
                return await gate.call(below, "c", function, {"text": "a"}, Functions((function,)), "worker")

            key = f"k{len(bench.done)}"
            await run.child(key, "sub", key, define(name="sub", code=codes["worker"]), shout)
        return "done"

    async with engine(tmp_path, body) as driver:
        done = await finished(driver, await driver.start("main", definition()), decide)
    assert done.output == "done" and bench.done == ["a", "a", "a"]
    assert len(questions) == 2
    assert [(one["decision"], one["by"]) for one in done.account["approvals"]] == [
        ("run", "client"),
        ("once", "grant"),
        ("run", "client"),
    ]


@pytest.mark.proves("GRANT-RECORDED", "GATE-GRANT")
async def test_what_an_approval_for_the_run_allows_later_is_recorded_with_its_note(
    bench: Bench, tmp_path: Path
) -> None:
    def decide(question: Question) -> Answer:
        return Answer("run", note="all of them", by="client")

    functions = (bench.function("write"),)
    done = await bench.run(tmp_path, functions, [("write", {"text": text}) for text in "abc"], decide)
    assert [(one["target"], one["decision"], one["by"], one["note"]) for one in done.account["approvals"]] == [
        ("out/a", "run", "client", "all of them"),
        ("out/b", "once", "grant", "all of them"),
        ("out/c", "once", "grant", "all of them"),
    ]
    assert line(done.account).endswith("3 approvals (1 run by client, 2 once by grant)")


@pytest.mark.proves("APPROVAL-BOUND")
async def test_a_question_carries_what_a_lock_binds_it_to(bench: Bench, tmp_path: Path) -> None:
    function = bench.function("write", code="f1")
    async with engine(tmp_path, calling((function,), [("write", {"text": "x" * 5_000})])) as driver:
        (question,) = await asked(driver, await driver.start("main", definition(code="w1")))
    assert (question.worker_code, question.function_code) == ("w1", "f1")
    digest = hashlib.sha256(b"x" * 5_000).hexdigest()
    assert question.exact == {"text": {"sha256": digest, "characters": 5_000}}
