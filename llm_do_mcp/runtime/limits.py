"""Limits of a run and all below it, and the meters that hold a tree to them.

Every worker's run has a meter; what it spends is charged to the meters above it as well, so a sub-worker's limits
lie inside its parents' and no fan-out can spend more than the root allows. Limits are checked before a live step,
never on replay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from llm_do_mcp.errors import LimitReached, Refused
from llm_do_mcp.project.settings import USUAL_LIMITS


@dataclass(frozen=True)
class Limits:
    """Upper bounds of a run and all below it.

    Args:
        timeout_s: Seconds of work; waiting for a person does not count.
        max_turns: Model turns.
        max_tool_calls: Calls of functions.
        max_tokens: Input and output tokens together.
        max_depth: Workers below one another, the root included.
        max_cost: US dollars for model turns; None for any sum.
    """

    timeout_s: float = USUAL_LIMITS["timeout_s"]
    max_turns: int = USUAL_LIMITS["max_turns"]
    max_tool_calls: int = USUAL_LIMITS["max_tool_calls"]
    max_tokens: int = USUAL_LIMITS["max_tokens"]
    max_depth: int = USUAL_LIMITS["max_depth"]
    max_cost: float | None = None


class Meter:
    """What one run and all below it have spent.

    Args:
        worker: Whose run it is, for messages.
        limits: What it may spend.
        parent: The meter of the run that called it.
    """

    def __init__(self, worker: str, limits: Limits, parent: Meter | None = None) -> None:
        self.worker, self.limits, self.parent = worker, limits, parent
        self.depth: int = parent.depth + 1 if parent else 1
        self.turns = self.tool_calls = self.tokens = 0
        self.cost = 0.0

    def _and_above(self) -> Iterator[Meter]:
        """This meter and those above it, the nearest first."""
        meter: Meter | None = self
        while meter is not None:
            yield meter
            meter = meter.parent

    def charge(self, *, turns: int = 0, tool_calls: int = 0, tokens: int = 0, cost: float = 0.0) -> None:
        """Count what was spent, here and above."""
        for meter in self._and_above():
            meter.turns += turns
            meter.tool_calls += tool_calls
            meter.tokens += tokens
            meter.cost += cost

    def check(self, *limits: str) -> None:
        """Raise where one of the named limits, here or above, leaves no room for another live step.

        Args:
            limits: Of "max_turns", "max_tool_calls", "max_tokens", "max_cost".

        Raises:
            LimitReached: Names the limit and the worker that has it.
        """
        for meter in self._and_above():
            spent = {
                "max_turns": meter.turns,
                "max_tool_calls": meter.tool_calls,
                "max_tokens": meter.tokens,
                "max_cost": meter.cost,
            }
            for limit in limits:
                most = getattr(meter.limits, limit)
                if most is not None and spent[limit] >= most:
                    raise meter.reached(limit, self)

    @property
    def bounds_cost(self) -> bool:
        """Whether there is a limit of cost, here or above."""
        return any(meter.limits.max_cost is not None for meter in self._and_above())

    def check_depth(self, callee: str, chain: tuple[str, ...]) -> None:
        """Refuse the call of a worker that would be too deep; the caller may go on without it.

        Raises:
            Refused: With the limit, whose it is, and the chain of workers.
        """
        for meter in self._and_above():
            if self.depth - meter.depth + 2 > meter.limits.max_depth:
                limit = f"limit max_depth of {meter.limits.max_depth} of worker {meter.worker}"
                raise Refused(f"worker {callee} was not called: {limit} ({' > '.join((*chain, callee))})")

    def reached(self, limit: str, by: Meter | None = None, *, during: str = "") -> LimitReached:
        """The error for a limit of this meter that was met.

        Args:
            limit: Which.
            by: The meter of the run that wanted more, where that is known: this one, or one below.
            during: What was under way, where it was cut short.
        """
        most, chain = getattr(self.limits, limit), []
        while by is not None and by is not self:
            chain.append(by.worker)
            by = by.parent
        where = f" (during {during})" if during else ""
        if chain:
            where = f" (by {' > '.join((self.worker, *reversed(chain)))})"
        return LimitReached(f"worker {self.worker} stopped: its limit {limit} of {most:g} was reached{where}", self)
