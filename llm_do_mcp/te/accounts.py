"""Accounts for a search while it streams by: one entry a file, never one a match.

ripgrep prints, with `--heading --null`, a path, a NUL, then the file's lines, then an empty line before the next
path. A line starts with its number, so the first empty line is the end of a file, whatever the text or the names
hold: newlines in a name, numbers in a text, markers of ours in either. It is looked for before the next NUL, which is
found at the speed of memory, as are newlines, by which lines are counted.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right

from llm_do_mcp.te.spool import Spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterator

_BINARY = b": binary file matches (found "
_STOPPED = b": WARNING: stopped searching binary file after match (found "
_LONGEST_NOTE = 160
_LONGEST_HEADING = 4500
"""Bytes between the end of a body and the NUL behind the next path: a path, and an empty line or a note before it."""
_READ = 1 << 16


class Accounts:
    """The files of one search that may be seen, in the order in which they came.

    Args:
        seen: Whether a path that ripgrep printed may be seen. Others are left out of every number.
        counted: What is a match among the lines, for output in which not every line is one (context, `-o`).
    """

    def __init__(self, seen: Callable[[bytes], bool], counted: re.Pattern[bytes] | None = None) -> None:
        self.paths: list[bytes] = []
        self.counts = array("Q")
        """Matches by file."""
        self.binary = 0
        """Files that match and are binary; none of their lines is counted or shown."""
        self._seen = seen
        self._counted = counted
        self._spool = Spool()
        self._starts = array("Q")
        self._ends = array("Q")
        self._tail = b""
        self._base = 0  # the offset in the output of the tail's first byte
        self._in_body = False
        self._current = -1  # the index of the file whose body this is; -1 where it may not be seen

    @property
    def total(self) -> int:
        return sum(self.counts)

    def close(self) -> None:
        self._spool.close()

    def add(self, path: bytes, count: int) -> None:
        """A file without lines: of the lists (`-l`) and counts (`-c`)."""
        if self._seen(path):
            self.paths.append(path)
            self.counts.append(count)

    def feed(self, piece: bytes) -> None:
        """The next piece of ripgrep's output."""
        self._spool.write(piece)
        data = self._tail + piece if self._tail else piece
        at = 0
        while True:
            if not self._in_body:
                end = data.find(b"\0", at)
                if end < 0:
                    break
                self._begin(data[at:end], self._base + end + 1)
                at = end + 1
            end = _end_of_body(data, at)
            if end < 0:
                # What follows the last line may be the start of a note or of a heading: it is kept whole.
                last = max(data.rfind(b"\n", at, max(len(data) - _LONGEST_HEADING, at)), at)
                self._count(data, at, last)
                at = last
                break
            self._count(data, at, end + 1)
            self._end(data[max(at, end - _LONGEST_NOTE - self._path_length()) : end + 1], self._base + end + 1)
            at = end + 2
        self._tail = data[at:]
        self._base += at

    def finish(self) -> None:
        """The output is complete."""
        if self._in_body:
            self._count(self._tail, 0, len(self._tail))
            self._end(self._tail, self._base + len(self._tail))
        else:
            self.binary += self._tail.count(_BINARY)
        self._drop_empty()

    @property
    def spool(self) -> Spool:
        """All that was printed."""
        return self._spool

    def body(self, index: int) -> tuple[int, bytes]:
        """What was printed for a file, as one piece, and where in the spool it starts. For small results."""
        start = self._starts[index]
        return start, self._spool.read(start, self._ends[index] - start)

    def lines(self, index: int, start: int = 0) -> Iterator[tuple[int, bytes]]:
        """The lines that were printed for a file, without their ends, as far as the spool has them.

        Args:
            index: The file.
            start: Where in the spool to begin; 0 for the file's first line.

        Yields:
            Where in the spool the line starts, and the line.
        """
        at, end = start or self._starts[index], self._ends[index]
        place = at
        rest = b""
        while at < end and (block := self._spool.read(at, min(_READ, end - at))):
            at += len(block)
            *whole, rest = (rest + block).split(b"\n")
            for line in whole:
                yield place, line
                place += len(line) + 1
        if rest and at == end:
            yield place, rest

    def line_at(self, place: int) -> bytes:
        """The line that starts there in the spool."""
        return self._spool.read(place, _READ).partition(b"\n")[0]

    def is_kept(self, index: int) -> bool:
        """Whether all that was printed for a file is in the spool."""
        return self._ends[index] <= self._spool.size

    def last_number(self, index: int) -> int:
        """The number of the last line that was printed for a file and is whole in the spool; 0 if there is none."""
        last = b"0"
        for _, line in self.lines(index):
            last = line if line[:1].isdigit() else last
        return int(last[: len(last) - len(last.lstrip(b"0123456789"))])

    def file_at(self, place: int) -> int:
        """The file to which this place in the spool belongs; -1 where it may not be seen."""
        index = bisect_right(self._starts, place) - 1
        return index if index >= 0 and place < self._ends[index] else -1

    def _path_length(self) -> int:
        return len(self.paths[self._current]) if self._current >= 0 else 0

    def _begin(self, heading: bytes, start: int) -> None:
        if _BINARY in heading or _STOPPED in heading:  # notes on binary files come without a heading of their own
            note, _, path = heading.rpartition(b"\n\n")
            if _STOPPED in note and self._current >= 0:
                self._mark_binary()
            self.binary += note.count(_BINARY)
            heading = path
        self._in_body = True
        self._current = -1
        if self._seen(heading):
            self._current = len(self.paths)
            self.paths.append(heading)
            self.counts.append(0)
            self._starts.append(start)
            self._ends.append(start)

    def _count(self, data: bytes, start: int, end: int) -> None:
        if self._current < 0:
            return
        if self._counted is None:
            self.counts[self._current] += data.count(b"\n", start, end)
        else:
            self.counts[self._current] += len(self._counted.findall(data[start:end]))

    def _end(self, last: bytes, end: int) -> None:
        """The body ends at `end`; `last` holds its last bytes: a note there says that the file is binary."""
        self._in_body = False
        if self._current < 0:
            return
        self._ends[self._current] = end
        note = b"\n" + self.paths[self._current]  # starts with a path where all else starts with a number
        if note + _STOPPED in last or note + _BINARY in last:
            self._mark_binary()

    def _mark_binary(self) -> None:
        self.binary += 1
        self.counts[self._current] = 0
        self._ends[self._current] = self._starts[self._current]

    def _drop_empty(self) -> None:
        """A file in which nothing counts (it is binary, or all its matches are empty) is no file with matches."""
        if self.counts and not min(self.counts):
            kept = [index for index, count in enumerate(self.counts) if count]
            self.paths = [self.paths[index] for index in kept]
            self.counts = array("Q", [self.counts[index] for index in kept])
            if self._starts:
                self._starts = array("Q", [self._starts[index] for index in kept])
                self._ends = array("Q", [self._ends[index] for index in kept])


def _end_of_body(data: bytes, start: int) -> int:
    """Where the empty line is that ends the body which starts at `start`; -1 if it is not there yet."""
    nul = data.find(b"\0", start)
    before = nul if nul >= 0 else len(data)
    near = before - _LONGEST_HEADING
    if near <= start or data.find(_BINARY, start, before) >= 0:  # notes of other files may lie between
        return data.find(b"\n\n", start)
    return data.find(b"\n\n", near)
