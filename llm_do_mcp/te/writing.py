"""Writes the lines of an answer: `path:line: text`, one line each, cut around the match where it is long.

Where the kernel cannot confine ripgrep, nothing it printed is trusted: a line is shown only if the same bytes stand
at the same place in the file as our own handles reach it.
"""

from __future__ import annotations

import os

from llm_do_mcp.te.envelope import Line
from llm_do_mcp.te.text import BYTE_ORDER_MARK, decoded, encoded, shown_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from llm_do_mcp.te.accounts import Accounts
    from llm_do_mcp.te.options import Query
    from llm_do_mcp.te.roots import Root, Workspace

COLUMNS = 512
"""Characters that ripgrep prints of a line which has more bytes than that."""
LINE_CHARACTERS = 300
BEFORE = 80
"""Characters before the match that a line which is cut keeps."""
LARGEST_LOOKED_INTO = 16 << 20
"""Bytes of a file that is read again for a match that lies beyond what ripgrep printed of its line."""
_CUT = b" [... "
_OMITTED = _CUT + b"omitted end of long line]"
"""What ripgrep puts in place of the rest of a line."""
_DIGITS = b"0123456789"

Parts = tuple[bytes, bytes, bytes]
"""A line's number, the mark behind it, and the rest of what was printed."""


class Writer:
    """Writes what was found in files, by their index in the accounts.

    Args:
        query: What was asked.
        accounts: What was found.
        workspace: How paths are shown and opened.
        around: Text that each match holds, around which long lines are cut; empty if that is not known.
        verify: Whether each line is compared with the file before it is shown.
    """

    def __init__(self, query: Query, accounts: Accounts, workspace: Workspace, *, around: bytes, verify: bool) -> None:
        self._query = query
        self._accounts = accounts
        self._workspace = workspace
        self._around = around.lower() if query.case else around
        self._strip = bytes.rstrip if query.context else bytes.strip
        self.verify = verify
        self.only_matching = query.only_matching
        self.changed: dict[int, int] = {}
        """By file, the lines that were found and are not there (any more): neither shown nor counted."""
        self.cut_lines: dict[int, int] = {}
        """By file, the lines that were written in part."""

    def listed(self, index: int) -> Iterator[Line]:
        """A file in the lists (`-l`) and counts (`-c`)."""
        located = self._workspace.locate(self._accounts.paths[index])
        if self.verify and not _opens(*located):
            self.changed[index] = self._accounts.counts[index]
            return
        name = self._workspace.shown(*located)
        count = self._accounts.counts[index]
        yield Line(f"{name}:{count}" if self._query.output == "counts" else name, count, index)

    def file(self, index: int) -> File:
        """A file whose lines are to be written. It is to be closed."""
        root, relative = self._workspace.locate(self._accounts.paths[index])
        name = "" if self._query.no_filename else self._workspace.shown(root, relative)
        return File(self, index, name, root, relative)

    def text_of(self, parts: Parts) -> bytes:
        """A line's text in what ripgrep printed."""
        return parts[2].partition(parts[1])[2] if self.verify else parts[2]

    def cut(self, text: bytes, file: File, number: bytes, *, long: bool) -> tuple[str, bool]:
        """A line's text as it is shown, and whether that is a part of it. `long`: only its beginning was printed."""
        text = self.trimmed(text)
        if len(text) <= LINE_CHARACTERS and not long:
            return shown_text(text, LINE_CHARACTERS), False
        at, begun = self.place_in(text), False
        if at < 0 and long and self._around and (beyond := file.around(int(number), text)):
            (text, at), begun = beyond, True
        before = len(shown_text(text[:at], len(text))) if at > 0 else 0
        shown = shown_text(text, len(text))
        if long or len(shown) > LINE_CHARACTERS:
            return self._part(shown, before, begun=begun), True
        return shown, False

    def whole(self, text: bytes) -> str:
        """A line's text as it is shown, however long."""
        text = self.trimmed(text)
        return shown_text(text, len(text))

    def cuts(self, text: bytes) -> bool:
        """Whether `cut` shows a part of a line of this text."""
        return len(text) > LINE_CHARACTERS and (_is_long(text) or len(self.whole(text)) > LINE_CHARACTERS)

    def trimmed(self, text: bytes) -> bytes:
        """A line's text without the white space around it that is not shown."""
        return self._strip(text.removeprefix(BYTE_ORDER_MARK))

    def _part(self, shown: str, before: int, *, begun: bool) -> str:
        if begun or before + len(self._around) > LINE_CHARACTERS:
            shown = "…" + shown[max(before - BEFORE, 0) :]
        return shown[: LINE_CHARACTERS - 1] + "…"

    def place_in(self, text: bytes) -> int:
        """Where in a text what each match holds begins; -1 if it is not there."""
        return (text.lower() if self._query.case else text).find(self._around) if self._around else -1


class File:
    """A file whose lines are written."""

    def __init__(self, writer: Writer, index: int, name: str, root: Root, relative: str) -> None:
        self._writer = writer
        self._index = index
        self._name = name
        self._root = root
        self._relative = relative
        self._original = _Original(root, relative) if writer.verify else None

    def line(self, parts: Parts, *, whole: bool = False) -> Line | None:
        """A line that ripgrep printed as it is shown, or None if there is nothing to be seen.

        Args:
            parts: What was printed.
            whole: Whether all of a long line was printed, and is to be shown.
        """
        number, separator, text = parts
        if not number:
            return Line("--")
        offset = b""
        if self._original is not None:
            offset, _, text = text.partition(separator)
        if not text and self._writer.only_matching:
            return None  # an empty match, which `grep -o` does not print
        is_hit = separator == b":"
        long = not whole and len(text) >= COLUMNS and _CUT in text[-64:]
        if long:
            text = text[: text.rindex(_CUT)]
            long = _is_long(text)
        if self._original is not None and not self._original.has(int(offset), text):
            changed = self._writer.changed
            changed[self._index] = changed.get(self._index, 0) + is_hit
            return None
        mark = ":" if is_hit else "-"
        name = f"{self._name}{mark}" if self._name else ""
        if whole:
            shown, is_cut = self._writer.whole(text), False
        else:
            shown, is_cut = self._writer.cut(text, self, number, long=long)
        if is_cut:
            self._writer.cut_lines[self._index] = self._writer.cut_lines.get(self._index, 0) + 1
        return Line(f"{name}{number.decode()}{mark} {shown}", int(is_hit), self._index, is_cut=is_cut)

    def around(self, number: int, printed: bytes) -> tuple[bytes, int] | None:
        """A part of a line of which only the beginning was printed, and where in it the match is.

        None if it is not found, or the line there begins otherwise: then the file has changed.
        """
        try:
            handle = self._root.open(self._relative)
        except (OSError, ValueError):
            return None
        with os.fdopen(handle, "rb") as file:
            if os.fstat(handle).st_size > LARGEST_LOOKED_INTO:
                return None
            for _ in range(number):
                line = file.readline().rstrip(b"\r\n")
        at = self._writer.place_in(line)
        if at < 0 or not self._writer.trimmed(line).startswith(printed):
            return None
        start = max(at - 4 * BEFORE - 3, 0)  # a character has up to four bytes
        return line[start : at + 4 * LINE_CHARACTERS], at - start

    def close(self) -> None:
        if self._original is not None:
            self._original.close()


class _Original:
    """A file as our handles reach it, to compare what ripgrep printed with what is there."""

    def __init__(self, root: Root, relative: str) -> None:
        try:
            self._handle: int | None = root.open(relative)
        except (OSError, ValueError):
            self._handle = None

    def has(self, offset: int, text: bytes) -> bool:
        if self._handle is None:
            return False
        os.lseek(self._handle, offset, os.SEEK_SET)
        return os.read(self._handle, len(text)) == text if text else True

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)


def _opens(root: Root, relative: str) -> bool:
    try:
        os.close(root.open(relative))
    except (OSError, ValueError):
        return False
    return True


def preview(text: bytes, columns: int = COLUMNS) -> bytes:
    """A line of a file as ripgrep prints it: of a long one so many characters."""
    return text if len(text) < columns else encoded(decoded(text[: 4 * columns])[:columns]) + _OMITTED


def _is_long(text: bytes) -> bool:
    """Whether this is as much as ripgrep prints of a line: where characters have several bytes it may be all of it."""
    return len(text) >= COLUMNS and len(decoded(text)) >= COLUMNS


def parted(printed: bytes) -> Parts:
    """`12:text` (a hit) or `12-text` (context) in its parts; the number is empty for a line between groups."""
    number, mark, text = printed.partition(b":")
    if number.isdigit():
        return number, mark, text
    text = printed.lstrip(_DIGITS)
    number = printed[: len(printed) - len(text)]
    return number, text[:1], text[1:]
