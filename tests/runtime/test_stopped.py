"""A run that is stopped, by a limit or by its caller: it says what stopped it and where, and what it leaves behind."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from llm_do_mcp.runtime.account import left_behind
from llm_do_mcp.runtime.engine import Asks, Done, Engine
from llm_do_mcp.runtime.question import Answer
from llm_do_mcp.runtime.store import Event
from tests.project.conftest import worker
from tests.runtime.driving import asked, ended, engine, finished
from tests.runtime.test_worker import WRITE, call, scripted
from tests.runtime.workshop import MAIN, Workshop, approve, calling
from tests.toolhost.conftest import is_gone_within

pytestmark = pytest.mark.anyio

TOOLS = """
import os
import time

from llm_do_mcp import ToolContext, tool


def begun():
    with open("begun", "w") as fifo:
        print(os.getpid(), file=fifo)


@tool(risk="read")
def endless(ctx: ToolContext) -> str:
    while not ctx.cancelled:
        time.sleep(0.01)
    return "told to stop"


@tool
def stubborn(what: str) -> str:
    begun()
    while True:
        try:
            time.sleep(1000)
        except BaseException:
            pass


@tool
def brief(what: str) -> str:
    "Takes longer than a tool is given to stop."
    begun()
    time.sleep(2)
    return what


@tool
def also(what: str) -> str:
    begun()
    time.sleep(1000)
    return what
"""
KEYS = f"{MAIN}approvals: [{{function: files.write, decision: allow}}]\n".replace(
    "delegation:", "custom: all\n  delegation:"
)


def stopping(limits: str, *turns: Any) -> dict[str, str]:
    """A project whose main worker has a limit, and whose first turn writes a file."""
    return {**scripted(WRITE, *turns, "never said", keys=f"{KEYS}limits: {{{limits}}}\n"), "tools.py": TOOLS}


ENDLESS = call("endless")
LISTS = [call("list_files", path="in", pattern=f"{n}*") for n in range(5)]
LEAVES = "; written so far: out/a.md"


@pytest.mark.proves("LIMIT-SAYS", "A106")
@pytest.mark.parametrize(
    ("limits", "turns", "which"),
    [
        ("max_turns: 3", LISTS, "its limit max_turns of 3 was reached"),
        ("max_tool_calls: 2", LISTS, "its limit max_tool_calls of 2 was reached"),
        ("max_tokens: 20", [{**LISTS[0], "usage": {"output_tokens": 25}}], "its limit max_tokens of 20 was reached"),
        ("timeout_s: 1", [ENDLESS], "its limit timeout_s of 1 was reached (during custom.endless)"),
        ("max_turns: 9", [call("nope")] * 3, "the same failure came 3 times: nope {}: there is no function 'nope'"),
    ],
    ids=["turns", "tool calls", "tokens", "wall time", "identical failures"],
)
async def test_what_a_limit_stops_says_which_and_returns_what_exists_so_far(
    tmp_path: Path, limits: str, turns: list[Any], which: str
) -> None:
    async with Workshop(tmp_path, stopping(limits, *turns)) as shop:
        done = await shop.run(decide=approve)
    assert done.status == "failed"
    assert done.error.startswith(f"worker main stopped: {which}") and done.error.endswith(LEAVES)
    assert done.account["files_changed"] == ["out/a.md"] and done.account["calls"] >= 1
    assert "in_doubt" not in done.account
    assert (tmp_path / "out" / "a.md").read_text() == "x"


@pytest.mark.proves("LIMIT-SAYS")
async def test_a_sub_worker_that_is_stopped_tells_its_caller_what_it_has_written(tmp_path: Path) -> None:
    helper = json.dumps([call("write_file", path="out/b.md", content="x"), "never"])
    files = scripted(call("worker_call", worker="helper"), "main goes on", helper=helper)
    files["workers/helper.worker"] = worker(f"{MAIN}limits: {{max_turns: 1}}")
    async with Workshop(tmp_path, files) as shop:
        done = await shop.run(decide=approve)
        events = await shop.engine.store.events(done.run)
    assert done.output == "main goes on"
    (failed,) = [event.data for event in events if event.kind == "worker.call" and event.state == "failed"]
    assert failed == "worker helper stopped: its limit max_turns of 1 was reached; written so far: out/b.md"


@pytest.mark.proves("LIMIT-TREE", "A110")
async def test_branches_at_the_same_time_do_not_take_one_last_turn_twice(tmp_path: Path) -> None:
    """Five workers call five each, all at once; the root has turns for twelve."""
    files = {
        "main.worker": worker(f"{MAIN}limits: {{max_turns: 12}}"),
        "workers/helper.worker": worker("toolsets: {delegation: {allow_workers: [leaf]}}"),
        "workers/leaf.worker": worker(),
        "script.py": """
            def reply(request):
                below = {"main": "helper", "helper": "leaf"}.get(request["worker"])
                if below is None or request["turn"]:
                    return "done"
                return {"tool_calls": [{"name": "worker_call", "input": {"worker": below}}] * 5}
        """,
    }
    async with Workshop(tmp_path, files) as shop:
        done = await shop.run()
        events = await shop.engine.store.events(done.run)
    # Which of the branches comes too late is a matter of timing; that it is named is not.
    said = r"worker main stopped: its limit max_turns of 12 was reached \(by main > helper( > leaf)?\)"
    assert re.match(said, done.error), done.error
    assert sum(event.kind == "model" and event.state == "done" for event in events) <= 12


@pytest.mark.proves("LIMIT-SAYS")
def test_many_files_are_counted_and_not_all_named() -> None:
    written = [Event(f"t{n}.0", "files.write", "", "done", {"path": f"out/{n}"}, 0.0, 1.0) for n in range(25)]
    assert left_behind(written).endswith("out/9 and 15 more")
    assert left_behind(written[:2]) == "; written so far: out/0, out/1"
    assert left_behind([]) == ""


# ---- cancelled


class Begun:
    """A FIFO at which a tool tells that it has begun."""

    def __init__(self, root: Path) -> None:
        os.mkfifo(root / "begun")
        self._fifo = os.open(root / "begun", os.O_RDWR | os.O_NONBLOCK)

    async def __call__(self, count: int = 1) -> int:
        """Wait until so many tools have begun; the id of their process."""
        told = b""
        with anyio.fail_after(20):
            while told.count(b"\n") < count:
                await anyio.wait_readable(self._fifo)
                told += os.read(self._fifo, 100)
        return int(told.split()[0])

    def close(self) -> None:
        os.close(self._fifo)


@pytest.fixture
def begun(tmp_path: Path) -> Any:
    if sys.platform == "win32":
        pytest.skip("waits on FIFOs")
    made = Begun(tmp_path)
    yield made
    made.close()


async def approved(driver: Engine, run: str, count: int) -> None:
    """Approve what a run asks, so many questions."""
    left = count
    while left:
        event = await driver.advance(run)
        assert isinstance(event, Asks)
        for question in event.questions:
            await driver.answer(run, question.key, approve(question))
            left -= 1


async def stuck(shop: Workshop, begun: Begun) -> tuple[str, int]:
    """A run of `delegating` that is in the tool which does not stop, and the process of that tool."""
    run = await shop.start()
    await approved(shop.engine, run, 1)
    return run, await begun()


@pytest.mark.proves("RUN-CANCEL", "RUN-ACCOUNT")
@pytest.mark.parametrize("left", [False, True], ids=["driven", "left by its process"])
async def test_no_question_of_a_cancelled_run_stays_open(tmp_path: Path, left: bool) -> None:
    async with Workshop(tmp_path) as shop:
        run = await shop.start(calling(*(("write_file", {"path": f"out/{name}", "content": "x"}) for name in "ab")))
        assert len(await asked(shop.engine, run, gather=5)) == 2
        if left:
            await shop.engine.aclose()
            shop.engine = Engine(tmp_path / ".llm-do", shop.bench.body)
        await shop.engine.cancel(run)
        done = await shop.engine.outcome(run)
        events = await shop.engine.store.events(run)
    assert (done.status, done.account["approvals"]) == ("cancelled", [])
    assert {event.state for event in events if event.kind == "ask"} == {"withdrawn"}


HELPER_STUBBORN = json.dumps([call("stubborn", what="x"), "never"])


def delegating(*calls: str) -> dict[str, str]:
    """A main worker whose helper calls a tool that does not stop."""
    files = scripted(WRITE, call("worker_call", worker="helper"), "never", keys=KEYS, helper=HELPER_STUBBORN)
    return {**files, "workers/helper.worker": worker("toolsets: {custom: all}"), "tools.py": TOOLS}


@pytest.mark.proves("CANCEL-TREE", "A090")
async def test_cancelling_stops_sub_workers_and_a_tool_that_does_not_stop_and_says_what_may_have_happened(
    tmp_path: Path, begun: Begun
) -> None:
    async with Workshop(tmp_path, delegating()) as shop:
        run, tool = await stuck(shop, begun)
        began = time.monotonic()
        await shop.engine.cancel(run, "cancelled by the client")
        assert time.monotonic() - began < 2
        assert is_gone_within(tool, 0), "the tool was killed before the run was called cancelled"
        done = await shop.engine.outcome(run)
        states = {event.key: event.state for event in await shop.engine.store.events(run)}
    left = f"{LEAVES}; cut short, and may have happened: custom.stubborn"
    assert (done.status, done.error) == ("cancelled", f"run {run} was cancelled by the client{left}")
    assert done.account["in_doubt"] == [{"function": "custom.stubborn", "target": ""}]
    assert done.account["files_changed"] == ["out/a.md"]
    assert [state for key, state in states.items() if key.endswith("t0.0") and "/t1.0/" in f"/{key}"] == ["started"]


def _side_by_side(tool: str) -> dict[str, str]:
    """A worker with a tool that does not stop, and another with one that is running at the same time."""
    turns = {"main": [call("stubborn", what="x")], "other": [call(tool, what="y"), "other is done"]}
    files = {**scripted(keys=KEYS), "tools.py": TOOLS, "workers/other.worker": worker("toolsets: {custom: all}")}
    return {**files, "model.yaml": json.dumps({"workers": turns})}


@pytest.mark.proves("CANCEL-OTHERS")
async def test_what_else_runs_in_a_tool_host_that_has_to_be_killed_may_finish(tmp_path: Path, begun: Begun) -> None:
    async with Workshop(tmp_path, _side_by_side("brief")) as shop:
        doomed, other = await shop.start(), await shop.start(name="other")
        await approved(shop.engine, doomed, 1)
        await approved(shop.engine, other, 1)
        tool = await begun(2)
        began = time.monotonic()
        await shop.engine.cancel(doomed)
        assert time.monotonic() - began < 1.5, "it did not wait for the other"
        done, cancelled = await ended(shop.engine, other), await shop.engine.outcome(doomed)
        assert is_gone_within(tool, 1), "with the last call that is wanted the process ends"
    assert (done.status, done.output) == ("done", "other is done")
    assert cancelled.account["in_doubt"] == [{"function": "custom.stubborn", "target": ""}]


@pytest.mark.proves("CANCEL-OTHERS")
async def test_what_else_ran_in_a_tool_host_that_had_to_be_killed_is_in_doubt(tmp_path: Path, begun: Begun) -> None:
    async with Workshop(tmp_path, _side_by_side("also")) as shop:
        shop.bench.host._drain = 0.1
        doomed, other = await shop.start(), await shop.start(name="other")
        await approved(shop.engine, doomed, 1)
        await approved(shop.engine, other, 1)
        await begun(2)
        await shop.engine.cancel(doomed)
        (question,) = await asked(shop.engine, other)
        assert (question.kind, question.function) == ("in_doubt", "custom.also")
        assert "(`stubborn` of tools.py did not end); its effect is unknown" in question.detail
        done = await finished(shop.engine, other, lambda _: _decided("done"))
    assert (done.status, done.output) == ("done", "other is done")


def _decided(decision: str) -> Any:
    return Answer(decision, by="test")


@pytest.mark.proves("CANCEL-LEFT")
async def test_a_run_whose_process_is_gone_can_be_given_up_and_says_what_may_have_happened(
    tmp_path: Path, begun: Begun
) -> None:
    async with Workshop(tmp_path, delegating()) as shop:
        run, _ = await stuck(shop, begun)
        await shop.engine.aclose(shop.bench.kill)  # as at a crash: nothing more is recorded

    async def no_body(_: object) -> None:
        raise AssertionError("it is given up, not driven")

    async with engine(tmp_path / ".llm-do", no_body) as other:
        await other.cancel(run, "given up")
        done = await other.outcome(run)
        assert isinstance(done, Done) and done.account["in_doubt"] == [{"function": "custom.stubborn", "target": ""}]
        assert done.error.startswith(f"run {run} was given up; written so far: out/a.md; cut short")


@pytest.mark.proves("CANCEL-END")
async def test_at_the_end_of_the_process_a_tool_that_does_not_stop_is_killed_and_its_run_stays(
    tmp_path: Path, begun: Begun
) -> None:
    async with Workshop(tmp_path, delegating()) as shop:
        run, tool = await stuck(shop, begun)
        began = time.monotonic()
        await shop.engine.aclose(shop.bench.kill)
        await shop.bench.aclose()
        assert time.monotonic() - began < 1.5 and is_gone_within(tool, 0.5)
    async with Workshop(tmp_path, delegating()) as again:
        await again.engine.resume(run)
        (question,) = await asked(again.engine, run)
        assert (question.kind, question.function) == ("in_doubt", "custom.stubborn")
