"""The envelope: a meta header, then lines, then a breadcrumb for what was left out; never over the budget.

    # TE_BEGIN_META
    {"v":1,"cmd":"grep","matches":847,"files":37,"truncated":true}
    # TE_END_META
    src/a.py:15: def connect():
    # TE: 846 more in 36 files: src/ 612, tests/ 234

Every command composes its answer here, so that the budget is kept in one place. The header's values are numbers,
booleans and words of our own, and a hit always starts with its place: nothing that was found can forge a marker.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in `typing`, whose import would cost more than this module
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

VERSION = 1
BREADCRUMB_ROOM = 160
"""Characters kept free for the breadcrumb while lines are taken: enough for its numbers and a few folders."""


class TeError(Exception):
    """A command that cannot be answered.

    Args:
        code: One word for programs, shown as the header's `error`.
        message: One line for readers: what was wrong and what is allowed instead.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Line:
    """One line of an answer: its text, how many of the total it shows, and the file (an index) it belongs to."""

    __slots__ = ("file", "shows", "text")

    def __init__(self, text: str, shows: int = 0, file: int = -1) -> None:
        self.text = text
        self.shows = shows
        self.file = file


def header(command: str, fields: dict[str, int | str]) -> str:
    """The meta header with its markers. Strings in `fields` are words of ours, never text that was found."""
    values = [f'"v":{VERSION}', f'"cmd":"{command}"']
    for name, value in fields.items():
        shown = f'"{value}"' if isinstance(value, str) else str(value).lower()
        values.append(f'"{name}":{shown}')
    return f"# TE_BEGIN_META\n{{{','.join(values)}}}\n# TE_END_META\n"


def failure(command: str, error: TeError, budget: int) -> str:
    """The answer to a command that could not be run."""
    return (header(command, {"error": error.code}) + f"[TE] {error.message}\n")[:budget]


def compose(
    command: str,
    fields: dict[str, int | str],
    notes: Iterable[str],
    lines: Sequence[Line],
    total: int,
    budget: int,
    breadcrumb: Callable[[list[Line], int], str],
) -> str:
    """Fill the budget with lines and say what did not fit.

    Args:
        command: The command's name in the header.
        fields: The header's other fields, in order; `truncated` is added here where it is due.
        notes: Lines for the reader (`[TE] …`) that come before the first hit.
        lines: The answer's lines, best first; more than fit into the budget need not be there.
        total: The sum of `Line.shows` if everything were shown.
        budget: Characters the whole answer may have, header and line ends included.
        breadcrumb: Called with the lines taken and the characters left; tells what is not among them.

    Returns:
        The answer: at most `budget` characters, however small the budget is.
    """
    whole, cut = header(command, fields), header(command, {**fields, "truncated": True})
    all_lines = [*(Line(f"[TE] {note}") for note in notes), *lines]
    if sum(line.shows for line in all_lines) == total and len(whole) + _size(all_lines) <= budget:
        return whole + _joined(all_lines)
    room = budget - len(cut) - BREADCRUMB_ROOM
    taken: list[Line] = []
    for line in all_lines:
        room -= len(line.text) + 1
        if room < 0:
            break
        taken.append(line)
    body = _joined(taken)
    left = budget - len(cut) - len(body) - 1
    return (cut + body + breadcrumb(taken, left) + "\n")[:budget]


def _size(lines: Sequence[Line]) -> int:
    return sum(len(line.text) + 1 for line in lines)


def _joined(lines: Sequence[Line]) -> str:
    return "".join(line.text + "\n" for line in lines)
