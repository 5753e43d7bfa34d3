"""Killed at every crash point, once and several times, the run does each step once and asks about each in doubt.

The body is a real one: a main worker calls a sub-worker, which runs a Python tool with an effect; then the main worker
writes a file. Both effects are approved by a person. The process that drives it is `crashing.py`.
"""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from tests.cli.commands import environment
from tests.project.conftest import worker, write
from tests.runtime.crashing import effects, noted

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forks, and kills with signals")

PROJECT = {
    "project.yaml": "name: small\nmodel: scripted:model.yaml\n",
    "main.worker": worker(
        "toolsets:\n  filesystem: {}\n  delegation: {allow_workers: [helper]}\n"
        "sandbox: {paths: {out: {root: ./out, mode: rw}}}\n"
    ),
    "workers/helper.worker": worker("toolsets:\n  custom: all\n"),
    "tools.py": '''
from llm_do_mcp import tool


@tool
def record(what: str) -> str:
    """Has an effect that must not happen twice."""
    with open("effects.txt", "a") as file:
        file.write(what + "\\n")
    return what
''',
    "model.yaml": """
workers:
  main:
    - tool_calls: [{name: worker_call, input: {worker: helper}}]
    - tool_calls: [{name: write_file, input: {path: out/report.md, content: written}}]
    - all is done
  helper:
    - tool_calls: [{name: record, input: {what: recorded}}]
    - helped
""",
}
ALL = ["out/report.md", "recorded"]
APPROVED = ["t0.0/t0.0.ok", "t1.0.ok"]


class Forks:
    """The process that forks those which drive the run."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.runtime.crashing"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(),
            text=True,
        )

    def drive(self, folder: Path, run: str | None = None, die_at: int | None = None) -> int:
        """Drive a run to its end, or to a crash point; how the process ended."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({"folder": str(folder), "run": run, "die_at": die_at}) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with Forks() as forks:
        yield forks


Fresh = Callable[[], Path]


@pytest.fixture
def fresh(tmp_path: Path) -> Fresh:
    """Makes the project anew, each time in a folder of its own."""
    count = iter(range(10**6))

    def made() -> Path:
        folder = tmp_path / str(next(count))
        write(folder, PROJECT)
        return folder

    return made


def record(folder: Path) -> dict[str, Any] | None:
    """The run as it stands in the store: its id and status, and the states of what was begun with an intent."""
    path = folder / ".llm-do" / "runs.sqlite3"
    if not path.exists():
        return None
    db = sqlite3.connect(path)
    try:
        found = db.execute("SELECT id, status FROM run").fetchall()
        if not found:
            return None
        ((run, status),) = found
        intents = db.execute("SELECT key, data FROM event WHERE state='started' AND data<>'null'").fetchall()
        doubted = db.execute("SELECT key FROM event WHERE key LIKE '%.doubt%' AND state<>'asked'").fetchall()
    except sqlite3.OperationalError:  # killed before it had its tables
        return None
    finally:
        db.close()
    settled = {key for (key,) in doubted}
    doubts = {f"{key}.doubt{number}" for key, number in intents} - settled
    return {"id": run, "status": status, "doubts": doubts}


def crash_and_resume(forks: Forks, folder: Path, deaths: list[int]) -> None:
    """Let the run die at these crash points, one process after the other, and then come to its end as it should."""
    must_ask: set[str] = set()
    for die_at in [*deaths, None]:
        found = record(folder)
        if found is not None and found["status"] not in ("running", "waiting"):
            break  # it had ended at the moment of the crash
        if found is not None:
            must_ask |= found["doubts"]
        run = None if found is None else found["id"]
        code = forks.drive(folder, run, die_at)
        assert code in ((0, -signal.SIGKILL) if die_at else (0,)), (deaths, code)
    after = record(folder)
    assert after is not None and after["status"] == "done", (deaths, after)
    log = noted(folder)
    asked = [one["answered"] for one in log if one.get("kind") == "in_doubt"]
    assert effects(folder) == ALL, (deaths, effects(folder))
    # An answer that was committed and not yet noted down when the process died is there all the same.
    assert set(asked) <= must_ask, (deaths, asked, must_ask)
    answers = settled(folder)
    assert answers == must_ask | set(APPROVED), (deaths, answers, must_ask)
    given = Counter(one["answered"] for one in log if "answered" in one)
    assert all(count == 1 for count in given.values()), (deaths, given)


def settled(folder: Path) -> set[str]:
    """The questions that a person has answered, by the record."""
    db = sqlite3.connect(folder / ".llm-do" / "runs.sqlite3")
    try:
        return {key for (key,) in db.execute("SELECT key FROM event WHERE kind='ask' AND state='answered'")}
    finally:
        db.close()


def points(forks: Forks, folder: Path) -> list[str]:
    """The crash points of a run that nothing disturbs."""
    assert forks.drive(folder) == 0
    (end,) = [one for one in noted(folder) if "ended" in one]
    assert (end["ended"], end["output"]) == ("done", "all is done")
    assert effects(folder) == ALL and settled(folder) == set(APPROVED)
    return list(end["points"])


@pytest.mark.torture
@pytest.mark.proves("CRASH-EVERY-POINT")
def test_killed_at_each_crash_point_it_does_every_step_once(
    forks: Forks, fresh: Fresh, torture_scaled: Callable[[int, int], int]
) -> None:
    count = len(points(forks, fresh()))
    assert count >= 30, "a run passes its commits and its effects"
    first = random.randrange(stride := torture_scaled(6, 1))
    for die_at in range(1 + first, count + 1, stride):
        crash_and_resume(forks, fresh(), [die_at])


@pytest.mark.torture
@pytest.mark.proves("CRASH-AGAIN")
def test_killed_again_and_again_it_still_does_every_step_once(
    forks: Forks, fresh: Fresh, torture_scaled: Callable[[int, int], int]
) -> None:
    count = len(points(forks, fresh()))
    chance = random.Random(seed := random.randrange(10**6))
    for number in range(torture_scaled(4, 300)):
        deaths = [chance.randint(1, count) for _ in range(chance.randint(2, 4))]
        try:
            crash_and_resume(forks, fresh(), deaths)
        except AssertionError as failed:
            failed.add_note(f"seed {seed}, number {number}")
            raise


@pytest.mark.proves("CRASH-IN-DOUBT")
def test_killed_on_either_side_of_an_effect_it_asks_about_that_and_nothing_else(forks: Forks, fresh: Fresh) -> None:
    passed = points(forks, fresh())
    for effect in ("custom.record", "files.write"):
        for side, decision in (("before", "again"), ("behind", "done")):
            folder = fresh()
            crash_and_resume(forks, folder, [passed.index(f"{side} {effect}") + 1])
            asked = [(one["function"], one["decision"]) for one in noted(folder) if one.get("kind") == "in_doubt"]
            assert asked == [(effect, decision)]
