"""What a person may be about to type, as the protocol has it: of the values that there are, those that begin so."""

from __future__ import annotations

from collections.abc import Iterable

from mcp.types import Completion

MAX_VALUES = 100
"""What the protocol allows."""


def completed(values: Iterable[str], begun: str, *, more: bool = False) -> Completion:
    """The values that begin with what was typed, whatever the case; how many, where that is all of them.

    Args:
        values: Those that are known.
        begun: What was typed.
        more: There are others, which are not among these.
    """
    fitting = [value for value in dict.fromkeys(values) if value.casefold().startswith(begun.casefold())]
    more = more or len(fitting) > MAX_VALUES
    return Completion(values=fitting[:MAX_VALUES], total=None if more else len(fitting), has_more=more)
