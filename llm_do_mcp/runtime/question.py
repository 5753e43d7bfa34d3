"""Questions are data: what a run asks of a person, and what came back.

The run does not know who is in front: a client of either protocol era, a terminal, nobody. It gets an `Answer`,
and only a decision that the question offers lets anything run. Every way of not answering is an answer too, with
a name of its own, so that text and record tell them apart.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["approval", "in_doubt", "question"]
"""Whether a call may be made; what became of one that was cut short; something a tool wants to know."""

DECISIONS: dict[Kind, tuple[str, ...]] = {
    "approval": ("once", "run", "deny"),
    "in_doubt": ("done", "again", "stop"),
    "question": ("answer", "decline"),
}
"""The decisions that answer each kind, the one that says no last; the answer to a question is in the note."""

GOES_AHEAD = frozenset(decision for offered in DECISIONS.values() for decision in offered[:-1])
"""The decisions after which a run does what it was about to do; after any other, and without one, it does not."""

GRANT = "grant"
"""By whom an answer is that was given with an earlier one, for the rest of the run."""

Silence = Literal["cannot_ask", "declined", "cancelled", "timed_out", "malformed", "failed", "policy", "not_locked"]
"""How a question came to have no answer: nobody can be asked, the person declined or dismissed it, nobody answered
in time, the answer was none of those offered, asking failed, policy settled it, or `approvals.lock` does not allow
it."""


@dataclass(frozen=True)
class Question:
    """What a person is asked.

    Args:
        key: Unique in the run.
        kind: What it is about.
        chain: The workers from the root to the one that asks.
        function: Canonical name of the function.
        action: What would happen, in a fixed label.
        target: What it would happen to.
        arguments: The arguments as escaped text, already cut.
        digest: SHA-256 of function and arguments, hexadecimal: what is approved is this and nothing else.
        size: Characters of the arguments before they were cut.
        detail: Diff or other help to decide, already cut.
        scope: What the decision "run" covers.
        worker_code: Hash of the worker that asks, "" for a client.
        function_code: Hash of the code behind the function, "" where that is this package.
        exact: The arguments as a lock file has them; see `lock.py`.
        basis: What `detail` was made against; see `Preview`.
        repeatable: Calls that ask the same at the same time may share one answer: made twice, it is as made once.
    """

    key: str
    kind: Kind
    chain: tuple[str, ...]
    function: str
    action: str
    target: str
    arguments: str
    digest: str
    size: int
    detail: str
    scope: str
    worker_code: str = ""
    function_code: str = ""
    exact: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    basis: str = ""
    repeatable: bool = False

    @property
    def decisions(self) -> tuple[str, ...]:
        """The decisions that answer this question."""
        return DECISIONS[self.kind]


@dataclass(frozen=True)
class Answer:
    """What came back.

    Args:
        decision: One of the question's decisions, or "" where there was no answer.
        silence: How it came to have no answer, or None.
        note: The person's note to the worker.
        by: Who gave the answer, or the silence: "client", "terminal", "approval page" (a person there), "the calling
            model, through run_approve", "grant" (a person, for the rest of the run), "the same question" (which another
            call asked), "approvals.lock", or what settled it: "--approve-all", "--approvals deny",
            "--when-nobody-can-answer deny", a rule of the policy.
    """

    decision: str = ""
    silence: Silence | None = None
    note: str = ""
    by: str = ""

    @property
    def approves(self) -> bool:
        """Whether the call may be made."""
        return self.decision in ("once", "run")


LABELS = {
    "once": "Allow this one",
    "run": "Allow for the rest of this run",
    "deny": "Refuse",
    "done": "It was done: go on without repeating it",
    "again": "It was not done: do it again",
    "stop": "Stop the run",
    "answer": "The answer is in the note",
    "decline": "No answer",
}

HEADS: dict[Kind, str] = {
    "approval": "Approval needed",
    "in_doubt": "In doubt: this step was cut short, and may have happened",
    "question": "A tool asks",
}


def text(question: Question) -> str:
    """The question as a person reads it: our labels first, every value escaped and cut beforehand."""
    lines = [
        f"{HEADS[question.kind]}: {question.action}" + (f" {question.target}" if question.target else ""),
        "Asked by: " + (" > ".join(question.chain) or "the client itself"),
        f"Function: {question.function}  (arguments: {question.size} characters, sha256 {question.digest[:12]})",
    ]
    if question.arguments:
        lines.append(f"Arguments: {question.arguments}")
    # Indented, so that no line of a file can pass for one of our labels.
    lines += [f"  {line}" for line in question.detail.split("\n")] if question.detail else []
    return "\n".join(lines)


_WHY: dict[Silence | None, str] = {
    "cannot_ask": "this client cannot ask its user",
    "declined": "the person declined to answer",
    "cancelled": "the person dismissed the question",
    "timed_out": "nobody answered in time",
    "malformed": "the answer was none of those offered",
    "failed": "the question could not be asked",
    "policy": "this run's settings refuse what would have to be asked",
}
"""Ways of not answering, as text."""


def refusal(function: str, target: str, answer: Answer) -> str:
    """One line that says why a call was not made, for the worker's model and the record."""
    subject = f", subject: {json.dumps(target, ensure_ascii=False)}" if target else ""
    allow = (
        f"to allow it without asking, add `{{function: {function}{subject}, decision: allow}}` to `approvals` in the "
        "project's manifest"
    )
    reason = {
        **_WHY,
        "cannot_ask": f"it needs approval and this client cannot ask its user; {allow}",
        "timed_out": f"nobody answered in time; {allow}",
        "malformed": f"the answer was none of {', '.join(DECISIONS['approval'])}, or its note no text",
        "policy": "this run's settings refuse what would need approval",
        "not_locked": f"approvals.lock does not allow it: {answer.note}",
        None: "the person refused it",
    }[answer.silence]
    note = f" (note: {answer.note})" if answer.note and answer.silence != "not_locked" else ""
    return f"{function} {target}".rstrip() + f" was not run: {reason}{note}"


def unanswered(tool: str, answer: Answer) -> str:
    """One line that says why a tool got no answer to a question of its own."""
    note = f" (note: {answer.note})" if answer.note else ""
    return f"the question of {tool} was not answered: {_WHY.get(answer.silence, 'the person gave no answer')}{note}"
