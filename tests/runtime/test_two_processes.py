"""Two processes on one store: one drives, the other answers through it, and takes over when the first is killed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from llm_do_mcp.errors import RunError
from llm_do_mcp.runtime.question import Answer
from tests.cli.commands import LLM_DO, environment
from tests.project.conftest import write
from tests.runtime.driving import engine
from tests.runtime.test_crashes import ALL, PROJECT
from tests.serving.clients import Wire, command

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="kills with signals"),
]

DRIVER = """
import asyncio, sys
from pathlib import Path
from llm_do_mcp.errors import RunError
from llm_do_mcp.project.load import load_project
from llm_do_mcp.runtime.engine import Asks, Done, Engine
from llm_do_mcp.toolsets.workbench import Workbench

folder, given = Path(sys.argv[1]), sys.argv[2]


def say(*words):
    print(*words, flush=True)


async def drive():
    bench = Workbench(load_project(folder))
    engine = Engine(folder / ".llm-do", bench.body)
    say("ready")
    sys.stdin.readline()  # all at once
    try:
        if given == "new":
            run = await engine.start("main", await bench.define(bench.project.worker("main"), "go", {}))
            await engine.advance(run)
        else:
            run = given
            await engine.resume(run)
        say("drives", run)
        seen = set()
        while not isinstance(event := await engine.advance(run, seen=seen), Done):
            for question in event.questions:  # seen, and left to be answered by another process
                seen.add(question.key)
                say("asks", question.key, question.kind)
        say("ended", event.status)
    except RunError as error:
        say("refused", error)
    finally:
        await engine.aclose(bench.kill)
        await bench.aclose()


asyncio.run(drive())
"""


class Driver:
    """A process that drives a run and leaves its questions to others.

    Args:
        folder: The project.
        run: The run's id, or "new".
    """

    def __init__(self, folder: Path, run: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(folder), run],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(),
            text=True,
        )
        assert self.heard() == "ready"

    def heard(self) -> str:
        """The next line that it says."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def asked(self) -> str:
        """The key of the question that it puts next."""
        match = re.fullmatch(r"asks (\S+) \w+", line := self.heard())
        assert match is not None, line
        return match[1]

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


def begun(project: Path, closing: ExitStack) -> tuple[Driver, str, str]:
    """A process that drives a new run, that run, and the question that it has come to."""
    driver = Driver(project, "new")
    closing.callback(driver.close)
    driver.go()
    _, run = driver.heard().split()
    return driver, run, driver.asked()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path, PROJECT)
    return tmp_path


@pytest.fixture
def closing() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def happened(folder: Path) -> list[str]:
    tool = folder / "effects.txt"
    files = [f"out/{path.name}" for path in (folder / "out").glob("*")]
    return sorted([*files, *(tool.read_text().split() if tool.exists() else ())])


async def no_body(run: object) -> None:
    raise AssertionError("this process drives nothing")


@pytest.mark.proves("TWO-PROCESSES", "A101")
async def test_one_drives_the_other_answers_and_takes_over_when_the_first_is_killed(
    project: Path, closing: ExitStack
) -> None:
    first, run, question = begun(project, closing)

    # The other cannot drive it, and answers through the store; the first goes on with that.
    second = Driver(project, run)
    closing.callback(second.close)
    second.go()
    assert f"run {run} is driven by a living process" in second.heard()
    async with engine(project / ".llm-do", no_body) as other:
        (waiting,) = await other.waiting()
        assert (waiting.question.key, waiting.driven) == (question, True)
        with pytest.raises(RunError, match="is driven by a living process"):
            await other.cancel(run)
        assert await other.answer(run, question, Answer("once", by="test"))
        assert not await other.answer(run, question, Answer("deny", by="test"))
    question = first.asked()
    assert happened(project) == ["recorded"]

    # Killed, it is known to be gone at once: an answer waits in the store for whoever takes the run over.
    first.kill()
    async with engine(project / ".llm-do", no_body) as other:
        (waiting,) = await other.waiting()
        assert not waiting.driven
        assert await other.answer(run, question, Answer("once", by="test"))
    third = Driver(project, run)
    closing.callback(third.close)
    third.go()
    assert [third.heard(), third.heard()] == [f"drives {run}", "ended done"]
    assert happened(project) == ALL


@pytest.mark.proves("RUN-CANCEL-ELSEWHERE", "TWO-PROCESSES")
async def test_a_run_is_cancelled_by_the_process_that_drives_it(project: Path, closing: ExitStack) -> None:
    first, run, _ = begun(project, closing)
    async with engine(project / ".llm-do", no_body) as other:
        assert await other.stop(run, "cancelled by the test")
        done = await other.outcome(run)
        assert (done.status, done.error) == ("cancelled", f"run {run} was cancelled by the test")
        assert await other.waiting() == []
        with pytest.raises(RunError, match=r"has ended \(cancelled\)"):
            await other.stop(run, "cancelled again")
        with pytest.raises(RunError, match="there is no run nope"):
            await other.stop("nope", "cancelled by the test")
    assert first.heard() == "ended cancelled"
    assert happened(project) == []


@pytest.mark.proves("RUN-CANCEL-ELSEWHERE", "TWO-PROCESSES")
async def test_who_goes_on_with_a_run_that_was_to_be_cancelled_cancels_it(
    project: Path, closing: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llm_do_mcp.runtime.engine.CANCELLED_WITHIN_S", 0.1)
    first, run, question = begun(project, closing)
    os.kill(first.process.pid, signal.SIGSTOP)  # it lives, and looks at nothing
    async with engine(project / ".llm-do", no_body) as other:
        assert not await other.stop(run, "cancelled by the test")
        assert await other.answer(run, question, Answer("once", by="test"))
    first.kill()
    second = Driver(project, run)
    closing.callback(second.close)
    second.go()
    assert [second.heard(), second.heard()] == [f"drives {run}", "ended cancelled"]
    assert happened(project) == []


@pytest.mark.proves("TWO-PROCESSES")
async def test_of_many_that_want_to_take_a_run_over_exactly_one_does(project: Path, closing: ExitStack) -> None:
    first, run, _ = begun(project, closing)
    first.kill()
    others = [Driver(project, run) for _ in range(4)]
    for other in others:
        closing.callback(other.close)
    for other in others:
        other.go()
    said = [other.heard().split()[0] for other in others]
    assert sorted(said) == ["drives", "refused", "refused", "refused"]


@pytest.mark.proves("TWO-PROCESSES", "CALL-KEY")
def test_a_call_that_is_repeated_to_another_server_joins_and_goes_on_there_when_the_first_is_killed(
    project: Path, closing: ExitStack
) -> None:
    key = {"llm-do/key": "mine"}
    wires = [Wire(command(project), capabilities={"elicitation": {}}) for _ in range(2)]
    for wire in wires:
        closing.callback(wire.close)
        wire.open()
    first, second = wires
    first.call("small", {"input": "go"}, **key)
    asked = first.asked()["params"]["message"]

    call = second.call("small", {"input": "go"}, **key)
    question = second.asked()
    assert question["params"]["message"] == asked  # by the process that drives the run, and shown by both

    first.process.kill()
    first.process.wait()
    for answered in (False, True):
        accepted = {"action": "accept", "content": {"decision": "once"}}
        second.write({"jsonrpc": "2.0", "id": question["id"], "result": accepted})
        question = question if answered else second.asked()
    result = second.answer(call)["result"]
    assert result["content"][0]["text"] == "all is done"
    assert happened(project) == ALL
    listed = subprocess.run(
        [*LLM_DO, "runs", "--json", "--project", str(project)], env=environment(), capture_output=True, check=True
    )
    assert [run["status"] for run in json.loads(listed.stdout)] == ["done"]


@pytest.mark.proves("TWO-PROCESSES", "HINTS")
def test_who_waits_for_a_run_of_another_server_is_told_how_to_answer_and_takes_over_when_that_is_killed(
    project: Path, closing: ExitStack
) -> None:
    first = Wire(command(project))  # its client cannot ask
    closing.callback(first.close)
    first.open()
    paused = first.answer(first.call("small", {"input": "go"}))["result"]
    run = paused["_meta"]["llm-do/run"]["id"]

    patience = Wire(command(project, "--call-within", "0.5"), capabilities={"elicitation": {}})
    closing.callback(patience.close)
    patience.open()
    told = patience.answer(patience.call("run_wait", {"run_id": run}))["result"]
    assert told["isError"] and told["_meta"]["llm-do/run"]["status"] == "waiting"
    hint = f"llm-do approve {run} --project {project}"
    assert f"waits for a person, who can answer in a terminal with: {hint}\n" in told["content"][0]["text"]
    patience.end_input()

    second = Wire(command(project), capabilities={"elicitation": {}})
    closing.callback(second.close)
    second.open()
    call = second.call("run_wait", {"run_id": run})
    first.process.kill()
    first.process.wait()
    for _ in range(2):
        question = second.asked()
        accepted = {"action": "accept", "content": {"decision": "once"}}
        second.write({"jsonrpc": "2.0", "id": question["id"], "result": accepted})
    assert second.answer(call)["result"]["content"][0]["text"] == "all is done"
    assert happened(project) == ALL
