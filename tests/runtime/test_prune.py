"""Old runs are removed, and nothing else is."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
import time
from pathlib import Path

import pytest

from llm_do_mcp.errors import RunError
from llm_do_mcp.runtime.prune import DAY_S, prune
from llm_do_mcp.runtime.store import VERSION, Batch, Common, Event, RunRow, Shared, Status, Store

NOW = time.time()
DEAD, LIVING = "gone", "here"


def alive(owner: str) -> bool:
    return owner == LIVING


async def filled(path: Path, *runs: tuple[str, Status, float, str], owner: str = DEAD, bulk: int = 0) -> None:
    """A store with runs: (id, status, age in days, the attachment that it refers to); and an attachment of nobody."""
    store = Store(path)
    for name, status, age, attached in runs:
        ended = NOW - age * DAY_S
        data = {"attachments": [{"blob": digest(attached)}], "padding": "x" * bulk}
        events = [Event("definition", "definition", "", "done", data, ended, ended)]
        blobs = [(digest(attached), attached.encode()), (digest("orphan"), b"orphan")]
        row = RunRow(name, None, "main", status, None, owner, 1, ended, ended)
        await store.write(Batch(row, events, blobs, create=True))
    store.close()


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def left(path: Path) -> tuple[list[str], list[str], int]:
    """Ids of runs, contents of attachments, and how many events there are."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        runs = [run for (run,) in db.execute("SELECT id FROM run ORDER BY id")]
        blobs = sorted(bytes(data).decode() for (data,) in db.execute("SELECT data FROM blob"))
        (events,) = db.execute("SELECT count(*) FROM event").fetchone()
    return runs, blobs, events


RUNS: tuple[tuple[str, Status, float, str], ...] = (
    ("a", "done", 40, "one"),
    ("b", "failed", 20, "shared"),
    ("c", "cancelled", 10, "shared"),
    ("d", "done", 1, "two"),
    ("open1", "running", 90, "three"),
    ("open2", "waiting", 90, "four"),
)


@pytest.mark.anyio
@pytest.mark.proves("PRUNE-WHAT")
@pytest.mark.parametrize(
    ("days", "keep", "removed"),
    [
        (30, 0, ("a",)),
        (5, 0, ("a", "b", "c")),
        (0, 0, ("a", "b", "c", "d")),
        (0, 1, ("a", "b", "c")),
        (5, 2, ("a", "b")),
        (5, 9, ()),
        (15, 1, ("a", "b")),
    ],
)
async def test_old_runs_are_removed_and_open_ones_never(
    tmp_path: Path, days: float, keep: int, removed: tuple[str, ...]
) -> None:
    path = tmp_path / "runs.sqlite3"
    await filled(path, *RUNS)
    tried = prune(path, alive, older_than_s=days * DAY_S, keep=keep, dry_run=True)
    assert left(path)[0] == [run[0] for run in RUNS], "a dry run removes nothing"
    pruned = prune(path, alive, older_than_s=days * DAY_S, keep=keep)
    assert pruned.runs == tried.runs == removed
    assert pruned.blobs == tried.blobs
    runs, _, events = left(path)
    assert runs == [run[0] for run in RUNS if run[0] not in removed]
    assert events == len(runs)


@pytest.mark.anyio
@pytest.mark.proves("PRUNE-BLOBS")
async def test_attachments_go_with_the_last_run_that_refers_to_them(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite3"
    await filled(path, *RUNS)
    assert prune(path, alive, older_than_s=15 * DAY_S).blobs == 2  # of a; and the one that no record names
    assert left(path)[1] == ["four", "shared", "three", "two"]
    assert prune(path, alive, older_than_s=5 * DAY_S).blobs == 1
    assert left(path)[1] == ["four", "three", "two"]
    assert prune(path, alive, older_than_s=5 * DAY_S).blobs == 0


@pytest.mark.anyio
@pytest.mark.proves("PRUNE-BLOBS", "DIRECT-READ-COMMON")
async def test_what_calls_have_in_common_goes_with_the_last_of_them(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite3"
    common = Common({"functions": ["read"]})
    store = Store(path)
    for name, age in (("old", 40), ("new", 1)):
        ended = NOW - age * DAY_S
        definition = Event("definition", "definition", "", "done", Shared(common, {"input": name}), ended, ended)
        row = RunRow(name, None, "files.read", "done", None, DEAD, 1, ended, ended)
        await store.write(Batch(row, [definition], create=True, synced=False))
    assert prune(path, alive, older_than_s=15 * DAY_S).blobs == 0
    assert [event.data for event in await store.events("new")] == [{"functions": ["read"], "input": "new"}]
    assert prune(path, alive, older_than_s=0).blobs == 1
    await store.write(Batch(row, [definition], create=True, synced=False))
    assert [event.data for event in await store.events("new")] == [{"functions": ["read"], "input": "new"}]
    store.close()


@pytest.mark.anyio
@pytest.mark.proves("PRUNE-BLOBS")
async def test_while_a_run_is_driven_attachments_are_left(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite3"
    await filled(path, *RUNS, owner=LIVING)
    pruned = prune(path, alive, older_than_s=0)
    assert (len(pruned.runs), pruned.blobs, pruned.driven) == (4, 0, True)
    assert left(path)[1] == ["four", "one", "orphan", "shared", "three", "two"]


@pytest.mark.anyio
@pytest.mark.proves("PRUNE-ROOM")
async def test_the_file_becomes_smaller_where_that_is_worth_it(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite3"
    await filled(path, *[(f"r{index}", "done", index, "x") for index in range(50)], bulk=20_000)
    before = path.stat().st_size
    few = prune(path, alive, older_than_s=47.5 * DAY_S)
    assert (len(few.runs), few.freed) == (2, 0)
    most = prune(path, alive, older_than_s=10 * DAY_S)
    assert most.freed > before // 2
    assert path.stat().st_size == before - most.freed
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.proves("PRUNE-ROOM")
def test_a_file_that_is_no_store_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite3"
    path.write_bytes(b"not a database at all" * 100)
    with pytest.raises(RunError, match=r"runs\.sqlite3: the record of runs cannot be pruned: "):
        prune(path, alive, older_than_s=0)


@pytest.mark.anyio
@pytest.mark.proves("JOURNAL-LATER", "PRUNE-WHAT")
@pytest.mark.parametrize("dry_run", [False, True])
async def test_the_record_of_a_later_release_is_left_alone(tmp_path: Path, dry_run: bool) -> None:
    path = tmp_path / "runs.sqlite3"
    await filled(path, *RUNS)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version={VERSION + 1}")
    before = left(path)
    with pytest.raises(RunError, match=r"runs\.sqlite3: .* cannot be pruned: it is of a later release .*; use that"):
        prune(path, alive, older_than_s=0, dry_run=dry_run)
    assert left(path) == before
