"""The one gate: every call of every function goes through `call`, in one order.

Limits, input schema, policy (allow, ask, deny), journal, execute, output schema, journal. There is no second path:
a worker's model, a Python tool and an MCP client all come here.

What a person approves is exactly what is executed: the question and the step carry the digest of the same
arguments, and those are handed on unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from llm_do_mcp.errors import CallError, FunctionFailed, InvalidInput, InvalidOutput, LlmDoError, Refused, RunError
from llm_do_mcp.runtime.display import arguments, cut, escape
from llm_do_mcp.runtime.function import JSON, Function, Preview
from llm_do_mcp.runtime.policy import Caller, decide
from llm_do_mcp.runtime.question import Kind, Question, refusal
from llm_do_mcp.runtime.run import AskFor, Run, digest_of
from llm_do_mcp.runtime.schema import problem
from llm_do_mcp.runtime.tree import Leave

DETAIL_CHARS = 4000
"""How much of a diff a question shows."""
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
        leave: Gives back the place of the step that executes this call.
    """

    run: Run
    key: str
    function: Function
    input: JSON
    functions: Functions
    caller: Caller
    leave: Leave = lambda: None
    _inner: dict[str, int] = field(default_factory=dict)

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
            raise Refused(refusal("the question of", declaration.shown, answer))
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
    recorded = run.path + key in run.tree.events
    if not recorded:
        run.meter.check("max_tool_calls", "max_tokens")
    run.meter.charge(tool_calls=1)
    if (wrong := problem(declaration.input_schema, value)) is not None:
        raise InvalidInput(f"{declaration.shown}: {wrong}")
    this = Call(run, key, function, value, functions, caller)
    if not recorded:
        await _permit(this)
    who = " > ".join(run.chain) if run.definition.kind == "worker" else caller
    run.tree.tell(f"{who}: {declaration.shown} {_summary(value)}".rstrip())
    if declaration.nested:
        return await function.execute(this)

    async def perform(leave: Leave) -> JSON:
        this.leave = leave
        try:
            output = await function.execute(this)
        except (CallError, RunError):
            raise
        except LlmDoError as error:
            raise FunctionFailed(str(error)) from error
        if declaration.output_schema is not None:
            wrong = problem(declaration.output_schema, output)
            if wrong is not None:
                raise InvalidOutput(f"{declaration.shown} gave a result that does not fit its schema: {wrong}")
        return output

    once = declaration.risk != "read" and not declaration.idempotent
    return await run.step(
        key, declaration.name, value, perform, once=once, in_doubt=lambda: _in_doubt(this), durable=once
    )


async def _permit(this: Call) -> None:
    run, declaration = this.run, this.function.declaration
    decision, source = decide(run.definition.rules, declaration, this.input, this.caller)
    if decision == "allow":
        return
    if decision == "deny":
        raise Refused(f"{declaration.shown} was not run: refused by {source or 'policy'}")
    ask_key = this.key + ".ok"
    asked = run.tree.events.get(run.path + ask_key)
    preview = None
    if asked is None:
        preview = await _previewed(this)
        if run.tree.granted(run.chain, declaration.name, preview.scope):
            return
    digest = digest_of(declaration.name, this.input)

    async def question() -> AskFor:
        shown = preview or await _previewed(this)
        return lambda key: _question(this, key, "approval", shown, digest)

    answer = await run.ask(ask_key, digest, question)
    if not answer.approves:
        put = run.tree.events[run.path + ask_key].data["question"]
        raise Refused(refusal(declaration.name, put["target"], answer))


async def _previewed(this: Call) -> Preview:
    """What the call would do. What could only fail is not put to a person: it has failed already.

    Raises:
        FunctionFailed: The call cannot be made, whoever allows it.
    """
    try:
        return await this.function.preview(this)
    except (CallError, RunError):
        raise
    except LlmDoError as error:
        raise FunctionFailed(str(error)) from error


async def _in_doubt(this: Call) -> AskFor:
    preview = await this.function.preview(this)
    run = this.run
    prefix = f"{run.path}{this.key}/"
    finished = [
        event.kind
        for key, event in run.tree.events.items()
        if key.startswith(prefix) and event.ended and event.kind not in ("definition", "ask", "model")
    ]
    called = f"What it had already called, to its end: {', '.join(finished)}" if finished else ""
    shown = Preview(preview.action, preview.target, "\n".join(filter(None, (called, preview.detail))), preview.scope)
    digest = digest_of(this.function.declaration.name, this.input)
    return lambda key: _question(this, key, "in_doubt", shown, digest)


def _question(this: Call, key: str, kind: Kind, preview: Preview, digest: str) -> Question:
    return Question(
        key=key,
        kind=kind,
        chain=this.run.chain,
        function=this.function.declaration.name,
        action=preview.action,
        target=escape(preview.target),
        arguments=arguments(this.input, ARGUMENT_CHARS if not preview.detail else ARGUMENT_CHARS // 4),
        digest=digest,
        size=len(json.dumps(this.input, ensure_ascii=False)),
        detail=cut(escape(preview.detail, lines=True), DETAIL_CHARS),
        scope=preview.scope,
    )


def _summary(value: JSON) -> str:
    """The first argument that says what a call is about, for a line of progress."""
    if isinstance(value, dict):
        for name in ("worker", "path", "command", "input"):
            if isinstance(value.get(name), str):
                return cut(escape(value[name]), 80)
    return ""
