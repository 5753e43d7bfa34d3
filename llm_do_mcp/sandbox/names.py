"""Names of files: between what a caller writes and what the file system holds, in both directions.

A file's name may hold anything but NUL and the separator: line ends, terminal codes, bytes that are no UTF-8. People
and models must see such names without being fooled, and must be able to give them back. So each name has one *shown*
form, in which whatever is not printable is escaped, and a shown name leads back to exactly the name it was made from.
A name that looks like an escape and is none (`..\\x`) stands for itself.

Everything here is text only; nothing is opened.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Sequence

MAX_PATH_BYTES = 4_095
MAX_NAME_BYTES = 255
MAX_DEPTH = 256  # the fd walk holds one descriptor a level; both back ends share the limit

_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|([ntr\\]))")
_LETTERS = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\"}
_FROM_LETTER = {escape[1]: character for character, escape in _LETTERS.items()}

_WINDOWS_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)(?:\..*)?", re.IGNORECASE)
_WINDOWS_FORBIDDEN = re.compile(r'[<>:"|?*\\\x00-\x1f]|~[0-9]|[ .]$')  # `~1`: short names are a second spelling

_LEFTOVER = re.compile(r"\.llm-do\.[0-9a-f]{16}\.tmp")


class BadName(ValueError):
    """A path that no file below a root can have; the message is the reason."""


def shown(name: str) -> str:
    """The printable form of one name; `real` leads back."""
    if name.isascii() and name.isprintable() and "\\" not in name and name == name.strip(" "):
        return name
    last = len(name) - 1
    return "".join(
        _escaped(character)
        if character == "\\" or not character.isprintable() or (character == " " and position in (0, last))
        else character
        for position, character in enumerate(name)
    )


def marked(name: str) -> str:
    """A shown form in ASCII, for a name that would look the same as its neighbour's; `real` leads back."""
    return "".join(character if character.isascii() else _escaped(character) for character in shown(name))


def real(text: str) -> str:
    """The name behind a shown or marked one; text that is neither is a name as it stands."""
    if "\\" not in text:
        return text
    name = _ESCAPE.sub(_unescaped, text)
    return name if text in (shown(name), marked(name)) else text


def shown_path(parts: Sequence[str]) -> str:
    return "/".join(map(shown, parts)) or "."


def one_line(text: str, limit: int = 120) -> str:
    """Text from a caller as it can stand in a message of one line."""
    line = "".join(character if character.isprintable() else _escaped(character) for character in text[:limit])
    return line if len(text) <= limit else f"{line}… ({len(text)} characters)"


def components(path: str, *, windows: bool = os.name == "nt") -> tuple[str, ...]:
    """The real names that a path below a root consists of; empty for the root itself.

    A trailing slash stays as a last `.`, so that it demands a folder. `..` is refused even where it would stay
    inside: no caller needs it, and without it a path means the same whatever is moved while it is looked up.

    Args:
        path: Relative, separated by `/`, names in their real or their shown form.
        windows: Refuse what Windows would take for something else: devices, streams, short names.

    Raises:
        BadName: The path cannot name anything below a root.
    """
    if not path:
        raise BadName("an empty path; the root itself is `.`")
    if path.startswith("/") and path.strip("/"):
        raise BadName("an absolute path; allowed are paths relative to the root")
    parts = tuple(real(text) for text in path.split("/") if text not in ("", "."))
    for name in parts:
        if name == "..":
            raise BadName("`..` is not allowed")
        if "\0" in name:
            raise BadName("a NUL character in a name")
        if windows and (_WINDOWS_FORBIDDEN.search(name) or _WINDOWS_DEVICE.fullmatch(name)):
            raise BadName("not a file name on Windows")
    if parts and path.endswith(("/", "/.")):
        parts += (".",)
    check_length(parts)
    return parts


def aliased(path: str) -> tuple[str, str]:
    """`alias/path` or `alias:path` as alias and path below it; an alias alone means its root, `.`."""
    ends = [end for end in (path.find("/"), path.find(":")) if end >= 0]
    alias, below = (path[: min(ends)], path[min(ends) + 1 :]) if ends else (path, "")
    return alias, below or "."


def one_spelling(path: str) -> str:
    """The spelling of `alias/path` in which rules and questions name it; what names nothing stays as it is."""
    alias, below = aliased(path)
    try:
        parts = components(below)
    except BadName:
        return path
    return "/".join((alias, *(shown(name) for name in parts if name != ".")))


def check_length(parts: Sequence[str]) -> None:
    """Refuse what is too long, the same on every platform and back end.

    Raises:
        BadName: A name, the path or its depth is over the limit, or a name cannot be encoded.
    """
    try:
        sizes = [len(os.fsencode(name)) for name in parts]
    except UnicodeEncodeError:
        raise BadName("a character that no file name can hold") from None
    if sizes and max(sizes) > MAX_NAME_BYTES:
        raise BadName(f"name too long: {max(sizes)} bytes, allowed are {MAX_NAME_BYTES}")
    if sum(sizes) + len(sizes) > MAX_PATH_BYTES:
        raise BadName(f"name too long: {sum(sizes) + len(sizes)} bytes in all, allowed are {MAX_PATH_BYTES}")
    if len(sizes) > MAX_DEPTH:
        raise BadName(f"too deep: {len(sizes)} folders, allowed are {MAX_DEPTH}")


def fold(name: str) -> str:
    """One form for all spellings that some file system takes for the same name (`.GIT`, `.g<zero width>it`, `.git.`).

    It folds on every platform: a name that is refused too often does less harm than one that slips through.
    """
    if not name.isascii():
        name = "".join(c for c in unicodedata.normalize("NFC", name) if unicodedata.category(c) != "Cf")
        name = unicodedata.normalize("NFC", name.casefold())
    return name.lower().rstrip(" .") or name


def below(path: str, folder: str) -> tuple[str, ...] | None:
    """The names that lead from a folder to a path in it, none to itself; None where it lies elsewhere.

    Args:
        path, folder: Of the host, absolute and without links. On Windows case does not count.
    """
    found, above = (os.path.normcase(place).rstrip(os.sep).split(os.sep) for place in (path, folder))
    return tuple(found[len(above) :]) if found[: len(above)] == above else None


def is_below(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies in it; both as for `below`."""
    return below(path, folder) is not None


def at_home(path: str) -> str:
    """A path of the host as a person would write it: one in the home folder with `~`."""
    home = os.path.expanduser("~")
    return os.path.join("~", os.path.relpath(path, home)) if path != home and is_below(path, home) else path


def in_project(path: str, project: str) -> str:
    """A path of the host as the project's manifest would name it: one in the project with `./`."""
    return f"./{os.path.relpath(path, project)}".replace(os.sep, "/") if is_below(path, project) else path


def new_leftover() -> str:
    """A name for a file that is being written; it is left over where its writer is killed."""
    return f".llm-do.{os.urandom(8).hex()}.tmp"


def is_leftover(name: str) -> bool:
    return _LEFTOVER.fullmatch(name) is not None


def _escaped(character: str) -> str:
    code = ord(character)
    if character in _LETTERS:
        return _LETTERS[character]
    if code < 0x80:
        return f"\\x{code:02x}"
    if 0xDC80 <= code <= 0xDCFF:  # Python's stand-in for a byte that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _unescaped(match: re.Match[str]) -> str:
    byte, short, long, letter = match.groups()
    if letter:
        return _FROM_LETTER[letter]
    if byte:
        return chr(int(byte, 16) if int(byte, 16) < 0x80 else 0xDC00 + int(byte, 16))
    code = int(short or long, 16)
    return chr(code) if code <= 0x10FFFF else match[0]
