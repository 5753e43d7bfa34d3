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
import traceback
from collections.abc import Awaitable, Callable, Container, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llm_do_mcp.errors import FunctionFailed, LeaseLost, LlmDoError, RunError
from llm_do_mcp.runtime.account import account, left_behind
from llm_do_mcp.runtime.definition import Definition
from llm_do_mcp.runtime.display import cut, escape
from llm_do_mcp.runtime.function import JSON
from llm_do_mcp.runtime.lease import Lease
from llm_do_mcp.runtime.question import Answer, Question
from llm_do_mcp.runtime.redact import NOTHING, Redactor
from llm_do_mcp.runtime.run import Run, record_definition, recorded_definition
from llm_do_mcp.runtime.store import OPEN, Event, RunRow, Status, Store
from llm_do_mcp.runtime.tree import Tree, question_of

ANSWERS_EVERY_S = 0.25
"""How often answers that other processes gave are looked for, while questions are open."""
ENDS_WITHIN_S = 0.6
"""How long runs may take to end by themselves with this process, and again when what they wait for was ended."""
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
class Waiting:
    """A question that waits for an answer.

    Args:
        run: The run it belongs to.
        name: What that run is, for lists.
        driven: A living process waits for the answer; else the run has to be resumed for it.
        asked: When it was put, in seconds since the epoch.
        question: The question.
    """

    run: str
    name: str
    driven: bool
    asked: float
    question: Question


@dataclass(frozen=True)
class Working:
    """A run that goes on; the time the caller gave is over."""

    run: str


class Engine:
    """Drives the runs of one project in this process.

    Args:
        folder: The state folder; made at the first run.
        body: What drives a run, given its place and definition.
        redact: What keeps secrets out of progress, questions, errors and accounts.
    """

    def __init__(self, folder: Path, body: Body, redact: Redactor = NOTHING) -> None:
        self.folder, self.body, self.redact = folder, body, redact
        self._store: Store | None = None
        self._lease: Lease | None = None
        self._trees: dict[str, Tree] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ended: dict[str, Done] = {}
        self._reasons: dict[str, str] = {}
        self._watch: asyncio.Task[None] | None = None

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
        self._begin(Tree(self.store, row, create=True, redact=self.redact), definition)
        return row.id

    async def resume(self, run: str) -> None:
        """Drive a run again that no living process drives; it goes on where its records end.

        Raises:
            RunError: There is no such run, it has ended, or a living process drives it.
        """
        if run in self._trees:
            return
        row = await self.store.claim(run, self.lease.name, self.lease.alive)
        self._begin(Tree(self.store, row, await self.store.events(run), redact=self.redact))

    async def advance(
        self,
        run: str,
        *,
        seen: Container[str] = (),
        gather: float = 0.0,
        timeout: float | None = None,
    ) -> Done | Asks | Working:
        """Wait until the run has ended or has questions that are not in `seen`.

        Args:
            run: The run's id.
            seen: Keys of questions that the caller knows already; looked at again at every change.
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
        """Give an answer to a question of a run, whichever process drives it; the first one wins.

        Returns:
            Whether this answer was the first.
        """
        tree = self._trees.get(run)
        if tree is not None:
            return await tree.answer(key, answer)
        return await self.store.answer(run, key, dataclasses.asdict(answer)) is not None

    def question(self, run: str, key: str) -> Question | None:
        """A question of a run that this process drives, as long as it has no answer."""
        tree = self._trees.get(run)
        event = None if tree is None else tree.events.get(key)
        return question_of(event) if event is not None and event.state == "asked" else None

    async def asked(self, run: str, key: str) -> Question | None:
        """A question of any run, answered or not: what a late answer belongs to."""
        tree = self._trees.get(run)
        event = tree.events.get(key) if tree is not None else await self.store.event(run, key)
        return question_of(event) if event is not None and event.kind == "ask" else None

    async def waiting(self) -> list[Waiting]:
        """The questions of all runs of the project that wait for an answer, oldest first."""
        rows = await self.store.waiting()
        alive = {row.owner: self.lease.alive(row.owner) for row, _ in rows}
        return [
            Waiting(row.id, row.name, alive[row.owner], event.started, question_of(event))
            for row, event in rows
            if (tree := self._trees.get(row.id)) is None or event.key in tree.questions
        ]

    async def steps(self, run: str) -> list[str]:
        """What a run has done so far, a line each, for a person who decides about the next step."""
        from llm_do_mcp.runtime.trace import trace

        row = await self.store.get(run)
        if row is None:
            return []
        found = trace(row, await self.store.events(run), driven=True, now=time.time(), redact=self.redact)
        return [
            f"{'· ' * (depth // 2 - 1)}{item.name} {cut(escape(str(item.facts.get('arguments') or '')), 80)}".rstrip()
            + f": {item.state.replace('_', ' ')}"
            for depth, item in found.walk()
            if depth > 0 and item.kind in ("worker", "call")
        ]

    def questions(self, run: str) -> tuple[Question, ...]:
        """The open questions of a run that this process drives."""
        tree = self._trees.get(run)
        return () if tree is None else tuple(waiting.question for waiting in tree.questions.values())

    def drives(self, run: str) -> bool:
        """Whether this process drives the run; one that has ended it does not."""
        return run in self._trees

    def nudge(self, run: str) -> None:
        """Let whoever waits in `advance` look at the run's questions again."""
        if (tree := self._trees.get(run)) is not None:
            tree.changed()

    async def settled(self, run: str, key: str) -> None:
        """Wait until a question is open no longer: it was answered, or its run has ended."""
        while self.question(run, key) is not None:
            await self._trees[run].change()

    def so_far(self, run: str) -> dict[str, Any]:
        """The account of a run that this process drives, as it stands."""
        tree = self._trees[run]
        return self._account(tree.row, list(tree.events.values()))

    async def definition(self, run: str) -> Definition | None:
        """What a run is; None where that is not recorded yet."""
        tree = self._trees.get(run)
        events = await self.store.events(run) if tree is None else tree.events.values()
        return next((Definition.from_json(event.data) for event in events if event.key == "definition"), None)

    async def cancel(self, run: str, reason: str = "cancelled by the caller") -> None:
        """Stop a run and all below it, or give up one that no living process drives; it cannot be resumed.

        Raises:
            RunError: There is no such run, it has ended, or another process drives it.
        """
        task = self._tasks.get(run)
        if task is None:
            row = await self.store.claim(run, self.lease.name, self.lease.alive)
            left = Tree(self.store, row, await self.store.events(run), redact=self.redact)
            await self._end(left, "cancelled", None, f"run {run} was {reason}")
            return
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
        return self._done(row, await self.store.events(run))

    @contextlib.contextmanager
    def listening(self, run: str, listener: Callable[[str], None]) -> Iterator[None]:
        """While the block runs, `listener` gets each line of progress."""
        tree = self._trees.get(run)
        with tree.listening(listener) if tree is not None else contextlib.nullcontext():
            yield

    async def aclose(self, stop: Callable[[], None] | None = None) -> None:
        """Let go of all runs. What had not ended stays resumable; nothing is cancelled in the record.

        Args:
            stop: Ends at once what the runs wait for and does not end by itself; called where one is left after a
                moment.
        """
        if self._watch is not None:
            self._watch.cancel()
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        left = (await asyncio.wait(tasks, timeout=ENDS_WITHIN_S))[1] if tasks else ()
        if left:
            if stop is not None:
                stop()
            await asyncio.wait(left, timeout=ENDS_WITHIN_S)
        if self._store is not None:
            self._store.close()
        if self._lease is not None:
            self._lease.release()

    # ---- driving

    async def _watch_answers(self) -> None:
        """Take up what other processes answer; they write it into the store."""
        while self._trees:
            await asyncio.sleep(ANSWERS_EVERY_S)
            asked = [(run, key) for run, tree in self._trees.items() for key in tree.questions]
            for run, event in await self.store.answered(asked) if asked else ():
                if (tree := self._trees.get(run)) is not None and event.key in tree.questions:
                    await tree.settle(event)

    def _begin(self, tree: Tree, definition: Definition | None = None) -> None:
        run = tree.row.id
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._watch_answers(), name="answers of other processes")
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
        except FunctionFailed as failed:  # of a sub-worker: says itself what it leaves behind
            status, error = "failed", str(failed)
        except LlmDoError as failed:
            status, error = "failed", str(failed) + left_behind(tuple(tree.events.values()))
        except asyncio.CancelledError:
            if run not in self._reasons:  # the process is about to end: the run stays resumable
                self._forget(tree, None)
                raise
            status, error = "cancelled", f"run {run} was {self._reasons.pop(run)}"
        except Exception as fault:
            _log.error("run %s met a fault of ours\n%s", run, self.redact.text(traceback.format_exc()))
            status, error = "failed", f"internal error: {type(fault).__name__}: {fault}"
        finally:
            if tree.row.id in self._trees:
                await self._end(tree, status, output, error, synced=synced)

    async def _end(self, tree: Tree, status: Status, output: JSON, error: str, *, synced: bool = True) -> None:
        if status == "cancelled":
            error += left_behind(tuple(tree.events.values()))
        try:
            await tree.commit(status, {"output": output, "error": self.redact.text(error)}, synced=synced)
        except Exception as failed:
            tree.row = dataclasses.replace(tree.row, status="failed", outcome={"output": None, "error": str(failed)})
        finally:  # also where a cancellation comes while the end is being written
            self._forget(tree, self._done(tree.row, list(tree.events.values())))

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

    def _done(self, row: RunRow, events: list[Event]) -> Done:
        outcome = row.outcome or {"output": None, "error": ""}
        return Done(row.id, row.status, outcome["output"], outcome["error"], self._account(row, events))

    def _account(self, row: RunRow, events: list[Event]) -> dict[str, Any]:
        found: dict[str, Any] = self.redact.data(account(row.id, row.status, events))
        return found
