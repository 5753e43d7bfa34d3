"""Finds the lines of a search that define the name that was asked for, best first.

A small result is read here, from each place where the name stands. A large one is first thinned out by ripgrep itself,
run over what it printed: that takes a nanosecond a byte, where reading every line here would take a microsecond a line.
"""

from __future__ import annotations

from heapq import nsmallest

from llm_do_mcp.te.languages import language_of
from llm_do_mcp.te.symbol import CLOSED, FORM, NO_DEFINITION_AFTER, NO_DEFINITION_BEFORE, WEAK, Symbol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from llm_do_mcp.te.accounts import Accounts
    from llm_do_mcp.te.languages import Language
    from llm_do_mcp.te.ripgrep import Ripgrep

MOST = 400
"""Definitions that are told apart from uses; there are more only of names that say little."""
_CANDIDATES = 5_000
_ENOUGH = 200
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


def find(
    symbol: Symbol,
    accounts: Accounts,
    ripgrep: Ripgrep,
    kind: Callable[[int], int],
    *,
    numbers: int,
) -> list[Definition]:
    """The lines that define the symbol; where none defines it exactly, those that define a longer name.

    Args:
        symbol: What was asked for.
        accounts: What was found.
        ripgrep: To read a large result with.
        kind: Of which kind of aside a file is; -1 for none.
        numbers: How many numbers stand before each line's text: its own, and its offset where lines are verified.
    """
    found = _Found(symbol, accounts, kind, numbers)
    if accounts.spool.in_memory:
        files = range(len(accounts.paths))
        found.judge(_in_memory(symbol, accounts, [file for file in files if kind(file) < 0]))
        if all(definition.strength < FORM for definition in found.exact):  # else nothing that lies aside comes first
            found.judge(_in_memory(symbol, accounts, [file for file in files if kind(file) >= 0]))
    else:
        found.judge(_on_disk(symbol, accounts, ripgrep))
    return found.leading()


class _Found:
    """What has been found to define: the very name, and longer ones."""

    def __init__(self, symbol: Symbol, accounts: Accounts, kind: Callable[[int], int], numbers: int) -> None:
        self.exact: list[Definition] = []
        self.longer: list[Definition] = []
        self._symbol = symbol
        self._paths = accounts.paths
        self._kind = kind
        self._numbers = numbers

    def judge(self, lines: Iterable[tuple[int, int, bytes]]) -> None:
        """Keep those that define of these lines: each with its file, and where in the spool it starts."""
        of_file, language = -1, language_of(b"")
        for file, place, line in lines:
            number, text = _number_and_text(line, self._numbers)
            if not number.isdigit():
                continue  # a line around a hit
            if file != of_file:
                of_file, language = file, language_of(self._paths[file])
            strength, is_exact = self._symbol.found(text, language)
            if strength:
                kept = self.exact if is_exact else self.longer
                aside, path = self._kind(file), self._paths[file]
                kept.append(Definition(file, place, strength, aside=aside, text=text, path=path, number=int(number)))

    def leading(self) -> list[Definition]:
        """Those that come before all use: weaker ones, and those in files aside, only where there is nothing better."""
        _demote_declarations(self.exact)
        most = MOST if self.exact else _LONGER
        best = nsmallest(most, self.exact or self.longer, key=lambda definition: definition.rank)
        return [
            definition
            for definition in best
            if definition.rank[:2] == best[0].rank[:2] or definition.strength > best[0].strength
        ]


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


def _in_memory(symbol: Symbol, accounts: Accounts, files: Iterable[int]) -> Iterator[tuple[int, int, bytes]]:
    """The lines that may define: not those where the name stands in an expression, as it does on most."""
    for file in files:
        start, body = accounts.body(file)
        where = body.lower() if symbol.caseless else body
        at = where.find(symbol.name)
        while at >= 0:
            end = at + len(symbol.name)
            before, after = where[at - 1 : at], where[end : end + 1]
            if not (before in NO_DEFINITION_AFTER or after in NO_DEFINITION_BEFORE or before + after in CLOSED):
                begin = where.rfind(b"\n", 0, at) + 1
                end = where.find(b"\n", at)
                end = end if end >= 0 else len(where)
                yield file, start + begin, body[begin:end]
            at = where.find(symbol.name, end)


def _on_disk(symbol: Symbol, accounts: Accounts, ripgrep: Ripgrep) -> Iterator[tuple[int, int, bytes]]:
    """The lines that may define; where a keyword introduces the name on many, only those.

    One search for each pattern: together they take twice as long, and the frequent would crowd out the telling.
    """
    seen: set[int] = set()
    for pattern in _patterns(symbol.name.decode(), set(map(language_of, accounts.paths))):
        for line in _thinned(pattern, symbol, accounts, ripgrep):
            place, _, rest = line.partition(b":")
            path, nul, text = rest.rpartition(b"\0")  # a file's first line comes after its path
            start = int(place) + len(path) + len(nul)
            file = accounts.file_at(start)
            if file >= 0 and start not in seen:
                seen.add(start)
                yield file, start, text
        if len(seen) > _ENOUGH:
            return


def _thinned(pattern: str, symbol: Symbol, accounts: Accounts, ripgrep: Ripgrep) -> list[bytes]:
    how = ["--text", "--byte-offset", "--no-line-number", "--no-filename", "--no-heading", "--encoding=none"]
    how.append("--ignore-case" if symbol.caseless else "--case-sensitive")
    how += [f"--max-count={_CANDIDATES}", f"--regexp={pattern}"]
    _, printed = ripgrep.output([*how, "--", "-"], reading=accounts.spool.handle())
    return printed.split(b"\n")[:-1]


def _patterns(name: str, languages: Iterable[Language]) -> list[str]:
    """What a line must have that could define the name, in these languages; first that a keyword introduces it.

    It is more than `symbol.py` accepts, and never less. The fewer forms there are to look for, the faster it is.
    """
    name = name.replace("$", "\\$")
    words = {word for language in languages for word in language.keywords | language.binders}
    forms = {form for language in languages for form in language.forms}
    keywords = "|".join(sorted(word.decode().replace("*", "\\*") for word in words))
    found = []
    if words:
        before = rf"\s*(?:\S+\s+){{0,6}}(?:(?i:{keywords})|func \([^)]*\))\s+(?:<\S+>\s+)?[\"`*&\w.:<>,?]*"
        found.append(f"{_START}{before}{name}")
    for form, pattern in _FORMS.items():
        if not forms.isdisjoint(form.split()):
            found.append(_START + pattern.replace("NAME", name))
    return found


_START = r"(?:^|\x00)(?:\d+:)+"
_FORMS = {
    "called split method label": r"\s*(?:[\w*&:<>,\[\]~().]+\s+)*[\w*&:~.]*NAME\w*\s*[(<=\[]",
    "assigned receiver method": r"\s*[\w.]*NAME\w*\s*(?:=|:|struct|interface)",
    "method": r"\s*(?:[a-z]+\s+)+NAME\w*:",
    "key": r"[\s\"'\[-]*[\w.\"]*NAME[\"'\]\s]*[:=\]]",
    "heading": r"\s*#+ .*NAME",
    "closing": r"(?:\}[ *]*|\s*typedef .*)NAME\w*\s*[;)]",
}
"""What is looked for where a language has one of these forms."""


def _number_and_text(line: bytes, numbers: int) -> tuple[bytes, bytes]:
    number, _, text = line.partition(b":")
    for _ in range(numbers - 1):
        text = text.partition(b":")[2]
    return number, text
