"""Who answers a worker's turns: the first model of its chain that can be had, and what that cost.

A model that does not serve a turn is passed over for the rest of the run, and the record says why. That is only done
before anything came of the turn: none of its calls has been made then. A turn that the model's provider has paused
is in the middle of tools that ran there, and no other model can go on with it.

Thinking is bound to the model that thought: what another one of the chain is sent leaves it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

import anyio

from llm_do_mcp.errors import ModelError, ModelUnavailable, Unanswered
from llm_do_mcp.models.failures import failure
from llm_do_mcp.models.select import check_names
from llm_do_mcp.models.turn import LONGEST_TURN_S, Block, Model, Reply, Request, Usage
from llm_do_mcp.runtime import debug, telemetry
from llm_do_mcp.runtime.run import Run
from llm_do_mcp.runtime.tree import Tree

_THOUGHTS = ("thinking", "redacted_thinking")


class Models(Protocol):
    """Where models, and what they cost, are known."""

    def model(self, name: str, tree: Tree) -> Model:
        """A model by its name, for a run: a replay looks in its records, its client may lend a model."""
        ...

    def cost(self, model: str, usage: Usage) -> float | None:
        """US dollars that a turn of a model cost; None where its price is not known."""
        ...


class Chain:
    """The models of one worker's run.

    Args:
        run: Whose.
        models: Opens and prices them.
        span: Of the worker, for telemetry.
    """

    def __init__(self, run: Run, models: Models, span: telemetry.Recorder) -> None:
        self._run, self._models, self._span = run, models, span
        self._names = list(run.definition.models)
        self._answered: list[str] = []  # who gave the reply of each turn
        self._paused = False

    @property
    def names(self) -> tuple[str, ...]:
        """The models that can still answer, the next one first."""
        return tuple(self._names)

    def took(self, reply: Mapping[str, Any]) -> None:
        """Go on from a recorded reply: a model that was chosen stays chosen."""
        while self._names and self._names[0] != reply["model"]:
            self._names.pop(0)
        self._answered.append(reply["model"])
        self._paused = reply["stop_reason"] == "pause_turn"

    async def reply(self, request: Request) -> dict[str, Any]:
        """What the first model that can be had replies to a request, as the record keeps it.

        Returns:
            `content`, `stop_reason`, `model`, `answered_by`, `usage`, `cost`; where there were such, `passed_over`
            (`{model, error}` of those that did not serve it) and `lost` (`{model, usage, cost}` of each reply that
            came to nothing and is paid for all the same).

        Raises:
            Unanswered: None can, or a limit of cost could not be held; it tells of those that were passed over as well.
        """
        passed_over: list[dict[str, str]] = []
        lost: list[dict[str, Any]] = []
        told = {"passed_over": passed_over, "lost": lost}
        try:
            check_names(request.worker, self._names)
            kept = await self._first_reply(request, passed_over, lost)
        except ModelError as error:
            before = "; ".join(each["error"] for each in passed_over)
            message = f"{error}. Passed over before: {before}" if before else str(error)
            raise Unanswered(message, {"asked": next(iter(self._names), ""), **told}) from error
        return {**kept, **{name: value for name, value in told.items() if value}}

    async def _first_reply(
        self, request: Request, passed_over: list[dict[str, str]], lost: list[dict[str, Any]]
    ) -> dict[str, Any]:
        tree = self._run.tree
        while True:
            asked = replace(
                request,
                model=self._names[0],
                messages=self._without_others_thoughts(request),
                alone=len(self._run.definition.models) == 1 and not self._paused,
            )
            model = self._models.model(asked.model, tree)
            self._check_price(asked, model)
            if debug.enabled():
                debug.show_request(tree.redact, self._run.definition, asked)
            try:
                reply = await model.reply(asked, deadline=anyio.current_time() + self._seconds_for_a_turn())
                break
            except ModelError as error:
                lost += [self._paid(model, usage) for usage in error.lost]
                if not isinstance(error, ModelUnavailable) or not self._has_another:
                    raise
                self._names.pop(0)
                passed_over.append({"model": asked.model, "error": str(error)})
                tree.tell(f"{' > '.join(self._run.chain)}: {error}; going on with {self._names[0]}")
        lost += [self._paid(model, usage) for usage in reply.lost]
        kept = self._kept(asked, reply, model)
        if debug.enabled():
            debug.show_reply(tree.redact, asked, kept)
        return kept

    @property
    def _has_another(self) -> bool:
        return len(self._names) > 1 and not self._paused

    def _seconds_for_a_turn(self) -> float:
        """The time that is left; where another model can take over, it gets half of it."""
        left = self._run.seconds_left
        return min(LONGEST_TURN_S, left / 2) if self._has_another else left

    def _kept(self, asked: Request, reply: Reply, model: Model) -> dict[str, Any]:
        paid = self._paid(model, reply.usage)
        self._span.set("gen_ai.response.model", reply.model)
        self._span.add("gen_ai.usage.input_tokens", paid["usage"]["input_tokens"])
        self._span.add("gen_ai.usage.output_tokens", paid["usage"]["output_tokens"])
        return {
            "content": [dict(block) for block in reply.content],
            "stop_reason": reply.stop_reason,
            "answered_by": reply.model,
            **paid,
        }

    def _paid(self, model: Model, usage: Usage) -> dict[str, Any]:
        """What a reply took, and cost."""
        took_in = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
        return {
            "model": model.name,
            "usage": {"input_tokens": took_in, "output_tokens": usage.output_tokens},
            "cost": self._models.cost(model.name, usage) if model.calls_model else 0,
        }

    def _check_price(self, asked: Request, model: Model) -> None:
        """A limit in money is only one where it is known what a turn costs."""
        if not model.calls_model or not self._run.meter.bounds_cost:
            return
        searches = any(tool["tool_type"] == "web_search" for tool in asked.server_side_tools)
        if self._models.cost(asked.model, Usage(web_searches=int(searches))) is None:
            what = "its price is not known, so limits.max_cost cannot be held"
            raise failure(asked, what, "add it to `prices` in project.yaml, or take the limit away")

    def _without_others_thoughts(self, request: Request) -> tuple[Mapping[str, Any], ...]:
        answered = iter(self._answered)
        return tuple(
            _without_thoughts(message)
            if message["role"] == "assistant" and next(answered, self._names[0]) != self._names[0]
            else message
            for message in request.messages
        )


def _without_thoughts(message: Mapping[str, Any]) -> Mapping[str, Any]:
    content: list[Block] = message["content"]
    return {**message, "content": [block for block in content if block["type"] not in _THOUGHTS]}
