"""How names and text are shown: one line each, nothing that steers a terminal, and nothing lost for names.

A file's name may hold any byte but `/` and NUL. `shown_path` escapes what would break or disguise a line, in the
spelling that the project's file operations use too, and `real_path` undoes it: a name can be used in the next
command as it was shown. Text is only read, so there each hidden character becomes one visible character.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterable

_LETTERS = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\"}
_FROM_LETTER = {escape[1]: character for character, escape in _LETTERS.items()}
_WIDTHS = {"x": 2, "u": 4, "U": 8}
_HEXADECIMAL = frozenset("0123456789abcdef")
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""What a text in UTF-16 begins with."""
BLOCK = 64 << 10
"""Bytes that ripgrep reads of a file at once, and looks for a NUL in: what precedes that by more is told before it."""

HIDDEN_IN_TEXT = (
    *range(0x20),
    *range(0x7F, 0xA0),
    *range(0x200B, 0x2010),  # zero width, and marks of direction
    *range(0x2028, 0x202F),  # line separators, and overrides of direction
    *range(0x2060, 0x2070),
    0xAD,
    0x061C,
    0xFEFF,
)
_VISIBLE = {code: 0x2400 + code if code < 0x20 else 0xFFFD for code in HIDDEN_IN_TEXT}
_VISIBLE[0x7F] = 0x2421
del _VISIBLE[0x09]  # a tab is what it looks like


def shown_text(text: bytes, limit: int) -> str:
    """Text as one line of at most `limit` characters; an ellipsis ends it where it was cut."""
    line = text.decode("utf-8", "replace")
    if not line.isprintable():
        line = line.translate(_VISIBLE)
    return line if len(line) <= limit else line[: limit - 1] + "…"


_IN_JSON = {code: f"\\u{code:04x}" for code in range(0x20)}
_IN_JSON |= {ord("\\"): "\\\\", ord('"'): '\\"', ord("\n"): "\\n", ord("\t"): "\\t"}


def quoted(text: str) -> str:
    """Text as a JSON string; as `json.dumps`, whose import a command can do without."""
    return f'"{text.translate(_IN_JSON)}"'


def decoded(text: bytes) -> str:
    """Text in which stand-ins take the place of bytes that are not UTF-8; `encoded` is the way back."""
    return text.decode("utf-8", "surrogateescape")


def encoded(text: str) -> bytes:
    """The bytes of a text that `decoded` gave."""
    return text.encode("utf-8", "surrogateescape")


def is_text(text: str) -> bool:
    """Whether it is all text: no stand-in of `decoded` for a byte that is not UTF-8."""
    return text.isascii() or not any("\udc80" <= character <= "\udcff" for character in text)


def bytes_of(patterns: Iterable[str]) -> re.Pattern[bytes] | None:
    """What finds each byte that patterns hold and that is no text (see `readings`); None where they hold none."""
    held = {encoded(character) for pattern in patterns for character in pattern if not is_text(character)}
    if not held:
        return None
    import re

    return re.compile(b"([%s])" % b"".join(held))


def readings(line: bytes, held: re.Pattern[bytes] | None) -> list[str]:
    """A line as text, in the ways in which a pattern may match it.

    For grep the bytes that a pattern holds (`bytes_of`) are found wherever they are, also inside a character: so they
    stand apart first. Where that character is looked for, it must be whole.
    """
    whole = decoded(line)
    if held is None or held.search(line) is None:
        return [whole]
    pieces = enumerate(held.split(line))
    return ["".join(piece.decode("ascii" if at % 2 else "utf-8", "surrogateescape") for at, piece in pieces), whole]


def one_line(text: str, limit: int = 120) -> str:
    """Text from a caller as it can stand in a message of one line."""
    line = "".join(character if character.isprintable() else _escaped(character) for character in text[:limit])
    return line if len(text) <= limit else line + "…"


def passable(text: str) -> bool:
    """Whether text can be an argument of a program, or a path."""
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def shown_path(path: str) -> str:
    """A path (bytes that are not UTF-8 as `surrogateescape` has them) as one printable line."""
    if path.isascii() and path.isprintable() and "\\" not in path and " " not in path:
        return path
    return "/".join(map(_shown, path.split("/")))


def real_path(shown: str) -> str:
    """The path that is shown so; a path that is no shown one stands for itself."""
    if "\\" not in shown:
        return shown
    return "/".join(map(_real, shown.split("/")))


def _shown(name: str) -> str:
    last = len(name) - 1
    return "".join(
        _escaped(character)
        if character == "\\" or not character.isprintable() or (character == " " and position in (0, last))
        else character
        for position, character in enumerate(name)
    )


def _escaped(character: str) -> str:
    code = ord(character)
    if character in _LETTERS:
        return _LETTERS[character]
    if code < 0x80:
        return f"\\x{code:02x}"
    if 0xDC80 <= code <= 0xDCFF:  # Python's stand-in for a byte that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _real(shown: str) -> str:
    parts: list[str] = []
    at = 0
    while at < len(shown):
        kind = shown[at + 1 : at + 2] if shown[at] == "\\" else ""
        width = _WIDTHS.get(kind, 0)
        digits = shown[at + 2 : at + 2 + width]
        if kind in _FROM_LETTER:
            parts.append(_FROM_LETTER[kind])
            at += 2
        elif width and len(digits) == width and _HEXADECIMAL.issuperset(digits) and int(digits, 16) <= 0x10FFFF:
            code = int(digits, 16)
            parts.append(chr(0xDC00 + code if kind == "x" and code >= 0x80 else code))
            at += 2 + width
        else:
            parts.append(shown[at])
            at += 1
    name = "".join(parts)
    return name if _shown(name) == shown else shown
