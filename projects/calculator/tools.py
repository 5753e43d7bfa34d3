"""The project's functions. Marked with `@tool`, a function says what it risks: `read` never asks."""

from __future__ import annotations

from fractions import Fraction

from llm_do_mcp import ToolContext, tool


@tool(risk="read")
def divide(dividend: int, divisor: int) -> str:
    """A quotient as an exact fraction.

    Args:
        dividend: What is divided.
        divisor: By what; not 0.
    """
    if divisor == 0:
        raise ValueError("the divisor is 0; give another one")
    return str(Fraction(dividend, divisor))


@tool(risk="read")
def rounded(context: ToolContext, number: float) -> float:
    """A number, rounded as the person wants it, who is asked.

    Args:
        number: Any.
    """
    return round(number, int(context.ask(f"To how many digits shall {number} be rounded?")))


@tool
def mean(context: ToolContext, numbers: list[float]) -> float:
    """The mean of some numbers. It declares no risk, so it would ask, but for the worker's `tool_rules`.

    Args:
        numbers: One or more.
    """
    if not numbers:
        raise ValueError("there is no mean of no numbers")
    context.log(f"mean of {len(numbers)} numbers")
    return sum(numbers) / len(numbers)
