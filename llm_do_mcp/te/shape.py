"""What a text is like as a whole, in a few lines: told where only a part of it can be shown.

JSON shows its shape, a log its severities and the time that it spans, a table its columns and rows, code its outline,
Markdown its headings. Only so much of a file is read for it, and where that is not all of it, it is said.
"""

from __future__ import annotations

from llm_do_mcp.te.text import shown_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from llm_do_mcp.te.textfile import TextFile

READ = 2 << 20
"""Bytes that are read from each end of a file."""
NAME = 40
MOST_COLUMNS = 50
WIDTH = 240
_LEVEL = rb"(?im)^.{0,100}?\b(trace|debug|info|notice|warn(?:ing)?|error|critical|fatal)\b"
_TIME = (
    rb"\b\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d(?::\d\d)?"
    rb"|\b\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d|(?m:^)<?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d"
)
_WEIGHTS = ("FATAL", "CRITICAL", "ERROR", "WARN", "NOTICE", "INFO", "DEBUG", "TRACE")


def shape(kind: str, path: str, file: TextFile) -> list[str]:
    """Lines of at most about `WIDTH` characters; none where there is nothing to tell."""
    told = _SHAPES.get(kind.partition("/")[0])
    return told(path, file) if told is not None else []


def _json(path: str, file: TextFile) -> list[str]:
    from llm_do_mcp.te.jsonshape import shape_of

    told = shape_of(file.beginning(READ))
    return _wrapped("shape", [told], "" if file.size <= READ else f"in the first {READ >> 20} MiB")


def _json_lines(path: str, file: TextFile) -> list[str]:
    from llm_do_mcp.te.jsonshape import shape_of

    first = file.beginning(READ).partition(b"\n")[0]
    number = "" if file.lines is None else f"{file.lines:,} records, "
    return _wrapped("shape", [f"{number}the first {shape_of(first)}"])


def _log(path: str, file: TextFile) -> list[str]:
    import re

    parts = [file.beginning(READ)]
    if file.size > READ:
        parts.append(file.tail(min(READ, file.size - READ)))
    levels: dict[str, int] = {}
    for part in parts:
        for found in re.findall(_LEVEL, part):
            level = found.decode().upper().removesuffix("ING")
            levels[level] = levels.get(level, 0) + 1
    first = re.search(_TIME, parts[0][: 1 << 16])
    last = re.findall(_TIME, parts[-1][-(1 << 16) :])
    told = [f"{level} {levels[level]:,}" for level in _WEIGHTS if level in levels]
    partly = "" if file.size <= 2 * READ else f"in the first and last {READ >> 20} MiB"
    span = [f"from {_plain(first[0])} to {_plain(last[-1])}"] if first and last else []
    return [*_wrapped("severities", told, partly), *_wrapped("time", span)]


def _table(path: str, file: TextFile) -> list[str]:
    import csv

    head = file.beginning(READ)
    first = head.partition(b"\n")[0]
    mark = max("\t,;|", key=lambda mark: first.count(mark.encode()))
    try:
        rows = csv.reader(head.decode("utf-8", "replace").splitlines(keepends=True), delimiter=mark)
        columns = next(rows, [])
        counted = sum(1 for row in rows if row)
    except csv.Error:
        return []
    if file.size > READ and file.lines is not None:
        counted = file.lines - 1
    about = "about " if file.size > READ and (file.has_quotes or file.lines is None) else ""
    named = [shown_text(column.strip().encode(), NAME) for column in columns[:MOST_COLUMNS]]
    named.extend([f"{len(columns) - MOST_COLUMNS} more"] if len(columns) > MOST_COLUMNS else [])
    return _wrapped(f"{about}{counted:,} rows, {len(columns)} columns", named)


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


def _plain(text: bytes) -> str:
    return shown_text(text.lstrip(b"<"), NAME)


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
