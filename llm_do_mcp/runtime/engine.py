"""Runs from the outside: start, advance, answer, cancel, resume.

A run belongs to the engine, never to a request: whoever called may go away, and come back. Fronts (an MCP client
of either protocol era, a terminal) are thin loops over `advance`, which returns when there is something to do for
them: the run has ended, or has questions they have not seen yet.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llm_do_mcp.errors import LeaseLost, LlmDoError, RunError
from llm_do_mcp.runtime.account import account
from llm_do_mcp.runtime.definition import Definition
from llm_do_mcp.runtime.function import JSON
from llm_do_mcp.runtime.lease import Lease
from llm_do_mcp.runtime.question import Answer, Question
from llm_do_mcp.runtime.run import Run, record_definition, recorded_definition
from llm_do_mcp.runtime.store import OPEN, Event, RunRow, Status, Store
from llm_do_mcp.runtime.tree import Tree, question_of

GATHER_S = 2.0
"""How long a front that gathers questions waits for more after the first."""

_log = logging.getLogger(__name__)

Body = Callable[[Run], Awaitable[JSON]]


@dataclass(frozen=True)
class Done:
    """A run that has ended.

    Args:
        run: Its id.
        status: How it ended.
        output: What it gave, where it is done.
        error: One line, where it is not.
        account: What it did and spent; see `account.py`.
    """

    run: str
    status: Status
    output: JSON
    error: str
    account: dict[str, Any]


@dataclass(frozen=True)
class Asks:
    """A run with open questions that the caller has not seen."""

    run: str
    questions: tuple[Question, ...]


@dataclass(frozen=True)
class Working:
    """A run that goes on; the time the caller gave is over."""

    run: str


class Engine:
    """Drives the runs of one project in this process.

    Args:
        folder: The state folder; made at the first run.
        body: What drives a run, given its place and definition.
    """

    def __init__(self, folder: Path, body: Body) -> None:
        self.folder, self.body = folder, body
        self._store: Store | None = None
        self._lease: Lease | None = None
        self._trees: dict[str, Tree] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ended: dict[str, Done] = {}
        self._reasons: dict[str, str] = {}

    @property
    def store(self) -> Store:
        """The runs' store, opened when first used."""
        if self._store is None:
            from llm_do_mcp.runtime.state import make_private

            make_private(self.folder)
            self._store = Store(self.folder / "runs.sqlite3")
        return self._store

    @property
    def lease(self) -> Lease:
        """This process's lease, taken when first used."""
        if self._lease is None:
            _ = self.store
            self._lease = Lease(self.folder)
        return self._lease

    # ---- what fronts do

    async def start(self, name: str, definition: Definition, *, key: str | None = None) -> str:
        """Begin a run, or join the one that has this key.

        Args:
            name: What is run, for lists: a worker's id or a function's name.
            definition: What the root of its tree is.
            key: The caller's own key for this run.

        Returns:
            The run's id.
        """
        if key is not None:
            found = await self.store.find(key)
            for tree in self._trees.values():  # one that has just begun is not in the store yet
                if tree.row.key == key:
                    return tree.row.id
            if found is not None:
                if found.status in OPEN:
                    await self.resume(found.id)
                return found.id
        now = time.time()
        row = RunRow(secrets.token_hex(8), key, name, "running", None, self.lease.name, 1, now, now)
        self._begin(Tree(self.store, row, create=True), definition)
        return row.id

    async def resume(self, run: str) -> None:
        """Drive a run again that no living process drives; it goes on where its records end.

        Raises:
            RunError: There is no such run, it has ended, or a living process drives it.
        """
        if run in self._trees:
            return
        row = await self.store.claim(run, self.lease.name, self.lease.alive)
        self._begin(Tree(self.store, row, await self.store.events(run)))

    async def advance(
        self,
        run: str,
        *,
        seen: Collection[str] = (),
        gather: float = 0.0,
        timeout: float | None = None,
    ) -> Done | Asks | Working:
        """Wait until the run has ended or has questions that are not in `seen`.

        Args:
            run: The run's id.
            seen: Keys of questions that the caller knows already.
            gather: After a first new question, wait this many seconds for more, or until nothing else can happen.
            timeout: Seconds after which to return in any case.

        Raises:
            RunError: This process does not drive the run, and it has not ended.
        """
        until = None if timeout is None else time.monotonic() + timeout
        first: float | None = None
        while True:
            tree = self._trees.get(run)
            if tree is None:
                return await self.outcome(run)
            new = tuple(waiting.question for key, waiting in tree.questions.items() if key not in seen)
            now = time.monotonic()
            if new:
                first = now if first is None else first
                if tree.active <= 0 or now - first >= gather:
                    return Asks(run, new)
            if until is not None and now >= until:
                return Working(run)
            limits = [until - now] if until is not None else []
            if first is not None:
                limits.append(first + gather - now)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(limits) if limits else None):
                    await tree.change()

    async def answer(self, run: str, key: str, answer: Answer) -> bool:
        """Give an answer to a question of a run that this process drives; the first one wins."""
        tree = self._trees.get(run)
        return tree is not None and await tree.answer(key, answer)

    def question(self, run: str, key: str) -> Question | None:
        """A question of a run that this process drives, as long as it has no answer."""
        tree = self._trees.get(run)
        event = None if tree is None else tree.events.get(key)
        return question_of(event) if event is not None and event.state == "asked" else None

    def questions(self, run: str) -> tuple[Question, ...]:
        """The open questions of a run that this process drives."""
        tree = self._trees.get(run)
        return () if tree is None else tuple(waiting.question for waiting in tree.questions.values())

    async def settled(self, run: str, key: str) -> None:
        """Wait until a question is open no longer: it was answered, or its run has ended."""
        while self.question(run, key) is not None:
            await self._trees[run].change()

    def so_far(self, run: str) -> dict[str, Any]:
        """The account of a run that this process drives, as it stands."""
        tree = self._trees[run]
        return account(run, tree.row.status, list(tree.events.values()))

    async def definition(self, run: str) -> Definition | None:
        """What a run is; None where that is not recorded yet."""
        tree = self._trees.get(run)
        events = await self.store.events(run) if tree is None else tree.events.values()
        return next((Definition.from_json(event.data) for event in events if event.key == "definition"), None)

    async def cancel(self, run: str, reason: str = "cancelled by the caller") -> None:
        """Stop a run and all below it; it cannot be resumed.

        Raises:
            RunError: A run that this process does not drive.
        """
        task = self._tasks.get(run)
        if task is None:
            done = await self.outcome(run)
            raise RunError(f"run {run} has ended ({done.status})")
        self._reasons[run] = reason
        tree = self._trees[run]
        task.cancel()
        await asyncio.wait((task,))
        if run in self._trees:  # it had not even begun
            await self._end(tree, "cancelled", None, f"run {run} was {self._reasons.pop(run)}")

    async def outcome(self, run: str) -> Done:
        """How a run ended.

        Raises:
            RunError: There is no such run, or it has not ended.
        """
        if (kept := self._ended.get(run)) is not None:
            return kept
        row = await self.store.get(run)
        if row is None:
            raise RunError(f"there is no run {run}")
        if row.status in OPEN:
            where = "it is driven by another process" if self.lease.alive(row.owner) else "its process is gone"
            raise RunError(f"run {run} has not ended and {where}; `llm-do runs resume {run}` drives a run that is left")
        return _done(row, await self.store.events(run))

    @contextlib.contextmanager
    def listening(self, run: str, listener: Callable[[str], None]) -> Iterator[None]:
        """While the block runs, `listener` gets each line of progress."""
        tree = self._trees.get(run)
        with tree.listening(listener) if tree is not None else contextlib.nullcontext():
            yield

    async def aclose(self) -> None:
        """Let go of all runs. What had not ended stays resumable; nothing is cancelled in the record."""
        for task in self._tasks.values():
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=1.5)
        if self._store is not None:
            self._store.close()
        if self._lease is not None:
            self._lease.release()

    # ---- driving

    def _begin(self, tree: Tree, definition: Definition | None = None) -> None:
        run = tree.row.id
        self._trees[run] = tree
        self._tasks[run] = asyncio.create_task(self._drive(tree, definition), name=f"run {run}")

    async def _drive(self, tree: Tree, given: Definition | None) -> None:
        run, output, error = tree.row.id, None, ""
        status: Status = "done"
        synced = True
        try:
            definition = recorded_definition(tree, "")
            if definition is None:
                if given is None:
                    raise RunError(f"run {run} has no definition in its record; start it anew")
                definition = await record_definition(tree, "", given)
            synced = not definition.only_reads
            root = Run(tree, "", (definition.name,) if definition.kind == "worker" else (), definition)
            output = await root.within_time(self.body(root))
        except LeaseLost:
            self._forget(tree, None)
            return
        except LlmDoError as failed:
            status, error = "failed", str(failed)
        except asyncio.CancelledError:
            if run not in self._reasons:  # the process is about to end: the run stays resumable
                self._forget(tree, None)
                raise
            status, error = "cancelled", f"run {run} was {self._reasons.pop(run)}"
        except Exception as fault:
            _log.exception("run %s met a fault of ours", run)
            status, error = "failed", f"internal error: {type(fault).__name__}: {fault}"
        finally:
            if tree.row.id in self._trees:
                await self._end(tree, status, output, error, synced=synced)

    async def _end(self, tree: Tree, status: Status, output: JSON, error: str, *, synced: bool = True) -> None:
        try:
            await tree.commit(status, {"output": output, "error": error}, synced=synced)
        except Exception as failed:
            tree.row = dataclasses.replace(tree.row, status="failed", outcome={"output": None, "error": str(failed)})
        finally:  # also where a cancellation comes while the end is being written
            self._forget(tree, _done(tree.row, list(tree.events.values())))

    def _forget(self, tree: Tree, done: Done | None) -> None:
        run = tree.row.id
        self._trees.pop(run, None)
        self._tasks.pop(run, None)
        self._reasons.pop(run, None)
        if done is not None:
            self._ended[run] = done
            while len(self._ended) > 200:
                self._ended.pop(next(iter(self._ended)))
        tree.changed()


def _done(row: RunRow, events: list[Event]) -> Done:
    outcome = row.outcome or {"output": None, "error": ""}
    return Done(row.id, row.status, outcome["output"], outcome["error"], account(row.id, row.status, events))
