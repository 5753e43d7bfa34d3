"""Real processes, killed with SIGKILL in the middle of a run, and `llm-do runs resume` behind them.

The project is small and has everything: a main worker, a sub-worker, a file that is written, a Python tool with an
effect. Each place where a test wants to kill is a FIFO that the project's code opens: the process stands there until
it is killed, and the test knows that it does because opening the other end waits for it.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from llm_do_mcp.project.load import load_project
from llm_do_mcp.runtime.engine import Asks, Done
from llm_do_mcp.runtime.question import Answer
from llm_do_mcp.toolsets.workbench import Workbench
from tests.cli.commands import LLM_DO, SERVE, Terminal, llm_do, running
from tests.project.conftest import worker, write
from tests.runtime.driving import engine

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills with signals and waits on FIFOs")

PLACES = '''
from pathlib import Path


def place(name):
    """Where a test may hold the process: a FIFO of this name, which nobody writes to."""
    fifo = Path("places", name)
    if fifo.exists():
        fifo.open().read()
'''

TOOLS = '''
from places import place

from llm_do_mcp import tool


@tool
def record(what: str) -> str:
    """Has an effect that must not happen twice."""
    place("before the effect")
    with open("effects.txt", "a") as file:
        file.write(what + "\\n")
    place("behind the effect")
    return "recorded"
'''

SCRIPT = """
from places import place


def call(name, **given):
    return {"tool_calls": [{"name": name, "input": given}]}


def reply(request):
    worker, turn = request["worker"], request["turn"]
    place(f"{worker}, turn {turn + 1}")
    if worker == "helper":
        return [call("write_file", path="out/helper.md", content="helped"), "helper is done"][turn]
    return [
        call("worker_call", worker="helper"),
        call("record", what="once"),
        call("write_file", path="out/main.md", content="main"),
        "all is done",
    ][turn]
"""

SANDBOX = """
toolsets:
  filesystem: {}
sandbox: {paths: {out: {root: ./out, mode: rw}}}
"""
MAIN = SANDBOX.replace("toolsets:", "toolsets:\n  custom: all\n  delegation: {allow_workers: [helper]}")

PROJECT = {
    "main.worker": worker(MAIN),
    "workers/helper.worker": worker(SANDBOX),
    "project.yaml": "name: small\nmodel: scripted:script.py\n",
    "places.py": PLACES,
    "tools.py": TOOLS,
    "script.py": SCRIPT,
}

SAFE = ["main, turn 1", "helper, turn 1", "helper, turn 2", "main, turn 4"]
"""Where nothing is in doubt: what was done is recorded, and what was not is done."""
IN_DOUBT = {"before the effect": 0, "behind the effect": 1}
"""Where nobody can know, and how often the effect has happened then."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path, PROJECT)
    return tmp_path


class Killed:
    """A project whose run was killed at a place.

    As a context manager: what the process left behind (its tool host) is held at the place until the end, so that
    nothing can go on by itself.
    """

    def __init__(
        self, project: Path, place: str, command: list[str] | None = None, with_signal: int = signal.SIGKILL
    ) -> None:
        self.project, self.place, self.signal = project, place, with_signal
        self.command = command or [*LLM_DO, str(project), "go", "--approve-all"]

    def __enter__(self) -> str:
        fifo = self.project / "places" / self.place
        fifo.parent.mkdir()
        os.mkfifo(fifo)
        with running(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            self._begin(process)
            self.held = _opened(fifo)
            os.kill(process.pid, self.signal)
            code = process.wait(30)
        assert code == (130 if self.signal == signal.SIGINT else -self.signal)
        fifo.unlink()
        (run,) = json.loads(llm_do("runs", "--json", "--project", self.project).stdout)
        assert run["status"] in ("running", "waiting")
        return str(run["id"])

    def __exit__(self, *_: object) -> None:
        os.close(self.held)

    def _begin(self, process: subprocess.Popen[str]) -> None:
        """What a client has to say first; a command needs nothing."""


class KilledServer(Killed):
    """The same for `llm-do-mcp`, with a client that approves."""

    def _begin(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None and process.stdout is not None

        def send(**message: Any) -> None:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")  # type: ignore[union-attr]
            process.stdin.flush()  # type: ignore[union-attr]

        client = {"name": "test", "version": "1"}
        hello = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": client}
        send(id=1, method="initialize", params=hello)
        assert json.loads(process.stdout.readline())["id"] == 1
        send(method="notifications/initialized")
        send(id=2, method="tools/call", params={"name": "small", "arguments": {"input": "go"}})

        def approve() -> None:
            for line in process.stdout or ():
                message = json.loads(line)
                if message.get("method") == "elicitation/create":
                    send(id=message["id"], result={"action": "accept", "content": {"decision": "once"}})

        ThreadPoolExecutor(1).submit(approve)


def _opened(fifo: Path) -> int:
    """The writing end of a FIFO, once somebody reads at the other."""
    with ThreadPoolExecutor(1) as threads:
        opening = threads.submit(os.open, fifo, os.O_WRONLY)
        try:
            return opening.result(timeout=30)
        except TimeoutError:
            os.close(os.open(fifo, os.O_RDONLY | os.O_NONBLOCK))  # lets the thread go
            raise


def done(project: Path) -> dict[str, Any]:
    """What the runs of a project have left in the world."""
    effects = project / "effects.txt"
    return {
        "effects": effects.read_text().split() if effects.exists() else [],
        "files": {path.name: path.read_text() for path in sorted((project / "out").glob("*.md"))},
    }


FILES = {"helper.md": "helped", "main.md": "main"}
ALL = {"effects": ["once"], "files": FILES}


@pytest.mark.proves("KILL-RESUME")
@pytest.mark.parametrize("place", SAFE)
@pytest.mark.parametrize("killed", [Killed, KilledServer])
def test_a_killed_run_goes_on_at_once_and_does_nothing_twice(project: Path, place: str, killed: type[Killed]) -> None:
    command = [*SERVE, str(project)] if killed is KilledServer else None
    with killed(project, place, command) as run:
        before = {path: path.stat().st_mtime_ns for path in (project / "out").glob("*.md")}
        resumed = llm_do("runs", "resume", run, "--project", project, "--approve-all")
    assert (resumed.returncode, resumed.stdout) == (0, "all is done\n"), resumed.stderr
    assert done(project) == ALL
    assert {path: path.stat().st_mtime_ns for path in before} == before, "a file was written twice"
    again = llm_do("runs", "resume", run, "--project", project)
    assert (again.returncode, again.stdout) == (1, "")
    assert f"run {run} has ended (done)" in again.stderr


@pytest.mark.proves("KILL-IN-DOUBT")
@pytest.mark.parametrize(("place", "happened"), IN_DOUBT.items())
def test_an_effect_that_was_under_way_is_not_repeated_where_nobody_can_be_asked(
    project: Path, place: str, happened: int
) -> None:
    with Killed(project, place) as run:
        for _ in range(2):  # asked again each time, and never settled by itself
            resumed = llm_do("runs", "resume", run, "--project", project, "--approve-all")
            assert (resumed.returncode, resumed.stdout) == (4, "")
            assert "\nin doubt: custom.record" in resumed.stderr
            assert f"llm-do runs resume {run}" in resumed.stderr
        assert done(project) == {"effects": ["once"] * happened, "files": {"helper.md": "helped"}}
        (row,) = json.loads(llm_do("runs", "--json", "--project", project).stdout)
        assert row["status"] == "waiting"


@pytest.mark.proves("KILL-IN-DOUBT", "CLI-PROMPT")
@pytest.mark.parametrize(
    ("place", "key", "code", "effects"),
    [
        ("behind the effect", "y it is in the file", 0, 1),
        ("before the effect", "r", 0, 1),
        ("behind the effect", "r", 0, 2),  # the person knows better
        ("before the effect", "q", 1, 0),
    ],
)
def test_at_a_terminal_the_person_decides_what_was_done(
    project: Path, place: str, key: str, code: int, effects: int
) -> None:
    with Killed(project, place) as run:
        resume = [*LLM_DO, "runs", "resume", run, "--project", str(project), "--approve-all"]
        with Terminal(resume) as terminal:
            terminal.expect("In doubt: this step was cut short")
            terminal.expect("[y] It was done: go on without repeating it")
            terminal.expect("> ")
            terminal.type(f"{key}\n")
            assert terminal.finish() == (code, "" if code else "all is done\n")
            if code:
                terminal.expect("was cut short, and the run was stopped there")
    assert done(project) == {"effects": ["once"] * effects, "files": FILES if code == 0 else {"helper.md": "helped"}}


@pytest.mark.proves("CLI-EXIT")
@pytest.mark.parametrize("place", ["main, turn 1", "helper, turn 2"])
def test_an_interrupted_command_exits_130_and_its_run_goes_on(project: Path, place: str) -> None:
    with Killed(project, place, with_signal=signal.SIGINT) as run:
        resumed = llm_do("runs", "resume", run, "--project", project, "--approve-all")
    assert (resumed.returncode, resumed.stdout) == (0, "all is done\n"), resumed.stderr
    assert done(project) == ALL


@pytest.mark.torture
@pytest.mark.anyio
@pytest.mark.proves("KILL-RANDOM")
async def test_whenever_it_is_killed_nothing_is_done_twice_and_nothing_is_lost(
    project: Path, tmp_path_factory: pytest.TempPathFactory, torture_scaled: Any
) -> None:
    began = time.monotonic()
    assert llm_do(project, "go", "--approve-all").returncode == 0
    whole = time.monotonic() - began
    seed = random.randrange(10**6)
    chance = random.Random(seed)
    for number in range(torture_scaled(3, 300)):
        folder = tmp_path_factory.mktemp(f"killed{number}")
        write(folder, PROJECT)
        command = [*LLM_DO, str(folder), "go", "--approve-all"]
        for _ in range(chance.randint(1, 3)):
            with running(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                try:
                    process.wait(chance.uniform(0.2, 1.0) * whole)
                except subprocess.TimeoutExpired:
                    os.kill(process.pid, signal.SIGKILL)
            runs = json.loads(llm_do("runs", "--json", "--project", folder).stdout)
            if not runs or runs[0]["status"] not in ("running", "waiting"):
                break
            command = [*LLM_DO, "runs", "resume", runs[0]["id"], "--project", str(folder), "--approve-all"]
        if runs:
            assert len(runs) == 1
            status = await _followed_to_its_end(folder, runs[0]["id"])
            assert (status, done(folder)) == ("done", ALL), f"seed {seed}, number {number}"
        else:
            assert done(folder) == {"effects": [], "files": {}}, f"seed {seed}, number {number}"


async def _followed_to_its_end(folder: Path, run: str) -> str:
    """Resume a run with a person in front who looks before deciding what is in doubt."""
    bench = Workbench(load_project(folder))
    try:
        async with engine(folder / ".llm-do", bench.body) as driver:
            if (await driver.store.get(run)).status in ("running", "waiting"):  # type: ignore[union-attr]
                await driver.resume(run)
            while not isinstance(event := await driver.advance(run), Done):
                assert isinstance(event, Asks)
                for question in event.questions:
                    decision = "once"
                    if question.kind == "in_doubt":
                        now = done(folder)
                        file = Path(question.target).name
                        there = file in now["files"] if question.function == "files.write" else now["effects"]
                        decision = "done" if there else "again"
                    await driver.answer(run, question.key, Answer(decision, by="test"))
            return event.status
    finally:
        await bench.aclose()
