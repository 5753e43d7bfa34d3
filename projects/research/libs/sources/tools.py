"""The library's own function."""

from __future__ import annotations

import re

from llm_do_mcp import tool


@tool(risk="read", idempotent=True)
def first_sentence(text: str) -> str:
    """The first sentence of a text, without marks of Markdown at its start.

    Args:
        text: One or more sentences.
    """
    return re.split(r"(?<=[.!?])\s", text.lstrip("#-* "), maxsplit=1)[0]
