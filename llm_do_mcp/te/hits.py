"""Ranks the lines of one search into sections: definitions, the code that uses them, and what is beside the matter.

For a pattern that names a symbol its definitions come first. Then come the files that are made for use, those with most
hits first; of each no more than a fair share, so that one file cannot eat the budget, then the rest; last the lines
that only import the name or speak of it. Tests, fixtures, documents, generated and vendored files are a section of
their own. With lines of context around the hits files stay whole; those that define come first.

Every line is yielded once, so that what does not fit into an answer can be served later. Lines are read from the spool
as they are needed; kept in memory are numbers for each file, and a bounded number of places.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from itertools import accumulate, chain, groupby

from llm_do_mcp.te.asides import KINDS, Asides
from llm_do_mcp.te.definitions import Definition, Finder
from llm_do_mcp.te.envelope import Section
from llm_do_mcp.te.languages import language_of
from llm_do_mcp.te.left_out import by_folder
from llm_do_mcp.te.symbol import Symbol, literal_in, name_asked_for
from llm_do_mcp.te.text import encoded
from llm_do_mcp.te.writing import Writer, parted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from llm_do_mcp.te.accounts import Accounts
    from llm_do_mcp.te.envelope import Line
    from llm_do_mcp.te.options import Query
    from llm_do_mcp.te.ripgrep import Ripgrep
    from llm_do_mcp.te.roots import Workspace

USUAL_LINE = 80
FAIR_SHARE = 5
DEFINITIONS_SHARE = 0.25
ASIDES_SHARE = 0.2
MOST_PLACES = 200_000
"""Lines that are kept for later in one round; of a search that has more, they stay where they were found."""
HOT = 0.5
"""The part of all hits that makes a folder the hot zone."""


class Hits:
    """The lines of one search.

    Args:
        query: What was asked.
        patterns: The patterns, as they were typed.
        accounts: What was found.
        workspace: How paths are shown and opened.
        ripgrep: To read a large result with.
        verify: Whether each line is compared with the file before it is shown.
    """

    def __init__(
        self,
        query: Query,
        patterns: list[str],
        accounts: Accounts,
        workspace: Workspace,
        ripgrep: Ripgrep,
        *,
        verify: bool,
    ) -> None:
        self._query = query
        self._accounts = accounts
        self._workspace = workspace
        fixed = query.syntax == "fixed"
        around = encoded(literal_in(patterns, fixed=fixed))
        self._writer = Writer(query, accounts, workspace, around=around, verify=verify)
        self._asides = Asides(workspace.tops)
        self._kinds = array("b")
        self._folders: dict[bytes, int] = {}
        """The folders in which files are, with a `/` behind them, each with its number."""
        self._folder_of = array("L")
        """By file, the number of its folder."""
        name = name_asked_for(patterns, fixed=fixed)
        self._finder: Finder | None = None
        """What finds the definitions, where a symbol was asked for."""
        if name is not None and query.output == "lines" and not query.invert and not query.only_matching:
            symbol = Symbol(name, caseless=bool(query.case))
            self._finder = Finder(symbol, accounts, ripgrep, self._kinds, numbers=2 if verify else 1)
        self._definitions: list[Definition] = []
        self._defined: dict[int, int] = {}
        """By file, the hits that are in the section of definitions."""
        self._lost: dict[int, int] = {}
        """By file, the definitions that are not there any more."""
        self._hot_zone = ""

    @property
    def changed(self) -> int:
        """Lines that were found and are not there any more, or never were inside: neither shown nor counted."""
        return sum(self._writer.changed.values())

    def advance(self) -> None:
        """Look at what has been found so far: as much as can be done while ripgrep goes on searching."""
        folders = self._folders
        for path in self._accounts.paths[len(self._kinds) :]:
            folder, _, name = path.rpartition(b"/")
            self._kinds.append(self._asides.kind(folder, name))
            self._folder_of.append(folders.setdefault(folder + b"/", len(folders)))
        if self._finder is not None:
            self._finder.advance()

    def sections(self, budget: int) -> list[Section]:
        """The parts of the answer, once all has been found; `budget` says how much of a file is a fair share."""
        self.advance()
        if self._finder is not None:
            self._definitions = self._finder.leading()
        defining = [] if self._query.context else self._definitions
        for definition in defining:
            self._defined[definition.file] = self._defined.get(definition.file, 0) + 1
        made: list[int] = []
        aside: list[int] = []
        for index, (kind, count) in enumerate(zip(self._kinds, self._accounts.counts, strict=True)):
            if count:
                (made if kind < 0 else aside).append(index)
        sections = [Section(self._defining(defining), *self._told_of(defining), DEFINITIONS_SHARE)] if defining else []
        own = {definition.place for definition in defining}
        for files, share in ((made, 0.0), (aside, ASIDES_SHARE if made else 0.0)):
            if files:
                part = _Part(files, self._left, self._told_left, self._name_of(files), changes=self._writer.verify)
                sections.append(Section(self._lines(files, own, budget), part.total, part.breadcrumb, share))
        return sections

    def written(self, index: int, printed: Iterable[bytes], *, whole: bool = False) -> Iterator[Line]:
        """Lines of one file as they are shown; `whole`: all of a long line was printed, and is to be shown."""
        file = self._writer.file(index)
        try:
            for line in printed:
                if (shown := file.line(parted(line), whole=whole)) is not None:
                    yield shown
        finally:
            file.close()

    @property
    def cut_lines(self) -> Mapping[int, int]:
        """By file, how many lines have been shown in part."""
        return self._writer.cut_lines

    def cuts(self, printed: bytes) -> bool:
        """Whether a line, all of which was printed, is otherwise shown in part."""
        return self._writer.cuts(self._writer.text_of(parted(printed)))

    def hot_zone(self) -> str:
        """The deepest folder that holds half of all hits, or else the one that holds most, and how much that is."""
        if not self._hot_zone:
            self._hot_zone = self._hottest()
        return self._hot_zone

    def _hottest(self) -> str:
        folders = self._by_folder(enumerate(self._accounts.counts))
        tops = frozenset(top + b"/" for top in self._workspace.tops())
        order = sorted(folders)
        sums = [0, *accumulate(map(folders.__getitem__, order))]
        total = sums[-1]

        def below(zone: bytes) -> int:
            """The hits in a folder and in those below it."""
            after = zone[:-1] + b"0"  # what comes first behind all that begins with this folder and its `/`
            return sums[bisect_left(order, after)] - sums[bisect_left(order, zone)]

        here = self._workspace.working_folder()
        here = here if here and below(here) == total else b""

        def within(zone: bytes) -> int:
            """The same; but of the working folder, where all of them are below it, only its own."""
            return folders[zone] if zone == here else below(zone)

        def over(folder: bytes) -> bytes:
            """The folder above; b"" where that is not searched, or is that working folder, which would tell nothing."""
            above = folder[: folder.rfind(b"/", 0, -1) + 1]
            return b"" if folder in tops or here in (folder, above) else above

        # What holds more than half of all hits holds the middle one.
        zone = order[bisect_right(sums, total // 2) - 1]
        while (held := within(zone)) <= HOT * total and (above := over(zone)):
            zone = above
        if held <= HOT * total:
            largest: dict[bytes, int] = {}
            for folder, count in folders.items():
                while above := over(folder):
                    folder = above
                largest[folder] = largest.get(folder, 0) + count
            zone = min(largest, key=lambda top: (-largest[top], top))
            held = largest[zone]
        return f"{self._shown_folder(zone)} ({100 * held // total}%)"

    # ---- what each section holds ----

    def _told_of(
        self, defining: Sequence[Definition]
    ) -> tuple[Callable[[], int], Callable[[Sequence[Line], int], str]]:
        def total() -> int:
            return len(defining) - sum(self._lost.values())

        def breadcrumb(taken: Sequence[Line], room: int) -> str:
            left = total() - len(taken)
            return f"# TE: {left} more definition{'s' if left > 1 else ''}"

        return total, breadcrumb

    def _left(self) -> list[int]:
        """By file, the hits that are not in the section of definitions."""
        left = self._accounts.counts.tolist()
        for fewer in (self._defined, self._writer.changed):
            for index, number in fewer.items():
                left[index] -= number
        for index, number in self._lost.items():
            left[index] += number
        return left

    def _name_of(self, files: Sequence[int]) -> str:
        """` in tests and docs` for files aside, nothing for others."""
        kinds = [KINDS[kind] for kind in sorted({self._kinds[index] for index in files}) if kind >= 0]
        return f" in {', '.join(kinds[:-1])}{' and ' if kinds[:-1] else ''}{kinds[-1]}" if kinds else ""

    # ---- lines ----

    def _defining(self, definitions: Sequence[Definition]) -> Iterator[Line]:
        for definition in definitions:
            if (line := self._at(definition.file, definition.place)) is not None:
                yield line
            else:
                self._lost[definition.file] = self._lost.get(definition.file, 0) + 1

    def _lines(self, files: Sequence[int], own: set[int], budget: int) -> Iterator[Line]:
        order = self._ordered(files)
        if self._query.output != "lines":
            return chain.from_iterable(map(self._writer.listed, order))
        if self._query.context:
            return chain.from_iterable(map(self._whole, order))
        return self._in_rounds(order, own, self._share(files, budget))

    def _ordered(self, files: Sequence[int]) -> Iterator[int]:
        """Files by kind, first those that define, the best first, then those with most hits."""
        kinds, counts, paths, place = self._kinds, self._accounts.counts, self._accounts.paths, self._workspace.order
        defining: dict[int, int] = {}
        for at, definition in enumerate(self._definitions):
            defining.setdefault(definition.file, at)

        def rank(index: int) -> tuple[int, int, int]:
            return kinds[index], defining.get(index, len(defining)), counts[index]

        # By one number after the other, the last first: on many files faster than by all of them.
        order = sorted(files, key=counts.__getitem__, reverse=True)
        if defining:
            order.sort(key=lambda index: defining.get(index, len(defining)))
        order.sort(key=kinds.__getitem__)
        for _, alike in groupby(order, rank):  # by their paths only where they are shown
            yield from sorted(alike, key=lambda index: place(paths[index]))

    def _share(self, files: Sequence[int], budget: int) -> int:
        """How many hits of one file are shown before those of the next."""
        share = FAIR_SHARE
        if len(files) * USUAL_LINE < budget:  # of each there is one at least
            counts = [self._accounts.counts[index] for index in files]
            most = max(counts)
            while share < most and sum(min(count, share) for count in counts) * USUAL_LINE < budget:
                share *= 2
        return share

    def _whole(self, index: int) -> Iterator[Line]:
        return self.written(index, (printed for _, printed in self._accounts.lines(index)))

    def _at(self, index: int, place: int) -> Line | None:
        """The line at a place of a file."""
        file = self._writer.file(index)
        try:
            return file.line(parted(self._accounts.line_at(place)))
        finally:
            file.close()

    def _in_rounds(self, order: Iterator[int], own: set[int], share: int) -> Iterator[Line]:
        """Of each file its share, then of each file the rest, then what only mentions the name."""
        goes_on, mentions = _Places(), _Places()
        for index in order:
            yield from self._use(index, 0, share, own, mentions, goes_on)
        for index, start in goes_on:
            yield from self._use(index, start, None, own, mentions, goes_on)
        for index, start in mentions:
            if (line := self._at(index, start)) is not None:
                yield line

    def _use(
        self, index: int, start: int, most: int | None, own: set[int], mentions: _Places, goes_on: _Places
    ) -> Iterator[Line]:
        """Lines of one file from a place on that are neither definitions nor mentions; `most` of them."""
        writer = self._writer
        mentioning = language_of(self._accounts.paths[index]).mentions if self._finder is not None else ()
        file = writer.file(index)
        shown = 0
        try:
            for place, printed in self._accounts.lines(index, start):
                if shown == most and goes_on.add(index, place):
                    return
                if place in own:
                    continue
                parts = parted(printed)
                is_mention = mentioning and writer.text_of(parts).lstrip().startswith(mentioning)
                if is_mention and mentions.add(index, place):
                    continue
                if (line := file.line(parts)) is not None:
                    shown += 1
                    yield line
        finally:
            file.close()

    # ---- paths ----

    def _by_folder(self, counts: Iterable[tuple[int, int]]) -> dict[bytes, int]:
        """Numbers of files, added up by the folders that these are in."""
        sums, folder_of = [0] * len(self._folders), self._folder_of
        for index, count in counts:
            sums[folder_of[index]] += count
        return {folder: held for folder, held in zip(self._folders, sums, strict=True) if held}

    def _told_left(self, told: str, left: Mapping[int, int], room: int) -> str:
        """The breadcrumb of what is left of files."""
        return by_folder(told, self._by_folder(left.items()), self._shown_folder, room)

    def _shown_folder(self, folder: bytes) -> str:
        root, relative = self._workspace.locate(folder)
        shown = self._workspace.shown(root, relative)
        return shown if shown.endswith("/") else f"{shown or '.'}/"


class _Places:
    """Places in the spool, each with its file; bounded, since there may be one for every line of a search."""

    def __init__(self) -> None:
        self._files = array("L")
        self._places = array("Q")

    def add(self, file: int, place: int) -> bool:
        """Keep one; False where there are too many."""
        if len(self._files) >= MOST_PLACES:
            return False
        self._files.append(file)
        self._places.append(place)
        return True

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._files, self._places, strict=True)


class _Part:
    """What a section of files holds in all, and what of it is left out.

    Args:
        files: The files.
        left: How many hits of each file, of these and of others, belong here.
        told_left: Writes the breadcrumb, given how it starts, what is left of each file, and the room for it.
        named: What such files are, as in ` in tests and docs`; or nothing.
        changes: Whether `left` may change while lines are read.
    """

    def __init__(
        self,
        files: Sequence[int],
        left: Callable[[], list[int]],
        told_left: Callable[[str, Mapping[int, int], int], str],
        named: str,
        *,
        changes: bool,
    ) -> None:
        self._files = files
        self._left = left
        self._told_left = told_left
        self._named = named
        self._changes = changes
        self._total: int | None = None

    def total(self) -> int:
        if self._changes or self._total is None:
            self._total = sum(map(self._left().__getitem__, self._files))
        return self._total

    def breadcrumb(self, taken: Sequence[Line], room: int) -> str:
        """What is not among the lines taken, by folder as far as `room` characters hold; its numbers add up."""
        left = self._left()
        for line in taken:
            left[line.file] -= line.shows
        files = {index: left[index] for index in self._files if left[index] > 0}
        if not files:
            return "# TE: lines around the last matches are left out"
        told = f"{sum(files.values())} more{self._named} in {len(files)} file{'s' if len(files) > 1 else ''}"
        return self._told_left(told, files, room)
