"""The record of runs: what is committed stays, and only the process that drives a run writes to it."""

from __future__ import annotations

import asyncio
import ctypes
import dataclasses
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from llm_do_mcp import filelock
from llm_do_mcp.errors import LeaseLost, RunError
from llm_do_mcp.runtime import store as kept
from llm_do_mcp.runtime.lease import Lease
from llm_do_mcp.runtime.store import FOLDED_AT, Batch, Event, RunRow, Store

ROW = RunRow("r1", None, "main", "running", None, "one", 1, 1.0, 1.0)
EVENT = Event("t0", "model", "d", "done", {"text": "x"}, 1.0, 2.0)


@pytest.fixture
def store(tmp_path: Path):
    made = Store(tmp_path / "runs.sqlite3")
    yield made
    made.close()


def _older(path: Path, version: int) -> None:
    """A record as it was kept at an earlier version."""
    driven = ", driven REAL NOT NULL DEFAULT 0" if version == 2 else ""
    with closing(sqlite3.connect(path)) as db:
        db.executescript(
            "CREATE TABLE run(id TEXT PRIMARY KEY, key TEXT UNIQUE, name TEXT NOT NULL, status TEXT NOT NULL,"
            " outcome TEXT, owner TEXT NOT NULL, fence INTEGER NOT NULL, created REAL NOT NULL, updated REAL NOT NULL"
            f"{driven}); INSERT INTO run(id, name, status, owner, fence, created, updated)"
            f" VALUES('r1', 'main', 'running', 'one', 1, 1.0, 1.0); PRAGMA user_version={version};"
        )


@pytest.mark.anyio
@pytest.mark.proves("JOURNAL-OLDER")
@pytest.mark.parametrize("version", [1, 2])
async def test_an_older_record_is_taken_on(tmp_path: Path, version: int) -> None:
    _older(tmp_path / "runs.sqlite3", version)
    for _ in range(2):
        older = Store(tmp_path / "runs.sqlite3")
        assert await older.get("r1") == ROW
        older.close()


@pytest.mark.anyio
@pytest.mark.proves("JOURNAL-OLDER", "RUN-CANCEL-ELSEWHERE")
@pytest.mark.parametrize("older", [False, True])
async def test_why_a_run_was_given_up_first_is_noted_also_in_an_older_record(tmp_path: Path, older: bool) -> None:
    path = tmp_path / "runs.sqlite3"
    if older:
        _older(path, 2)
    for reason in ("cancelled first", "cancelled again"):
        store = Store(path)
        if not older and reason == "cancelled first":
            await store.write(Batch(ROW, create=True))
        await store.give_up("r1", reason)
        assert await store.given_up(["r0", "r1", "r2"]) == {"r1": "cancelled first"}
        assert await store.given_up([]) == {}
        store.close()


@pytest.mark.anyio
@pytest.mark.proves("START-TWICE")
@pytest.mark.parametrize("version", [0, 1])
async def test_those_that_open_a_record_at_once_can_all_use_it(tmp_path: Path, version: int) -> None:
    for folder in (tmp_path / str(number) for number in range(20)):
        folder.mkdir()
        if version:
            _older(folder / "runs.sqlite3", version)
        stores = [Store(folder / "runs.sqlite3") for _ in range(8)]
        try:
            assert await asyncio.gather(*(store.get("r1") for store in stores)) == [ROW if version else None] * 8
        finally:
            for store in stores:
                store.close()


@pytest.mark.anyio
@pytest.mark.proves("START-TWICE")
async def test_who_does_not_come_to_its_turn_is_told_so_and_may_try_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "OPENED_WITHIN_S", 0.1)
    store = Store(tmp_path / "runs.sqlite3")
    with filelock.held(tmp_path / "runs.lock"):
        for _ in range(2):
            with pytest.raises(RunError, match=r"another process has held runs\.lock for 0\.1 s; end that process"):
                await asyncio.wait_for(store.get("r1"), 30)
    assert await store.get("r1") is None, "what was in the way is gone"
    store.close()


@pytest.mark.anyio
@pytest.mark.proves("JOURNAL-LATER")
async def test_the_record_of_a_later_release_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite3"
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version={kept.VERSION + 1}")
    store = Store(path)
    with pytest.raises(RunError, match="of a later release"):
        await store.get("r1")
    store.close()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (kept.VERSION + 1,)
        assert db.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)


@pytest.mark.anyio
@pytest.mark.proves("START-TWICE")
@pytest.mark.skipif(sys.platform == "win32", reason="no such pipes")
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.touch(mode=0o444), os.mkdir])
async def test_what_stands_in_the_place_of_the_lock_is_not_waited_for(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(tmp_path / "runs.lock")
    store = Store(tmp_path / "runs.sqlite3")
    if make is os.mkdir:
        with pytest.raises(RunError, match=r"cannot be opened: .*runs\.lock"):
            await asyncio.wait_for(store.get("r1"), 30)
    else:
        assert await asyncio.wait_for(store.get("r1"), 30) is None
    store.close()


OPEN = """
import asyncio, sys
from pathlib import Path
from llm_do_mcp.runtime.store import Store
folder = Path(sys.argv[1])
try:
    open(folder / "runs.lock", "ab")
except PermissionError:
    store = Store(folder / "runs.sqlite3")
    print(asyncio.run(store.runs()))
    store.close()
"""


def _by_permissions() -> None:
    """In a child of root: hold it to the permissions of files, as everybody else."""
    drop_from_bounding_set, override_permissions = 24, 1
    ctypes.CDLL(None).prctl(drop_from_bounding_set, override_permissions)


@pytest.mark.proves("START-LOCK")
@pytest.mark.skipif(sys.platform != "linux", reason="root is held to permissions by what only Linux has")
@pytest.mark.parametrize("mode", [0o400, 0o444])
def test_a_lock_that_may_only_be_read_is_enough(tmp_path: Path, mode: int) -> None:
    (tmp_path / "runs.lock").touch(mode=mode)
    command = [sys.executable, "-c", OPEN, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=_by_permissions)
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.anyio
@pytest.mark.proves("JOURNAL-COMMIT")
async def test_what_was_committed_is_there_for_another_connection(store: Store, tmp_path: Path) -> None:
    await store.write(Batch(ROW, [EVENT], [("h", b"bytes")], create=True))
    other = Store(tmp_path / "runs.sqlite3")
    try:
        assert await other.get("r1") == ROW
        assert await other.events("r1") == [EVENT]
        assert await other.blob("h") == b"bytes"
    finally:
        other.close()


@pytest.mark.anyio
@pytest.mark.proves("JOURNAL-COMMIT")
async def test_commits_that_come_at_once_all_succeed(store: Store) -> None:
    rows = [RunRow(f"r{n}", None, "main", "done", None, "one", 1, float(n), 1.0) for n in range(200)]
    await asyncio.gather(*(store.write(Batch(row, [EVENT], create=True)) for row in rows))
    assert [row.id for row in await store.runs()] == [f"r{n}" for n in reversed(range(200))]


@pytest.mark.anyio
@pytest.mark.proves("DIRECT-READ-IN-PLACE")
async def test_a_commit_without_fsync_is_left_to_the_thread_while_another_process_writes(
    store: Store, tmp_path: Path
) -> None:
    await store.write(Batch(ROW, create=True))
    row = RunRow("r2", None, "main", "done", None, "one", 1, 2.0, 2.0)
    with closing(sqlite3.connect(tmp_path / "runs.sqlite3", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        writing = asyncio.create_task(store.write(Batch(row, [EVENT], create=True, synced=False)))
        await asyncio.sleep(0)  # would last until the other lets go, were the lock waited for here
        assert not writing.done()
        other.execute("ROLLBACK")
    await writing
    await store.write(Batch(RunRow("r3", None, "main", "done", None, "one", 1, 3.0, 3.0), create=True, synced=False))
    assert [row.id for row in await store.runs()] == ["r3", "r2", "r1"]


@pytest.mark.anyio
@pytest.mark.proves("DIRECT-READ-LOG")
async def test_the_log_is_moved_into_the_database_also_where_no_commit_waits_for_the_disk(
    store: Store, tmp_path: Path
) -> None:
    long = Event("t0", "files.read", "d", "done", "x" * 500_000, 1.0, 2.0)
    rows = [RunRow(f"r{n}", None, "files.read", "done", None, "one", 1, float(n), 1.0) for n in range(100)]
    for row in rows:
        await store.write(Batch(row, [long], create=True, synced=False))
    assert (tmp_path / "runs.sqlite3-wal").stat().st_size < 2 * FOLDED_AT < 100 * 500_000
    assert len(await store.runs()) == 100 and await store.events("r99") == [long]


@pytest.mark.anyio
@pytest.mark.proves("JOURNAL-MOVED")
@pytest.mark.parametrize("synced", [True, False])
@pytest.mark.skipif(sys.platform == "win32", reason="what is open cannot be moved there")
async def test_runs_that_begin_after_the_record_was_moved_away_are_in_a_new_one(
    store: Store, tmp_path: Path, synced: bool
) -> None:
    await store.write(Batch(ROW, create=True))
    away = tmp_path / "away"
    away.mkdir()
    for file in tmp_path.glob("runs.sqlite3*"):
        file.rename(away / file.name)
    await store.write(Batch(dataclasses.replace(ROW, id="r2"), [EVENT], create=True, synced=synced))
    with pytest.raises(RunError, match="run r1 is in the record of runs no more: that was moved away"):
        await store.write(Batch(ROW, [EVENT], synced=synced))
    assert [run.id for run in await store.runs()] == ["r2"] and await store.events("r2") == [EVENT]
    for folder, found in ((tmp_path, "r2"), (away, "r1")):
        with closing(sqlite3.connect(folder / "runs.sqlite3")) as db:
            assert db.execute("SELECT id FROM run").fetchall() == [(found,)]


@pytest.mark.anyio
@pytest.mark.proves("LEASE-FENCE")
@pytest.mark.parametrize("synced", [True, False])
async def test_a_process_that_lost_its_run_cannot_write_to_it(store: Store, synced: bool) -> None:
    await store.write(Batch(ROW, create=True))
    taken = await store.claim("r1", "two", lambda owner: False)
    assert taken.fence == ROW.fence + 1
    with pytest.raises(LeaseLost, match="taken over"):
        await store.write(Batch(ROW, [EVENT], synced=synced))
    assert await store.events("r1") == []


@pytest.mark.anyio
@pytest.mark.proves("LEASE-FENCE")
@pytest.mark.parametrize(
    ("run", "alive", "words"),
    [
        ("nope", False, "there is no run nope"),
        ("\ud800", False, "there is no run"),
        ("r1", True, "driven by a living process"),
        ("r2", False, "has ended"),
    ],
)
async def test_what_cannot_be_claimed_says_why(store: Store, run: str, alive: bool, words: str) -> None:
    await store.write(Batch(ROW, create=True))
    await store.write(Batch(RunRow("r2", None, "main", "done", None, "one", 1, 1.0, 1.0), create=True))
    with pytest.raises(RunError, match=words):
        await store.claim(run, "two", lambda owner: alive)


@pytest.mark.anyio
@pytest.mark.proves("A104")
async def test_a_folder_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    broken = Store(tmp_path / "file" / "runs.sqlite3")
    try:
        with pytest.raises(RunError, match="the record of runs cannot be opened"):
            await broken.runs()
    finally:
        broken.close()


HOLD = """
import sys, time
from pathlib import Path
from llm_do_mcp.runtime.lease import Lease
print(Lease(Path(sys.argv[1])).name, flush=True)
time.sleep(60)
"""


@pytest.mark.proves("LEASE-KILLED", "A101")
def test_a_lease_is_living_until_its_process_is_killed_and_then_at_once_dead(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    with holder:
        name = holder.stdout.readline().strip()
        mine = Lease(tmp_path)
        try:
            assert mine.alive(name)
            os.kill(holder.pid, signal.SIGKILL)
            holder.wait()
            assert not mine.alive(name)
            assert mine.alive(mine.name)
        finally:
            mine.release()
    Lease(tmp_path).release()
    assert list((tmp_path / "leases").iterdir()) == []
