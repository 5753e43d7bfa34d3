"""What a person may be about to type, as the protocol has it: of the values that there are, those that begin so."""

from __future__ import annotations

from collections.abc import Iterable

from mcp.types import Completion

MAX_VALUES = 100
"""What the protocol allows."""


def completed(values: Iterable[str], begun: str) -> Completion:
    """The values that begin with what was typed, whatever the case."""
    fitting = [value for value in dict.fromkeys(values) if value.casefold().startswith(begun.casefold())]
    more = len(fitting) > MAX_VALUES
    return Completion(values=fitting[:MAX_VALUES], total=len(fitting), has_more=more)
