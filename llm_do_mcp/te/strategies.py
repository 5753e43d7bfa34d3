"""The coach's strategies: what it may try of how answers look, and how it chooses.

It is off unless it is switched on. Then most commands are answered in the way that has done best so far in this log,
and some at random, so that what did badly by chance gets another turn.
"""

from __future__ import annotations

from llm_do_mcp.te.envelope import BREADCRUMB_ROOM, Style
from llm_do_mcp.te.telemetry import SCORES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from random import Random
    from typing import Any

    Scores = Mapping[str, Sequence[int]]

FULL, SHORT = "full", "short"
_DENSE, _SPARSE = 2 * BREADCRUMB_ROOM, BREADCRUMB_ROOM // 3
STRATEGIES: dict[str, dict[str, Style]] = {
    "grep": {
        FULL: Style(),
        SHORT: Style(10),
        "short-dense": Style(10, crumb_room=_DENSE),
        "short-sparse": Style(10, hot_zone=False, crumb_room=_SPARSE),
    },
    "cat": {FULL: Style(), SHORT: Style(50)},
    "find": {FULL: Style(), SHORT: Style(25), "short-dense": Style(25, crumb_room=_DENSE)},
}
"""By command: preview (lines of a section), hot zone, and how much breadcrumbs may tell."""
TAIL = 4 << 20
"""Bytes at the end of a log that a choice is made from."""


def scores(events: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], list[int]]:
    """The scores of each command and strategy that was used, in the order of the events."""
    uses: dict[str, tuple[str, str]] = {}
    found: dict[tuple[str, str], list[int]] = {}
    for event in events:
        if event["event"] == "command":
            if strategy := event.get("strategy"):
                used = uses[event["id"]] = event["cmd"], strategy
                found.setdefault(used, [])
        elif event["of"] in uses:
            found[uses.pop(event["of"])].append(SCORES[event["action"]])
    return found


def choose(names: Sequence[str], scored: Scores, explore: float, random: Random) -> str:
    """A strategy: at random for a part of the commands, else that with the best mean, one never tried first.

    Args:
        names: Of all strategies, the usual one first.
        scored: The scores so far, by name.
        explore: That part, from 0 to 1.
        random: Where chance comes from.
    """
    if random.random() < explore:
        return random.choice(names)
    return max(names, key=lambda name: _mean(scored.get(name, ())))


def _mean(values: Sequence[int]) -> float:
    return sum(values) / len(values) if values else max(SCORES.values())
