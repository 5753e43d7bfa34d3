"""Perl's patterns (`-P`) for Python's engine, where there is no ripgrep with its PCRE2.

Most of both is the same. What is written otherwise is translated; what Python cannot do, it names itself.
"""

from __future__ import annotations

import re

from llm_do_mcp.te.pattern import CLASSES, python_class

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

KEPT = "kept"
"""The group that ends where `\\K` stands: what lies before is not a part of the match."""
_BLANK = r" \t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000"
_VERTICAL = r"\x0b\f\r\x85\u2028\u2029"
_ESCAPES = {
    "E": "",
    "K": f"(?P<{KEPT}>)",
    "N": r"[^\n]",
    "R": rf"(?:\r\n|[\n{_VERTICAL}])",
    "Z": r"\Z",
    "e": r"\x1b",
    "h": f"[{_BLANK}]",
    "H": rf"[^{_BLANK}\n]",
    "v": f"[{_VERTICAL}]",
    "V": rf"[^{_VERTICAL}\n]",
    "z": r"\Z",
}
_IN_BRACKETS = {"h": _BLANK, "v": _VERTICAL, "e": r"\x1b", "E": ""}
_NUMBERED = re.compile(r"\\[1-9]")
_SPELLED: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"\\x\{([0-9A-Fa-f]{1,6})\}"), lambda found: re.escape(chr(int(found[1], 16)))),
    (re.compile(r"\\k(?:<(\w+)>|\{(\w+)\}|'(\w+)')"), lambda found: f"(?P={found[1] or found[2] or found[3]})"),
    (re.compile(r"\\g(?:\{([1-9])\}|([1-9]))"), lambda found: f"(?:\\{found[1] or found[2]})"),
    (re.compile(r"\(\?(?:<(?![=!])|')(\w+)[>']"), lambda found: f"(?P<{found[1]}>"),
    (re.compile(r"\{[ \t]*(\d*)[ \t]*(?:(,)[ \t]*(\d*)[ \t]*)?\}"), lambda found: _quantifier(found)),
)
"""What is read as a whole, and what it becomes."""
_FLAGS = re.compile(r"\(\?([imsx]+)\)")


def for_python(pattern: str) -> str:
    """A pattern of Perl's as one of Python's.

    Raises:
        ValueError: It cannot be one.
    """
    flags = _FLAGS.match(pattern)
    at = flags.end() if flags is not None else 0
    written: list[str] = []
    while at < len(pattern):
        for spelled, becomes in _SPELLED:
            if (found := spelled.match(pattern, at)) is not None:
                written.append(becomes(found))
                at = found.end()
                break
        else:
            piece, at = _next(pattern, at)
            written.append(piece)
    whole = "".join(written)
    if f"(?P<{KEPT}>)" in whole and _NUMBERED.search(whole):
        raise ValueError("without ripgrep, -P takes no \\K beside a back reference")
    return f"(?{flags[1]}:{whole})" if flags is not None else whole


def _quantifier(found: re.Match[str]) -> str:
    """`{1,2}`, in which PCRE2 allows spaces (since 10.43); without a number it stands for itself."""
    least, comma, most = found.groups("")
    return f"{{{least}{comma}{most}}}" if least or most else re.escape(found[0])


def _next(pattern: str, at: int) -> tuple[str, int]:
    """What comes next in a pattern, and where to go on."""
    if pattern.startswith("\\Q", at):
        end = pattern.find("\\E", at)
        text = pattern[at + 2 : end if end >= 0 else len(pattern)]
        return re.escape(text), at + len(text) + (4 if end >= 0 else 2)
    if pattern[at] == "\\":
        return _ESCAPES.get(pattern[at + 1 : at + 2], pattern[at : at + 2]), at + 2
    return _bracket(pattern, at) if pattern[at] == "[" else (pattern[at], at + 1)


def _bracket(pattern: str, start: int) -> tuple[str, int]:
    """`[…]` with classes in it, which Python does not have, as one of several."""
    at = first = start + 1 + pattern.startswith("^", start + 1)
    plain: list[str] = []
    classes: list[str] = []
    while at < len(pattern) and (pattern[at] != "]" or at == first):
        if pattern.startswith(("[:", "[.", "[="), at) and (end := pattern.find(pattern[at + 1] + "]", at + 2)) > 0:
            classes.append(_class(pattern[at : end + 2]))
            at = end + 2
        elif pattern[at] == "\\":
            plain.append(_IN_BRACKETS.get(pattern[at + 1 : at + 2], pattern[at : at + 2]))
            at += 2
        else:
            plain.append("\\" + pattern[at] if pattern[at] in "[]" else pattern[at])
            at += 1
    if at >= len(pattern):
        raise ValueError("a bracket is not closed")
    content = "".join(plain)
    if len(content) > 1 and content[0] == content[-1] and content[0] in ":.=":
        raise ValueError(f"a class is written [[{content}]], not [{content}]")
    negated = first > start + 1
    if not classes:
        return f"[{'^' * negated}{content}]", at + 1
    either = "|".join([*classes, *([f"[{content}]"] if content else [])])
    return (rf"(?:(?!{either})[^\n])" if negated else f"(?:{either})"), at + 1


def _class(text: str) -> str:
    """`[:alpha:]`, or `[:^alpha:]`, as a set."""
    name = text[2:-2].removeprefix("^")
    if text[1] != ":" or name not in (*CLASSES, "word"):
        raise ValueError(f"-P has no class {text}")
    own = r"\w" if name == "word" else python_class(name)
    return rf"(?:(?!{own})[^\n])" if text[2:3] == "^" else own
