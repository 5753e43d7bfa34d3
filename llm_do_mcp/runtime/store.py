"""Where runs are kept: one SQLite file in the project's state folder.

The store knows rows, not what they mean. All access happens on one thread of its own, off the event loop, and
what several callers ask for at once is committed together (a commit costs one `fsync`, whoever shares it). What
has changed nothing in the world is committed without one: it outlives this process, if not a failure of the machine.
That takes less time than to wake a thread and to be woken by it; so it is done in place, where nothing has to be
waited for: see `Store._write_in_place`. Every write names the *fence* that its run was claimed with; a process that
has lost its run cannot write to it.

A file lock per process (`lease.py`) tells whether the process that drives a run still lives.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import hashlib
import json
import queue
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from llm_do_mcp.errors import LeaseLost, RunError
from llm_do_mcp.filelock import held

if TYPE_CHECKING:
    import sqlite3  # in the store's thread, when something is first recorded: a server that is only looked at has none

_SCHEMA = """
CREATE TABLE IF NOT EXISTS run(
  id TEXT PRIMARY KEY, key TEXT, name TEXT NOT NULL, status TEXT NOT NULL, outcome TEXT,
  owner TEXT NOT NULL, fence INTEGER NOT NULL, created REAL NOT NULL, updated REAL NOT NULL,
  driven REAL NOT NULL DEFAULT 0, principal TEXT NOT NULL DEFAULT '');
CREATE UNIQUE INDEX IF NOT EXISTS run_key ON run(key) WHERE key IS NOT NULL;
CREATE TABLE IF NOT EXISTS event(
  run TEXT NOT NULL REFERENCES run(id) ON DELETE CASCADE, key TEXT NOT NULL, kind TEXT NOT NULL,
  digest TEXT NOT NULL, state TEXT NOT NULL, data TEXT, started REAL NOT NULL, ended REAL,
  PRIMARY KEY(run, key));
CREATE TABLE IF NOT EXISTS secret(
  run TEXT NOT NULL REFERENCES run(id) ON DELETE CASCADE, value TEXT NOT NULL, name TEXT NOT NULL,
  PRIMARY KEY(run, value));
CREATE TABLE IF NOT EXISTS handed(run TEXT PRIMARY KEY REFERENCES run(id) ON DELETE CASCADE, call TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS told(run TEXT PRIMARY KEY REFERENCES run(id) ON DELETE CASCADE, result TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS given_up(run TEXT PRIMARY KEY REFERENCES run(id) ON DELETE CASCADE, reason TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS blob(hash TEXT PRIMARY KEY, data BLOB NOT NULL);
"""

Status = Literal["running", "waiting", "done", "failed", "cancelled"]
OPEN: tuple[Status, ...] = ("running", "waiting")
"""A run in one of these can go on: it is driven now, or can be resumed."""

State = Literal["started", "done", "failed", "asked", "answered", "withdrawn"]

VERSION = 4
"""Of how it is kept; a later one cannot be read."""
OPENED_WITHIN_S = 10.0
"""How long it may take other processes to open it too."""
WRITTEN_WITHIN_S = 30.0
"""How long another process may keep others from writing."""
MAX_LATE = 20
"""Late answers that are noted with a question."""
FOLDED_AT = 16 << 20
"""Bytes in the write-ahead log after which they are moved into the database itself: one call in some hundreds waits."""
PAGE = 2048
"""Bytes of a page. A commit writes each page that it touches, some eight, and most of its time goes into that."""
OF_A_COMMIT = 8 * PAGE
"""Bytes by which a commit makes the log longer, however little it holds."""

T = TypeVar("T")


@dataclass(frozen=True)
class RunRow:
    """A run as a whole. Times are seconds since the epoch, but for `driven`, which is how many seconds of work it has
    had, in all processes that drove it; `outcome` is JSON; `principal` is who began it, where a server asks its callers
    who they are, else ""."""

    id: str
    key: str | None
    name: str
    status: Status
    outcome: Any
    owner: str
    fence: int
    created: float
    updated: float
    driven: float = 0.0
    principal: str = ""


class Common:
    """What the data of many events have in common.

    Args:
        data: JSON, which nobody changes.
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = data
        self.text = json.dumps(data).encode()
        self.digest = hashlib.sha256(self.text).hexdigest()


class Shared(dict[str, Any]):
    """An event's data, of which the store keeps a part once for all events.

    Args:
        common: That part.
        own: What the event has besides.
    """

    def __init__(self, common: Common, own: Mapping[str, Any]) -> None:
        super().__init__(common.data, **own)
        self.common, self.own = common, own


@dataclass(frozen=True)
class Event:
    """One record of a run: a definition, a step, a question, a sub-worker's run.

    Args:
        key: The place in the tree, unique in the run.
        kind: What it is: "definition", "ask", or the canonical name of a function.
        digest: Of the kind and arguments; a replay must ask for the same.
        state: How far it came.
        data: What it gave, as JSON.
        started, ended: Seconds since the epoch.
    """

    key: str
    kind: str
    digest: str
    state: State
    data: Any
    started: float
    ended: float | None = None


@dataclass(frozen=True)
class Batch:
    """What one run wants written in one commit, in this order: the run itself, its events, blobs.

    `secrets` (value → name) are those that the events and the outcome hold, for whoever shows them to people.
    `synced` says that it must be on the disk, not only with the operating system, before anything else happens.
    """

    run: RunRow
    events: Sequence[Event] = ()
    blobs: Sequence[tuple[str, bytes]] = ()
    create: bool = False
    synced: bool = True
    secrets: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Job:
    """What the store's thread is to do: the work, who gets what it gave, and whether it must be on the disk then."""

    work: Callable[[sqlite3.Connection], Any]
    reply: Callable[..., None]
    synced: bool


class Store:
    """A connection to the runs of one project.

    Args:
        path: The database file; it and its folder must exist or be creatable.
        within_s: How long other processes are waited for, in seconds; None for as long as they may take.
    """

    def __init__(self, path: Path, *, within_s: float | None = None) -> None:
        self.path, self._within_s = path, within_s
        self._in_place: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None  # the one that is open
        self._under_way = 0
        self._logged = 0
        self._seen = -1  # what had been written beside the thread when it was last looked at
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="llm-do-store", daemon=True)
        self._thread.start()

    # ---- what callers ask for

    async def write(self, batch: Batch) -> None:
        """Commit a batch.

        Raises:
            LeaseLost: Another process has claimed the run since.
        """
        if batch.synced or not self._write_in_place(batch):
            logged = await self._do(lambda db: _write(db, batch), synced=batch.synced)
            self._logged += logged

    async def answer(self, run: str, key: str, answer: dict[str, Any]) -> Event | None:
        """Give an answer to a question; the first one wins, whichever process gives it, and a late one is noted.

        Returns:
            The question with its answer, or None where this answer was not the first.
        """
        return await self._do(lambda db: _answer(db, run, key, answer))

    async def answered(self, questions: Collection[tuple[str, str]]) -> list[tuple[str, Event]]:
        """Those of the questions (run and key) that another process has answered.

        Cheap where nothing has been written since the last time, by another process or in place.
        """
        return await self._do(lambda db: self._answered(db, questions), synced=False)

    async def give_up(self, run: str, reason: str) -> None:
        """Note that a run is to be cancelled by whichever process drives it; what was noted first stays."""
        query = "INSERT OR IGNORE INTO given_up(run, reason) VALUES(?,?)"
        await self._do(lambda db: db.execute(query, (run, reason)))

    async def given_up(self, runs: Collection[str]) -> dict[str, str]:
        """Those of the runs for which that was noted, and the reason; cheap enough to be asked again and again."""
        return await self._do(lambda db: _given_up(db, runs), synced=False)

    async def waiting(self) -> list[tuple[RunRow, Event]]:
        """The questions that wait for an answer, of all runs that have not ended, oldest first."""
        return await self._do(_waiting)

    async def claim(self, run: str, owner: str, alive: Callable[[str], bool], how: str = "llm-do approve") -> RunRow:
        """Become the process that drives a run.

        Args:
            run: The run's id.
            owner: The name of the claiming process's lease.
            alive: Tells whether the process with that lease still lives.
            how: The command line that answers the questions of a run that cannot be claimed.

        Raises:
            RunError: There is no such run, it has ended, or a living process drives it.
        """
        return await self._do(lambda db: _claim(db, run, owner, alive, how))

    async def get(self, run: str) -> RunRow | None:
        """A run by its id."""
        return await self._do(lambda db: _row(db, "id=?", run))

    async def find(self, key: str) -> RunRow | None:
        """A run by the key that its caller gave it."""
        return await self._do(lambda db: _row(db, "key=?", key))

    async def hand_over(self, run: str, call: str) -> None:
        """Note which call a run was begun by that returned before the run had ended."""
        query = "INSERT OR IGNORE INTO handed(run, call) VALUES(?,?)"
        await self._do(lambda db: db.execute(query, (run, call)), synced=False)

    async def handed_over(self, call: str, principal: str) -> str | None:
        """The oldest run that a principal's call was noted for, of those that have not ended."""
        return await self._do(lambda db: _handed_over(db, call, principal), synced=False)

    async def tell(self, run: str, result: str) -> str:
        """Note what a task is said to have come to while its run goes on; what was noted first, which stays."""
        return await self._do(lambda db: _tell(db, run, result))

    async def told(self, run: str) -> str | None:
        """What was noted so."""
        return await self._do(lambda db: _told(db, run), synced=False)

    async def runs(self) -> list[RunRow]:
        """All runs, newest first."""
        return await self._do(_runs)

    async def events(self, run: str) -> list[Event]:
        """A run's records in the order in which they were begun."""
        return await self._do(lambda db: _events(db, run))

    async def fields(self, kind: str, *places: str) -> list[tuple[Any, ...]]:
        """What all records of a kind that ended hold at some places of their data, after the id of their run.

        Args:
            kind: Of the records.
            places: Such as `usage.input_tokens`; what is not there is None.
        """
        return await self._do(lambda db: _fields(db, kind, places))

    async def event(self, run: str, key: str) -> Event | None:
        """One record of a run."""
        return await self._do(lambda db: _one_event(db, run, key))

    async def secrets(self, run: str) -> dict[str, str]:
        """The secrets (value → name) that a run's records hold."""
        return await self._do(lambda db: _secrets(db, run))

    async def blob(self, digest: str) -> bytes:
        """The bytes with this SHA-256."""
        return await self._do(lambda db: _blob(db, digest))

    def close(self) -> None:
        """Finish what is queued and close the file."""
        self._jobs.put(None)
        self._thread.join(timeout=5)

    # ---- the thread

    def _answered(self, db: sqlite3.Connection, questions: Collection[tuple[str, str]]) -> list[tuple[str, Event]]:
        version = db.execute("PRAGMA data_version").fetchone()[0]
        if version == self._seen:
            return []
        self._seen = version
        found = []
        for run, key in questions:
            event = _one_event(db, run, key)
            if event is not None and event.state == "answered":
                found.append((run, event))
        return found

    def _write_in_place(self, batch: Batch) -> bool:
        """Commit a batch that needs no `fsync`, here and now; whether that could be done without a wait.

        It cannot while the thread has something to do, which comes first, nor while another process writes. Nor when
        the log is due to be moved into the database: both that and the first commit after it wait for the disk.

        Raises:
            LeaseLost, RunError: As `write`.
        """
        if self._in_place is None or self._under_way or self._logged >= FOLDED_AT:
            return False
        if batch.create and _file_at(self.path) != self._file:  # moved away: the thread opens another one
            return False
        import sqlite3

        try:
            ((logged, refused),) = _commit(self._in_place, [lambda db: _write(db, batch)])
        except sqlite3.Error:  # the thread meets it too, waits, or says what is wrong
            return False
        if refused is not None:
            raise refused
        self._logged += logged
        return True

    async def _do(self, work: Callable[[sqlite3.Connection], T], *, synced: bool = True) -> T:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def settle(result: T | None, error: BaseException | None) -> None:
            self._under_way -= 1
            if done.cancelled():
                return
            if error is None:
                done.set_result(result)  # type: ignore[arg-type]  # a job without an error has its result
            else:
                done.set_exception(error)

        def reply(result: T | None = None, error: BaseException | None = None) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended: nobody waits any more
                loop.call_soon_threadsafe(settle, result, error)

        self._under_way += 1
        self._jobs.put(_Job(work, reply, synced))
        return await done

    def _work(self) -> None:
        import sqlite3

        db: sqlite3.Connection | None = None
        ended, level = False, ""
        while not ended:
            items = [self._jobs.get()]
            while not self._jobs.empty():
                items.append(self._jobs.get())
            jobs = [item for item in items if item is not None]
            ended = len(jobs) < len(items)
            if not jobs:
                continue
            if db is not None and _file_at(self.path) != self._file:
                self._close(db)
                db, level = None, ""
            if db is None:  # what was in the way may be gone the next time that something is asked
                try:
                    db = self._connected()
                except (OSError, RunError, sqlite3.Error) as error:
                    for job in jobs:
                        job.reply(None, cannot_be_opened(self.path, error))
                    continue
            try:
                wanted = "FULL" if any(job.synced for job in jobs) else "NORMAL"
                if wanted != level:
                    db.execute(f"PRAGMA synchronous={wanted}")
                    level = wanted
                if self._logged >= FOLDED_AT:
                    db.execute("PRAGMA wal_checkpoint(PASSIVE)")
                    self._logged = 0
                outcomes = _commit(db, [job.work for job in jobs])
            except sqlite3.Error as broken:
                failure = RunError(f"{self.path.name}: the record of runs cannot be written: {_why(broken)}")
                outcomes = [(None, failure)] * len(jobs)
            for job, outcome in zip(jobs, outcomes, strict=True):
                job.reply(*outcome)
        if db is not None:
            self._close(db)

    def _close(self, db: sqlite3.Connection) -> None:
        """Let go of the file, while the event loop has no use for it."""
        if self._in_place is not None:
            self._in_place.close()
        db.close()
        self._in_place, self._logged, self._seen = None, 0, -1

    def _connected(self) -> sqlite3.Connection:
        """Open the file for the thread, and then for the event loop."""
        with contextlib.ExitStack() as failed:
            db = failed.enter_context(contextlib.closing(_open(self.path, self._within_s)))
            in_place = failed.enter_context(contextlib.closing(_opened(self.path, timeout=0)))
            in_place.execute("PRAGMA synchronous=NORMAL")
            failed.pop_all()
        self._file = _file_at(self.path)
        self._in_place = in_place  # only now: from here on the event loop uses it
        return db


def _file_at(path: Path) -> tuple[int, int] | None:
    """Which file is at a path now."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _commit(
    db: sqlite3.Connection, jobs: Sequence[Callable[[sqlite3.Connection], Any]]
) -> list[tuple[Any, Exception | None]]:
    """Do the jobs in one transaction; what each gave, or the error that is its own fault: the others are committed.

    Raises:
        sqlite3.Error: Nothing is committed.
    """
    import sqlite3

    alone = len(jobs) == 1  # then the transaction is its own: a savepoint would cost a fifth of it
    try:
        db.execute("BEGIN IMMEDIATE")
        outcomes = [_outcome(db, job, alone=alone) for job in jobs]
        if db.in_transaction:
            db.execute("COMMIT")
    except sqlite3.Error:
        with contextlib.suppress(sqlite3.Error):
            db.execute("ROLLBACK")
        raise
    return outcomes


def _outcome(
    db: sqlite3.Connection, job: Callable[[sqlite3.Connection], Any], *, alone: bool
) -> tuple[Any, Exception | None]:
    """What a job gave, or the error that is its own fault, after which nothing of it is left."""
    import sqlite3

    if not alone:
        db.execute("SAVEPOINT job")
    try:
        outcome = job(db), None
    except sqlite3.Error:
        raise
    except Exception as refused:
        db.execute("ROLLBACK" if alone else "ROLLBACK TO job")
        return None, refused
    if not alone:
        db.execute("RELEASE job")
    return outcome


def turn_at(path: Path) -> Path:
    """Where those that open the record at a path have their turn, one after the other."""
    return path.with_suffix(".lock")


def _open(path: Path, within_s: float | None) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # One after the other: SQLite does not wait, whatever its timeout, for another one that makes a file's log.
    turn = held(turn_at(path), within_s=OPENED_WITHIN_S if within_s is None else within_s)
    with turn, contextlib.ExitStack() as refused:
        db = _opened(path, timeout=WRITTEN_WITHIN_S if within_s is None else within_s)
        refused.callback(db.close)
        with contextlib.suppress(OSError):
            path.chmod(0o600)
        db.execute(f"PRAGMA page_size={PAGE}")  # of a new file
        db.execute("PRAGMA journal_mode=WAL")
        version = version_of(db)
        for column, since in (("driven REAL NOT NULL DEFAULT 0", 2), ("principal TEXT NOT NULL DEFAULT ''", 3)):
            if 0 < version < since:
                db.execute(f"ALTER TABLE run ADD COLUMN {column}")
        db.executescript(f"{_SCHEMA}PRAGMA user_version={VERSION};")
        refused.pop_all()
    return db


def version_of(db: sqlite3.Connection) -> int:
    """How a record is kept; 0 for a new one.

    Raises:
        RunError: As a later release does it, which is not for us to read or change.
    """
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    if version > VERSION:
        later = f"it is of a later release of llm-do-mcp (version {version}; here at most {VERSION})"
        raise RunError(f"{later}; use that release")
    return version


_MENDED = {
    "SQLITE_BUSY": "end the process that holds it",
    "SQLITE_CORRUPT": "move it away",
    "SQLITE_FULL": "make room for it",
    "SQLITE_NOTADB": "move it away",
}
"""What is done about what SQLite finds wrong."""


def cannot_be_opened(path: Path, error: OSError | RunError | sqlite3.Error) -> RunError:
    """What is said of a record that cannot be opened; of places it has the last name only, as clients read it too."""
    return RunError(f"{path.name}: the record of runs cannot be opened: {_why(error)}")


def _why(error: OSError | RunError | sqlite3.Error) -> str:
    """Why it cannot be used, and what is done about it."""
    if isinstance(error, RunError):
        return str(error)
    if isinstance(error, TimeoutError):
        return f"{error}; end that process"
    if isinstance(error, OSError) and error.filename is None:  # the lock itself: there may be none on a share
        return f"{error.strerror}; use a file system that has locks"
    if isinstance(error, OSError):
        wrong = "it is a link that leads nowhere" if isinstance(error, FileNotFoundError) else error.strerror
        return f"{Path(error.filename).name}: {wrong}; remove it"
    mended = _MENDED.get(getattr(error, "sqlite_errorname", ""), "see to it that it is a file that can be written")
    return f"{error}; {mended}"


def _opened(path: Path, *, timeout: float) -> sqlite3.Connection:
    import sqlite3

    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=timeout)
    db.execute("PRAGMA foreign_keys=ON")
    db.execute("PRAGMA wal_autocheckpoint=0")  # it would come after a commit, and be waited for
    return db


_RUN_COLUMNS = ["id", "key", "name", "status", "outcome", "owner", "fence", "created", "updated", "driven", "principal"]
_RUN = ", ".join(f"run.{column}" for column in _RUN_COLUMNS)
_EVENT = "event.key, event.kind, event.digest, event.state, event.data, event.started, event.ended"
_WHOLE = f"SELECT blob.data, {_EVENT} FROM event LEFT JOIN blob ON event.kind='definition' AND blob.hash=event.digest"


def _run_row(row: Sequence[Any]) -> RunRow:
    identifier, key, name, status, outcome, *rest = row
    return RunRow(identifier, key, name, status, json.loads(outcome) if outcome else None, *rest)


def _row(db: sqlite3.Connection, where: str, value: str) -> RunRow | None:
    try:
        row = db.execute(f"SELECT {_RUN} FROM run WHERE {where}", (value,)).fetchone()
    except UnicodeEncodeError:  # half a pair of surrogates: no run of ours is called that
        return None
    return None if row is None else _run_row(row)


def _tell(db: sqlite3.Connection, run: str, result: str) -> str:
    db.execute("INSERT OR IGNORE INTO told(run, result) VALUES(?,?)", (run, result))
    return _told(db, run) or result


def _told(db: sqlite3.Connection, run: str) -> str | None:
    row = db.execute("SELECT result FROM told WHERE run=?", (run,)).fetchone()
    return None if row is None else str(row[0])


def _handed_over(db: sqlite3.Connection, call: str, principal: str) -> str | None:
    row = db.execute(
        "SELECT run.id FROM handed JOIN run ON run.id=handed.run"
        " WHERE handed.call=? AND run.principal=? AND run.status IN ('running', 'waiting') ORDER BY run.created",
        (call, principal),
    ).fetchone()
    return None if row is None else str(row[0])


def _given_up(db: sqlite3.Connection, runs: Collection[str]) -> dict[str, str]:
    query = "SELECT run, reason FROM given_up WHERE run IN (SELECT value FROM json_each(?))"
    return dict(db.execute(query, (json.dumps([*runs]),)).fetchall())


def _runs(db: sqlite3.Connection) -> list[RunRow]:
    return [_run_row(row) for row in db.execute(f"SELECT {_RUN} FROM run ORDER BY created DESC, id")]


def _events(db: sqlite3.Connection, run: str) -> list[Event]:
    return [_whole(*row) for row in db.execute(f"{_WHOLE} WHERE run=? ORDER BY event.rowid", (run,))]


def _fields(db: sqlite3.Connection, kind: str, places: Sequence[str]) -> list[tuple[Any, ...]]:
    extracted = "".join(", json_extract(data, ?)" for _ in places)
    query = f"SELECT run{extracted} FROM event WHERE kind=? AND state IN ('done', 'failed') ORDER BY rowid"
    return db.execute(query, (*(f"$.{place}" for place in places), kind)).fetchall()


def _one_event(db: sqlite3.Connection, run: str, key: str) -> Event | None:
    row = db.execute(f"{_WHOLE} WHERE run=? AND key=?", (run, key)).fetchone()
    return None if row is None else _whole(*row)


def _secrets(db: sqlite3.Connection, run: str) -> dict[str, str]:
    return dict(db.execute("SELECT value, name FROM secret WHERE run=?", (run,)).fetchall())


def _blob(db: sqlite3.Connection, digest: str) -> bytes:
    row = db.execute("SELECT data FROM blob WHERE hash=?", (digest,)).fetchone()
    if row is None:
        raise RunError(f"the record of runs has lost the attachment {digest[:12]}")
    return bytes(row[0])


def _write(db: sqlite3.Connection, batch: Batch) -> int:
    """Write a batch; by about how many bytes that makes the log longer."""
    run = batch.run
    outcome = None if run.outcome is None else json.dumps(run.outcome)
    blobs, rows = list(batch.blobs), []
    for event in batch.events:
        digest, data = event.digest, event.data
        if isinstance(data, Shared):
            digest = data.common.digest
            blobs.append((digest, data.common.text))
            data = data.own
        moments = (event.started, event.ended)
        rows.append((run.id, event.key, event.kind, digest, event.state, json.dumps(data), *moments))
    if batch.create:
        if run.key is not None and _row(db, "key=?", run.key) is not None:
            raise RunError("another process has just begun a run with this key; the same call, made again, joins it")
        times = (run.created, run.updated, run.driven)
        db.execute(
            f"INSERT INTO run({', '.join(_RUN_COLUMNS)}) VALUES(?,?,?,?,?,?,?,?,?,?,?)",
            (run.id, run.key, run.name, run.status, outcome, run.owner, run.fence, *times, run.principal),
        )
    elif (
        db.execute(
            "UPDATE run SET status=?, outcome=?, updated=?, driven=? WHERE id=? AND fence=?",
            (run.status, outcome, run.updated, run.driven, run.id, run.fence),
        ).rowcount
        != 1
    ):
        if _row(db, "id=?", run.id) is None:
            raise RunError(f"run {run.id} is in the record of runs no more: that was moved away")
        raise LeaseLost(f"run {run.id} was taken over by another process")
    new = 0
    for digest, kept in blobs:
        if db.execute("INSERT OR IGNORE INTO blob(hash, data) VALUES(?,?)", (digest, kept)).rowcount:
            new += len(kept)
    if found := [(run.id, value, name) for value, name in batch.secrets.items()]:
        db.executemany("INSERT OR IGNORE INTO secret(run, value, name) VALUES(?,?,?)", found)
    db.executemany(
        "INSERT INTO event(run, key, kind, digest, state, data, started, ended) VALUES(?,?,?,?,?,?,?,?)"
        " ON CONFLICT(run, key) DO UPDATE SET state=excluded.state, data=excluded.data, ended=excluded.ended"
        " WHERE state <> 'answered'",  # an answer stands, whoever gave it
        rows,
    )
    return OF_A_COMMIT + sum(len(row[5]) for row in rows) + new


def _event(row: Sequence[Any]) -> Event:
    key, kind, digest, state, data, started, ended = row
    return Event(key, kind, digest, state, json.loads(data), started, ended)


def _whole(text: bytes | None, *row: Any) -> Event:
    """An event with what its data has in common with others."""
    event = _event(row)
    if event.kind != "definition" or not event.digest:
        return event
    if text is None:
        raise RunError(f"the record of runs has lost what its calls have in common: {event.digest[:12]}")
    return dataclasses.replace(event, digest="", data={**json.loads(text), **event.data})


def _answer(db: sqlite3.Connection, run: str, key: str, answer: dict[str, Any]) -> Event | None:
    event = _one_event(db, run, key)
    if event is None or event.kind != "ask":
        return None
    now = time.time()
    if event.state != "asked":
        late = [*event.data.get("late", ()), {**answer, "at": now}]
        data = json.dumps({**event.data, "late": late[-MAX_LATE:]})
        db.execute("UPDATE event SET data=? WHERE run=? AND key=?", (data, run, key))
        return None
    event = dataclasses.replace(event, state="answered", data={**event.data, "answer": answer}, ended=now)
    db.execute(
        "UPDATE event SET state='answered', data=?, ended=? WHERE run=? AND key=?",
        (json.dumps(event.data), now, run, key),
    )
    return event


def _waiting(db: sqlite3.Connection) -> list[tuple[RunRow, Event]]:
    rows = db.execute(
        f"SELECT {_RUN}, {_EVENT} FROM event JOIN run ON run.id=event.run"
        " WHERE event.kind='ask' AND event.state='asked' AND run.status IN ('running', 'waiting')"
        " ORDER BY event.started, event.rowid"
    )
    wide = len(_RUN_COLUMNS)
    return [(_run_row(row[:wide]), _event(row[wide:])) for row in rows]


def _claim(db: sqlite3.Connection, run: str, owner: str, alive: Callable[[str], bool], how: str) -> RunRow:
    row = _row(db, "id=?", run)
    if row is None:
        raise RunError(f"there is no run {run}")
    if row.status not in OPEN:
        raise RunError(f"run {run} has ended ({row.status}); there is nothing left of it to go on with, or to stop")
    if row.owner != owner and alive(row.owner):
        raise RunError(f"run {run} is driven by a living process ({row.owner}); to answer what it asks: {how}")
    db.execute("UPDATE run SET owner=?, fence=fence+1, updated=? WHERE id=?", (owner, time.time(), run))
    claimed = _row(db, "id=?", run)
    assert claimed is not None
    return claimed
