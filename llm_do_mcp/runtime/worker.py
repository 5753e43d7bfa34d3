"""The body of a run: a worker's loop against its model, or one call that a client makes itself.

The loop is ordinary code over the run's verbs. Each turn of the model is a step; the calls of one turn go through
the gate concurrently, and every `tool_use` gets exactly one `tool_result`, whatever the reply says of why it stopped.
A reply that was cut off runs nothing. An output that is empty or does not fit its schema gets one repair turn. Three
identical failures end the run.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from itertools import count
from typing import Any, Protocol

from llm_do_mcp.errors import CallError, InvalidOutput, LimitReached, ModelError, Unanswered
from llm_do_mcp.models.failures import LESS
from llm_do_mcp.models.replay import replayed
from llm_do_mcp.models.sampling import MOST_TOKENS, is_sampling
from llm_do_mcp.models.turn import Request, ToolSpec, json_value
from llm_do_mcp.runtime import gate, telemetry
from llm_do_mcp.runtime.chain import Chain, Models
from llm_do_mcp.runtime.display import arguments, cut, escape
from llm_do_mcp.runtime.function import JSON
from llm_do_mcp.runtime.gate import Functions
from llm_do_mcp.runtime.run import Run, cost, digest_of, tokens
from llm_do_mcp.runtime.schema import problem
from llm_do_mcp.runtime.tree import Leave
from llm_do_mcp.toolhost.results import clean

IDENTICAL_FAILURES = 3
TOO_LONG = "its reply was longer than one may be"
CUT_OFF = "Your reply was cut off at the limit of tokens, and nothing in it counts. Answer again, shorter."


class Bench(Models, Protocol):
    """What a body needs to turn its recorded definition into something that acts."""

    async def bind(self, run: Run) -> Functions:
        """The functions of the run's definition, with their code."""
        ...


async def work(run: Run, bench: Bench) -> JSON:
    """The body of every run: drive it to its output."""
    functions = await bench.bind(run)
    if run.definition.kind == "call":
        function = functions.find(run.definition.name)
        return await gate.call(run, "call", function, run.definition.input, functions, "client")
    with telemetry.invoke_agent(run.definition.name, run.tree.row.id, run.definition.models) as span:
        return await _Worker(run, bench, functions, span).work()


class _Worker:
    """One conversation of a worker with its model."""

    def __init__(self, run: Run, bench: Bench, functions: Functions, span: telemetry.Recorder) -> None:
        self.run, self.functions = run, functions
        self.definition = run.definition
        self.chain = Chain(run, bench, span)
        self.failures: Counter[str] = Counter()
        self.messages: list[dict[str, Any]] = []

    async def work(self) -> JSON:
        self.messages.append({"role": "user", "content": await self._opening()})
        repaired = False
        paused: list[dict[str, Any]] = []  # what came of the answer before its provider paused
        for turn in count():
            reply = await self._turn(turn)
            content, stop = reply["content"], reply["stop_reason"]
            self.messages.append({"role": "assistant", "content": content})
            calls = [block for block in content if block["type"] == "tool_use"]
            if stop == "max_tokens":
                self._failed(f"{TOO_LONG} ({_bound(reply['model'])})")
                self._say([*_not_made(calls), _text(CUT_OFF)])
            elif stop == "refusal":
                raise ModelError(f"worker {self.definition.name}: the model {reply['model']} refused to answer")
            elif stop == "model_context_window_exceeded":
                raise ModelError(
                    f"worker {self.definition.name}: the conversation no longer fits the context of {reply['model']}; "
                    f"{LESS}"
                )
            elif calls:  # whatever it says of why it stopped
                results = await self.run.gather([self._call(turn, index, block) for index, block in enumerate(calls)])
                self._say(results)
            elif stop == "pause_turn":
                paused += content
                continue
            else:
                schema = self.definition.output_schema
                text = _final_text([*paused, *content])
                value, wrong = _output(text, schema)
                if wrong is None:
                    return value
                if repaired:
                    last = f"; it was: {cut(escape(text), 500)}" if text else ""
                    what = "its answer cannot be used" if schema is None else "its output does not fit"
                    raise InvalidOutput(f"worker {self.definition.name}: {what}: {wrong}{last}")
                repaired = True
                self._say([_text(_repair(wrong, schema))])
            paused = []
        raise AssertionError("unreachable")

    async def _opening(self) -> list[dict[str, Any]]:
        definition = self.definition
        blocks: list[dict[str, Any]] = []
        for file in definition.attachments:
            data = await self.run.tree.blob(file.blob)
            blocks.append({"type": "attachment", "name": file.name, "media_type": file.media_type, "data": data})
        texts = [*definition.context, definition.prompt]
        return blocks + [_text(text) for text in texts if text.strip()] or [_text("(no input)")]

    async def _turn(self, turn: int) -> dict[str, Any]:
        run = self.run
        system = "\n\n".join((self.definition.instructions, *self.definition.system_context))
        tools = tuple(
            ToolSpec(shown, function.declaration.description, function.declaration.input_schema, strict=True)
            for shown, function in self.functions.items()
            if shown not in self.definition.hidden
        )

        asked = [system, _without_bytes(self.messages, self.definition.attachments), [tool.name for tool in tools]]
        replays = any(replayed(name) is not None for name in self.chain.names)
        live = False

        def begin() -> None:
            nonlocal live
            live = True
            run.meter.check("max_turns", "max_tokens", "max_cost")
            run.meter.charge(turns=1)  # before it is waited for: no other branch may take the same last turn

        async def perform(_: Leave) -> JSON:
            run.tree.tell(f"{' > '.join(run.chain)}: turn {turn + 1}")
            request = Request(
                worker=self.definition.name,
                model="",
                system=system,
                messages=tuple(self.messages),
                tools=tools,
                server_side_tools=self.definition.server_side_tools,
                output_schema=self.definition.output_schema,
                turn=turn,
                key=f"{run.path}t{turn}",
                digest=digest_of("model", asked) if replays else "",
            )
            return await self.chain.reply(request)

        try:
            reply: dict[str, Any] = await run.step(f"t{turn}", "model", asked, perform, once=False, begin=begin)
        except Unanswered as error:
            run.meter.charge(turns=0 if live else 1, tokens=tokens(error.told), cost=cost(error.told))
            raise
        self.chain.took(reply)
        run.meter.charge(turns=0 if live else 1, tokens=tokens(reply), cost=cost(reply))
        return reply

    async def _call(self, turn: int, index: int, block: Mapping[str, Any]) -> dict[str, Any]:
        key = f"t{turn}.{index}"
        try:
            function = self.functions.find(block["name"])
            output = await gate.call(self.run, key, function, block["input"], self.functions, "worker")
        except CallError as error:
            self._failed(f"{block['name']} {arguments(block['input'], 200)}: {error}")
            return _result(block, "\n".join((str(error), *gate.notes(self.run, key))), True)
        text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
        return _result(block, "\n".join((text, *gate.notes(self.run, key))), False)

    def _say(self, blocks: list[dict[str, Any]]) -> None:
        self.messages.append({"role": "user", "content": blocks})

    def _failed(self, what: str) -> None:
        self.failures[what] += 1
        if self.failures[what] >= IDENTICAL_FAILURES:
            raise LimitReached(
                f"worker {self.definition.name} stopped: the same failure came {IDENTICAL_FAILURES} times: {what}",
                self.run.meter,
            )


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _result(block: Mapping[str, Any], text: str, failed: bool) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": block["id"], "content": text or "(nothing)", "is_error": failed}


def _bound(model: str) -> str:
    """What bounds the length of a model's replies."""
    if is_sampling(model):
        return f"{MOST_TOKENS} tokens where the client's model answers"
    return "max_output_tokens under model_capabilities in project.yaml"


def _not_made(calls: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The results of calls in a reply that does not count: every one gets its result."""
    return [_result(block, "this call was cut off and not made", True) for block in calls]


def _final_text(content: list[dict[str, Any]]) -> str:
    """The answer in a message: its last texts. What comes before a tool of the provider's only announces it."""
    parts = [""]
    for block in content:
        if block["type"] == "text":
            parts[-1] += block["text"]
        elif block["type"].endswith(("tool_use", "tool_result")):
            parts.append("")
    return next(filter(str.strip, reversed(parts)), "")


def _output(text: str, schema: Mapping[str, Any] | None) -> tuple[JSON, str | None]:
    """The value in a final text, and what is wrong with it."""
    body = text.strip()
    if not body:
        return None, "there is no text in it"
    if schema is None:
        return text, None
    if body.startswith("```") and body.endswith("```"):
        body = body[3:-3].removeprefix("json")
    try:
        value = clean(json_value(body))
    except (ValueError, RecursionError) as error:
        return None, f"it is not JSON ({error})"
    return value, problem(schema, value)


def _repair(wrong: str, schema: Mapping[str, Any] | None) -> str:
    if schema is None:
        return f"Your answer cannot be used: {wrong}. Answer again."
    return f"Your answer does not fit the output schema: {wrong}. Answer again, with JSON only."


def _without_bytes(messages: list[dict[str, Any]], attachments: tuple[Any, ...]) -> JSON:
    """The conversation as what a replay must ask again, with the digests of attachments for their bytes."""
    blobs = iter([file.blob for file in attachments])
    return [
        {
            **message,
            "content": [
                {**block, "data": next(blobs)} if block["type"] == "attachment" else dict(block)
                for block in message["content"]
            ],
        }
        for message in messages
    ]
