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
from llm_do_mcp.te.writing import parted

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable, Iterator, Sequence

_BINARY = b": binary file matches (found "
_LONGEST_NOTE = 160
_LONGEST_HEADING = 4500
"""Bytes between the end of a body, or of a note behind it, and the NUL behind the next path: that path, at most 4096,
an empty line, and the end of the note."""
_READ = 1 << 16
_READ_FIRST = 1 << 11


class Accounts:
    """The files of one search, in the order in which they came. Those that do not count in the end have no matches.

    Args:
        seen: Tells which of the paths that ripgrep printed may be seen; asked once, at the end. The others are then
            left out of every number. None: all may.
        counted: What is a match among the lines, for output in which not every line is one (context, `-o`).
    """

    def __init__(
        self,
        seen: Callable[[Sequence[bytes]], Sequence[bool]] | None = None,
        counted: re.Pattern[bytes] | None = None,
    ) -> None:
        self.paths: list[bytes] = []
        self.counts = array("Q")
        """Matches by file."""
        self.binary = 0
        """Files that match and are binary; none of their lines is counted or shown."""
        self._binary: set[int] = set()
        """Those of them of which lines had been printed already, and"""
        self._noted: list[bytes] = []
        """the paths of the others."""
        self._seen = seen or (lambda paths: [True] * len(paths))
        self._counted = counted
        self._spool = Spool()
        self._starts = array("Q")
        self._ends = array("Q")
        self._tail = b""
        self._base = 0  # the offset in the output of the tail's first byte
        self._in_body = False

    @property
    def total(self) -> int:
        return sum(self.counts)

    @property
    def files(self) -> int:
        """How many files have matches."""
        return len(self.counts) - self.counts.count(0)

    @property
    def complete(self) -> int:
        """How many files have been read to their end, among them some that may not count in the end."""
        return len(self.paths) - self._in_body

    def close(self) -> None:
        self._spool.close()

    def add(self, path: bytes, count: int) -> None:
        """A file without lines: of the lists (`-l`) and counts (`-c`)."""
        self.paths.append(path)
        self.counts.append(count)

    def add_binary(self, paths: Sequence[bytes]) -> None:
        """Files that match, once all else is told: those of which no line has been told are binary."""
        told = {*self.paths, *self._noted}
        self.binary += sum(self._seen([path for path in paths if path not in told]))

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
                self.counts[-1] += self._count(data, at, last)
                at = last
                break
            self.counts[-1] += self._count(data, at, end + 1)
            self._end(data, at, end + 1)
            at = end + 2
        self._tail = data[at:]
        self._base += at

    def finish(self) -> None:
        """The output is complete."""
        if self._in_body:
            self.counts[-1] += self._count(self._tail, 0, len(self._tail))
            self._end(self._tail, 0, len(self._tail))
        else:
            self._behind_notes(self._tail)
        self._leave_out()

    def read(self, pieces: Iterable[bytes]) -> None:
        """A whole output."""
        for piece in pieces:
            self.feed(piece)
        self.finish()

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
        rest, size = b"", _READ_FIRST  # most often just the first few lines are wanted
        while at < end and (block := self._spool.read(at, min(size, end - at))):
            at, size = at + len(block), min(2 * size, _READ)
            *whole, rest = (rest + block).split(b"\n")
            for line in whole:
                yield place, line
                place += len(line) + 1
        if rest and at == end:
            yield place, rest

    def line_at(self, place: int) -> bytes:
        """The line that starts there in the spool."""
        return self._spool.read(place, _READ).partition(b"\n")[0]

    def printed(self, index: int) -> int:
        """Bytes that were printed for a file."""
        return self._ends[index] - self._starts[index]

    def is_kept(self, index: int) -> bool:
        """Whether all that was printed for a file is in the spool."""
        return self._ends[index] <= self._spool.size

    def last_number(self, index: int) -> int:
        """The number of the last line that was printed for a file and is whole in the spool; 0 if there is none."""
        last = b"0"
        for _, line in self.lines(index):
            last = line if line[:1].isdigit() else last
        return int(parted(last)[0])

    def file_at(self, place: int) -> int:
        """The file to which this place in the spool belongs; -1 where it may not be seen."""
        index = bisect_right(self._starts, place) - 1
        return index if index >= 0 and place < self._ends[index] else -1

    def _begin(self, heading: bytes, start: int) -> None:
        self._in_body = True
        self.paths.append(self._behind_notes(heading))
        self.counts.append(0)
        self._starts.append(start)
        self._ends.append(start)

    def _behind_notes(self, text: bytes) -> bytes:
        """What follows the notes on binary files, which come without a heading of their own; the notes are taken in."""
        at = 0
        while (found := text.find(_BINARY, at)) >= 0:
            self._noted.append(text[at:found].lstrip(b"\n"))
            end = text.find(b")\n", found)
            at = end + 2 if end >= 0 else len(text)  # ripgrep was stopped in the middle of it
        return text[at:].removeprefix(b"\n") if at else text

    def _count(self, data: bytes, start: int, end: int) -> int:
        """The matches in a part of a body."""
        if self._counted is None:
            return data.count(b"\n", start, end)
        return len(self._counted.findall(data[start:end]))

    def _end(self, data: bytes, start: int, end: int) -> None:
        """The body that goes on at `start` ends at `end`: a note there says that the file is binary."""
        self._in_body = False
        self._ends[-1] = self._base + end
        if data.endswith(b")\n", start, end):
            note = b"\n" + self.paths[-1] + _BINARY  # starts with a path where all else starts with a number
            if data.find(note, max(start, end - _LONGEST_NOTE - len(self.paths[-1])), end) >= 0:
                self._binary.add(len(self.paths) - 1)

    def _leave_out(self) -> None:
        """What may not be seen, and what is binary, is no file with matches: nothing of it is counted or shown."""
        seen = self._seen(self.paths)
        self.binary = sum(seen[index] for index in self._binary) + sum(self._seen(self._noted))
        for index in self._binary.union(index for index, is_seen in enumerate(seen) if not is_seen):
            self.counts[index] = 0
            if self._starts:
                self._ends[index] = self._starts[index]


def _end_of_body(data: bytes, start: int) -> int:
    """Where the empty line is that ends the body which starts at `start`; -1 if it is not there yet."""
    nul = data.find(b"\0", start)
    before = nul if nul >= 0 else len(data)
    near = before - _LONGEST_HEADING
    if near <= start or data.find(_BINARY, near, before) >= 0:  # notes of other files may lie between
        return data.find(b"\n\n", start)
    return data.find(b"\n\n", near)
