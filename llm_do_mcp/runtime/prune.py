"""Old runs, removed: their records, the attachments that no other run refers to, the room they took.

Only runs that have ended are removed. An attachment is kept while any record names it. While a living process drives
a run here, attachments and the file's size are left for the next time: that process may just have put down an
attachment whose record comes with its next commit, and making the file smaller would hold its commits up. The room of
removed runs is used again in any case.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from llm_do_mcp.errors import RunError
from llm_do_mcp.runtime.store import OPEN, version_of

if TYPE_CHECKING:
    import sqlite3

DAY_S = 86400.0
OLDER_THAN_DAYS = 30.0
"""What is old where nothing is said about it."""
WORTH = 0.2
"""The share of the file that must be free before it is made smaller: that rewrites all that stays."""

_DIGEST = re.compile(rb"[0-9a-f]{64}")


@dataclass(frozen=True)
class Pruned:
    """What was removed, or would be.

    Args:
        runs: Ids, oldest first.
        blobs: Attachments.
        freed: Bytes by which the file became smaller.
        driven: A living process drives a run: attachments and the file's size were left.
    """

    runs: tuple[str, ...]
    blobs: int
    freed: int
    driven: bool


def prune(
    path: Path,
    alive: Callable[[str], bool],
    *,
    older_than_s: float,
    keep: int = 0,
    dry_run: bool = False,
) -> Pruned:
    """Remove runs that have ended.

    Args:
        path: The store's file.
        alive: Tells whether the process with a lease lives.
        older_than_s: Seconds since a run ended, from which on it is old.
        keep: So many of the newest ended runs stay, however old.
        dry_run: Change nothing.

    Raises:
        RunError: The store cannot be read or written, or is of a later release.
    """
    import sqlite3

    try:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as db:
            db.execute("PRAGMA foreign_keys=ON")
            before = _size(db)
            # One transaction: nothing begins or is recorded between looking and removing.
            db.execute("BEGIN IMMEDIATE")
            try:
                version_of(db)
                runs, blobs, driven = _remove(db, alive, time.time() - older_than_s, keep)
            finally:
                db.execute("ROLLBACK" if dry_run else "COMMIT")
            if not dry_run and not driven:
                _shrink(db)
            return Pruned(runs, blobs, before - _size(db), driven)
    except (RunError, sqlite3.Error) as error:
        raise RunError(f"{path.name}: the record of runs cannot be pruned: {error}") from None


def _remove(
    db: sqlite3.Connection, alive: Callable[[str], bool], before: float, keep: int
) -> tuple[tuple[str, ...], int, bool]:
    marks = ",".join("?" * len(OPEN))
    owners = [owner for (owner,) in db.execute(f"SELECT DISTINCT owner FROM run WHERE status IN ({marks})", OPEN)]
    driven = any(alive(owner) for owner in owners)
    ended = f"SELECT id, updated FROM run WHERE status NOT IN ({marks}) ORDER BY updated DESC, id"
    old = [run for run, updated in db.execute(ended, OPEN).fetchall()[keep:] if updated < before]
    db.executemany("DELETE FROM run WHERE id=?", [(run,) for run in old])
    blobs = 0 if driven else _remove_blobs(db)
    return tuple(reversed(old)), blobs, driven


def _remove_blobs(db: sqlite3.Connection) -> int:
    held = {digest for (digest,) in db.execute("SELECT hash FROM blob")}
    if not held:
        return 0
    # Whatever reads like a digest in a record counts as a reference: records of every kind may hold one.
    for digest, data in db.execute("SELECT digest, CAST(data AS BLOB) FROM event WHERE data IS NOT NULL"):
        held.difference_update((digest, *(match.decode("ascii") for match in _DIGEST.findall(data))))
        if not held:
            return 0
    db.executemany("DELETE FROM blob WHERE hash=?", [(digest,) for digest in held])
    return len(held)


def _shrink(db: sqlite3.Connection) -> None:
    free, whole = _pragma(db, "freelist_count"), _pragma(db, "page_count")
    if free >= WORTH * whole:
        db.execute("VACUUM")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _size(db: sqlite3.Connection) -> int:
    return _pragma(db, "page_count") * _pragma(db, "page_size")


def _pragma(db: sqlite3.Connection, name: str) -> int:
    return int(db.execute(f"PRAGMA {name}").fetchone()[0])
