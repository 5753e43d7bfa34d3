"""A run, as its body sees it: three verbs.

- `step`: something happens (a model's turn, a tool), once, and is recorded;
- `ask`: a person decides;
- `child`: a sub-worker runs.

That is the seam: an engine is whatever implements the three. A body is ordinary async code over them. After a
crash, a restart or on another instance the body is simply run again: recorded verbs return what they returned, and
the first unrecorded one goes live. For that a body must be deterministic between its verbs; time, randomness and
everything from outside come in through a `step`.

A step that must not run twice is recorded as *started* before it acts. Where a replay finds it started and not
ended, the process died in between and the effect is *in doubt*: a person decides, it is never run again by itself.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from llm_do_mcp.errors import (
    CallError,
    FunctionFailed,
    InDoubt,
    LimitReached,
    LlmDoError,
    Outdated,
    RunError,
    ToolHostDied,
    Unanswered,
)
from llm_do_mcp.models.replay import replayed
from llm_do_mcp.runtime.account import is_call, left_behind, paid, under_way
from llm_do_mcp.runtime.definition import Definition
from llm_do_mcp.runtime.function import JSON
from llm_do_mcp.runtime.limits import Meter
from llm_do_mcp.runtime.question import Answer, Question
from llm_do_mcp.runtime.store import Event
from llm_do_mcp.runtime.tree import Leave, Tree

T = TypeVar("T")

AskFor = Callable[[str], Question]
"""Makes a question for the key it is given."""


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def digest_of(kind: str, arguments: JSON) -> str:
    """SHA-256, hexadecimal, of what is done and with what."""
    text = _CANONICAL.encode([kind, arguments])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Run:
    """One worker's run (or one client's call) in a tree.

    Args:
        tree: The whole run.
        path: The place in the tree; "" for the root, else it ends in "/".
        chain: The workers from the root to this one.
        definition: What this run is.
        parent: The run that called it.
    """

    def __init__(
        self, tree: Tree, path: str, chain: tuple[str, ...], definition: Definition, parent: Run | None = None
    ) -> None:
        self.tree, self.path, self.chain, self.definition = tree, path, chain, definition
        self.meter: Meter = Meter(definition.name, definition.limits, parent.meter if parent else None)

    # ---- the three verbs

    async def step(
        self,
        key: str,
        kind: str,
        arguments: JSON,
        perform: Callable[[Leave], Awaitable[JSON]],
        *,
        once: bool,
        in_doubt: Callable[[], Awaitable[AskFor]] | None = None,
        begin: Callable[[], None] | None = None,
        durable: bool = True,
    ) -> JSON:
        """Do something, or return what it gave when it was done before.

        Args:
            key: Stable and unique in this run: turn and index.
            kind: What it is: "model" or a function's canonical name.
            arguments: With what; a replay must give the same.
            perform: Does it. A `CallError` it raises is its recorded outcome. It is handed a function that gives
                its place among the tree's concurrent steps back, for when it begins to wait for calls of its own.
            once: It must never run twice: its intent is committed first, and a person is asked if it is cut short.
            in_doubt: Makes the question for that case; needed where `once`.
            begin: Called right before it is recorded as begun; where it raises, there is nothing to record.
            durable: Commit the outcome before going on.

        Raises:
            CallError: As `perform` raised it, now or then.
            Unanswered: Likewise, of a model's turn.
            Outdated: As `perform` raised it. The step is taken back: it was not begun, and is asked about once more.
            InDoubt: The person chose to stop.
            Diverged: The journal holds another step under this key.
        """
        key = self.path + key
        digest = digest_of(kind, arguments)
        seen = self.tree.recall(key, kind, digest)
        if seen is not None and seen.ended is not None:
            return self._given_before(seen)
        while True:
            if seen is not None and once:
                assert in_doubt is not None
                question = (await in_doubt())(f"{key}.doubt{seen.data or ''}")
                answer = await self._ask(question)
                if answer.decision == "done":
                    note = {"note": "a person confirmed that this was done; its result is unknown"}
                    return self._end(seen, "done", note)
                if answer.decision != "again":
                    raise InDoubt(f"{question.action} {question.target} was cut short, and the run was stopped there")
            # A second attempt is a second intent, so that another crash asks a new question.
            attempt = self.tree.attempts(key) + 1
            # Its place comes first: a step that still waits for one when the process dies is in no doubt.
            async with self.tree.place() as leave:
                if begin is not None:
                    begin()
                # What may run twice is no intent, and has no number.
                event = Event(key, kind, digest, "started", attempt if once else None, time.time())
                self.tree.record(event)
                if once:
                    await self.tree.commit()
                try:
                    outcome = await perform(leave)
                except Outdated:
                    self._end(event, "withdrawn", attempt)
                    await self._commit_if(durable)
                    raise
                except CallError as error:
                    if once and isinstance(error, ToolHostDied):
                        seen = event  # nobody knows how far it came: the same doubt as after a crash of ours
                        continue
                    self._end(event, "failed", str(error))
                    await self._commit_if(durable)
                    raise
                except Unanswered as error:
                    self._end(event, "failed", error.told)
                    await self._commit_if(durable)
                    raise
                self._end(event, "done", outcome)
                await self._commit_if(durable)
                return outcome

    async def ask(self, key: str, arguments: JSON, question: Callable[[], Awaitable[AskFor]]) -> Answer:
        """Let a person decide, or return what was decided before.

        Args:
            key: Stable and unique in this run.
            arguments: What the decision is about; a replay must give the same.
            question: Makes the question; only awaited where it must be put.
        """
        key = self.path + key
        seen = self.tree.recall(key, "ask", digest_of("ask", arguments))
        if seen is not None and seen.state == "answered":
            return Answer(**seen.data["answer"])
        return await self._ask((await question())(key), arguments)

    def settle(self, key: str, arguments: JSON, question: AskFor, answer: Answer) -> None:
        """Record a question that has its answer without being put.

        Args:
            key, arguments: As for `ask`.
            question: Makes it.
            answer: What settles it.
        """
        self._settled(question(self.path + key), digest_of("ask", arguments), answer)

    async def child(
        self,
        key: str,
        worker: str,
        arguments: JSON,
        define: Callable[[], Awaitable[Definition]],
        body: Callable[[Run], Awaitable[JSON]],
    ) -> JSON:
        """Run a sub-worker, or return what it gave when it ran before.

        Args:
            key: Stable and unique in this run.
            worker: The sub-worker's id as the caller gave it, for messages.
            arguments: What it is called with; a replay must give the same.
            define: Makes its definition; only awaited the first time.
            body: What runs it.

        Raises:
            FunctionFailed: The sub-worker would be too deep, failed, or met a limit of its own.
            LimitReached: A limit of this run, or of one above it, was met.
        """
        key = self.path + key
        kind, digest = "worker.call", digest_of("worker.call", arguments)
        seen = self.tree.recall(key, kind, digest)
        if seen is not None and seen.ended is not None:
            return self._given_before(seen)
        event = seen or Event(key, kind, digest, "started", None, time.time())
        if seen is None:
            self.tree.record(event)
        below: Run | None = None
        try:
            self.meter.check_depth(worker, self.chain)
            definition = recorded_definition(self.tree, key + "/")
            if definition is None:
                made = dataclasses.replace(await define(), began=self.tree.driven)
                definition = await record_definition(self.tree, key + "/", made)
            below = Run(self.tree, key + "/", (*self.chain, definition.name), definition, self)
            outcome = await below.within_time(body(below))
        except LlmDoError as error:
            own_limit = isinstance(error, LimitReached) and below is not None and error.meter is below.meter
            if isinstance(error, RunError) and not own_limit:
                raise
            failure = str(error) + left_behind(self.tree.below(key))
            self._end(event, "failed", failure)
            raise FunctionFailed(failure) from error
        self._end(event, "done", outcome)
        return outcome

    # ---- what the verbs stand on

    async def gather(self, branches: list[Awaitable[T]]) -> list[T]:
        """Run branches concurrently and return what they gave, in their order.

        Raises:
            BaseException: The first that a branch raised; the others are cancelled.
        """
        if len(branches) < 2:
            return [await branch for branch in branches]
        tree, ended = self.tree, 0

        async def counted(branch: Awaitable[T]) -> T:
            nonlocal ended
            try:
                return await branch
            finally:
                ended += 1
                tree.block_branch()

        tree.resume_branch(len(branches) - 1)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(counted(branch)) for branch in branches]
        except BaseExceptionGroup as failed:
            raise _first(failed) from None
        finally:
            tree.resume_branch(ended - (len(branches) - 1))
        return [task.result() for task in tasks]

    @property
    def seconds_left(self) -> float:
        """Seconds of work that this run's `timeout_s` leaves it, whatever process did what is done already."""
        return self.definition.began + self.definition.limits.timeout_s - self.tree.driven

    async def within_time(self, work: Awaitable[T]) -> T:
        """Do `work` under this run's `timeout_s`, which does not run while the tree waits for a person.

        Raises:
            LimitReached: The time is up; the work was cancelled.
        """
        clock = _Clock(self)
        try:
            async with clock.scope:
                return await work
        except TimeoutError:
            if not clock.scope.expired():
                raise
            ours = [event for key, event in self.tree.events.items() if key.startswith(self.path)]
            raise self.meter.reached("timeout_s", during=under_way(ours)) from None
        finally:
            clock.stop()

    async def _ask(self, question: Question, arguments: JSON = None) -> Answer:
        event = self.tree.events.get(question.key)
        if event is not None and event.state == "answered":
            return Answer(**event.data["answer"])
        digest = digest_of("ask", arguments if arguments is not None else question.digest)
        answer = self.tree.granted(question) or await self.tree.shared(question)
        if answer is not None:
            return self._settled(question, digest, answer)
        data = {"question": dataclasses.asdict(question)}
        self.tree.record(Event(question.key, "ask", digest, "asked", data, time.time()))
        return await self.tree.ask(question)

    def _settled(self, question: Question, digest: str, answer: Answer) -> Answer:
        data = {"question": dataclasses.asdict(question), "answer": dataclasses.asdict(answer)}
        now = time.time()
        self.tree.record(Event(question.key, "ask", digest, "answered", data, now, now))
        return answer

    def _end(self, event: Event, state: Any, data: JSON) -> JSON:
        self.tree.record(Event(event.key, event.kind, event.digest, state, data, event.started, time.time()))
        return data

    async def _commit_if(self, durable: bool) -> None:
        if durable:
            await self.tree.commit()

    def _given_before(self, seen: Event) -> JSON:
        # What is not run again has still spent what it spent: a sub-worker, the calls that a tool made.
        for event in self.tree.below(seen.key):
            if event.ended is not None and event.kind == "model":
                self.meter.charge(turns=1, tokens=tokens(event.data), cost=cost(event.data))
            elif event.ended is not None and is_call(event):
                self.meter.charge(tool_calls=1)
        if seen.state == "failed" and seen.kind == "model":
            raise Unanswered(seen.data["error"], seen.data)
        if seen.state == "failed":
            raise FunctionFailed(seen.data)
        return seen.data


class _Clock:
    """Ends a scope when a run's time is up. Once it is stopped nothing refers to the run by way of it.

    Args:
        run: The run.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._loop = asyncio.get_running_loop()
        self.scope = asyncio.timeout(None)
        self._timer = self._loop.call_later(run.seconds_left, self._look)

    def _look(self) -> None:
        if (left := self._run.seconds_left) <= 0:
            self.scope.reschedule(self._loop.time())
        else:  # in 0.1 s at the earliest: the clock may stand still while a person thinks
            self._timer = self._loop.call_later(max(left, 0.1), self._look)

    def stop(self) -> None:
        self._timer.cancel()


def tokens(reply: JSON) -> int:
    """Tokens of a recorded model turn."""
    return sum(each["usage"]["input_tokens"] + each["usage"]["output_tokens"] for each in paid(reply))


def cost(reply: JSON) -> float:
    """US dollars that a recorded model turn cost, as far as that is known."""
    return sum(float(each.get("cost") or 0.0) for each in paid(reply))


def recorded_definition(tree: Tree, path: str) -> Definition | None:
    """What the run at `path` is, as far as that is recorded."""
    seen = tree.events.get(path + "definition")
    return None if seen is None else Definition.from_json(seen.data)


async def record_definition(tree: Tree, path: str, definition: Definition) -> Definition:
    """Make the definition the first record of the run at `path`."""
    for run in filter(None, map(replayed, definition.models)):  # what was secret then will be said again
        tree.redact = tree.redact.knowing(await tree.store.secrets(run))
    now = time.time()
    # No digest: a definition is not asked for again with arguments that could differ.
    tree.record(Event(path + "definition", "definition", "", "done", definition.recorded(), now, now))
    if definition.kind == "worker":  # its first turn may take minutes; a client's own read is one commit
        await tree.commit()
    return definition


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    for error in group.exceptions:
        return _first(error) if isinstance(error, BaseExceptionGroup) else error
    return group
