"""What the world does to a run: calls that meet in one file, a disk that loses what it was not told to keep, clocks."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from llm_do_mcp.runtime.limits import Limits
from llm_do_mcp.runtime.question import Answer
from llm_do_mcp.runtime.run import Run
from llm_do_mcp.sandbox.files import Sandbox
from llm_do_mcp.sandbox.root import Root
from tests.runtime.driving import asked, asking, definition, ended, engine, giving
from tests.runtime.workshop import Workshop, approve, calling

pytestmark = pytest.mark.anyio


@pytest.mark.proves("A100")
async def test_calls_that_meet_in_one_file_read_and_leave_whole_versions(tmp_path: Path) -> None:
    versions = [letter * 200_000 for letter in "abcdefgh"]
    calls: list[tuple[str, dict[str, Any]]] = [("read_file", {"path": "out/a.md", "max_chars": 200_000})] * 4
    for number, version in enumerate(versions):
        calls.insert(number * 3 // 2, ("write_file", {"path": "out/a.md", "content": version}))
    async with Workshop(tmp_path, {"out/a.md": versions[0]}) as shop:
        done = await shop.run(calling(*calls), approve)
    results = [result["content"] for result in json.loads(done.output)["results"]]
    assert sum(result in versions for result in results) == 4, "each read is one version as a whole"
    assert (tmp_path / "out" / "a.md").read_text() in versions
    assert done.account["files_changed"] == ["out/a.md"]
    assert len(done.account["approvals"]) >= len(versions), "what another has overwritten is asked about again"


@pytest.mark.proves("A105")
@pytest.mark.skipif(sys.platform == "win32", reason="folders cannot be flushed there")
def test_a_write_is_on_the_disk_with_its_folder_before_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[tuple[bool, list[str]]] = []
    fsync = os.fsync

    def noting(descriptor: int) -> None:
        names = [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")]
        flushed.append((stat.S_ISDIR(os.fstat(descriptor).st_mode), names))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noting)
    Sandbox([Root("out", str(tmp_path), "rw")]).write_text("out", "a.md", "x")
    # The content before it has its name, and the folder behind that.
    assert flushed == [(False, []), (True, ["a.md"])]


@pytest.mark.proves("A106")
@pytest.mark.parametrize("jump", [-86_400.0, 86_400.0])
async def test_a_clock_that_jumps_ends_no_run_and_prolongs_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    async def body(run: Run) -> Any:
        await run.step("a", "read", {}, giving(1), once=False)
        answer = await run.ask("ok", {}, asking())
        if answer.decision == "once":
            return "in time"
        await asyncio.Event().wait()
        return None

    async with engine(tmp_path, body) as driver:
        told = time.time
        for decision, output in (("once", "in time"), ("deny", None)):
            run = await driver.start("main", definition(limits=Limits(timeout_s=0.5)))
            (question,) = await asked(driver, run)
            monkeypatch.setattr(time, "time", lambda: told() + jump)
            await driver.answer(run, question.key, Answer(decision))
            done = await asyncio.wait_for(ended(driver, run), 5)
            assert done.output == output
            monkeypatch.setattr(time, "time", told)
        assert done.error == "worker main stopped: its limit timeout_s of 0.5 was reached"
