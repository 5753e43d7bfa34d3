"""`te find`: every path that an expression asks for, what is most likely meant first, with the exact total.

Hidden and ignored entries are left out unless they are asked for (`--hidden`, `--no-ignore`, `-name '.env*'`), as in
`te grep`. First comes what is called just as the expression asks (`-name '*config*'`: `config.py` before
`old_config_test.py`), then what lies least deep, in the order of paths.
"""

from __future__ import annotations

import os
from array import array

from llm_do_mcp.te.envelope import Line, Section, TeError, compose
from llm_do_mcp.te.expression import Expression
from llm_do_mcp.te.left_out import by_folder
from llm_do_mcp.te.patience import Interrupted, Patience
from llm_do_mcp.te.spool import Spool
from llm_do_mcp.te.text import one_line, real_path
from llm_do_mcp.te.walk import Entry, Walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from llm_do_mcp.te.envelope import Frame
    from llm_do_mcp.te.roots import Place, Workspace

_DEPTHS = 6
"""Beyond this, how deep a path lies says nothing about what is meant."""
_LONGEST_PATH = 1 << 16


class Find:
    """One `te find` command.

    Args:
        arguments: What follows `find`.
        workspace: Where it may look.
        patience: When it has to stop.
        confined: Not needed here: a walk never leaves its roots.
    """

    def __init__(self, arguments: Sequence[str], workspace: Workspace, patience: Patience, *, confined: bool) -> None:
        self.workspace = workspace
        self.patience = patience
        self.expression = Expression(arguments, self._time_of, workspace.typed)
        self.found = _Found(workspace)
        self.walk = Walk(workspace, patience, hidden=self.expression.hidden, no_ignore=self.expression.no_ignore)
        self.vanished = 0
        self.notes: list[str] = []
        self.fields: dict[str, int | str] = {}

    def run(self, frame: Frame) -> tuple[str, int]:
        """The answer, and the exit code: 0 something is found, 1 nothing, 2 an error.

        Raises:
            TeError: No path can be walked, or the command was cancelled.
        """
        found = self.found
        try:
            self._walk_all()
            fields: dict[str, int | str] = {"matches": found.total, **self.fields}
            if errors := self.walk.errors + self.vanished:
                fields["errors"] = errors
            if self.walk.left_out and not found.total:
                self.notes.append("what is hidden or ignored was left out (see --hidden, --no-ignore)")
            answer = compose(
                "find",
                lambda _: fields,
                self.notes,
                [Section(found.lines(), lambda: found.total, found.breadcrumb)],
                frame,
            )
        finally:
            found.close()
        return answer, 2 if "error" in fields else int(not found.total)

    @property
    def input_size(self) -> int:
        """Bytes of all paths that were found."""
        return self.found.size

    def _walk_all(self) -> None:
        errors: list[TeError] = []
        started = 0
        try:
            for path in self.expression.paths:
                try:
                    places = self.workspace.resolve(path, itself=not (self.expression.follows or path.endswith("/")))
                except TeError as error:
                    errors.append(error)
                    continue
                started += len(places)
                self.expression.start(path, places[0].relative if places else "")
                virtual = not self.workspace.plain and not real_path(path).strip("./")
                for place in places:
                    self._walk_one(place, path, depth=int(virtual))
        except Interrupted as interruption:
            if interruption.code == "cancelled":
                raise TeError("cancelled", "the search was cancelled") from interruption
            self.fields["error"] = interruption.code
            self.notes.append(f"stopped after {self.patience.seconds:g} s: the total is of what was found until then")
        if errors and not started:
            raise errors[0]
        if errors:
            self.fields["error"] = errors[0].code
            self.notes.extend(error.message for error in errors[:5])

    def _walk_one(self, place: Place, path: str, depth: int) -> None:
        name = place.root.alias if depth else os.path.basename(path.rstrip("/")) or "."
        start = Entry(place.root, None, place.relative, name, place.kind, depth)
        self._take(start)
        if place.kind == "d" and start.enter:
            for entry in self.walk.below(place, depth, self.expression.deepest):
                self._take(entry)

    def _take(self, entry: Entry) -> None:
        try:
            if self.expression.finds(entry):
                self.found.add(entry, self._rank(entry))
        except OSError:
            self.vanished += 1

    def _rank(self, entry: Entry) -> int:
        wanted = self.expression.wanted
        name = entry.name.lower()
        named = not wanted or name in wanted or name.rpartition(".")[0] in wanted
        return min(entry.depth, _DEPTHS) + (0 if named else _DEPTHS + 1)

    def _time_of(self, path: str) -> float:
        """When the file that `-newer` names was modified."""
        places = self.workspace.resolve(path)
        if len(places) != 1:
            raise TeError("not_a_file", f"-newer needs one file or folder, not {one_line(path)}")
        return places[0].root.stat(places[0].relative).st_mtime


class _Found:
    """The paths that were found: all of them, in a spool, with 8 bytes of memory for each."""

    def __init__(self, workspace: Workspace) -> None:
        self.total = 0
        self._workspace = workspace
        self._spool = Spool()
        self._written = bytearray()
        self.size = 0
        """Bytes of all of them."""
        self._starts: dict[int, array[int]] = {}
        self._folders: dict[str, int] = {}

    def add(self, entry: Entry, rank: int) -> None:
        self.total += 1
        shown = self._workspace.shown(entry.root, entry.relative) or "."
        record = shown.encode() + b"\n"
        self._starts.setdefault(rank, array("Q")).append(self.size)
        self.size += len(record)
        self._written += record
        if len(self._written) > 1 << 16:
            self._flush()
        folder = _folder(shown)
        self._folders[folder] = self._folders.get(folder, 0) + 1

    def lines(self) -> Iterator[Line]:
        """All paths, by rank, as far as the spool has them."""
        self._flush()
        for rank in sorted(self._starts):
            for start in self._starts[rank]:
                path = self._spool.read(start, _LONGEST_PATH).partition(b"\n")[0]
                yield Line(path.decode(), 1)

    def breadcrumb(self, taken: Sequence[Line], room: int) -> str:
        """What is not among the lines taken, by folder; its numbers add up. At most `room` characters."""
        left = dict(self._folders)
        for line in taken:
            if line.shows:
                left[_folder(line.text)] -= 1
        return by_folder(f"{sum(left.values())} more", left, str, room)

    def close(self) -> None:
        self._spool.close()

    def _flush(self) -> None:
        self._spool.write(bytes(self._written))
        self._written.clear()


def _folder(shown: str) -> str:
    return shown.rpartition("/")[0] + "/" if "/" in shown else "./"
