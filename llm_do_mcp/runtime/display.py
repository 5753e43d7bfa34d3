"""Text from files, models and clients, made safe to show to a person: escaped, then cut.

What a person reads before deciding must be what it seems: no control characters, no terminal escapes, no
characters that turn the direction of text or take no room.
"""

from __future__ import annotations

import json
import unicodedata
from typing import Any

_ALLOWED = "\n\t"


def escape(text: str, *, lines: bool = False) -> str:
    """The text with every character that could mislead written as `\\xNN` or `\\uNNNN`.

    Args:
        text: Anything.
        lines: Keep line breaks and tabs as they are (for diffs).
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char if (lines and char in _ALLOWED) or _plain(char) else char.encode("unicode_escape").decode("ascii")
        for char in text
    )


def _plain(char: str) -> bool:
    # Cc control, Cf format (direction overrides, zero width), Cs surrogate, Co private, Cn unassigned, Zl/Zp separators
    return char == " " or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def cut(text: str, limit: int) -> str:
    """The text, or its beginning and how much was left out."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit} more characters)"


def arguments(value: Any, limit: int) -> str:
    """Arguments as one escaped line of JSON, cut to `limit` characters."""
    return cut(escape(json.dumps(value, ensure_ascii=False)), limit)


def counted(number: int, what: str) -> str:
    """`1 call`, `2 calls`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
