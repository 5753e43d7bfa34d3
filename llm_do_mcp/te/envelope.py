"""The envelope: a meta header, then sections of lines, each with a breadcrumb for what was left out of it.

    # TE_BEGIN_META
    {"v":1,"cmd":"grep","matches":847,"files":37,"hot_zone":"src/ (72%)","truncated":true}
    # TE_END_META
    src/a.py:15: def connect():
    src/b.py:7: connection = connect()
    # TE: 611 more in 30 files: src/ 598, bin/ 13
    tests/test_a.py:3: connect()
    # TE: 233 more in tests: tests/ 233

Every command composes its answer here, so that the budget is kept in one place: no answer is longer by a character.
The header is one line of JSON, and a hit always starts with its place: nothing that was found can forge a marker.
"""

from __future__ import annotations

from itertools import chain

from llm_do_mcp.te.text import quoted

TYPE_CHECKING = False  # as in `typing`, whose import would cost more than this module
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    Fields = Mapping[str, int | str]

VERSION = 1
BREADCRUMB_ROOM = 120
"""Characters kept free for each breadcrumb while lines are taken: enough for its numbers and a few folders."""
LEAST_BREADCRUMB = 50
"""Characters that each breadcrumb keeps where lines that are cut have one of their own."""
OVERVIEW_SHARE = 3
"""The part of the room (a third) that an overview may have."""
LEAST_KEPT = 250
"""Characters of the least budget at which what is left out is kept: with fewer there is no room for pieces of it."""


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
    """One line of an answer.

    Args:
        text: As it is shown.
        shows: How many of the total it shows.
        file: The file (an index) it belongs to.
        is_cut: Whether it is only a part of the line that was found.
    """

    __slots__ = ("file", "is_cut", "shows", "text")

    def __init__(self, text: str, shows: int = 0, file: int = -1, *, is_cut: bool = False) -> None:
        self.text = text
        self.shows = shows
        self.file = file
        self.is_cut = is_cut


def header(command: str, fields: Fields) -> str:
    """The meta header with its markers, between which there is one line."""
    return f"# TE_BEGIN_META\n{_meta(command, fields)}\n# TE_END_META\n"


def _meta(command: str, fields: Fields) -> str:
    values = [f'"v":{VERSION}', f'"cmd":"{command}"']
    for name, value in fields.items():
        values.append(f'"{name}":{quoted(value) if isinstance(value, str) else str(value).lower()}')
    return f"{{{','.join(values)}}}"


class Envelope:
    """How an answer is written: the header between its markers, notes, lines."""

    def size(self, line: str) -> int:
        """Characters that a line takes."""
        return len(line) + 1

    def answer(self, command: str, fields: Fields, notes: Sequence[str], lines: Sequence[str]) -> str:
        """The whole answer."""
        return header(command, fields) + "".join(f"[TE] {note}\n" for note in notes) + "".join(map(_ended, lines))

    def text(self, command: str, fields: Fields, text: str) -> str:
        """An answer that is a piece of a text: its lines, the last of which may not be at its end."""
        return header(command, fields) + text

    def within(self, answer: str, budget: int) -> str:
        """An answer that has become too long, since not even its header fits."""
        return answer[:budget]


class Bare(Envelope):
    """Only the lines and what is to be said about them, as the command that was asked for might print them."""

    def answer(self, command: str, fields: Fields, notes: Sequence[str], lines: Sequence[str]) -> str:
        return "".join(f"[TE] {note}\n" for note in notes) + "".join(map(_ended, lines))


class Json(Envelope):
    """One JSON object: `meta`, `notes` where there are any, and `lines`, breadcrumbs among them."""

    def size(self, line: str) -> int:
        return len(quoted(line)) + 2

    def answer(self, command: str, fields: Fields, notes: Sequence[str], lines: Sequence[str]) -> str:
        told = f'"notes":[{",".join(map(quoted, notes))}],\n' if notes else ""
        return f'{{"meta":{_meta(command, fields)},\n{told}"lines":[{_COMMA.join(map(quoted, lines))}]}}\n'

    def text(self, command: str, fields: Fields, text: str) -> str:
        return self.answer(command, fields, (), text.removesuffix("\n").split("\n"))

    def within(self, answer: str, budget: int) -> str:
        return answer if len(answer) <= budget else "{}\n"[:budget]


_COMMA = ",\n"


def text_in_json(text: str) -> int:
    """Characters that a shown text takes as `lines`, where each of its line ends becomes four."""
    return len(text) + 2 + 3 * text.count("\n") + sum(map(text.count, ('"', "\\", "\t")))


def _ended(line: str) -> str:
    return line + "\n"


class Style:
    """What of an answer is a matter of taste; the coach tries several.

    Args:
        preview: Lines of each section at most, or None for as many as fit.
        hot_zone: Whether the header says where the results concentrate.
        crumb_room: Characters kept free for each breadcrumb while lines are taken: how much it may tell.
    """

    __slots__ = ("crumb_room", "hot_zone", "preview")

    def __init__(self, preview: int | None = None, *, hot_zone: bool = True, crumb_room: int = BREADCRUMB_ROOM) -> None:
        self.preview = preview
        self.hot_zone = hot_zone
        self.crumb_room = crumb_room


class Frame:
    """What an answer has to fit into.

    Args:
        budget: Characters the whole answer may have, header and line ends included.
        form: How it is written.
        style: How much of what it tells.
        keep: Keeps the lines that the sections have not taken, and those that are cut, and returns the handle by which
            they are asked for, or "" where they could not be kept. None: nothing is kept.
    """

    __slots__ = ("budget", "form", "keep", "not_kept", "style", "truncated")

    def __init__(
        self,
        budget: int,
        form: Envelope | None = None,
        style: Style | None = None,
        keep: Callable[[Sequence[Section]], str] | None = None,
    ) -> None:
        self.budget = budget
        self.form = form or Envelope()
        self.style = style or Style()
        self.keep = keep
        self.truncated = False
        """Whether something was left out of the answer."""
        self.not_kept = ""
        """Why what was left out could not be kept."""


def failure(command: str, error: TeError, frame: Frame) -> str:
    """The answer to a command that could not be run."""
    answer = frame.form.answer(command, {"error": error.code}, [error.message], [])
    return frame.form.within(answer, frame.budget)


class Section:
    """A part of an answer that ends in a breadcrumb where something was left out of it.

    Args:
        lines: All its lines, best first. They are read one by one, and only as far as they are needed.
        total: The sum of `Line.shows` if everything were shown; asked for once lines have been read.
        breadcrumb: Called with the lines taken and the characters left; tells what is not among them.
        share: The part of the answer that is kept for it while other sections have more than fits. One section has
            no share of its own (0): the first that has none takes what the others leave.
        whole: Whether just these lines were asked for, so that no preview is made of them.
    """

    def __init__(
        self,
        lines: Iterable[Line],
        total: Callable[[], int],
        breadcrumb: Callable[[Sequence[Line], int], str],
        share: float = 0.0,
        *,
        whole: bool = False,
    ) -> None:
        self.total = total
        self.share = share
        self.taken: list[Line] = []
        self._breadcrumb = breadcrumb
        self._rest = iter(lines)
        self._whole = whole
        self._most: int | None = None
        self._size_of = Envelope().size
        self._size = 0

    @property
    def size(self) -> int:
        """Characters of the lines taken."""
        return self._size

    def settle(self, form: Envelope, style: Style) -> None:
        """How its lines will be written, and how many at most; before any are taken."""
        self._size_of = form.size
        self._most = None if self._whole else style.preview

    def fill(self, room: int) -> bool:
        """Take lines while all that were taken fit into `room` characters; whether all lines are taken."""
        for line in self._rest:
            size = self._size_of(line.text)
            if self._size + size > room or len(self.taken) == self._most:
                self._rest = chain((line,), self._rest)
                return False
            self.taken.append(line)
            self._size += size
        return True

    def give_back(self) -> None:
        """Take none."""
        self._rest = chain(self.taken, self._rest)
        self.taken = []
        self._size = 0

    def rest(self) -> Iterator[Line]:
        """The lines that were not taken."""
        return iter(self._rest)

    def is_whole(self) -> bool:
        """Whether the lines taken show everything there is."""
        return sum(line.shows for line in self.taken) == self.total()

    def crumb(self, room: int) -> str:
        """The breadcrumb; or only how much it is, or "", where it does not fit into `room` with its line end."""
        over = self._size_of("")
        told = self._breadcrumb(self.taken, room - over)
        if self._size_of(told) > room:  # it holds what is escaped
            told = self._breadcrumb(self.taken, room - over - (self._size_of(told) - over - len(told)))
        if self._size_of(told) > room:
            number, more, _ = told.partition(" more")
            told = number + more if more else ""
        return told if told and self._size_of(told) <= room else ""


def compose(
    command: str,
    fields: Callable[[bool], Fields],
    notes: Iterable[str],
    sections: Sequence[Section],
    frame: Frame,
    overview: Callable[[int], Iterable[str]] | None = None,
) -> str:
    """Fill the budget with lines and say what did not fit.

    Args:
        command: The command's name in the header.
        fields: The header's other fields, in order, given whether lines are left out (`truncated` and `handle` are
            added here); asked for once lines have been read, which may change them.
        notes: Lines for the reader (`[TE] …`) that come before the first hit.
        sections: The answer's parts, in the order in which they are shown.
        frame: What the answer has to fit into.
        overview: Called, where lines are left out, with the characters it may have: lines that tell what the whole
            is like, shown before the first section.

    Returns:
        The answer: at most `frame.budget` characters, however small that is.
    """
    form, style, budget, notes = frame.form, frame.style, frame.budget, tuple(notes)
    for section in sections:
        section.settle(form, style)
    if _fits(sections, budget) and not _cut(sections) and all(section.is_whole() for section in sections):
        answer = form.answer(command, fields(False), notes, _texts(sections))
        if len(answer) <= budget:
            return answer
    frame.truncated = True
    for section in sections:
        section.give_back()

    def opening(handle: str) -> Fields:
        told = {name: value for name, value in fields(True).items() if style.hot_zone or name != "hot_zone"}
        kept = {"handle": handle} if handle else {"not_kept": frame.not_kept} if frame.not_kept else {}
        cut = _cut(sections)
        return {**told, "truncated": True, **kept, **({"cut_lines": cut} if cut else {})}

    room = budget - len(form.answer(command, opening(_A_HANDLE if frame.keep else ""), notes, []))
    lines = [] if overview is None else [f"# TE: {line}" for line in overview(room // OVERVIEW_SHARE)]
    _share_out(sections, room - sum(map(form.size, lines)), style.crumb_room)
    ended = [section.fill(section.size) and section.is_whole() for section in sections]
    cut = _cut(sections)
    handle = frame.keep(sections) if frame.keep and (cut or not all(ended)) else ""
    begun = opening(handle)  # keeping lines has read them
    left = budget - len(form.answer(command, begun, notes, lines)) - sum(section.size for section in sections)
    of_cut = cut_lines(cut, handle=handle) if cut else ""
    if of_cut and form.size(of_cut) + LEAST_BREADCRUMB * ended.count(False) <= left:
        left -= form.size(of_cut)
    else:
        of_cut = ""  # the header tells how many all the same
    for number, section in enumerate(sections):
        lines += [line.text for line in section.taken]
        crumb = "" if ended[number] else section.crumb(left // ended[number:].count(False))
        if crumb:
            lines.append(crumb)
            left -= form.size(crumb)
    lines += [of_cut] if of_cut else []
    answer = form.answer(command, begun, notes, lines)
    while len(answer) > budget and lines:
        lines.pop()
        answer = form.answer(command, begun, notes, lines)
    return form.within(answer, budget)


_A_HANDLE = "res_0123456789abcdef"


def _fits(sections: Iterable[Section], room: int) -> bool:
    """Whether all lines fit; they are taken as far as they do."""
    for section in sections:
        if not section.fill(room):
            return False
        room -= section.size
    return True


def _share_out(sections: Sequence[Section], room: int, crumb_room: int) -> None:
    """Fill the sections: each up to its share, then the one without a share, then with what is left in order."""
    room -= crumb_room * sum(section.total() > 0 for section in sections)
    for section in sections:
        section.fill(int(room * section.share))
    for section in sorted(sections, key=lambda section: section.share > 0):
        section.fill(section.size + room - sum(other.size for other in sections))


def cut_lines(number: int, *, handle: str = "") -> str:
    """The breadcrumb of lines that are shown in part; all of them are whole behind the handle, where there is one."""
    told = f"# TE: {number} long line{'s' if number > 1 else ''} cut: te cat -n FILE:LINE shows one whole"
    return f"{told}, the handle all" if handle else told


def _cut(sections: Iterable[Section]) -> int:
    """How many of the lines taken are shown in part."""
    return sum(line.is_cut for section in sections for line in section.taken)


def _texts(sections: Iterable[Section]) -> list[str]:
    return [line.text for section in sections for line in section.taken]
