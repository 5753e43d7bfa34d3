"""A text that is read line by line, however large it and its lines are.

One pass counts the lines and remembers, for each piece of the file, the line at which it starts: what is shown later,
from the middle or the end, is read from there. A line that is longer than an answer's line may be comes in parts.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left

from llm_do_mcp.te.text import BYTE_ORDER_MARK, UTF_16

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from llm_do_mcp.te.patience import Patience

PIECE = 1 << 20
HEAD = 64 << 10
COUNTED = 4 << 30
"""Bytes of a file whose lines are counted; of a larger one only the start is read."""


class Part:
    """A line, or a part of a long one: its number, its bytes (UTF-8 if the file is text), and which part it is."""

    __slots__ = ("is_last", "line", "number", "text")

    def __init__(self, line: int, number: int, text: bytes, *, is_last: bool) -> None:
        self.line = line
        self.number = number
        self.text = text
        self.is_last = is_last


class Tally:
    """What counting the lines of a file has found; it is the same for each handle on the file.

    Attributes:
        lines: How many; None until they are counted, and where they are too many bytes.
        has_quotes: Whether there is a `"` in it.
        before: How many lines end before each piece; of UTF-16 there is only the first.
    """

    def __init__(self) -> None:
        self.lines: int | None = None
        self.has_quotes = False
        self.before = array("Q", [0])


class TextFile:
    """A file, by a handle that belongs to this object.

    Args:
        handle: The handle.
        patience: When reading has to stop.
        tally: What is known of its lines, from an earlier handle.

    Raises:
        OSError: It cannot be read.
    """

    def __init__(self, handle: int, patience: Patience, tally: Tally | None = None) -> None:
        self._handle = handle
        self._patience = patience
        about = os.fstat(handle)
        self.size = about.st_size
        self.identity = (about.st_ino, about.st_size, about.st_mtime_ns)
        """Which file it is, and in what state."""
        self.head = self._read(0, HEAD)
        self.is_utf_16 = self.head.startswith(UTF_16)
        if self.is_utf_16:
            self.head = self.head.decode("utf-16", "replace").encode()
        self.is_binary = b"\0" in self.head
        self.tally = tally or Tally()

    def close(self) -> None:
        os.close(self._handle)

    @property
    def not_utf_8(self) -> int | None:
        """The offset of the first byte that is not UTF-8, as far as the head tells."""
        if self.is_utf_16:
            return None
        try:
            self.head.decode()
        except UnicodeDecodeError as error:
            cut = error.end == len(self.head) < self.size and error.reason == "unexpected end of data"
            return None if cut else error.start
        return None

    def count(self) -> None:
        """Count the lines. Raises `Interrupted` and `OSError`."""
        if self.size > COUNTED:
            return
        ends = 0
        last = b""
        for piece in self._pieces(0):
            if last and not self.is_utf_16:
                self.tally.before.append(ends)
            ends += piece.count(b"\n")
            self.tally.has_quotes = self.tally.has_quotes or b'"' in piece
            last = piece[-1:]
        self.tally.lines = ends + (last not in (b"", b"\n"))

    def tail(self, size: int) -> bytes:
        """The last bytes."""
        return self._read(max(self.size - size, 0), size)

    def beginning(self, size: int) -> bytes:
        """The first bytes, without a byte order mark."""
        if self.is_utf_16:
            return self.head[:size]
        return self._read(0, size).removeprefix(BYTE_ORDER_MARK)

    def parts(self, first: int, width: int, part: int = 0) -> Iterator[Part]:
        """The lines from number `first` on, from its part `part`, in parts of at most `width` bytes."""
        line, number = first, 0
        rest = b""
        for piece in self._from(first):
            data, at = rest + piece, 0
            while True:
                end = data.find(b"\n", at, at + width + 1)
                is_last = end >= 0
                if not is_last and len(data) - at <= width:
                    break
                end = end if is_last else _cut(data, at, width)
                if line > first or number >= part:
                    yield Part(line, number, data[at:end], is_last=is_last)
                at = end + is_last
                line, number = (line + 1, 0) if is_last else (line, number + 1)
            rest = data[at:]
        if (rest or number) and (line > first or number >= part):
            yield Part(line, number, rest, is_last=True)

    def _from(self, first: int) -> Iterator[bytes]:
        """The file from line `first` on, in pieces."""
        before = self.tally.before
        index = max(bisect_left(before, first - 1) - 1, 0)
        to_skip = first - 1 - before[index]
        for piece in self._pieces(index):
            at = 0
            while to_skip and (end := piece.find(b"\n", at) + 1):
                at = end
                to_skip -= 1
            if not to_skip:
                yield piece[at:] if at else piece

    def _pieces(self, index: int) -> Iterator[bytes]:
        """The file in pieces from the piece `index` on; UTF-16 as UTF-8."""
        offset = index * PIECE
        decoder = None
        if self.is_utf_16:
            from codecs import getincrementaldecoder

            decoder = getincrementaldecoder("utf-16")("replace")
        while offset < self.size and (piece := self._read(offset, PIECE)):
            self._patience.check()
            if decoder is not None:
                yield decoder.decode(piece).encode("utf-8", "replace")
            else:
                yield piece if offset else piece.removeprefix(BYTE_ORDER_MARK)
            offset += len(piece)

    def _read(self, offset: int, size: int) -> bytes:
        os.lseek(self._handle, offset, os.SEEK_SET)
        read = b""
        while len(read) < size and (more := os.read(self._handle, size - len(read))):
            read = read + more if read else more
        return read


def _cut(data: bytes, at: int, width: int) -> int:
    """Where to cut at most `width` bytes from `at`, not within a character."""
    cut = at + width
    while cut > at + width - 4 and data[cut] & 0xC0 == 0x80:
        cut -= 1
    return cut
