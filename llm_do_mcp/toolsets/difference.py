"""What a write would change, in words and lines, for the person who decides about it.

What cannot be seen in lines is said: another kind of line ends, a last line without one, an encoding that is not plain
UTF-8. A long difference shows the beginning and the end of each run of lines that go or come, so that both are seen.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from llm_do_mcp.runtime.display import cut
from llm_do_mcp.sandbox.files import Present

UNTERMINATED = "\\ No newline at end of file"
RUN_LINES = 6
"""How many lines are shown at each end of a run, where the whole difference is too long."""
LINE_CHARS = 200

_LINE_END = re.compile(r"\r\n|\r|\n")
_KINDS = {"\r\n": "CRLF", "\r": "CR", "\n": "LF"}
_KEPT = {
    "utf-8-sig": "The file begins with a UTF-8 byte order mark, and keeps it.",
    "utf-16-le": "The file is UTF-16, little endian, and stays so.",
    "utf-16-be": "The file is UTF-16, big endian, and stays so.",
}


def difference(present: Present, content: str, *, most: int) -> str:
    """What a write would change.

    Args:
        present: What it would replace.
        content: What it would write.
        most: Characters from which on the difference is shortened; it may still be somewhat longer.
    """
    kept = [_KEPT[present.encoding]] if present.encoding in _KEPT else []
    if present.problem:
        return "\n".join([*kept, f"(its present content cannot be shown: {present.problem})"])
    content = content.removeprefix("\ufeff") if kept else content  # the mark is there already
    if present.text == content:
        return "\n".join(["It already holds exactly this content.", *kept])
    if present.text is None and not content:
        return "The file would be empty."
    before = present.text or ""
    ends = _line_ends(before, content) if before else ""
    names = ("(no file)" if present.text is None else "now", "then")
    lines = [*difflib.unified_diff(_lines(before), _lines(content), *names, lineterm="")]
    return "\n".join([*kept, *filter(None, (ends,)), *_shown(lines, most)])


def _lines(text: str) -> list[str]:
    """Lines without their ends; the last says so where it has none."""
    lines = _LINE_END.split(text)
    last = lines.pop()
    return [*lines, f"{last}\n{UNTERMINATED}"] if last else lines


def _line_ends(before: str, then: str) -> str:
    """What becomes of line ends, where a difference of lines does not tell."""
    now, new = (Counter(_KINDS[end] for end in _LINE_END.findall(text)) for text in (before, then))
    if _lines(before) == _lines(then):
        return f"Only line ends change: {_counted(now)} now, {_counted(new)} then."
    return f"Line ends change: {_counted(now)} now, {_counted(new)} then." if now and new and {*now} != {*new} else ""


def _counted(kinds: Counter[str]) -> str:
    return " and ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())) or "none"


def _shown(lines: Sequence[str], most: int) -> Iterator[str]:
    """The lines of a difference; where it is too long, the ends of each run."""
    if sum(map(len, lines)) + len(lines) <= most:
        yield from lines
        return
    signs = Counter(line[0] for line in lines[2:])
    yield f"Lines that go: {signs['-']}; that come: {signs['+']}."
    yield from lines[:2]
    for _, run in groupby(lines[2:], key=lambda line: line[0]):
        same = [cut(line, LINE_CHARS) for line in run]
        if len(same) > 2 * RUN_LINES:
            left_out = f"… ({len(same) - 2 * RUN_LINES} more such lines)"
            same[RUN_LINES:-RUN_LINES] = [left_out]
        yield from same
