"""The time that a run has been driven is part of its record: a limit of time holds over all processes that drive it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from llm_do_mcp.errors import FunctionFailed
from llm_do_mcp.runtime.limits import Limits
from llm_do_mcp.runtime.question import Answer
from llm_do_mcp.runtime.run import Run
from tests.cli.commands import LLM_DO, PATIENCE_S, llm_do, running
from tests.project.conftest import worker, write
from tests.runtime.driving import asked, asking, define, definition, engine, finished


def noted(state: Path) -> float:
    """The seconds of work that the record of the only run has; 0 where there is none yet."""
    try:
        db = sqlite3.connect(f"{(state / 'runs.sqlite3').as_uri()}?mode=ro", uri=True)
        try:
            return float(db.execute("SELECT driven FROM run").fetchone()[0])
        finally:
            db.close()
    except (sqlite3.OperationalError, TypeError):
        return 0.0


def note(state: Path, seconds: float) -> None:
    """Make the record say that the run has been worked on for so long."""
    with sqlite3.connect(state / "runs.sqlite3") as db:
        db.execute("UPDATE run SET driven=?", (seconds,))
    db.close()


@pytest.mark.anyio
@pytest.mark.proves("RUN-TIME-RECORDED", "LIMIT-TREE")
@pytest.mark.parametrize(
    ("worked", "said"),
    [
        (110.0, "helper is done"),
        (140.0, "worker helper stopped: its limit timeout_s of 30 was reached"),
        (240.0, "worker main stopped: its limit timeout_s of 200 was reached (during worker.call)"),
    ],
    ids=["neither", "the sub-worker's", "its parent's"],
)
async def test_a_limit_of_time_holds_over_all_processes(tmp_path: Path, worked: float, said: str) -> None:
    """A worker works for 100 s; its sub-worker begins then, and goes on when there were `worked` seconds in all."""

    async def helper(run: Run) -> Any:
        await run.ask("second", {}, asking())
        return "helper is done"

    async def body(run: Run) -> Any:
        await run.ask("first", {}, asking())
        try:
            return await run.child("c", "helper", {}, define(name="helper", limits=Limits(timeout_s=30)), helper)
        except FunctionFailed as error:
            return str(error)

    async with engine(tmp_path, body) as driver:
        run = await driver.start("main", definition(limits=Limits(timeout_s=200)))
        (first,) = await asked(driver, run)
    note(tmp_path, 100.0)
    async with engine(tmp_path, body) as driver:
        await driver.resume(run)
        await driver.answer(run, first.key, Answer("once"))
        await asked(driver, run, seen={first.key})
    assert 100.0 <= noted(tmp_path) < 130.0
    note(tmp_path, worked)
    async with engine(tmp_path, body) as driver:
        await driver.resume(run)
        done = await asyncio.wait_for(finished(driver, run, lambda _: Answer("once")), 10)
    assert (done.error or done.output) == said


@pytest.mark.proves("RUN-TIME-RECORDED", "KILL-RESUME")
@pytest.mark.skipif(sys.platform == "win32", reason="kills with signals")
def test_a_run_that_is_killed_again_and_again_still_meets_its_limit(tmp_path: Path) -> None:
    """Its only turn never ends, so nothing but the time itself is recorded between the kills."""
    write(
        tmp_path,
        {
            "project.yaml": "name: small\nmodel: scripted:script.py\n",
            "main.worker": worker("limits: {timeout_s: 2.5}"),
            "script.py": "import time\n\n\ndef reply(request):\n    time.sleep(1000)\n",
        },
    )
    command = [*LLM_DO, str(tmp_path), "go"]
    kills, driven = 0, [0.0]
    while True:
        with running(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            while process.poll() is None and noted(tmp_path / ".llm-do") < driven[-1] + 0.5:
                time.sleep(0.02)
            driven.append(noted(tmp_path / ".llm-do"))
            if process.poll() is None and driven[-1] < 2.5:  # else it is about to end by itself
                os.kill(process.pid, signal.SIGKILL)
                kills += 1
            _, said = process.communicate(timeout=PATIENCE_S)
        if process.returncode != -signal.SIGKILL:
            break
        (row,) = json.loads(llm_do("runs", "--json", "--project", tmp_path).stdout)
        command = [*LLM_DO, "runs", "resume", row["id"], "--project", str(tmp_path)]
    assert process.returncode == 1 and "worker main stopped: its limit timeout_s of 2.5 was reached" in said
    assert 1 <= kills <= 2 and driven == sorted(driven)
