"""Runs from the outside: start, advance, answer, cancel, resume.

A run belongs to the engine, never to a request: whoever called may go away, and come back. Fronts (an MCP client
of either protocol era, a terminal) are thin loops over `advance`, which returns when there is something to do for
them: the run has ended, or has questions they have not seen yet.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import logging
import secrets
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Container, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_do_mcp.errors import FunctionFailed, LeaseLost, LlmDoError, ModelError, RunError
from llm_do_mcp.models.failures import unavailable
from llm_do_mcp.models.turn import Reply, Request
from llm_do_mcp.runtime.account import account, left_behind
from llm_do_mcp.runtime.definition import Definition
from llm_do_mcp.runtime.function import JSON
from llm_do_mcp.runtime.hint import Hint, plain
from llm_do_mcp.runtime.lease import Lease
from llm_do_mcp.runtime.question import Answer, Question
from llm_do_mcp.runtime.redact import NOTHING, Redactor
from llm_do_mcp.runtime.run import Run, record_definition, recorded_definition
from llm_do_mcp.runtime.state import RECORD, make_private
from llm_do_mcp.runtime.store import OPEN, Event, RunRow, Status, Store
from llm_do_mcp.runtime.tree import Tree, question_of

if TYPE_CHECKING:
    from llm_do_mcp.runtime.trace import Trace  # in use, when a run is first looked at

ANSWERS_EVERY_S = 0.25
"""How often it is looked for what other processes want of the runs that are driven here: answers, and cancellations."""
CANCELLED_WITHIN_S = 10.0
"""How long the process that drives a run has to cancel it before whoever asked for that is told that it goes on."""
NOTED_EVERY_S = 1.0
"""After how much work it is recorded how much there was, where nothing else is: what a kill can take back of it."""
ENDS_WITHIN_S = 0.6
"""How long runs may take to end by themselves with this process, and again when what they wait for was ended."""
COMES_TO_S = 10.0
"""How long a reply waits for the run that was resumed for it to come to where it left off."""
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
    """A run with open questions, or turns for its client's model, that the caller has not seen.

    Args:
        run: The run's id.
        questions: Open questions.
        samples: Key → turn.
    """

    run: str
    questions: tuple[Question, ...]
    samples: Mapping[str, Request] = field(default_factory=dict)


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
        hint: Makes the command lines that people are told to type.
    """

    def __init__(self, folder: Path, body: Body, redact: Redactor = NOTHING, hint: Hint = plain) -> None:
        self.folder, self.body, self.redact, self.hint = folder, body, redact, hint
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
            make_private(self.folder)
            self._store = Store(self.folder / RECORD)
        return self._store

    @property
    def lease(self) -> Lease:
        """This process's lease, taken when first used."""
        if self._lease is None:
            _ = self.store
            self._lease = Lease(self.folder)
        return self._lease

    # ---- what fronts do

    async def start(self, name: str, definition: Definition, *, key: str | None = None, principal: str = "") -> str:
        """Begin a run, or join the one that has this key.

        Args:
            name: What is run, for lists: a worker's id or a function's name.
            definition: What the root of its tree is.
            key: The caller's own key for this run; keys of different principals have nothing to do with each other.
            principal: Who begins it, where a server asks its callers who they are.

        Returns:
            The run's id.
        """
        if key is not None:
            key = json.dumps([principal, key]) if principal else key
            found = await self.store.find(key)
            for tree in self._trees.values():  # one that has just begun is not in the store yet
                if tree.row.key == key:
                    return tree.row.id
            if found is not None:
                await self.take_over(found.id)
                return found.id
        now = time.time()
        owner = self.lease.name
        row = RunRow(secrets.token_hex(8), key, name, "running", None, owner, 1, now, now, principal=principal)
        self._begin(Tree(self.store, row, create=True, redact=self.redact), definition)
        return row.id

    async def durable(self, run: str) -> None:
        """Wait until a run is recorded as what it is: from then on every process finds it, and can go on with it.

        Raises:
            RunError: It cannot be recorded.
        """
        while (tree := self._trees.get(run)) is not None and "definition" not in tree.events:
            await tree.growth()
        if tree is not None and tree.row.status in OPEN:
            await tree.commit()

    async def hand_over(self, run: str, call: str) -> None:
        """Record that a call (its digest) returned while its run goes on."""
        await self.durable(run)
        await self.store.hand_over(run, call)

    async def handed_over(self, call: str, principal: str) -> str | None:
        """The run of a principal's call that returned while it goes on, as long as it has not ended."""
        return await self.store.handed_over(call, principal)

    async def tell(self, run: str, result: str) -> str:
        """Record what a task is said to have come to while its run goes on; what was recorded first is what it is."""
        await self.durable(run)
        return await self.store.tell(run, result)

    async def told(self, run: str) -> str | None:
        """What was recorded so."""
        return await self.store.told(run)

    async def belongs(self, run: str, principal: str) -> bool:
        """Whether there is such a run and a principal may use it; "" is whoever has the store, and may use all."""
        row = await self._found(run)
        return row is not None and principal in ("", row.principal)

    async def resume(self, run: str) -> None:
        """Drive a run again that no living process drives; it goes on where its records end.

        Raises:
            RunError: There is no such run, it has ended, or a living process drives it.
        """
        if run in self._trees:
            return
        tree = await self._claim(run)
        if (reason := (await self.store.given_up([run])).get(run)) is not None:
            await self._end(tree, "cancelled", None, f"run {run} was {reason}")
        else:
            self._begin(tree)

    async def take_over(self, run: str) -> bool:
        """Drive a run that its process has left.

        Returns:
            Whether the run can be followed here: it goes on here, or has ended. Else a living process drives it.

        Raises:
            RunError: There is no such run.
        """
        if run in self._trees or run in self._ended:
            return True
        if (await self.row(run)).status not in OPEN:
            return True
        with contextlib.suppress(RunError):  # it is driven, or another process was quicker
            await self.resume(run)
        return run in self._trees or run in self._ended

    async def advance(
        self,
        run: str,
        *,
        seen: Container[str] = (),
        gather: float = 0.0,
        timeout: float | None = None,
    ) -> Done | Asks | Working:
        """Wait until the run has ended or has questions, or turns for its client's model, that are not in `seen`.

        Args:
            run: The run's id.
            seen: Keys of those that the caller knows already; looked at again at every change.
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
            new = tuple(question for key, question in tree.shown.items() if key not in seen)
            samples = {key: sample.request for key, sample in tree.samples.items() if key not in seen}
            now = time.monotonic()
            if new or samples:
                first = now if first is None else first
                if tree.active <= 0 or now - first >= gather:
                    return Asks(run, new, samples)
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

        What became of a call that was cut short is for a person to say: without a decision that question stays open.

        Returns:
            Whether this answer was the first.
        """
        asked = await self.asked(run, key)
        if asked is not None and asked.kind == "in_doubt" and answer.decision not in asked.decisions:
            return False
        tree = self._trees.get(run)
        if tree is not None:
            return await tree.answer(key, answer)
        return await self.store.answer(run, key, dataclasses.asdict(answer)) is not None

    def sampled(self, run: str, key: str, reply: Reply | ModelError) -> None:
        """Give what became of a turn that a run's client was to answer; a late reply is dropped."""
        tree = self._trees.get(run)
        sample = None if tree is None else tree.samples.pop(key, None)
        if sample is None or sample.reply.done():
            return
        if isinstance(reply, ModelError):
            sample.reply.set_exception(reply)
        else:
            sample.reply.set_result(reply)

    def lend_none(self, asks: Asks, why: str) -> None:
        """Let turns that a run's client was to answer fail, since whoever is in front has no model to lend.

        Args:
            asks: What the run wants.
            why: Who is in front, and why that is nobody who could.
        """
        for key, turn in asks.samples.items():
            self.sampled(asks.run, key, unavailable(turn, why, "name another model, as with --model"))

    async def sample(self, run: str, key: str, *, comes: bool) -> Request | None:
        """A turn that a run's client is to answer, as long as it has no reply.

        Args:
            run: The run's id.
            key: The turn's.
            comes: Wait until a run that was resumed has come to it again.
        """
        tree = self._trees.get(run)
        if tree is None:
            return None
        if comes:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(COMES_TO_S):
                    while run in self._trees and tree.may_come_to(key):
                        await tree.change()
        sample = tree.samples.get(key)
        return None if sample is None else sample.request

    async def unwanted(self, run: str, key: str) -> None:
        """Wait until a turn that a run's client was to answer has its reply, or is no longer waited for."""
        while (tree := self._trees.get(run)) is not None and key in tree.samples:
            await tree.change()

    def question(self, run: str, key: str) -> Question | None:
        """A question of a run that this process drives, as long as it has no answer."""
        tree = self._trees.get(run)
        event = None if tree is None else tree.events.get(key)
        return question_of(event) if event is not None and event.state == "asked" else None

    async def is_open(self, run: str, key: str) -> bool:
        """Whether a question waits for its answer, whichever process drives its run."""
        if run in self._trees:
            return self.question(run, key) is not None
        event = await self.store.event(run, key)
        return event is not None and event.state == "asked"

    async def asked(self, run: str, key: str) -> Question | None:
        """A question of any run, answered or not: what a late answer belongs to."""
        tree = self._trees.get(run)
        event = tree.events.get(key) if tree is not None else await self.store.event(run, key)
        return question_of(event) if event is not None and event.kind == "ask" else None

    async def waiting(self, run: str | None = None) -> list[Waiting]:
        """The questions that wait for an answer, oldest first: of one run, or of all runs of the project."""
        rows = [(row, event) for row, event in await self.store.waiting() if run in (None, row.id)]
        alive = {owner: self.lease.alive(owner) for owner in {row.owner for row, _ in rows}}
        return [
            Waiting(row.id, row.name, alive[row.owner], event.started, question_of(event))
            for row, event in rows
            if (tree := self._trees.get(row.id)) is None or event.key in tree.questions
        ]

    async def row(self, run: str) -> RunRow:
        """A run as a whole.

        Raises:
            RunError: There is no such run.
        """
        row = await self._found(run)
        if row is None:
            raise RunError(f"there is no run {run}")
        return row

    async def runs(self) -> list[RunRow]:
        """All runs of the project, the newest first."""
        return await self.store.runs() if self._has_record() else []

    async def trace(self, run: str) -> Trace | None:
        """What has happened in a run of the project; None where there is none."""
        from llm_do_mcp.runtime.trace import trace

        row = await self.store.get(run)
        if row is None:
            return None
        driven = self.lease.alive(row.owner)
        redact = await self._redact(run)
        return trace(row, await self.store.events(run), driven=driven, now=time.time(), redact=redact)

    def questions(self, run: str) -> tuple[Question, ...]:
        """The open questions of a run that this process drives."""
        tree = self._trees.get(run)
        return () if tree is None else tuple(tree.shown.values())

    def drives(self, run: str) -> bool:
        """Whether this process drives the run; one that has ended it does not."""
        return run in self._trees

    def nudge(self, run: str) -> None:
        """Let whoever waits in `advance` look at the run's questions again."""
        if (tree := self._trees.get(run)) is not None:
            tree.changed()

    async def grows(self, run: str) -> bool:
        """Wait until a run that this process drives has come further; whether it still goes on here."""
        if (tree := self._trees.get(run)) is not None:
            await tree.growth()
        return run in self._trees

    async def settled(self, run: str, key: str) -> Answer | None:
        """Wait until a question of any run is open no longer.

        Returns:
            Its answer, or None where its run has ended without one.
        """
        tree = self._trees.get(run)
        if tree is not None:
            while self.question(run, key) is not None:
                await tree.change()
            event = tree.events.get(key)
        else:
            while (event := await self.store.event(run, key)) is not None and event.state == "asked":
                await asyncio.sleep(ANSWERS_EVERY_S)
        return Answer(**event.data["answer"]) if event is not None and event.data.get("answer") else None

    def so_far(self, run: str) -> dict[str, Any]:
        """The account of a run that this process drives, as it stands."""
        tree = self._trees[run]
        return _account(tree.row, list(tree.events.values()), tree.redact)

    async def recorded(self, run: str) -> dict[str, Any]:
        """The account of a run that another process drives, as far as it is recorded."""
        row = await self.store.get(run)
        assert row is not None
        return _account(row, await self.store.events(run), await self._redact(run))

    async def name(self, run: str) -> str | None:
        """What was run, as `start` was told; None where no such run is recorded."""
        row = await self.store.get(run)
        return None if row is None else row.name

    async def definition(self, run: str) -> Definition | None:
        """What a run is; None where that is not recorded yet."""
        if (tree := self._trees.get(run)) is not None:
            return recorded_definition(tree, "")
        event = await self.store.event(run, "definition")
        return None if event is None else Definition.from_json(event.data)

    async def cancel(self, run: str, reason: str = "cancelled by the caller") -> None:
        """Stop a run and all below it, or give up one that no living process drives; it cannot be resumed.

        Raises:
            RunError: There is no such run, it has ended, or another process drives it.
        """
        task = self._tasks.get(run)
        if task is None:
            await self._end(await self._claim(run), "cancelled", None, f"run {run} was {reason}")
            return
        self._reasons[run] = reason
        tree = self._trees[run]
        task.cancel()
        await asyncio.wait((task,))
        if run in self._trees:  # it had not even begun
            await self._end(tree, "cancelled", None, f"run {run} was {self._reasons.pop(run)}")

    async def stop(self, run: str, reason: str) -> bool:
        """Have a run and all below it cancelled, whichever process drives it.

        Another process sees that as it sees answers. Should it die before, the run is cancelled here, or by whoever
        goes on with it.

        Returns:
            Whether the run has ended; else the process that drives it has not come to that yet.

        Raises:
            RunError: There is no such run, or it had ended already.
        """
        until, noted = time.monotonic() + CANCELLED_WITHIN_S, False
        while (status := (await self.row(run)).status) in OPEN:
            with contextlib.suppress(RunError):  # another process drives it, or was quicker
                await self.cancel(run, reason)
                return True
            if time.monotonic() >= until:
                return False
            if not noted:
                await self.store.give_up(run, reason)
                noted = True
            await asyncio.sleep(ANSWERS_EVERY_S)
        if not noted or status != "cancelled":
            await self.cancel(run, reason)  # says how it has ended
        return True

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
            where = f"its process is gone; to go on with it in a terminal: {self.hint('runs', 'resume', run)}"
            if self.lease.alive(row.owner):
                where = f"another process drives it; to answer what it asks: {self.hint('approve', run)}"
            raise RunError(f"run {run} has not ended and {where}")
        return _done(row, await self.store.events(run), await self._redact(run))

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

    async def _attend(self) -> None:
        """Take up what other processes want (they write it into the store), and note how much work there was."""
        while self._trees:
            await asyncio.sleep(ANSWERS_EVERY_S)
            for worked in tuple(self._trees.values()):
                if worked.row.status in OPEN and worked.driven - worked.row.driven >= NOTED_EVERY_S:
                    with contextlib.suppress(RunError):  # the run meets that too, with its next record
                        await worked.commit(synced=False)
            with contextlib.suppress(RunError):  # as above
                await self._take_up()

    async def _take_up(self) -> None:
        for run, reason in (await self.store.given_up(tuple(self._trees))).items():
            if (task := self._tasks.get(run)) is not None and run not in self._reasons:
                self._reasons[run] = reason
                task.cancel()
        asked = [(run, key) for run, tree in self._trees.items() for key in tree.questions]
        for run, event in await self.store.answered(asked) if asked else ():
            if (tree := self._trees.get(run)) is not None and event.key in tree.questions:
                await tree.settle(event)

    def _begin(self, tree: Tree, definition: Definition | None = None) -> None:
        run = tree.row.id
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._attend(), name="runs that are driven")
        self._trees[run] = tree
        task = _begun(self._drive(tree, definition), f"run {run}")
        if not task.done():
            self._tasks[run] = task

    async def _drive(self, tree: Tree, given: Definition | None) -> None:
        run, output, error = tree.row.id, None, ""
        status: Status = "failed"
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
            status = "done"
        except LeaseLost:
            self._forget(tree, None)
            return
        except FunctionFailed as failed:  # of a sub-worker: says itself what it leaves behind
            error = str(failed)
        except LlmDoError as failed:
            error = str(failed)  # told also where what it leaves behind cannot be
            error += left_behind(tuple(tree.events.values()))
        except asyncio.CancelledError:
            if run not in self._reasons:  # the process is about to end: the run stays resumable
                self._forget(tree, None)
                raise
            status, error = "cancelled", f"run {run} was {self._reasons[run]}"
        except Exception as fault:
            error = _of_ours(tree, fault)
        finally:
            if tree.row.id in self._trees:
                await self._end(tree, status, output, error, synced=synced)

    async def _end(self, tree: Tree, status: Status, output: JSON, error: str, *, synced: bool = True) -> None:
        tree.withdraw()
        if status == "cancelled":
            error += left_behind(tuple(tree.events.values()))
        try:
            await tree.commit(status, {"output": output, "error": tree.redact.text(error)}, synced=synced)
        except Exception as failed:
            tree.row = dataclasses.replace(tree.row, status="failed", outcome={"output": None, "error": str(failed)})
        finally:  # also where a cancellation comes while the end is being written
            self._forget(tree, _ended(tree))

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

    async def _claim(self, run: str) -> Tree:
        """Become the process that drives a run, and read what is recorded of it."""
        row = await self.store.claim(run, self.lease.name, self.lease.alive, self.hint("approve", run))
        return Tree(self.store, row, await self.store.events(run), redact=await self._redact(run))

    async def _found(self, run: str) -> RunRow | None:
        if run in self._trees:
            return self._trees[run].row
        return await self.store.get(run) if self._has_record() else None

    def _has_record(self) -> bool:
        """Whether there is a record to look into: looking makes none."""
        return self._store is not None or (self.folder / RECORD).exists()

    async def _redact(self, run: str) -> Redactor:
        """What keeps secrets out of what is shown of a run, also those of the processes that drove it before."""
        return self.redact.knowing(await self.store.secrets(run))


def _begun(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
    """A task that begins here and now (Python 3.12 or later): what is short ends before anybody waits for it."""
    if sys.version_info >= (3, 12):
        return asyncio.Task(work, loop=asyncio.get_running_loop(), name=name, eager_start=True)
    return asyncio.create_task(work, name=name)


def _ended(tree: Tree) -> Done:
    """How a run has ended: whoever waits for it is told so, also where its records cannot be counted up."""
    try:
        return _done(tree.row, list(tree.events.values()), tree.redact)
    except Exception as fault:
        outcome = {"output": None, "error": _of_ours(tree, fault)}
        return _done(dataclasses.replace(tree.row, status="failed", outcome=outcome), [], tree.redact)


def _of_ours(tree: Tree, fault: Exception) -> str:
    """What is said of a run that met a fault of ours; the log has all of it."""
    _log.error("run %s met a fault of ours\n%s", tree.row.id, tree.redact.text(traceback.format_exc()))
    return f"internal error: {type(fault).__name__}: {fault}"


def _done(row: RunRow, events: list[Event], redact: Redactor) -> Done:
    outcome = row.outcome or {"output": None, "error": ""}
    return Done(row.id, row.status, outcome["output"], outcome["error"], _account(row, events, redact))


def _account(row: RunRow, events: list[Event], redact: Redactor) -> dict[str, Any]:
    found: dict[str, Any] = redact.data(account(row.id, row.status, events))
    return found
