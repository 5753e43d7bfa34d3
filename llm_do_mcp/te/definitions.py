"""Finds the lines of a search that define the name that was asked for, best first.

A small result is read here, from each place where the name stands. A large one is first thinned out by ripgrep itself,
run over what it printed: that takes a nanosecond a byte, where reading every line here would take a microsecond a line.
"""

from __future__ import annotations

import os
from heapq import nsmallest

from llm_do_mcp.te.languages import LANGUAGES, language_of
from llm_do_mcp.te.spool import READ_APART
from llm_do_mcp.te.symbol import CLOSED, FORM, IN_A_WORD, NO_DEFINITION_AFTER, NO_DEFINITION_BEFORE, WEAK, Symbol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from llm_do_mcp.te.accounts import Accounts
    from llm_do_mcp.te.languages import Language
    from llm_do_mcp.te.ripgrep import Ripgrep, Search

MOST = 400
"""Definitions that are told apart from uses; there are more only of names that say little."""
_MANY = 1_000
"""Hits of a file that is not looked at before it is known how large the result is."""
_CANDIDATES = 5_000
_ENOUGH = 200
_AT_A_TIME = 2 if READ_APART else 1
_LONGEST_INDENT = 4
_OPEN = (b"export", b"pub", b"open")
"""How a line starts that defines for others."""
_LONGER = 10


class Definition:
    """A line that defines: the file, where in the spool the line starts, how strongly, and whether it lies aside."""

    __slots__ = ("_place", "aside", "file", "goes_on", "place", "strength")

    def __init__(
        self, file: int, place: int, strength: int, *, aside: int, text: bytes, path: bytes, number: int
    ) -> None:
        self.file = file
        self.place = place
        self.strength = strength
        self.aside = aside >= 0
        inside = text[: _LONGEST_INDENT + 1].isspace()
        closed = not text.lstrip().startswith(_OPEN)
        self.goes_on = strength == FORM and text.count(b"(") > text.count(b")") and "split" in language_of(path).forms
        self._place = (inside, closed, aside, path.count(b"/"), path, number)

    @property
    def rank(self) -> tuple[object, ...]:
        """Its order among others: the least is the best."""
        return self.strength == WEAK, self.aside, -self.strength, self._place


class Finder:
    """Finds the lines that define the symbol; where none defines it exactly, those that define a longer name.

    Args:
        symbol: What was asked for.
        accounts: What was found.
        ripgrep: To read a large result with.
        kinds: Of which kind of aside each file is; -1 for none.
        numbers: How many numbers stand before each line's text: its own, and its offset where lines are verified.
    """

    def __init__(
        self, symbol: Symbol, accounts: Accounts, ripgrep: Ripgrep, kinds: Sequence[int], *, numbers: int
    ) -> None:
        self._symbol = symbol
        self._accounts = accounts
        self._ripgrep = ripgrep
        self._kinds = kinds
        self._numbers = numbers
        self._looked_at = 0
        self._large: list[int] = []
        """Files that are looked at in the end, when it is known whether this is a small result."""
        self._exact: list[Definition] = []
        self._longer: list[Definition] = []
        self._passed_over: set[int] = set()
        """Files in which the name is a part of longer ones: looked at once more where nothing defines it exactly."""

    def advance(self) -> None:
        """Look at the files that have been read to their end since, other than those that lie aside."""
        accounts, kinds = self._accounts, self._kinds
        if accounts.spool.in_memory:
            small: list[int] = []
            for file in range(self._looked_at, accounts.complete):
                if kinds[file] < 0:
                    (small if accounts.counts[file] < _MANY else self._large).append(file)
            self._looked_at = accounts.complete
            self._judge(_in_memory(self._symbol, accounts, small, self._passed_over))

    def leading(self) -> list[Definition]:
        """Those that come before all use: weaker ones, and those in files aside, only where there is nothing better."""
        accounts, kinds = self._accounts, self._kinds
        # Of what was looked at early, files may have been left out since.
        self._exact, self._longer = (
            [definition for definition in found if accounts.spool.in_memory and accounts.counts[definition.file]]
            for found in (self._exact, self._longer)
        )
        if accounts.spool.in_memory:
            self._judge(_in_memory(self._symbol, accounts, self._large, self._passed_over))
            if all(definition.strength < FORM for definition in self._exact):
                # Only now may something that lies aside come first.
                aside = [file for file, count in enumerate(accounts.counts) if count and kinds[file] >= 0]
                self._judge(_in_memory(self._symbol, accounts, aside, self._passed_over))
            if not self._exact:
                self._longer = [definition for definition in self._longer if definition.file not in self._passed_over]
                self._judge(_in_memory(self._symbol, accounts, sorted(self._passed_over)))
        else:
            self._judge(_on_disk(self._symbol, accounts, self._ripgrep))
        _demote_declarations(self._exact)
        most = MOST if self._exact else _LONGER
        best = nsmallest(most, self._exact or self._longer, key=lambda definition: definition.rank)
        return [
            definition
            for definition in best
            if definition.rank[:2] == best[0].rank[:2] or definition.strength > best[0].strength
        ]

    def _judge(self, lines: Iterable[tuple[int, int, bytes]]) -> None:
        """Keep those that define of these lines: each with its file, and where in the spool it starts."""
        paths = self._accounts.paths
        of_file, language = -1, language_of(b"")
        for file, place, line in lines:
            number, text = _number_and_text(line, self._numbers)
            if not number.isdigit():
                continue  # a line around a hit
            if file != of_file:
                of_file, language = file, language_of(paths[file])
            strength, is_exact = self._symbol.found(text, language)
            if strength:
                kept = self._exact if is_exact else self._longer
                aside, path = self._kinds[file], paths[file]
                kept.append(Definition(file, place, strength, aside=aside, text=text, path=path, number=int(number)))


def _demote_declarations(found: Sequence[Definition]) -> None:
    """Of several functions of one file in C whose parameters go on below, the last is the definition."""
    last: dict[int, Definition] = {}
    for definition in found:
        if definition.goes_on:
            earlier = last.get(definition.file)
            if earlier is not None:
                first, second = sorted((earlier, definition), key=lambda either: either.place)
                first.strength = WEAK
                definition = second
            last[definition.file] = definition


def _in_memory(
    symbol: Symbol, accounts: Accounts, files: Iterable[int], passed_over: set[int] | None = None
) -> Iterator[tuple[int, int, bytes]]:
    """The lines that may define: not those where the name stands in an expression, as it does on most.

    Nor, where `passed_over` is given, those where it is only a part of a longer name: their files are put in there.
    """
    for file in files:
        start, body = accounts.body(file)
        where = body.lower() if symbol.caseless else body
        at = where.find(symbol.name)
        while at >= 0:
            end = at + len(symbol.name)
            before, after = where[at - 1 : at], where[end : end + 1]
            if before in NO_DEFINITION_AFTER or after in NO_DEFINITION_BEFORE or before + after in CLOSED:
                pass
            elif passed_over is not None and (before in IN_A_WORD or after in IN_A_WORD):
                passed_over.add(file)
            else:
                begin = where.rfind(b"\n", 0, at) + 1
                end = where.find(b"\n", at)
                end = end if end >= 0 else len(where)
                yield file, start + begin, body[begin:end]  # and with it whatever stands on the line
            at = where.find(symbol.name, end)


def _on_disk(symbol: Symbol, accounts: Accounts, ripgrep: Ripgrep) -> Iterator[tuple[int, int, bytes]]:
    """The lines that may define; where a keyword introduces the name on many, only those."""
    seen: set[int] = set()
    patterns = _patterns(symbol.name.decode(), set(map(language_of, accounts.paths)))
    for lines in _thinned(patterns, symbol, accounts, ripgrep):
        for line in lines:
            place, _, rest = line.partition(b":")
            path, nul, text = rest.rpartition(b"\0")  # a file's first line comes after its path
            start = int(place) + len(path) + len(nul)
            file = accounts.file_at(start)
            if file >= 0 and start not in seen:
                seen.add(start)
                yield file, start, text
        if len(seen) > _ENOUGH:
            return


def _thinned(
    patterns: Sequence[str], symbol: Symbol, accounts: Accounts, ripgrep: Ripgrep
) -> Iterator[Sequence[bytes]]:
    """What ripgrep finds with each pattern.

    One search for each: together they take twice as long, and the frequent would crowd out the telling. A search of
    one file keeps one processor busy, so the next one runs already while a search is read.
    """
    how = ["--text", "--byte-offset", "--no-line-number", "--no-filename", "--no-heading", "--encoding=none"]
    how.append("--ignore-case" if symbol.caseless else "--case-sensitive")
    how.append(f"--max-count={_CANDIDATES}")
    waiting = list(patterns)
    running: list[Search] = []
    try:
        while waiting or running:
            while waiting and len(running) < _AT_A_TIME:
                handle = accounts.spool.handle()
                try:
                    running.append(ripgrep.start([*how, f"--regexp={waiting.pop(0)}", "--", "-"], reading=handle))
                finally:
                    os.close(handle)
            yield running.pop(0).all().split(b"\n")[:-1]
    finally:
        for search in running:
            search.stop()


def _patterns(name: str, languages: Iterable[Language]) -> list[str]:
    """What a line must have that could define the name, in these languages; first that a keyword introduces it.

    It is more than `symbol.py` accepts, and never less, but for fields and variables with a type, which are among many
    hits not worth a search of their own. The fewer forms there are to look for, the faster it is.
    """
    name = name.replace("$", "\\$")
    words = {word for language in languages for word in language.keywords | language.binders}
    caseless = "(?i)" if any(language is LANGUAGES["sql"] for language in languages) else ""
    forms = {form for language in languages for form in language.forms}
    keywords = "|".join(sorted(word.decode().replace("*", "\\*") for word in words))
    found = []
    if words:
        # Whatever stands before the keyword: so ripgrep looks for the keywords, which are rarer than the name.
        found.append(rf"(?:{caseless}{keywords}|func \([^)]*\))\s+{_BETWEEN}[\"`*&\w.:<>,?\[\]]*{name}")
    for form, pattern in _FORMS.items():
        if not forms.isdisjoint(form.split()):
            found.append(_START + pattern.replace("NAME", name))
    return found


_START = r"(?:^|\x00)(?:\d+:)+"
_BETWEEN = r"(?:<[^()]*>\s+|-\w+\s+|[A-Z]\w*\s+|\[\[\w+\]\]\s+|(?::\w+,\s+)+|\w*<[^()]*>\??\.)?"
"""What may stand between a keyword and the name: type parameters, an option, a macro, other names, a receiver."""
_FORMS = {
    "called split method label": r"\s*(?:[\w*&:<>,\[\]~().?@\"]+\s+)*[\w*&:~.#]*NAME\w*\s*[(<=\[]",
    "assigned receiver method": r"\s*[\w.@$#]*NAME\w*\s*(?:[?!]?[=:]|struct|interface|\(.*\) [\w(*\[<])",
    "method": r"\s*(?:[a-z]+\s+)+#?NAME\w*[?!]?:",
    "equation": r"[\s{,]*NAME\w*'*\s.*(?:::|=)",
    "query": r".*NAME\w*[\"\]]?\s+(?i:as)\s*\(",
    "key": r"[\s\"'\[-]*[\w.\"]*NAME[\"'\]\s]*[:=\]]",
    "heading": r"\s*#+ .*NAME",
    "closing": r"(?:\}[ *]*|\s*typedef .*|[\w *]+\(\*)NAME\w*\s*[;)]",
}
"""What is looked for where a language has one of these forms."""


def _number_and_text(line: bytes, numbers: int) -> tuple[bytes, bytes]:
    number, _, text = line.partition(b":")
    for _ in range(numbers - 1):
        text = text.partition(b":")[2]
    return number, text
