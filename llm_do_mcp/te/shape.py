"""What a text is like as a whole, in a few lines: told where only a part of it can be shown.

JSON shows its shape, a log its severities and the time that it spans, a table its columns and rows, code its outline,
Markdown its headings. Only so much of a file is read for it, and where that is not all of it, it is said.
"""

from __future__ import annotations

from llm_do_mcp.te.text import shown_text
from llm_do_mcp.te.textfile import HEAD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from llm_do_mcp.te.textfile import TextFile

READ = 2 << 20
"""Bytes that are read from each end of a file."""
NAME = 40
MOST_COLUMNS = 50
WIDTH = 240
_LONGEST_ROW = 64 << 10
_MARKS = "\t,;|"
"""What may part the cells of a row."""


def shape(kind: str, path: str, file: TextFile) -> list[str]:
    """Lines of at most about `WIDTH` characters; none where there is nothing to tell."""
    told = _SHAPES.get(kind.partition("/")[0])
    return told(path, file) if told is not None else []


def _json(path: str, file: TextFile) -> list[str]:
    from llm_do_mcp.te.jsonshape import shape_of

    text = file.beginning(READ)
    read = HEAD if file.is_utf_16 else READ
    told, fault = shape_of(text, goes_on=file.size > read)
    partly = "" if file.size <= read else f"in the first {read >> 10:,} KiB"
    return [*_wrapped("shape", [told], partly), *_fault(text, fault)]


def _json_lines(path: str, file: TextFile) -> list[str]:
    from llm_do_mcp.te.jsonshape import shape_of

    text = file.beginning(READ)
    lines = text.split(b"\n")
    first = next((line for line in lines if line.strip()), b"")
    if file.size > READ or not lines[-1]:
        lines.pop()
    broken = [number for number, line in enumerate(lines, 1) if not _is_json(line)]
    filled = sum(map(bool, map(bytes.strip, lines)))
    if len(broken) == filled > 1:
        return [f"broken: none of {filled:,} lines is JSON"]
    others = len(lines) - filled + len(broken)
    about = "about " if others and file.size > READ else ""
    number = "" if file.tally.lines is None else f"{about}{file.tally.lines - others:,} records, "
    told, fault = shape_of(first, goes_on=len(first) == READ)
    summary = [*_wrapped("shape", [f"{number}the first {told}"]), *_fault(first, fault)]
    if broken and broken != [1]:
        summary.append(f"broken: {len(broken):,} of {len(lines):,} lines are not JSON, the first is line {broken[0]:,}")
    return summary


def _is_json(line: bytes) -> bool:
    import json

    try:
        json.loads(line)
    except RecursionError:  # too deep to be looked at, and so not held to be broken
        return True
    except ValueError:
        return not line.strip()
    return True


def _fault(text: bytes, at: int | None) -> list[str]:
    if at is None:
        return []
    if at == len(text):
        return ["broken: it ends before it is complete"]
    before = text[:at]
    column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
    return [f"broken: from line {before.count(10) + 1:,}, column {column:,} on it is not JSON"]


def _log(path: str, file: TextFile) -> list[str]:
    from llm_do_mcp.te.logs import Log
    from llm_do_mcp.te.sniffer import LEVELS

    text = file.beginning(READ)
    if file.size > READ and not file.is_utf_16:
        text += file.tail(min(READ, file.size - READ))
    log = Log(text.split(b"\n"))
    told = [f"{level} {log.levels[level]:,}" for level in map(bytes.decode, LEVELS) if level in log.levels]
    if told and log.others:
        told.append(f"{log.others:,} line{'s' if log.others > 1 else ''} without")
    partly = "" if file.size <= 2 * READ else f"in the first and last {READ >> 20} MiB"
    span = [f"from {log.first.decode()} to {log.last.decode()}"] if log.first else []
    return [*_wrapped("severities", told, partly), *_wrapped("time", span, partly)]


def _table(path: str, file: TextFile) -> list[str]:
    import csv
    import io

    head, comments = _without_comments(file.beginning(READ))
    mark = max(_MARKS, key=_first_row(head).count)
    try:
        rows = csv.reader(io.StringIO(head.decode("utf-8", "replace"), newline=""), delimiter=mark)
        columns = next(rows, [])
        lengths = [len(row) for row in rows if row]
    except csv.Error:
        return []
    counted, others = len(lengths), len(lengths) - lengths.count(len(columns))
    if file.size > READ:
        others -= bool(lengths) and lengths[-1] != len(columns)  # it may not have been read to its end
    if file.size > READ and file.tally.lines is not None:
        counted = file.tally.lines - comments - 1
    about = "about " if file.size > READ and (file.tally.has_quotes or file.tally.lines is None) else ""
    named = [shown_text(column.strip().encode(), NAME) for column in columns[:MOST_COLUMNS]]
    # The first and the last may have no name: an index, and what follows a mark at the end of each row.
    is_header = any(named) and all(named[1:-1]) and not any(map(_is_value, named))
    total, first = (f"{counted:,} rows", "") if is_header else (f"{counted + 1:,} rows in all", ", the first row")
    named.extend([f"{len(columns) - MOST_COLUMNS} more"] if len(columns) > MOST_COLUMNS else [])
    uneven = [f"broken: {others:,} of {len(lengths):,} rows do not have {len(columns)} cells"] if others else []
    return [*_wrapped(f"{about}{total}, {len(columns)} columns{first}", named), *uneven]


def _without_comments(head: bytes) -> tuple[bytes, int]:
    """A table without the lines before it that start with `#` and have no cells, and how many these are."""
    at = comments = 0
    while head.startswith(b"#", at):
        end = head.find(b"\n", at) + 1 or len(head)
        if any(mark.encode() in head[at:end] for mark in _MARKS):
            break
        at, comments = end, comments + 1
    return head[at:], comments


def _first_row(head: bytes) -> str:
    """The first row without what is quoted in it, which may hold line ends and marks of its own."""
    row: list[str] = []
    for part in head[:_LONGEST_ROW].decode("utf-8", "replace").split('"')[::2]:
        before, end, _ = part.partition("\n")
        row.append(before)
        if end:
            break
    return "".join(row)


def _is_value(cell: str) -> bool:
    """Whether it is a number or a date, as a column is seldom called."""
    return cell.lstrip("+-$€£").replace(",", "").replace(".", "").replace("-", "").replace(":", "").isdecimal()


def _code(path: str, file: TextFile) -> list[str]:
    from llm_do_mcp.te.outline import outline

    partly = "" if file.size <= READ else f"of the first {READ >> 20} MiB"
    return _wrapped("outline", outline(path, file.beginning(READ)), partly)


def _wrapped(name: str, items: Sequence[str], more: str = "") -> list[str]:
    """`name: item, item, …` on as many lines as it takes."""
    if not items:
        return []
    lines: list[str] = []
    line = f"{name}{' ' + more if more else ''}: "
    for number, item in enumerate(items):
        piece = item + (", " if number < len(items) - 1 else "")
        if len(line) + len(piece) > WIDTH and not line.endswith(": "):
            lines.append(line.rstrip())
            line = "  "
        line += piece
    return [*lines, line]


_SHAPES: dict[str, Callable[[str, TextFile], list[str]]] = {
    "json": _json,
    "jsonl": _json_lines,
    "log": _log,
    "tabular": _table,
    "code": _code,
    "markdown": _code,
    "yaml": _code,
    "toml": _code,
}
