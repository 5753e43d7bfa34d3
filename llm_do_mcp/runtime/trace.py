"""A run's record as people look at it: a tree of what happened, as plain data.

The journal is a flat list of records whose keys are places (`call/t0.1/t2`: the third turn of the worker that the
second call of the first turn ran). Here the places become a tree again: workers hold turns, turns hold calls, calls
hold the questions about them, the calls they made themselves, or a sub-worker. What a model asked for and what never
became a step (refused, or arguments that did not fit) is in the tree too: taken from the model's reply.

Texts are redacted, then cut. They are not escaped: that is for who shows them.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from llm_do_mcp.runtime.account import account, is_intent
from llm_do_mcp.runtime.display import cut
from llm_do_mcp.runtime.function import JSON
from llm_do_mcp.runtime.question import GOES_AHEAD
from llm_do_mcp.runtime.redact import NOTHING, Redactor
from llm_do_mcp.runtime.store import OPEN, Event, RunRow

CHARS = 4000
"""How much of each text (arguments, result, reply) is in a trace."""

ItemState = Literal[
    "done", "failed", "running", "waiting", "refused", "not_made", "in_doubt", "unfinished", "withdrawn"
]
"""`running` and `waiting`: now. `in_doubt`: begun, never ended, and it may have had its effect. `unfinished`: begun,
never ended, and simply repeated by a resume; or allowed, and made by it. `not_made`: asked for by the model, and never
begun. `withdrawn`: a question whose run was stopped before the answer."""


@dataclass(frozen=True)
class Item:
    """Something that happened in a run.

    Args:
        kind: What it is.
        key: Its place in the run, unique.
        name: The worker's id, the function's canonical name, "model", or what a question would do.
        state: What became of it.
        started, ended: Seconds since the epoch; `ended` is None where it has no end.
        facts: By kind. worker: `input`, `models`, `output`. turn: `model`, `input_tokens`, `output_tokens`,
            `cost` (US dollars, None where that is not known), `passed_over` (`{model, error}` of those that did not
            serve it), `lost_tokens` (of replies that came to nothing), `stop_reason`, `text`; of one that no model
            answered `model` is the last that was asked. call: `arguments` (None where they are not recorded), `result`.
            question: `asks` ("approval", "in_doubt", "question"), `function`, `target`, `chain`, `detail`, and where
            it was answered `decision`, `by`, `note`; `late`: how many further answers came.
            Any that failed: `error`.
        children: What happened in it, in the order in which it began.
    """

    kind: Literal["worker", "turn", "call", "question"]
    key: str
    name: str
    state: ItemState
    started: float
    ended: float | None
    facts: Mapping[str, JSON] = field(default_factory=dict)
    children: tuple[Item, ...] = ()


@dataclass(frozen=True)
class Trace:
    """A run, to be looked at.

    Args:
        run, name, status: Its id, what was called, how it stands.
        driven: A living process drives it.
        started, until: Seconds since the epoch: its beginning, and its end or the last that is known of it.
        worked_s: Seconds of work, in all processes that drove it: what `timeout_s` bounds.
        person_s: Seconds in which at least one question waited for a person.
        output, error: What it gave, cut.
        account: See `account.py`.
        items: What happened; one root.
    """

    run: str
    name: str
    status: str
    driven: bool
    started: float
    until: float
    worked_s: float
    person_s: float
    output: str
    error: str
    account: Mapping[str, JSON]
    items: tuple[Item, ...]

    def walk(self) -> Iterator[tuple[int, Item]]:
        """All items with their depth, parents first."""
        yield from _walk(self.items, 0)

    def of(self, *states: ItemState) -> list[Item]:
        """The items in one of these states."""
        return [item for _, item in self.walk() if item.state in states]

    def questions(self) -> list[Item]:
        """The questions, in the order in which they were put."""
        return sorted((item for _, item in self.walk() if item.kind == "question"), key=lambda item: item.started)

    def passed_over(self) -> list[tuple[Item, str]]:
        """The models that did not serve a turn: the turn, and why."""
        return [(item, each["error"]) for _, item in self.walk() for each in item.facts.get("passed_over", ())]

    def turns(self) -> int:
        """How many turns models had."""
        return sum(item.kind == "turn" for _, item in self.walk())

    def to_json(self) -> dict[str, JSON]:
        """As plain data, with the failures and in-doubt steps named once more on their own."""
        listed = {
            "failures": [item.key for item in self.of("failed")],
            "in_doubt": [item.key for item in self.of("in_doubt")],
            "refused": [item.key for item in self.of("refused")],
        }
        whole = dataclasses.asdict(self)
        items = whole.pop("items")
        return {**whole, **listed, "items": items}


def trace(row: RunRow, events: Sequence[Event], *, driven: bool, now: float, redact: Redactor = NOTHING) -> Trace:
    """The trace of a run.

    Args:
        row, events: Its record.
        driven: Whether a living process drives it.
        now: Seconds since the epoch; where an open run is looked at while it is driven.
        redact: What keeps secrets out.
    """
    until = now if driven and row.status in OPEN else row.updated
    outcome = row.outcome or {"output": None, "error": ""}
    asked = [event for event in events if event.kind == "ask"]
    return Trace(
        run=row.id,
        name=redact.text(row.name),
        status=row.status,
        driven=driven,
        started=row.created,
        until=max(until, row.created),
        worked_s=row.driven,
        person_s=sum(end - start for start, end in merged((e.started, e.ended or until) for e in asked)),
        output=_shown(redact, outcome["output"]),
        error=_shown(redact, outcome["error"]),
        account=redact.data(account(row.id, row.status, events)),
        items=_Tree(events, row.status in OPEN, driven, redact).items(),
    )


class _Tree:
    """Puts the records of one run in their places."""

    def __init__(self, events: Sequence[Event], goes_on: bool, driven: bool, redact: Redactor) -> None:
        self._events = {event.key: event for event in events}
        self._goes_on, self._driven, self._redact = goes_on, goes_on and driven, redact
        self._below: dict[str, list[str]] = {}
        for key, event in self._events.items():
            # Of a call that was asked about and not made, only the question is recorded.
            while event.kind != "definition":
                above = _above(key)
                below = self._below.setdefault(above, [])
                if key not in below:
                    below.append(key)
                if not above or above in self._events:
                    break
                key = above

    def items(self) -> tuple[Item, ...]:
        """What has no other above it: the worker or the call that the run is."""
        definition = self._definition("")
        if definition.get("kind") == "worker":
            started = self._events["definition"].started
            return (self._worker("", None, started),)
        return self._children("")

    def _children(self, key: str) -> tuple[Item, ...]:
        found = [self._item(below) for below in self._below.get(key, ())]
        return tuple(sorted(found, key=lambda item: item.started))

    def _item(self, key: str) -> Item:
        event = self._events.get(key)
        if event is not None and event.kind == "ask":
            return self._question(event)
        if event is not None and event.kind == "model":
            return self._turn(event)
        if self._definition(key):
            return self._worker(key, event, event.started if event else self._events[key + "/definition"].started)
        return self._call(key, None if event is None or event.state == "withdrawn" else event)

    def _definition(self, key: str) -> Mapping[str, Any]:
        event = self._events.get(f"{key}/definition" if key else "definition")
        return {} if event is None else event.data

    def _worker(self, key: str, event: Event | None, started: float) -> Item:
        definition = self._definition(key)
        facts = {"input": self._show(definition["input"]), "models": self._redact.data(definition["models"])}
        name = self._show(definition["name"])
        if event is None:  # the run itself: how it ended is told beside the tree
            state: ItemState = "running" if self._driven else "done"
            return Item("worker", key, name, state, started, None, facts, self._children(key))
        facts |= self._outcome(event, "output")
        return Item("worker", key, name, self._state(event), started, event.ended, facts, self._children(key))

    def _turn(self, event: Event) -> Item:
        facts: dict[str, JSON] = {}
        missing: list[Item] = []
        if event.ended is not None and (lost := [each["usage"] for each in event.data.get("lost", ())]):
            facts["lost_tokens"] = sum(usage["input_tokens"] + usage["output_tokens"] for usage in lost)
        if event.state == "done":
            reply = event.data
            facts |= {
                "model": self._show(reply["model"]),
                **reply["usage"],
                **{name: self._redact.data(reply[name]) for name in ("cost", "passed_over") if name in reply},
                "stop_reason": reply["stop_reason"],
                "text": self._show("".join(b["text"] for b in reply["content"] if b["type"] == "text")),
            }
            calls = [block for block in reply["content"] if block["type"] == "tool_use"]
            ended = event.ended or event.started
            missing = [
                Item(
                    "call",
                    key,
                    self._show(block["name"]),
                    "not_made",
                    ended,
                    ended,
                    {"arguments": self._show(block["input"])},
                )
                for index, block in enumerate(calls)
                if (key := f"{event.key}.{index}") not in self._below.get(event.key, ())
            ]
        elif event.state == "failed":
            told = event.data
            facts |= {
                "model": self._show(told["asked"]),
                "passed_over": self._redact.data(told["passed_over"]),
                "error": self._show(told["error"]),
            }
        children = tuple(sorted((*self._children(event.key), *missing), key=lambda item: item.started))
        return Item("turn", event.key, "model", self._state(event), event.started, event.ended, facts, children)

    def _call(self, key: str, event: Event | None) -> Item:
        children = self._children(key)
        facts: dict[str, JSON] = {"arguments": self._arguments(key)}
        if event is not None:
            facts |= self._outcome(event, "result")
            return Item("call", key, event.kind, self._state(event), event.started, event.ended, facts, children)
        asked = [child for child in children if child.kind == "question"]
        name = str(asked[0].facts["function"]) if asked else "?"
        state: ItemState = "not_made"
        if any(child.state in ("refused", "waiting", "withdrawn") for child in asked):
            state = asked[-1].state
        elif asked and self._goes_on:  # allowed, and about to be made
            state = "running" if self._driven else "unfinished"
        started = min((child.started for child in children), default=0.0)
        return Item("call", key, name, state, started, children[-1].ended if children else None, facts, children)

    def _question(self, event: Event) -> Item:
        question, answer = event.data["question"], event.data.get("answer")
        facts: dict[str, JSON] = {
            "asks": question["kind"],
            "function": self._show(question["function"]),
            "target": self._show(question["target"]),
            "chain": self._redact.data(question["chain"]),
            "detail": self._show(question["detail"]),
        }
        state: ItemState = "withdrawn" if event.state == "withdrawn" else "waiting"
        if event.data.get("late"):
            facts["late"] = len(event.data["late"])
        if answer is not None:
            decision = answer["decision"] or answer["silence"]
            facts |= {"decision": decision, "by": self._show(answer["by"]), "note": self._show(answer["note"])}
            state = "done" if decision in GOES_AHEAD else "refused"
        action = self._show(question["action"])
        return Item("question", event.key, action, state, event.started, event.ended, facts)

    def _state(self, event: Event) -> ItemState:
        if event.state in ("done", "failed"):
            return "done" if event.state == "done" else "failed"
        if self._driven:
            return "running"
        return "in_doubt" if is_intent(event) else "unfinished"

    def _arguments(self, key: str) -> str | None:
        turn = self._events.get(_above(key))
        if turn is not None and turn.kind == "model" and turn.state == "done":
            calls = [block for block in turn.data["content"] if block["type"] == "tool_use"]
            index = int(key.rpartition(".")[2])
            return self._show(calls[index]["input"]) if index < len(calls) else None
        definition = self._definition("")
        return self._show(definition["input"]) if key == "call" and definition else None

    def _outcome(self, event: Event, name: str) -> dict[str, JSON]:
        if event.state == "failed":
            return {"error": self._show(event.data)}
        return {name: self._show(event.data)} if event.state == "done" else {}

    def _show(self, value: JSON) -> str:
        return _shown(self._redact, value)


_QUESTION = re.compile(r"(.+?)\.(?:ok\w*|doubt\d*)")
_CALL = re.compile(r"(t\d+)\.\d+")


def _above(key: str) -> str:
    """The place in which a place is: a question's call, a call's turn, else the worker or call; "" for the root."""
    path, slash, last = key.rpartition("/")
    for pattern in (_QUESTION, _CALL):
        if (match := pattern.fullmatch(last)) is not None:
            return path + slash + match[1]
    return path


def _shown(redact: Redactor, value: JSON) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(redact.data(value), ensure_ascii=False)
    return cut(redact.text(text), CHARS)


def _walk(items: Sequence[Item], depth: int) -> Iterator[tuple[int, Item]]:
    for item in items:
        yield depth, item
        yield from _walk(item.children, depth + 1)


def merged(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The spans of time that at least one of the spans covers, in order."""
    found: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found
