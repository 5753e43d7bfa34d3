"""Changes what ripgrep printed, line by line, before it is counted: where ripgrep does not do as grep does.

Whatever comes behind (totals, ranking, handles) reads the changed output, as if ripgrep had printed it.
"""

from __future__ import annotations

from llm_do_mcp.te.text import encoded, readings
from llm_do_mcp.te.writing import parted, preview

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable, Iterator

    Change = Callable[[bytes], Iterable[bytes]]
    """The lines that take the place of one line of a file."""


def relined(pieces: Iterable[bytes], of_file: Callable[[], Change]) -> Iterator[bytes]:
    """ripgrep's output (with `--heading --null`) with each line of a file changed.

    Args:
        pieces: The output, cut wherever.
        of_file: Called for each file; what it returns is called for each line of it.
    """
    change: Change | None = None  # None between files, where a line belongs to a path
    for lines in whole_lines(pieces):
        written: list[bytes] = []
        for line in lines:
            path, nul, text = line.rpartition(b"\0")
            if nul:
                change = of_file()
            if change is None or not text:
                change = None
                written.append(line)
                continue
            first, *others = change(text) if parted(text)[0] else (text,)  # else it parts groups, or is a note
            written += [path + nul + first, *others]
        yield b"\n".join((*written, b""))


def whole_lines(pieces: Iterable[bytes]) -> Iterator[list[bytes]]:
    """The lines of an output that is cut wherever, as many at a time as have come."""
    begun: list[bytes] = []
    for piece in pieces:
        *whole, rest = piece.split(b"\n")
        if whole:
            whole[0] = b"".join((*begun, whole[0]))
            begun.clear()
            yield whole
        begun.append(rest)
    if rest := b"".join(begun):
        yield [rest]


def at_most(hits: int, *, offsets: bool) -> Callable[[], Change]:
    """Of each file so many lines are hits; what matches among the lines around the last one is one of those.

    Args:
        hits: How many.
        offsets: Whether an offset stands before each text.
    """

    def of_file() -> Change:
        left = hits

        def change(line: bytes) -> Iterable[bytes]:
            nonlocal left
            number, mark, text = parted(line)
            if mark != b":":
                return (line,)
            left -= 1
            return (line if left >= 0 else number + b"-" + (text.replace(b":", b"-", 1) if offsets else text),)

        return change

    return of_file


def occurrences(
    find: Callable[[str], Iterable[tuple[int, int]]],
    held: re.Pattern[bytes] | None,
    *,
    offsets: bool,
    whole: bool,
) -> Callable[[], Change]:
    """Of each line only what is found in it, a line for each; an empty one where that is nothing.

    Args:
        find: Where in a text what is to be shown begins and ends.
        held: As `readings` has it.
        offsets: Whether an offset stands before each text.
        whole: Whether all of a long one is wanted, and not what ripgrep prints of it.
    """

    printed = bytes if whole else preview

    def change(line: bytes) -> Iterable[bytes]:
        number, mark, text = parted(line)
        offset = b""
        if offsets:
            offset, _, text = text.partition(mark)
        for shown in readings(text, held):
            if spans := list(find(shown)):
                return [
                    number + mark + _placed(offset, mark, shown[:start]) + printed(encoded(shown[start:end]))
                    for start, end in spans
                ]
        return [number + mark + (offset + mark if offsets else b"")]

    return lambda: change


def _placed(offset: bytes, mark: bytes, before: str) -> bytes:
    return b"%d%s" % (int(offset) + len(encoded(before)), mark) if offset else b""
