"""`te cat`: files, whole where they fit; else what each is like as a whole, then as much of it as the budget holds.

The lines are the file's own. One that would pass for a part of the answer has a backslash before it, a line that is
longer than a line of an answer may be comes in several, and what steers a terminal is shown as a character. Binary
files are named, not printed.
"""

from __future__ import annotations

import sys

from llm_do_mcp.te.envelope import Line, Section, TeError, compose
from llm_do_mcp.te.patience import Interrupted, Patience
from llm_do_mcp.te.sniffer import magic, sniff
from llm_do_mcp.te.text import one_line, shown_text
from llm_do_mcp.te.textfile import COUNTED, Part, Tally, TextFile
from llm_do_mcp.te.view import Lines, View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from llm_do_mcp.te.envelope import Frame
    from llm_do_mcp.te.roots import Place, Workspace

WIDTH = 2_000
"""Bytes of a line before it is continued on the next."""
WRITTEN_AT_ONCE = 256 << 10
"""Bytes of files up to which what is left out of an answer is written down at once, to be asked for by its handle."""
_OURS = ("# TE", "[TE] ", "==> ")
_UNLIMITED = sys.maxsize
_GOES_ON = " …"
"""Behind what is told of a text as a whole, where that would be more than it may have."""


class Cat:
    """One `te cat` command.

    Args:
        arguments: What follows `cat`.
        workspace: Where the files are.
        patience: When it has to stop.
        confined: Not needed here: files are only opened through the workspace.
    """

    def __init__(self, arguments: Sequence[str], workspace: Workspace, patience: Patience, *, confined: bool) -> None:
        self.workspace = workspace
        self.patience = patience
        self.notes: list[str] = []
        self.fields: dict[str, int | str] = {}
        self.view = View(arguments, self._exists)
        self.files: list[_Shown] = []

    def run(self, frame: Frame) -> tuple[str, int]:
        """The answer, and the exit code: 0, or 2 where something is wrong.

        Raises:
            TeError: No file can be shown, or the command was cancelled.
        """
        self._open_all()
        fields = self._totals()
        answer = compose("cat", lambda _: fields, self.notes, [self._section(frame.budget)], frame, self._shapes)
        return answer, 2 if "error" in fields else 0

    @property
    def input_size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    def remembered(self) -> tuple[object, Iterable[bytes]] | None:
        """Of large files, which ones they are: they are read again then, if nobody has changed them."""
        return ([file.identity for file in self.files], ()) if self.input_size > WRITTEN_AT_ONCE else None

    def recalled(
        self, facts: list[tuple[int, int, int]], pieces: Iterable[bytes], budget: int
    ) -> Iterator[tuple[int, Iterable[Line]]]:
        """The lines once more.

        Raises:
            TeError: `changed`: a file is not what it was.
        """
        self._open_all()
        if [file.identity for file in self.files] != facts:
            raise TeError("changed", "the file has changed since, and the rest of what it was is gone: te cat it again")
        yield 0, self._section(budget).rest()

    def _section(self, budget: int) -> Section:
        asked_for = any(lines.first != 1 or lines.last is not None for _, lines in self.view.files)

        def total() -> int:
            return sum(file.total for file in self.files)

        return Section(self._lines(budget), total, self._breadcrumb, whole=asked_for)

    def _exists(self, path: str) -> bool:
        try:
            self.workspace.resolve(path)
        except TeError as error:
            return error.code != "path_not_found"
        return True

    def _open_all(self) -> None:
        errors: list[TeError] = []
        for path, lines in self.view.files:
            try:
                self.files.append(_Shown(self._place(path), lines, self.workspace, self.view, self.patience))
            except TeError as error:
                errors.append(error)
            except Interrupted as interruption:
                if interruption.code == "cancelled":
                    raise TeError("cancelled", "it was cancelled") from interruption
                raise TeError(
                    "timeout", f"{one_line(path)} took more than {self.patience.seconds:g} s"
                ) from interruption
            except (OSError, ValueError):
                errors.append(TeError("not_readable", f"{one_line(path)} may not be read, or has vanished"))
        if errors and not self.files:
            raise errors[0]
        if errors:
            self.fields["error"] = errors[0].code
            self.notes.extend(error.message for error in errors[:5])
        for file in self.files:
            self.notes.extend(file.notes)

    def _place(self, path: str) -> Place:
        place = self.workspace.resolve(path)[0]
        if place.size is None:
            raise TeError("not_a_file", f"{one_line(path)} is a folder: te find {one_line(path)} -maxdepth 1 lists it")
        return place

    def _totals(self) -> dict[str, int | str]:
        counts = [file.lines for file in self.files]
        fields: dict[str, int | str] = {}
        if len(self.files) > 1:
            fields["files"] = len(self.files)
        if None not in counts:
            fields["lines"] = sum(count for count in counts if count is not None)
        fields["size"] = sum(file.size for file in self.files)
        kinds = {file.kind for file in self.files}
        if len(kinds) == 1:
            fields["content_type"] = kinds.pop()
        return {**fields, **self.fields}

    def _lines(self, budget: int) -> Iterator[Line]:
        """All lines of all files. Where they may not fit, a first round shows a fair share of each."""
        several = len(self.files) > 1
        width = max(min(WIDTH, budget // 4), 4)
        share = budget // len(self.files) if several and sum(file.size for file in self.files) > budget else _UNLIMITED
        for _ in range(2):
            for index, file in enumerate(self.files):
                if file.ended:
                    continue
                if several:
                    yield Line(file.heading())
                yield from file.more(index, width, share)
            share = _UNLIMITED

    def _shapes(self, room: int) -> list[str]:
        told: list[str] = []
        room -= len(_GOES_ON)
        for file in self.files:
            name = f"{file.name}: " if len(self.files) > 1 else ""
            for number, line in enumerate(file.shape()):
                room -= len(name) + len(line) + len("# TE: \n")
                if room < 0:
                    return [*told[:-1], told[-1] + _GOES_ON] if number else told
                told.append(name + line)
        return told

    def _breadcrumb(self, taken: Sequence[Line], room: int) -> str:
        shown = [0] * len(self.files)
        for line in taken:
            if line.file >= 0:
                shown[line.file] += line.shows
        left = [(file, number) for file, number in zip(self.files, shown, strict=True) if number < file.total]
        if any(file.total == _UNLIMITED for file, _ in left):
            return "# TE: the rest is left out, and its lines are not counted"
        total = sum(file.total - number for file, number in left)
        told = f"# TE: {total} more line{'s' if total > 1 else ''}"
        names = [
            f"{file.name + ' ' if len(self.files) > 1 else ''}{file.first + number}-{file.first + file.total - 1}"
            for file, number in left
        ]
        for most in (len(names), 3, 1):
            more = f", {len(names) - most} more files" if most < len(names) else ""
            longer = f"{told}: {', '.join(names[:most])}{more}"
            if len(longer) <= room:
                return longer
        return told


class _Shown:
    """One file, or a part of it, on its way into the answer. It is open only while it is read."""

    def __init__(self, place: Place, lines: Lines, workspace: Workspace, view: View, patience: Patience) -> None:
        self._place = place
        self._view = view
        self._patience = patience
        self.name = workspace.shown(place.root, place.relative)
        self.notes: list[str] = []
        self.ended = False
        self._tally = Tally()
        file = self._opened()
        try:
            self.size = file.size
            self.identity = file.identity
            self.is_binary = file.is_binary
            self.kind = "binary" if file.is_binary else sniff(place.relative, file.head)
            self.lines = self._count(file)
            if (offset := file.not_utf_8) is not None and not file.is_binary:
                self.notes.append(
                    f"{self.name} is not UTF-8 from byte {offset} on: what cannot be read is shown as \ufffd"
                )
            self.binary_format = magic(file.head) or "unknown format"
        finally:
            file.close()
        self._settle(lines)
        self._next, self._part = self.first, 0

    def _opened(self) -> TextFile:
        return TextFile(self._place.root.open(self._place.relative), self._patience, self._tally)

    def _count(self, file: TextFile) -> int | None:
        if file.is_binary:
            return 0
        file.count()
        if file.tally.lines is None:
            self.notes.append(f"{self.name} is over {COUNTED >> 30} GiB: its lines are not counted")
        return file.tally.lines

    def _settle(self, lines: Lines) -> None:
        """Which lines are wanted, and how many they are; of a binary file one line says what it is."""
        self.first, self.total = max(lines.first, 1), _UNLIMITED
        if self.is_binary:
            self.first, self.total = 1, 1
        elif self.lines is not None:
            if lines.first < 0:
                self.first = max(self.lines + lines.first + 1, 1)
            last = self.lines if lines.last is None else min(lines.last, self.lines)
            self.total = max(last - self.first + 1, 0)
            if self.first > 1 and not self.total:
                self.notes.append(f"{self.name} has {self.lines} lines")
        elif lines.first < 0 or lines.last is not None:
            self.total = _UNLIMITED if lines.last is None else lines.last - self.first + 1
            if lines.first < 0:
                raise TeError("too_large", f"{self.name} is over {COUNTED >> 30} GiB, too large to count from its end")

    def shape(self) -> list[str]:
        """What the whole file is like."""
        if self.is_binary:
            return []
        from llm_do_mcp.te.shape import shape

        try:
            file = self._opened()
        except OSError:
            return []
        try:
            return shape(self.kind, self._place.relative, file)
        finally:
            file.close()

    def heading(self) -> str:
        begun = self._part or self._next > self.first
        return f"==> {self.name}, from line {self._next} <==" if begun else f"==> {self.name} <=="

    def more(self, index: int, width: int, room: int) -> Iterator[Line]:
        """The next lines, until they have `room` characters or are at an end."""
        if self.is_binary:
            self.ended = True
            yield Line(
                f"# TE: {self.name} is binary ({self.binary_format}, {self.size:,} bytes), and not shown", 1, index
            )
            return
        try:
            file = self._opened()
        except OSError:
            self.ended, self.total = True, self._next - self.first
            yield Line(f"# TE: {self.name} is not there any more")
            return
        try:
            for part in file.parts(self._next, width, self._part):
                if part.line >= self.first + self.total:
                    break
                text = self._written(part)
                if len(text) > room:
                    return
                room -= len(text) + 1
                self._next, self._part = (part.line + 1, 0) if part.is_last else (part.line, part.number + 1)
                yield Line(text, int(part.is_last), index)
            self.ended = True
        finally:
            file.close()

    def _written(self, part: Part) -> str:
        view = self._view
        raw = part.text.removesuffix(b"\r") if part.is_last and not view.ends else part.text
        text = shown_text(raw, len(raw) + 1)
        if view.tabs:
            text = text.replace("\t", "^I")
        if part.is_last and view.ends:
            text += "$"
        text = ("…" if part.number else "") + text + ("" if part.is_last else "…")
        if view.numbers and not part.number and not (view.only_full and not raw):
            return f"{part.line}\t{text}"
        return "\\" + text if text.lstrip("\\").startswith(_OURS) else text
