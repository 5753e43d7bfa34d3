"""The one gate: every call of every function goes through `call`, in one order.

Limits, input schema, policy (allow, ask, deny), journal, execute, output schema, journal. There is no second path:
a worker's model, a Python tool and an MCP client all come here.

What a person approves is exactly what is executed: the question and the step carry the digest of the same
arguments, and those are handed on unchanged.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from llm_do_mcp.errors import (
    CallError,
    FunctionFailed,
    InvalidInput,
    InvalidOutput,
    LlmDoError,
    Outdated,
    Refused,
    RunError,
    ToolHostDied,
)
from llm_do_mcp.runtime import telemetry
from llm_do_mcp.runtime.account import is_call
from llm_do_mcp.runtime.display import arguments, cut, escape
from llm_do_mcp.runtime.function import JSON, Declaration, Function, Preview
from llm_do_mcp.runtime.lock import exact
from llm_do_mcp.runtime.policy import Caller, decide, subject_of
from llm_do_mcp.runtime.question import GOES_AHEAD, GRANT, Answer, Kind, Question, refusal, unanswered
from llm_do_mcp.runtime.redact import Redactor
from llm_do_mcp.runtime.run import AskFor, Run, digest_of
from llm_do_mcp.runtime.schema import problem
from llm_do_mcp.runtime.store import Event
from llm_do_mcp.runtime.tree import Leave, Ticket, question_of

TARGET_CHARS = 200
DETAIL_CHARS = 4000
"""How much of a diff a question shows."""
OUTDATED = "It has changed since this call was approved. This is what the call would do now:"
ARGUMENT_CHARS = 600
"""How much of the arguments a question shows; a quarter of it beside a diff that says the same better."""


class Functions(Mapping[str, Function]):
    """What one run may call, by the names that its caller sees and by canonical names.

    Args:
        functions: In the order in which a model is told of them.
    """

    def __init__(self, functions: tuple[Function, ...]) -> None:
        self._shown = {function.declaration.shown: function for function in functions}

    def __getitem__(self, name: str) -> Function:
        return self._shown[name]

    def __iter__(self) -> Any:
        return iter(self._shown)

    def __len__(self) -> int:
        return len(self._shown)

    def find(self, name: str) -> Function:
        """A function by either name.

        Raises:
            InvalidInput: There is none; lists those there are.
        """
        if name in self._shown:
            return self._shown[name]
        for function in self._shown.values():
            if function.declaration.name == name:
                return function
        raise InvalidInput(f"there is no function {escape(name)[:80]!r} here; there are: {', '.join(self._shown)}")

    def reach(self, name: str, value: JSON) -> tuple[Function, JSON]:
        """What a tool means by a name, and the input it takes: a function, or a worker by its id.

        Raises:
            InvalidInput: There is no such function, and no workers can be called here.
        """
        try:
            return self.find(name), value
        except InvalidInput:
            if all(function.declaration.name != "worker.call" for function in self._shown.values()):
                raise
        return self.find("worker.call"), {"worker": name, "input_data": "" if value is None else value}


@dataclass
class Call:
    """One call, as the function that executes it sees it.

    Args:
        run: The run it belongs to.
        key: Its place in that run.
        function: What is called.
        input: With what.
        functions: What the same caller may call besides: a tool's own calls go through these.
        caller: Who calls.
        ticket: Its place in the order of questions.
        leave: Gives back the place of the step that executes this call.
        asked: Key of the question that let it be made, or "".
        now: What the function has become since it was declared, where its code was edited.
        changed: In what way, in a line for a person; "" where it was not.
        cut_short: By what, where this process saw it.
    """

    run: Run
    key: str
    function: Function
    input: JSON
    functions: Functions
    caller: Caller
    ticket: Ticket
    leave: Leave = lambda: None
    asked: str = ""
    now: Declaration | None = None
    changed: str = ""
    cut_short: str = ""
    _inner: dict[str, int] = field(default_factory=dict)

    @property
    def code(self) -> str:
        """Hash of the code that may be executed: what was declared, or what a person is asked about instead."""
        return (self.now or self.function.declaration).code

    @property
    def digest(self) -> str:
        """Of what is called, and with what."""
        return digest_of(self.function.declaration.name, self.input)

    @property
    def basis(self) -> str:
        """What it may be made against: as it was shown to whoever approved it; "" for whatever. See `Preview`."""
        return question_of(self.run.tree.events[self.asked]).basis if self.asked else ""

    @property
    def once(self) -> bool:
        """Whether it must not run twice."""
        return not (self.function.declaration.repeatable and (self.now is None or self.now.repeatable))

    def inner_key(self, name: str, value: JSON) -> str:
        """The key of a call that this call makes: by what is called, so that threads may come in any order."""
        digest = digest_of(name, value)[:12]
        self._inner[digest] = index = self._inner.get(digest, 0) + 1
        return f"{self.key}/{digest}.{index}"

    async def call(self, name: str, value: JSON) -> JSON:
        """Call another function, or a worker by its id, on behalf of this one; it passes the same gate."""
        function, value = self.functions.reach(name, value)
        self.leave()
        return await call(self.run, self.inner_key(name, value), function, value, self.functions, "worker")

    async def ask(self, text: str) -> str:
        """Put a question of this call's own to the person in front.

        Raises:
            Refused: Nobody could be asked, or nobody answered.
        """
        self.leave()
        declaration = self.function.declaration
        shown = Preview(f"{declaration.shown} asks", detail=text)

        async def question() -> AskFor:
            return lambda key: _question(self, key, "question", shown, digest_of("question", text))

        answer = await self.run.ask(self.inner_key("question", text), text, question)
        if answer.decision != "answer":
            raise Refused(unanswered(declaration.shown, answer))
        return answer.note


async def call(run: Run, key: str, function: Function, value: JSON, functions: Functions, caller: Caller) -> JSON:
    """Make a call.

    Args:
        run: The run it belongs to.
        key: Its place in that run, stable and unique.
        function: What is called.
        value: The input.
        functions: What the same caller may call besides.
        caller: Who calls.

    Raises:
        InvalidInput: The input does not fit.
        Refused: Policy or a person refused it, or nobody could be asked.
        FunctionFailed: It ran and failed.
        InvalidOutput: It ran and gave something that does not fit.
        RunError: The run cannot go on: a limit, or an in-doubt step that a person stopped at.
    """
    declaration = function.declaration
    recorded = run.tree.recorded(run.path + key)
    if recorded is None:
        run.meter.check("max_tool_calls", "max_tokens")
    run.meter.charge(tool_calls=1)
    if (wrong := problem(declaration.input_schema, value)) is not None:
        raise InvalidInput(f"{declaration.shown}: {wrong}")
    with run.tree.ticket() as ticket:
        return await _make(Call(run, key, function, value, functions, caller, ticket), recorded)


def notes(run: Run, key: str) -> tuple[str, ...]:
    """What whoever let a call go on said to the worker, as lines beside its result. A refusal says it itself."""
    asked = (run.path + key + ".ok", run.path + key + ".doubt")
    answered = (
        event.data["answer"]
        for place, event in run.tree.asked.items()
        if event.state == "answered" and place.startswith(asked)
    )
    return tuple(
        f"(note of the person who was asked: {answer['note']})"
        for answer in answered
        if answer["note"] and answer["decision"] in GOES_AHEAD and answer["by"] != GRANT
    )


async def _make(this: Call, recorded: Event | None) -> JSON:
    run, function, declaration = this.run, this.function, this.function.declaration
    unfinished = recorded is not None and recorded.ended is None
    if run.tree.resumed and function.now is not None and (recorded is None or unfinished):
        await _compare(this, function.now)
    if recorded is None:
        if this.changed and this.now is None:  # what could only fail is not put to a person
            raise FunctionFailed(f"{declaration.shown} was not run. {this.changed}")
        await _permit(this)
    if not (unfinished and this.once):  # what is in doubt asks first
        this.ticket.through()
    if recorded is None or (unfinished and not declaration.nested):  # not of what is only given again
        who = " > ".join(run.chain) if run.definition.kind == "worker" else this.caller
        run.tree.tell(f"{who}: {declaration.shown} {_summary(this.input, run.tree.redact)}".rstrip())
    if declaration.nested:
        return await function.execute(this)

    async def perform(leave: Leave) -> JSON:
        this.leave = leave
        try:
            with telemetry.execute_tool(declaration.name, run.tree.row.id, run.path + this.key):
                output = await function.execute(this)
        except ToolHostDied as error:
            this.cut_short = str(error)
            raise
        except (CallError, RunError):
            raise
        except LlmDoError as error:
            raise FunctionFailed(str(error)) from error
        if declaration.output_schema is not None:
            wrong = problem(declaration.output_schema, output)
            if wrong is not None:
                raise InvalidOutput(f"{declaration.shown} gave a result that does not fit its schema: {wrong}")
        return output

    once, doubt = this.once, partial(_in_doubt, this)
    while True:
        try:
            return await run.step(
                this.key, declaration.name, this.input, perform, once=once, in_doubt=doubt, durable=once
            )
        except Outdated:
            await _permit(this)


async def _compare(this: Call, look: Callable[[], Awaitable[Declaration]]) -> None:
    """See whether the code behind a call has been edited since its run began: that run knew only the code it had."""
    declared = this.function.declaration
    try:
        now = await look()
    except LlmDoError as error:
        this.changed = f"The code that this run began with is gone: {error}"
        return
    if now.code == declared.code:
        return
    hashes = f"sha256 {declared.code[:12]} then, {now.code[:12]} now"
    said = [f"The code behind it has been edited since this run began: {hashes}"]
    if now.risk != declared.risk:
        said.append(f"its risk was {declared.risk}, and is {now.risk}")
    if now.input_schema != declared.input_schema:
        said.append("its arguments are others")
    this.now, this.changed = now, "; ".join(said)


async def _permit(this: Call) -> None:
    run, declaration = this.run, this.function.declaration
    subject = None if this.function.subject is None else this.function.subject(this.input)
    decision, source = decide(run.definition.rules, declaration, this.input, this.caller, subject=subject)
    if decision == "deny":
        _deny(this, subject or subject_of(declaration, this.input), source or "policy")
        raise Refused(f"{declaration.shown} was not run: refused by {source or 'policy'}")
    this.asked = ""
    edited = this.now is not None and this.once
    if decision == "allow" and not edited:
        return
    digest = this.digest
    # What was approved for other code was not approved for this, nor what was shown against another state of things.
    outdated = run.tree.attempts(run.path + this.key)
    ask_key = this.key + ".ok" + (this.code[:12] if edited else "") + (f"_{outdated}" if outdated else "")
    if edited:
        run.tree.withdraw(run.path + this.key + ".ok", run.path + ask_key)

    async def question() -> AskFor:
        try:
            shown = await this.function.preview(this)
        except (CallError, RunError):
            raise
        except LlmDoError as error:  # what could only fail is not put to a person
            raise FunctionFailed(str(error)) from error
        first = (this.changed if edited else "", OUTDATED if outdated else "", shown.detail)
        shown = dataclasses.replace(shown, detail="\n".join(filter(None, first)))
        await this.ticket.called()
        return lambda key: _question(this, key, "approval", shown, digest)

    answer = await run.ask(ask_key, digest, question)
    this.asked = run.path + ask_key
    if not answer.approves:
        raise Refused(refusal(declaration.name, question_of(run.tree.events[this.asked]).target, answer))


def _deny(this: Call, subject: str, source: str) -> None:
    """Record that the policy has refused a call, as the question that nobody had to be asked."""
    digest = this.digest
    shown = Preview(f"call {this.function.declaration.shown}", cut(subject, TARGET_CHARS))
    this.run.settle(
        this.key + ".ok",
        digest,
        lambda key: _question(this, key, "approval", shown, digest),
        Answer(silence="policy", by=source),
    )


async def _in_doubt(this: Call) -> AskFor:
    preview = await this.function.preview(this)
    run = this.run
    below = run.tree.below(run.path + this.key)
    finished = [event.kind for event in below if event.ended is not None and is_call(event)]
    called = f"What it had already called, to its end: {', '.join(finished)}" if finished else ""
    detail = "\n".join(filter(None, (this.cut_short, called, this.changed, preview.detail)))
    shown = dataclasses.replace(preview, detail=detail)
    await this.ticket.called()

    def ask_for(key: str) -> Question:
        this.asked = key
        return _question(this, key, "in_doubt", shown, this.digest)

    return ask_for


def _question(this: Call, key: str, kind: Kind, preview: Preview, digest: str) -> Question:
    redact = this.run.tree.redact  # before anything is cut: half a secret would pass for none
    return Question(
        key=key,
        kind=kind,
        chain=this.run.chain,
        function=this.function.declaration.name,
        action=preview.action,
        target=escape(redact.text(preview.target)),
        arguments=arguments(redact.data(this.input), ARGUMENT_CHARS if not preview.detail else ARGUMENT_CHARS // 4),
        digest=digest,
        size=len(json.dumps(this.input, ensure_ascii=False)),
        detail=cut(escape(redact.text(preview.detail), lines=True), DETAIL_CHARS),
        scope=preview.scope,
        worker_code=this.run.definition.code,
        function_code=this.code,
        exact=exact(this.function.declaration.name, this.input),
        basis=preview.basis,
        repeatable=kind == "approval" and (this.function.declaration.idempotent or bool(preview.basis)),
    )


def _summary(value: JSON, redact: Redactor) -> str:
    """The first argument that says what a call is about, for a line of progress."""
    if isinstance(value, dict):
        for name in ("worker", "path", "command", "name", "input"):
            if isinstance(value.get(name), str):
                return cut(escape(redact.text(value[name])), 80)
    return ""
