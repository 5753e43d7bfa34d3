"""Chooses and writes the lines of an answer, and the breadcrumb that says what was left out.

Files come in the order of their paths. So that one file cannot eat the budget, a first round shows of each file no
more than a fair share; where room is left, a second round shows the rest. Ranking would replace `_rounds`.

Where the kernel cannot confine ripgrep, nothing it printed is trusted: a line is shown only if the same bytes stand
at the same place in the file as our own handles reach it.
"""

from __future__ import annotations

import os
from heapq import nlargest, nsmallest

from llm_do_mcp.te.envelope import Line
from llm_do_mcp.te.text import shown_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from llm_do_mcp.te.accounts import Accounts
    from llm_do_mcp.te.options import Query
    from llm_do_mcp.te.roots import Root, Workspace

COLUMNS = 512
"""Bytes of a line that ripgrep prints."""
LINE_CHARACTERS = 300
USUAL_LINE = 80
SHORTEST_LINE = 6
FAIR_SHARE = 5
_CUT = b" [... "
_DIGITS = b"0123456789"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Hits:
    """The lines of one search.

    Args:
        query: What was asked.
        accounts: What was found.
        workspace: How paths are shown and opened.
        verify: Whether each line is compared with the file before it is shown.
    """

    def __init__(self, query: Query, accounts: Accounts, workspace: Workspace, *, verify: bool) -> None:
        self._query = query
        self._accounts = accounts
        self._workspace = workspace
        self._verify = verify
        self._changed: dict[int, int] = {}

    @property
    def changed(self) -> int:
        """Lines that were found and are not there any more, or never were inside: neither shown nor counted."""
        return sum(self._changed.values())

    def lines(self, budget: int) -> list[Line]:
        """The first lines, at least as many as fit into `budget` characters."""
        order = self._order(budget)
        taken: list[Line] = []
        used = 0
        for line in self._all(order, budget):
            taken.append(line)
            used += len(line.text) + 1
            if used > budget:
                return taken
        if not self._query.context:  # all fits: what the second round brought belongs beside the rest of its file
            rank = {index: position for position, index in enumerate(order)}
            taken.sort(key=lambda line: rank[line.file])
        return taken

    def breadcrumb(self, taken: list[Line], room: int) -> str:
        """What is not among the lines taken, by folder; its numbers add up. At most `room` characters."""
        shown: dict[int, int] = {}
        for line in taken:
            shown[line.file] = shown.get(line.file, 0) + line.shows
        folders: dict[bytes, int] = {}
        files = 0
        for index, count in enumerate(self._accounts.counts):
            left = count - shown.get(index, 0) - self._changed.get(index, 0)
            if left > 0:
                files += 1
                folder = self._accounts.paths[index].rpartition(b"/")[0]
                folders[folder] = folders.get(folder, 0) + left
        total = sum(folders.values())
        if not total:
            return "# TE: lines around the last matches are left out"[: max(room, 0)]
        told = f"# TE: {total} more in {files} file{'s' if files > 1 else ''}"
        for number in (3, 2, 1):
            largest = nlargest(number, folders.items(), key=lambda item: item[1])
            named = [f"{self._folder(folder)} {count}" for folder, count in largest]
            elsewhere = total - sum(count for _, count in largest)
            longer = f"{told}: {', '.join([*named, *([f'{elsewhere} elsewhere'] if elsewhere else [])])}"
            if len(longer) <= room:
                return longer
        return told[: max(room, 0)]

    def _folder(self, folder: bytes) -> str:
        root, relative = self._workspace.locate(folder + b"/")
        return self._workspace.shown(root, relative) if relative or root.alias else "./"

    def _order(self, budget: int) -> list[int]:
        """The files in the order in which they are shown, as many as there may be room for."""
        paths, place = self._accounts.paths, self._workspace.order
        return nsmallest(budget // SHORTEST_LINE + 1, range(len(paths)), key=lambda index: place(paths[index]))

    def _all(self, order: list[int], budget: int) -> Iterator[Line]:
        if self._query.output != "lines":
            for index in order:
                yield from self._listed(index)
            return
        for index, first, last in self._rounds(order, budget):
            yield from self._of_file(index, first, last)

    def _rounds(self, order: list[int], budget: int) -> Iterator[tuple[int, int, int | None]]:
        """Which hits to show in turn: (file, from, to)."""
        if self._query.context:
            yield from ((index, 0, None) for index in order)
            return
        counts = [self._accounts.counts[index] for index in order]
        share, most = FAIR_SHARE, max(counts, default=0)
        while share < most and sum(min(count, share) for count in counts) * USUAL_LINE < budget:
            share *= 2
        yield from ((index, 0, share) for index in order)
        yield from ((index, share, None) for index in order if self._accounts.counts[index] > share)

    def _listed(self, index: int) -> Iterator[Line]:
        located = self._workspace.locate(self._accounts.paths[index])
        if self._verify and not _opens(*located):
            self._changed[index] = self._accounts.counts[index]
            return
        name = self._workspace.shown(*located)
        count = self._accounts.counts[index]
        yield Line(f"{name}:{count}" if self._query.output == "counts" else name, count, index)

    def _of_file(self, index: int, first: int, last: int | None) -> Iterator[Line]:
        located = self._workspace.locate(self._accounts.paths[index])
        name = "" if self._query.no_filename else self._workspace.shown(*located)
        original = _Original(*located) if self._verify else None
        hit = 0
        try:
            for printed in self._accounts.lines(index):
                number, separator, text = _parted(printed)
                offset = b""
                if original is not None and number:
                    offset, _, text = text.partition(separator)
                if self._query.only_matching and not text:
                    continue  # an empty match, which grep does not print
                is_hit = separator == b":"
                hit += is_hit
                if last is not None and hit > last:
                    break
                if first and hit <= first:
                    continue
                if not number:
                    yield Line("--")
                    continue
                long = len(text) >= COLUMNS and _CUT in text[-64:]
                if long:
                    text = text[: text.rindex(_CUT)]
                if original is not None and not original.has(int(offset), text):
                    self._changed[index] = self._changed.get(index, 0) + is_hit
                    continue
                yield Line(self._written(name, number, separator.decode(), text, long=long), int(is_hit), index)
        finally:
            if original is not None:
                original.close()

    def _written(self, name: str, number: bytes, separator: str, text: bytes, *, long: bool) -> str:
        text = text.removeprefix(_BYTE_ORDER_MARK)
        shown = shown_text(text.rstrip() if self._query.context else text.strip(), LINE_CHARACTERS)
        place = f"{name}{separator}{number.decode()}{separator}" if name else f"{number.decode()}{separator}"
        return f"{place} {shown}{'…' if long and not shown.endswith('…') else ''}"


class _Original:
    """A file as our handles reach it, to compare what ripgrep printed with what is there."""

    def __init__(self, root: Root, relative: str) -> None:
        try:
            self._handle: int | None = root.open(relative)
        except (OSError, ValueError):
            self._handle = None

    def has(self, offset: int, text: bytes) -> bool:
        if self._handle is None:
            return False
        os.lseek(self._handle, offset, os.SEEK_SET)
        return os.read(self._handle, len(text)) == text if text else True

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)


def _opens(root: Root, relative: str) -> bool:
    try:
        os.close(root.open(relative))
    except (OSError, ValueError):
        return False
    return True


def _parted(printed: bytes) -> tuple[bytes, bytes, bytes]:
    """`12:text` (a hit) or `12-text` (context) in its parts; the number is empty for a line between groups."""
    text = printed.lstrip(_DIGITS)
    number = printed[: len(printed) - len(text)]
    return number, text[:1], text[1:]
