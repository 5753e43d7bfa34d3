"""The manifest's `redact`: regular expressions whose matches are hidden from people.

They replace, which the linear engine of `linear` cannot; Python's own can, and tries alternatives one after the other:
against thirty characters `(a+)+$` takes minutes, in which no other thread runs. So what makes it try exponentially many
ways is refused when the manifest is read: a repetition, or a choice, within something that is repeated. What is left
may still take time that grows with the square of a text's length.
"""

from __future__ import annotations

import re

from llm_do_mcp.project.checked import quoted

_MOST_TIMES = 8
"""How often something may be repeated that holds a choice, and still be tried in few enough ways."""
_TOKEN = re.compile(
    r"""(?P<atom>\\. | \[\^?\]?(?:\\.|[^\]\\])*\] | [^\\()|*+?{\[])
      | (?P<open>\((?:\?(?:P<\w+>|<?[=!]|[\w-]*:|>)?)?)
      | (?P<close>\))
      | (?P<choice>\|)
      | (?P<repeat>[*+?]|\{(?P<least>\d*)(?P<comma>,?)(?P<most>\d*)\})[?+]?
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)


def pattern(text: str) -> str:
    """A pattern of `redact`, as it is.

    Raises:
        ValueError: It is no regular expression, matches the empty text, or may be tried in too many ways.
    """
    try:
        compiled = re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"{quoted(text)} is no regular expression: {error}") from None
    if compiled.fullmatch(""):
        raise ValueError(f"{quoted(text)} matches the empty text; it must match at least one character")
    if _explodes(text):
        instead = "write no repetition and no | inside something that is repeated"
        raise ValueError(f"{quoted(text)} could be tried in so many ways that it never ends; {instead}")
    return text


def _explodes(text: str) -> bool:
    """Whether something is repeated that itself can match one text in several ways."""
    # In how many ways each open group, and what came last, can match one text: 0 is one, 1 a few, 2 many.
    around, last = [0], 0
    for token in _TOKEN.finditer(text):
        if token["open"]:
            around.append(0)
            last = 0
        elif token["close"]:
            last = around.pop()
            around[-1] = max(around[-1], last)
        elif token["choice"]:
            around[-1], last = max(around[-1], 1), 0
        elif token["repeat"]:
            least, most = _times(token)
            if (last == 2 and most > 1) or (last == 1 and most > _MOST_TIMES):
                return True
            if least != most:
                last = max(last, 2 if most > _MOST_TIMES else 1)
            around[-1] = max(around[-1], last)
        else:
            last = 0
    return False


def _times(repeat: re.Match[str]) -> tuple[float, float]:
    """How often something is repeated, at least and at most."""
    match repeat[0][0]:
        case "*":
            return 0, float("inf")
        case "+":
            return 1, float("inf")
        case "?":
            return 0, 1
    least = float(repeat["least"] or 0)
    return (least, float(repeat["most"] or "inf")) if repeat["comma"] else (least, least)
