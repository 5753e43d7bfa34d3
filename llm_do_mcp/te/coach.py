"""`te coach report`: which strategies do well, as far as the log can tell."""

from __future__ import annotations

from llm_do_mcp.te.envelope import Line, Section, TeError, compose
from llm_do_mcp.te.strategies import scores
from llm_do_mcp.te.telemetry import SCORES, Log
from llm_do_mcp.te.text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from llm_do_mcp.te.envelope import Frame

_BAR = 20
_FEWEST = 5
"""Scores from which on a mean and its interval are told."""
_NORMAL_95 = 1.96


def report(arguments: Sequence[str], log: Log | None, frame: Frame) -> str:
    """The answer to `te coach`.

    Raises:
        TeError: `usage`, or `no_telemetry`.
    """
    if list(arguments) != ["report"]:
        raise TeError("usage", "te coach takes one word: te coach report")
    if log is None:
        raise TeError("no_telemetry", "no log is kept here: [tool_envelope.telemetry] in llmc.toml switches it on")
    found = scores(log.events())
    lines = list(_lines(found))
    told = Section(
        (Line(line, 1) for line in lines),
        lambda: len(lines),
        lambda taken, _: f"# TE: {len(lines) - len(taken)} more lines",
    )
    scored = sum(map(len, found.values()))
    return compose("coach", lambda _: {"strategies": len(found), "scored": scored}, (), [told], frame)


def _lines(found: dict[tuple[str, str], list[int]]) -> Iterator[str]:
    """A table: the best strategy of each command first, with the interval that holds its mean 19 times of 20."""
    if not found:
        yield "no command was answered by a strategy yet: [tool_envelope.coach] enabled = true switches them on"
        return
    scale = f"from {min(SCORES.values())} to +{max(SCORES.values())}"
    yield f"{'command':8} {'strategy':14} {'scored':>6} {'wins':>5} {'mean':>6}  {'95 %':14} {scale}"
    for names, values in sorted(found.items(), key=lambda item: (item[0][0], -mean(item[1]))):
        command, strategy = (one_line(name, 14) for name in names)
        low, high = interval(values)
        wins = sum(value > 0 for value in values)
        told = f"{mean(values):+6.2f}  {low:+5.2f} to {high:+5.2f}" if len(values) >= _FEWEST else f"{'too few':>23}"
        drawn = bar(mean(values)) if len(values) >= _FEWEST else ""
        yield f"{command:8} {strategy:14} {len(values):6} {wins:5} {told:23} {drawn}".rstrip()


def mean(values: Sequence[int]) -> float:
    """The mean; 0 of none."""
    return sum(values) / len(values) if values else 0.0


def interval(values: Sequence[int]) -> tuple[float, float]:
    """The mean's 95 % confidence interval, by the normal approximation.

    Two values at each end of the scale are added first, as Agresti and Coull do it for shares: without them, a few
    equal values would leave no doubt at all.
    """
    least, most = min(SCORES.values()), max(SCORES.values())
    values = [*values, least, least, most, most]
    middle = mean(values)
    spread = sum((value - middle) ** 2 for value in values) / (len(values) - 1)
    margin = _NORMAL_95 * (spread / len(values)) ** 0.5
    return max(middle - margin, least), min(middle + margin, most)


def bar(value: float) -> str:
    """A score as a bar, from nothing at the worst to full at the best."""
    least, most = min(SCORES.values()), max(SCORES.values())
    filled = round(_BAR * (value - least) / (most - least))
    return "█" * filled + "░" * (_BAR - filled)
