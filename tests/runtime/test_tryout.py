"""Whether runs can be recorded is found out beforehand, and nothing of the trial is left."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from llm_do_mcp.errors import LlmDoError
from llm_do_mcp.runtime import tryout
from llm_do_mcp.runtime.store import VERSION, WRITTEN_WITHIN_S, Batch, RunRow, Store
from llm_do_mcp.runtime.tryout import try_out
from tests.runtime.holding import DATABASE, holding
from tests.serving.clients import everything

ELSEWHERE = "or name another folder with --state-dir"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A state folder, without a record."""
    made = tmp_path / ".llm-do"
    made.mkdir()
    return made


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patience ends at once."""
    monkeypatch.setattr(tryout, "WITHIN_S", 0.1)


def record(folder: Path) -> Path:
    """A record with one run in it."""
    path = folder / "runs.sqlite3"

    async def begin() -> None:
        await store.write(Batch(RunRow("r1", None, "main", "done", None, "one", 1, 1.0, 1.0), create=True))

    with closing(Store(path)) as store:
        asyncio.run(begin())
    return path


def later(folder: Path) -> None:
    with closing(sqlite3.connect(record(folder))) as db:
        db.execute(f"PRAGMA user_version={VERSION + 1}")


def refused(folder: Path) -> str:
    """What is said where nothing can be recorded; to find that out nothing is made, but the lock of what is there."""
    before = everything(folder.parent)
    with pytest.raises(LlmDoError) as said:
        try_out(folder)
    assert everything(folder.parent).keys() - before.keys() <= {".llm-do/runs.lock"}
    return str(said.value)


@pytest.mark.proves("DOCTOR-RUNS")
@pytest.mark.parametrize("there", [False, True], ids=["no folder", "a folder"])
def test_where_there_is_no_record_none_is_made(tmp_path: Path, there: bool) -> None:
    if there:
        (tmp_path / ".llm-do").mkdir()
        (tmp_path / ".llm-do" / "runs.lock").touch()
    before = everything(tmp_path)
    assert try_out(tmp_path / ".llm-do") == frozenset()
    assert everything(tmp_path) == before


@pytest.mark.proves("DOCTOR-RUNS")
def test_the_runs_of_a_record_are_found_and_it_stays_as_it_is(folder: Path) -> None:
    record(folder)
    before = everything(folder)
    assert try_out(folder) == {"r1"}
    assert everything(folder).keys() == before.keys()


@pytest.mark.proves("DOCTOR-RUNS")
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda folder: (folder / "runs.lock").mkdir(), "runs.lock: Is a directory; remove it"),
        (
            lambda folder: (folder / "runs.lock").symlink_to("/no/such/lock"),
            "runs.lock: it is a link that leads nowhere; remove it",
        ),
        (
            lambda folder: (folder / "runs.sqlite3").mkdir(),
            "unable to open database file; see to it that it is a file that can be written",
        ),
        (
            lambda folder: (folder / "runs.sqlite3").symlink_to("runs.sqlite3"),
            "unable to open database file; see to it that it is a file that can be written",
        ),
        (lambda folder: (folder / "runs.sqlite3").write_text("garbage"), "file is not a database; move it away"),
        (lambda folder: os.truncate(record(folder), 8192), "database disk image is malformed; move it away"),
        (
            later,
            f"it is of a later release of llm-do-mcp (version {VERSION + 1}; here at most {VERSION}); use that release",
        ),
    ],
    ids=[
        "the lock is a folder",
        "a link",
        "the record is a folder",
        "a circle",
        "garbage",
        "cut off",
        "of a later release",
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="the system has other words for it")
def test_what_stands_in_the_way_is_one_line(folder: Path, make: Callable[[Path], None], said: str) -> None:
    make(folder)
    place = folder / "runs.sqlite3"
    assert refused(folder) == f"{place}: the record of runs cannot be opened: {said}, {ELSEWHERE}"


@pytest.mark.proves("DOCTOR-RUNS")
@pytest.mark.skipif(sys.platform == "win32", reason="who makes links there has to be an administrator")
def test_a_record_may_be_a_link_to_where_there_is_none_yet(folder: Path, tmp_path: Path) -> None:
    (folder / "runs.sqlite3").symlink_to(tmp_path / "disk" / "runs.sqlite3")
    assert refused(folder).endswith("disk (No such file or directory); name another folder with --state-dir")
    (tmp_path / "disk").mkdir()
    before = everything(tmp_path)
    assert try_out(folder) == frozenset()
    assert everything(tmp_path) == before


@pytest.mark.proves("DOCTOR-RUNS")
@pytest.mark.parametrize("recorded", [False, True], ids=["no record", "a record"])
def test_who_holds_the_lock_is_soon_done_with(folder: Path, soon: None, recorded: bool) -> None:
    if recorded:
        record(folder)
    with holding(folder / "runs.lock"):
        assert f"another process has held runs.lock for 0.1 s; end that process, {ELSEWHERE}" in refused(folder)
    assert try_out(folder) == ({"r1"} if recorded else frozenset()), "it is gone"


@pytest.mark.proves("DOCTOR-RUNS")
def test_who_keeps_others_from_writing_is_soon_done_with(folder: Path, soon: None) -> None:
    with holding(record(folder), DATABASE):
        began = time.monotonic()
        assert refused(folder).endswith(f"database is locked; end the process that holds it, {ELSEWHERE}")
        assert time.monotonic() - began < WRITTEN_WITHIN_S / 2, "a server would go on waiting"
