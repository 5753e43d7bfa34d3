"""One run and all below it, in the process that drives it: its records, its open questions, its clock.

Records are appended in memory and committed in order. A commit is awaited only where something must not be lost:
before an effect, when a question is put, when an answer or a model's turn came in, at the end. What only reads is
committed with whatever follows it.

A *branch* is a line of work that could go on by itself. `active` counts those that do not wait for a person; when
it is zero, nothing more can happen before an answer. The tree's clock stands still then.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from llm_do_mcp.errors import Diverged, RunError
from llm_do_mcp.models.turn import Reply, Request
from llm_do_mcp.runtime.question import GRANT, Answer, Question
from llm_do_mcp.runtime.redact import NOTHING, Redactor
from llm_do_mcp.runtime.store import Batch, Event, RunRow, Status, Store

PLACES = 8
"""Steps of one tree that run at the same time."""
UNTOLD = 200
"""Lines of progress that are kept while nobody listens: between two rounds of a client."""


Leave = Callable[[], None]


class Signal:
    """Wakes whoever waits for it at that moment."""

    def __init__(self) -> None:
        self._event: asyncio.Event | None = None  # made when somebody waits: most signals are given to nobody

    async def wait(self) -> None:
        if self._event is None:
            self._event = asyncio.Event()
        await self._event.wait()

    def give(self) -> None:
        if self._event is not None:
            self._event.set()
            self._event = None


@dataclass
class Open:
    """A question that waits for its answer; `recorded` once it is in the store."""

    question: Question
    answer: asyncio.Future[Answer]
    recorded: bool = False


@dataclass(frozen=True)
class Sample:
    """A turn that the model of the client in front is to answer, and the reply that is waited for."""

    request: Request
    reply: asyncio.Future[Reply]


class Ticket:
    """A call's place in the order in which calls came to the gate, and in which their questions are put.

    Args:
        queue: Those that came earlier and are not through.
    """

    def __init__(self, queue: list[Ticket]) -> None:
        self._queue, self._earlier, self._through = queue, tuple(queue), asyncio.Event()
        queue.append(self)

    async def called(self) -> None:
        """Wait until all that came earlier are through, and be through.

        What is done from here to the next `await` is done before anything that waits for it.
        """
        for earlier in self._earlier:
            await earlier._through.wait()
        self.through()

    def through(self) -> None:
        """Have put the question, or need none."""
        if not self._through.is_set():
            self._queue.remove(self)
            self._through.set()


class Place:
    """A place among the concurrent steps: entered, it waits for one, and gives what hands it back early.

    Args:
        places: All of them.
    """

    def __init__(self, places: asyncio.Semaphore) -> None:
        self._places, self._held = places, False

    async def __aenter__(self) -> Leave:
        await self._places.acquire()
        self._held = True
        return self.leave

    async def __aexit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Hand it back."""
        if self._held:
            self._held = False
            self._places.release()


class Tree:
    """A run while it is driven.

    Args:
        store: Where its records go.
        row: The run as a whole; its `owner` and `fence` are this process's claim.
        events: What is recorded already (on resume).
        create: The row is not in the store yet.
        redact: What keeps secrets out of what people are shown of it.
    """

    def __init__(
        self,
        store: Store,
        row: RunRow,
        events: Iterable[Event] = (),
        *,
        create: bool = False,
        redact: Redactor = NOTHING,
    ) -> None:
        self.store, self.row, self.redact = store, row, redact
        self.events = {event.key: event for event in events}
        self.asked = {event.key: event for event in self.events.values() if event.kind == "ask"}
        """Those of the records that are questions."""
        self.questions: dict[str, Open] = {}
        self.samples: dict[str, Sample] = {}
        self.grants = {
            _scope(question_of(event)): event.key
            for event in self.asked.values()
            if event.state == "answered" and event.data["answer"]["decision"] == "run"
        }
        self.resumed = not create
        self.active = 1
        self._listeners: list[Callable[[str], None]] = []
        self._untold: deque[str] = deque(maxlen=UNTOLD)
        self._places = asyncio.Semaphore(PLACES)
        self._queue: list[Ticket] = []
        self._create = create
        self._pending: dict[str, Event] = {}
        self._blobs: list[tuple[str, bytes]] = []
        self._changed, self._grown = Signal(), Signal()
        self._driven, self._since = row.driven, time.monotonic()

    # ---- records

    def recorded(self, key: str) -> Event | None:
        """The record under a key, unless it was taken back."""
        event = self.events.get(key)
        return None if event is None or event.state == "withdrawn" else event

    def recall(self, key: str, kind: str, digest: str) -> Event | None:
        """What is recorded under a key, if it was the same that is asked for now.

        Raises:
            Diverged: The journal holds something else there.
        """
        event = self.recorded(key)
        if event is not None and (event.kind, event.digest) != (kind, digest):
            raise Diverged(
                f"run {self.row.id} cannot be replayed: at {key} it did {event.kind} ({event.digest[:8]}), "
                f"and now asks for {kind} ({digest[:8]})"
            )
        return event

    def attempts(self, key: str) -> int:
        """How often a step was begun, or taken back, that has not ended."""
        event = self.events.get(key)
        return (event.data or 0) if event is not None and event.state in ("started", "withdrawn") else 0

    def below(self, key: str) -> list[Event]:
        """The records of what happened in a call."""
        return [event for place, event in self.events.items() if place.startswith(key + "/")]

    def record(self, event: Event) -> None:
        """Append or replace a record; it is durable after the next `commit`."""
        self._put(event)
        self._pending[event.key] = event  # what was begun and ended since the last commit is written once
        self._grown.give()

    def _put(self, event: Event) -> None:
        self.events[event.key] = event
        if event.kind == "ask":
            self.asked[event.key] = event

    def keep(self, digest: str, data: bytes) -> None:
        """Keep bytes with the run's records; durable after the next `commit`."""
        self._blobs.append((digest, data))

    async def blob(self, digest: str) -> bytes:
        """Bytes that were kept."""
        for kept, data in self._blobs:
            if kept == digest:
                return data
        return await self.store.blob(digest)

    async def commit(self, status: Status | None = None, outcome: Any = None, *, synced: bool = True) -> None:
        """Write what was recorded since the last commit.

        Args:
            status: Of the run from now on, or None for what its questions say.
            outcome: Of the run, where it has ended.
            synced: Wait for the disk; not needed where losing the record to a failure of the machine loses no effect.

        Raises:
            LeaseLost: Another process drives the run now.
            RunError: It cannot be written; it stays to be written with the next commit.
        """
        if status is None:
            status = "waiting" if self.questions else "running"
        now = time.time()
        self.row = dataclasses.replace(self.row, status=status, outcome=outcome, updated=now, driven=self.driven)
        events = tuple(self._pending.values())
        secrets = self.redact.held([outcome, *(event.data for event in events)])
        batch = Batch(self.row, events, tuple(self._blobs), self._create, synced, secrets)
        # Cleared before the write is awaited: whoever records meanwhile belongs to the next batch.
        self._pending.clear()
        self._blobs.clear()
        self._create = False
        try:
            await self.store.write(batch)
        except RunError:
            self._pending = {**{event.key: event for event in batch.events}, **self._pending}
            self._blobs[:0] = batch.blobs
            self._create = self._create or batch.create
            raise

    # ---- branches and the clock

    def resume_branch(self, count: int = 1) -> None:
        """Count branches that go on."""
        if self.active <= 0 < self.active + count:
            self._since = time.monotonic()
        self.active += count
        self.changed()

    def block_branch(self) -> None:
        """Count a branch that waits for a person, or ended."""
        if self.active == 1:
            self._driven += time.monotonic() - self._since
        self.active -= 1
        self.changed()

    @contextlib.contextmanager
    def blocked(self) -> Iterator[None]:
        """While a branch waits for a person."""
        self.block_branch()
        try:
            yield
        finally:
            self.resume_branch()

    def place(self) -> Place:
        """One of the places for concurrent steps, while a block runs or until it is handed back."""
        return Place(self._places)

    @contextlib.contextmanager
    def ticket(self) -> Iterator[Ticket]:
        """While a call is made: its place in the order of questions, however long it takes to make each of them."""
        ticket = Ticket(self._queue)
        try:
            yield ticket
        finally:
            ticket.through()

    @property
    def driven(self) -> float:
        """Seconds of work so far, in all processes that drove this run, without waiting for a person."""
        return self._driven + (time.monotonic() - self._since if self.active > 0 else 0.0)

    # ---- questions

    @property
    def shown(self) -> dict[str, Question]:
        """The open questions that people may see: what was seen is in the record, whenever this process is killed."""
        return {key: waiting.question for key, waiting in self.questions.items() if waiting.recorded}

    async def ask(self, question: Question) -> Answer:
        """Wait in place until someone answers."""
        waiting = Open(question, asyncio.get_running_loop().create_future())
        self.questions[question.key] = waiting
        try:
            await self.commit()
            waiting.recorded = True
            self.changed()
            with self.blocked():
                answer = await waiting.answer
            await self.commit()  # no longer waiting, for whoever looks at the list of runs
            return answer
        finally:
            if self.questions.pop(question.key, None) is not None:
                self._withdraw(self.events[question.key])
            self.changed()

    def withdraw(self, prefix: str = "", keep: str = "") -> None:
        """Take back the open questions whose keys begin so, but for one: no answer to them would count any more."""
        for key, event in list(self.events.items()):
            if event.state == "asked" and key.startswith(prefix) and key != keep:
                self._withdraw(event)

    def _withdraw(self, event: Event) -> None:
        self.record(dataclasses.replace(event, state="withdrawn", ended=time.time()))

    async def answer(self, key: str, answer: Answer) -> bool:
        """Give the answer to an open question; the first one wins, whichever process gives it.

        Returns:
            Whether this answer was the first.
        """
        event = await self.store.answer(self.row.id, key, dataclasses.asdict(answer))
        if event is not None:
            await self.settle(event)
        return event is not None

    async def settle(self, event: Event) -> None:
        """Go on with a question that has been answered, here or in another process."""
        answer = Answer(**event.data["answer"])
        self._put(event)
        # In a run that was just resumed the question may be answered before the body has come to it again.
        waiting = self.questions.pop(event.key, None)
        if waiting is not None and not waiting.answer.done():
            waiting.answer.set_result(answer)
        self.changed()
        if answer.decision == "run":
            scope = _scope(question_of(event))
            self.grants[scope] = event.key
            granted = [other for other, open_ in self.questions.items() if _scope(open_.question) == scope]
            for other in granted:
                await self.answer(other, Answer("once", note=answer.note, by=GRANT))

    def granted(self, question: Question) -> Answer | None:
        """The answer to a question that a person gave with one before it, for the rest of the run."""
        given = self.grants.get(_scope(question)) if question.kind == "approval" else None
        if given is None or _call_of(given) == _call_of(question.key):
            return None  # what was granted with a picture of this very call is shown as it has become
        return Answer("once", note=self.events[given].data["answer"]["note"], by=GRANT)

    async def shared(self, question: Question) -> Answer | None:
        """The answer to the same question of another call, where one waits and may be shared."""
        while question.repeatable and (twin := self._twin(question)) is not None:
            with self.blocked():
                await asyncio.wait((twin.answer,))
            if not twin.answer.cancelled():  # else that call was given up: the question is put for this one
                given = twin.answer.result()
                decision = "once" if given.decision == "run" else given.decision
                return dataclasses.replace(given, decision=decision, by="the same question")
        return None

    def _twin(self, question: Question) -> Open | None:
        for waiting in self.questions.values():
            if dataclasses.replace(waiting.question, key=question.key) == question:
                return waiting
        return None

    # ---- turns of the client's model

    async def sample(self, request: Request) -> Reply:
        """Wait until the client of whoever follows the run has answered a turn; meanwhile the clock stands still."""
        key = _key_of(request)
        sample = Sample(request, asyncio.get_running_loop().create_future())
        self.samples[key] = sample
        self.changed()
        try:
            with self.blocked():
                return await sample.reply
        finally:
            if self.samples.get(key) is sample:
                del self.samples[key]
            self.changed()

    def may_come_to(self, key: str) -> bool:
        """Whether a run that was resumed has yet to put this turn, which it had put before."""
        turn = self.recorded(_turn_of(key))
        ended = turn is not None and turn.ended is not None
        return self.resumed and self.active > 0 and key not in self.samples and not ended

    # ---- watching

    def changed(self) -> None:
        """Wake whoever waits for a change."""
        self._changed.give()
        self._grown.give()

    async def change(self) -> None:
        """Wait until something changes: a question, an answer, a branch, the end."""
        await self._changed.wait()

    async def growth(self) -> None:
        """Wait until there is more to tell than before: a change, or a record."""
        await self._grown.wait()

    def tell(self, message: str) -> None:
        """One line of progress for whoever listens, or for who listens next."""
        message = self.redact.text(message)
        if not self._listeners:
            self._untold.append(message)
        for listener in tuple(self._listeners):
            listener(message)

    @contextlib.contextmanager
    def listening(self, listener: Callable[[str], None]) -> Iterator[None]:
        """While the block runs, `listener` gets each line of progress, and first those that nobody heard."""
        self._listeners.append(listener)
        try:
            while self._untold:
                listener(self._untold.popleft())
            yield
        finally:
            self._listeners.remove(listener)


def _key_of(request: Request) -> str:
    """What a turn is called before a client: the same after a restart, and another one for each model of a chain."""
    return f"{request.key}@{request.model}"


def _turn_of(key: str) -> str:
    """The place of a turn that a client knows by that key."""
    return key.partition("@")[0]


def _scope(question: Question) -> tuple[str, ...]:
    """What "for the rest of this run" covers: the same asker, function and scope, as long as their code is the same."""
    return (*question.chain, question.function, question.scope, question.worker_code, question.function_code)


def _call_of(key: str) -> str:
    """The place of the call that a question is about."""
    return key.rpartition(".")[0]


def question_of(event: Event) -> Question:
    """The question that a record holds."""
    question = event.data["question"]
    return Question(**{**question, "chain": tuple(question["chain"])})
