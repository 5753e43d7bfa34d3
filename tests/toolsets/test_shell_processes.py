"""Commands as processes: how they end, what is kept of what they print, and that nothing of them stays behind."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from llm_do_mcp.runtime.engine import Asks, Engine
from llm_do_mcp.runtime.question import Answer
from llm_do_mcp.toolsets import shell
from llm_do_mcp.toolsets.capture import Capture
from tests.cli.commands import LLM_DO, SERVE, llm_do, running
from tests.descriptors import is_readable_within
from tests.runtime.workshop import calling
from tests.toolsets.commands import Project, result

pytestmark = pytest.mark.anyio

FAMILY = {b"parent", b"child", b"daemon"} if os.path.isdir("/proc/self/fd") else {b"parent", b"child"}
"""Who holds the FIFO open; what leaves its session as well is found where the system can adopt orphans."""


class Alive:
    """A FIFO that the processes of a command hold open."""

    def __init__(self, project: Project) -> None:
        self.path = project.root / "work" / "alive"
        os.mkfifo(self.path)
        self._fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        self._seen = b""

    def names(self) -> set[bytes]:
        """Who has come to life so far."""
        try:
            while data := os.read(self._fd, 4096):
                self._seen += data
        except BlockingIOError:
            pass
        return {line for line in self._seen.splitlines() if not line.startswith(b"guard ")}

    def guard(self) -> int:
        """The process between them and the server."""
        (line,) = (line for line in self._seen.splitlines() if line.startswith(b"guard "))
        return int(line.split()[1])

    def some(self) -> bool:
        """Whether one of them is alive now."""
        self.names()
        try:
            return os.read(self._fd, 1) != b""
        except BlockingIOError:
            return True

    async def all_there(self, expected: Collection[bytes] = FAMILY) -> None:
        """Wait until all of these have come to life."""
        async with asyncio.timeout(30):
            while self.names() != expected:
                await self._readable()

    async def _readable(self) -> None:
        """Wait for somebody to write, or, where the other end has no writer yet, for a moment."""
        loop, come = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._fd, come.set)
        try:
            await come.wait()
        finally:
            loop.remove_reader(self._fd)

    def end(self) -> None:
        """Wait until all are gone."""
        os.set_blocking(self._fd, True)
        with ThreadPoolExecutor(1) as threads:
            threads.submit(self._read_to_the_end).result(30)

    def _read_to_the_end(self) -> None:
        while data := os.read(self._fd, 4096):
            self._seen += data


# ---- results


@pytest.mark.proves("SHELL-RESULT")
@pytest.mark.parametrize(("how", "code"), [("0", 0), ("3", 3), ("signal", 128 + signal.SIGTERM)])
async def test_how_a_command_ended_is_its_result(project: Project, how: str, code: int) -> None:
    said = await project.run(f"ends {how}")
    assert said == {"exit_code": code, "stdout": "out\n", "stderr": "err\n", "truncated": 0}


@pytest.mark.proves("SHELL-RESULT")
async def test_a_program_that_cannot_be_started_is_named(project: Project, programs: Path) -> None:
    (programs / "words").write_text("no program at all")
    assert await project.run("words") == "shell: words cannot be started: Exec format error"


@pytest.mark.proves("SHELL-RESULT")
async def test_commands_of_one_turn_run_at_the_same_time(project: Project) -> None:
    calls = [("shell", {"command": f"words {number}"}) for number in range(20)]
    async with project.workshop() as shop:
        told = await shop.told(*calls)
    assert [json.loads(json.loads(content)["stdout"]) for content, _ in told] == [[str(n)] for n in range(20)]


# ---- output


@pytest.mark.proves("SHELL-OUTPUT")
async def test_a_flood_is_counted_exactly_and_kept_nowhere(project: Project) -> None:
    size = 15 << 20
    async with project.workshop() as shop:
        await result(shop, "flood 65536")  # what is imported and cached on the way is not counted below
        tracemalloc.start()
        try:
            said = await result(shop, f"flood {size}")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert said["truncated"] == size - shell.MOST_BYTES
    half = "x" * (shell.MOST_BYTES // 2)
    assert said["stdout"] == f"{half}\n[… {said['truncated']} bytes left out …]\n{half}"
    assert peak < 8 << 20


@pytest.mark.proves("SHELL-OUTPUT")
async def test_a_command_that_prints_without_end_is_ended(project: Project) -> None:
    said = await project.run(f"flood {1 << 50}")
    assert said["exit_code"] is None and said["stopped"].startswith(f"it printed more than {shell.MOST_PRINTED} bytes")
    assert said["truncated"] + shell.MOST_BYTES > shell.MOST_PRINTED


@pytest.mark.proves("SHELL-OUTPUT")
@pytest.mark.parametrize("pieces", [1, 3, 1000])
@pytest.mark.parametrize("character", ["x", "ä", "☃", "🂡"])
def test_output_is_cut_between_characters(character: str, pieces: int) -> None:
    data = b"." + (character * 200).encode() + b"."
    capture = Capture(100)
    for begin in range(0, len(data), pieces):
        capture.take(data[begin : begin + pieces])
    text, left_out = capture.text()
    begins, line, ends = text.split("\n")
    assert "\ufffd" not in text
    assert len(begins.encode()) + left_out + len(ends.encode()) == len(data)
    assert line == f"[… {left_out} bytes left out …]"
    assert (begins[0], ends[-1]) == (".", ".")
    assert 92 <= len((begins + ends).encode()) <= 100


@pytest.mark.proves("SHELL-OUTPUT")
def test_what_fits_is_whole_and_what_is_no_text_is_shown_as_such() -> None:
    capture = Capture(10)
    capture.take(b"\xff" + "ääää".encode() + b"\x80")
    assert capture.text() == ("\ufffdääää\ufffd", 0)
    capture = Capture(4)
    capture.take(b"\x80" * 10)
    assert capture.text()[1] + capture.text()[0].count("\ufffd") == 10


# ---- the end of a command is the end of all that it started


@pytest.mark.proves("SHELL-LEFT")
async def test_what_a_command_leaves_behind_ends_with_it(project: Project) -> None:
    alive = Alive(project)
    said = await project.run("family work/alive leave")
    assert (said["exit_code"], said["stdout"]) == (0, "left\n")
    assert alive.names() == FAMILY - {b"parent"}
    assert not alive.some()


@pytest.mark.proves("SHELL-TIME")
async def test_after_its_time_a_command_is_gone_with_all_it_started(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shell, "SECONDS", 1.5)
    alive = Alive(project)
    said = await project.run("family work/alive stay")
    assert not alive.some()
    assert alive.names() == FAMILY
    assert said["exit_code"] is None
    assert said["stopped"].startswith("it took longer than 1.5 s")


@pytest.mark.proves("SHELL-CANCEL")
async def test_a_cancelled_run_ends_its_command_within_a_second(project: Project) -> None:
    alive = Alive(project)
    async with project.workshop() as shop:
        run = await shop.start(calling(("shell", {"command": "family work/alive stay"})))
        await alive.all_there()
        began = time.monotonic()
        await shop.engine.cancel(run)
        assert time.monotonic() - began < 1.0
        assert not alive.some()


@pytest.mark.proves("SHELL-CANCEL")
async def test_an_engine_that_ends_takes_its_commands_along(project: Project) -> None:
    alive = Alive(project)
    async with project.workshop() as shop:
        await shop.start(calling(("shell", {"command": "family work/alive stay"})))
        await alive.all_there()
        began = time.monotonic()
        await shop.engine.aclose()
        assert time.monotonic() - began < 1.0
        assert not alive.some()


@pytest.mark.proves("SHELL-CANCEL")
async def test_to_stop_its_guard_is_no_way_out(project: Project) -> None:
    alive = Alive(project)
    async with project.workshop() as shop:
        run = await shop.start(calling(("shell", {"command": "rebel work/alive SIGSTOP"})))
        await alive.all_there({b"parent", b"child"})
        began = time.monotonic()
        await shop.engine.cancel(run)
        assert time.monotonic() - began < 1.5
        assert not alive.some()


@pytest.mark.proves("SHELL-CANCEL")
async def test_to_kill_its_guard_is_no_way_out(project: Project) -> None:
    alive = Alive(project)
    said = await project.run("rebel work/alive SIGKILL")
    assert not alive.some()
    assert said["exit_code"] is None
    assert "killed from outside" in said["stopped"]


@pytest.mark.proves("SHELL-RESULT")
async def test_a_command_that_signals_its_group_still_has_its_own_result(project: Project) -> None:
    assert (await project.run("rebel - group"))["exit_code"] == 7


# ---- the server


def _begun(project: Project, line: str) -> list[str]:
    """The command that starts a run which runs a command, in a process of its own."""
    project.workshop()  # writes the files
    return [*LLM_DO, str(project.root), calling(("shell", {"command": line})), "--approve-all"]


@pytest.mark.proves("SHELL-KILLED")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
async def test_no_command_outlives_a_process_that_is_killed(project: Project, number: int) -> None:
    alive = Alive(project)
    command = _begun(project, "family work/alive stay")
    with running(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        await alive.all_there()
        with _exit_of(alive.guard()):
            os.kill(process.pid, number)
            await asyncio.to_thread(process.wait, 30)
    await asyncio.to_thread(alive.end)


@contextlib.contextmanager
def _exit_of(process: int) -> Iterator[None]:
    """Behind the block, wait for the end of a process that is not ours, where the system can tell of it."""
    if sys.platform != "linux":
        yield
        return
    descriptor = os.pidfd_open(process)
    try:
        yield
        assert is_readable_within(descriptor, 30)
    finally:
        os.close(descriptor)


@pytest.mark.proves("SHELL-KILLED")
async def test_the_end_of_input_ends_a_servers_commands(project: Project) -> None:
    alive = Alive(project)
    project.workshop()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with running([*SERVE, str(project.root)], **pipes) as process:
        assert process.stdin is not None and process.stdout is not None
        client = {"name": "test", "version": "1"}
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        given = {"input": calling(("shell", {"command": "family work/alive stay"}))}
        for message in (
            {"id": 1, "method": "initialize", "params": hello},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": {"name": "shop", "arguments": given}},
        ):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            process.stdin.flush()
        await alive.all_there()
        process.stdin.close()
        await asyncio.to_thread(process.wait, 30)
        await asyncio.to_thread(alive.end)


@pytest.mark.proves("SHELL-KILLED")
async def test_a_command_that_was_under_way_is_asked_about_and_not_repeated(project: Project, temporary: Path) -> None:
    fifo = project.root / "work" / "place"
    os.mkfifo(fifo)
    effects = project.root / "work" / "effects.txt"
    command = _begun(project, "record work/place")
    with running(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        assert await asyncio.to_thread(_line, fifo) == b"recorded\n"
        os.kill(process.pid, signal.SIGKILL)
        await asyncio.to_thread(process.wait, 30)
    (row,) = json.loads(llm_do("runs", "--json", "--project", project.root).stdout)
    for _ in range(2):
        resumed = llm_do("runs", "resume", row["id"], "--project", project.root, "--approve-all")
        assert (resumed.returncode, resumed.stdout) == (4, "")
        assert "in doubt: shell record work/place" in resumed.stderr
    assert effects.read_text() == "once\n"
    async with project.workshop() as shop:
        driver: Engine = shop.engine
        await driver.resume(row["id"])
        event = await driver.advance(row["id"])
        assert isinstance(event, Asks)
        (question,) = event.questions
        assert (question.kind, question.target) == ("in_doubt", "record work/place")
        await driver.answer(row["id"], question.key, Answer("done", by="test"))
        done = await driver.advance(row["id"])
        assert getattr(done, "status", None) == "done", done
    assert effects.read_text() == "once\n"


def _line(fifo: Path) -> bytes:
    with fifo.open("rb") as file:
        return file.readline()
