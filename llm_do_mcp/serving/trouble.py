"""What is wrong with what a server was given, told to whoever runs it: once, until it is over or is something else.

Callers are told nothing of it but that they were not let in, if so, so this is where its reason is found.
"""

from __future__ import annotations

import sys


class Trouble:
    """The trouble that one thing has now, if it has any."""

    def __init__(self) -> None:
        self._told = ""

    def is_now(self, what: str) -> None:
        """Tell of it, unless it was told of before; "" where there is none any more."""
        if what and what != self._told:
            print(f"llm-do-mcp: {what}", file=sys.stderr, flush=True)
        self._told = what
