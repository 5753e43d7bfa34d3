"""`sampling`: one turn by the model of the MCP client in front, which has one and lends it.

An opt-in: a worker, or whoever starts the run, has to name it. The client chooses the model (`sampling:<hint>` is a
wish), pays for it, and may show each turn to its person. The protocol has deprecated it, and each turn is a round of
the call in the 2026-07-28 revision: it is meant for short loops.

A model knows nothing of clients: what puts a turn to one is handed in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio

from llm_do_mcp.models.documents import Documents
from llm_do_mcp.models.failures import unavailable
from llm_do_mcp.models.turn import LONGEST_TURN_S, Reply, Request

SAMPLING = "sampling"
MOST_TOKENS = 8192
"""The most tokens that a reply may have, of whatever model the client has."""

Sample = Callable[[Request], Awaitable[Reply]]
"""Lets whoever follows the run have its client answer a turn."""


def is_sampling(model: str) -> bool:
    """Whether a model's name is that of the client's model."""
    return model.partition(":")[0] == SAMPLING


def hint(model: str) -> str:
    """Which model the client should take; "" where that is left to it."""
    return model.partition(":")[2]


class SamplingModel:
    """The client's model, for one run.

    Args:
        name: `sampling`, or `sampling:<hint>`.
        sample: Puts a turn to the client.
    """

    calls_model = True

    def __init__(self, name: str, sample: Sample) -> None:
        self.name = name
        self._sample = sample
        self._documents = Documents()

    async def reply(self, request: Request, *, deadline: float) -> Reply:
        """See `Model.reply`."""
        started = anyio.current_time()
        until = min(started + LONGEST_TURN_S, deadline)
        with anyio.CancelScope(deadline=until):
            return await self._sample(await self._documents.as_texts(request))
        waited = f"the client gave no answer within {max(until - started, 0):.3g} s"
        raise unavailable(request, waited, "call it again, or name another model")

    async def aclose(self) -> None:
        """See `Model.aclose`."""
