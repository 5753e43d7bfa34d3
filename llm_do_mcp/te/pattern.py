"""POSIX patterns, as grep reads them, written for ripgrep's regex engine or for PCRE2.

ripgrep has one syntax of its own; who types `te grep` means grep's: basic patterns, where `+ ? | ( ) {` are
ordinary characters until they are escaped, or extended ones (`-E`). Both have GNU's `\\<`, `\\>`, `\\w`. One
deliberate difference: `\\d` and `\\t`, which POSIX leaves undefined, mean a digit and a tab here, since that is what
people mean by them. A pattern with a back reference needs PCRE2: ripgrep's own engine is linear in time and has none.
It counts the groups of its own pattern as they were typed; the engine counts those of all, in the order in which the
alternatives are tried. So what a back reference can refer to has a name.

With `-o` the engines print of several alternatives the first that matches, and grep the longest. Most patterns leave no
such choice (`foo|bar`), or are put into an order in which the first is the longest: alternatives of a fixed width, the
widest first. Where that is not enough, as in `ab*|abc`, `choices` tells, and `longest.py` finds what is printed.
"""

from __future__ import annotations

from contextlib import suppress

from llm_do_mcp.te.envelope import TeError
from llm_do_mcp.te.text import is_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypeAlias

    Part: TypeAlias = "Atom | Either | Repeated"

NOTHING = r"[^\s\S]"
"""Matches nothing, in both engines: what an empty list of patterns means to grep."""

_MOST_NAMED = 9
"""The last group of a pattern that a back reference, which has one digit, can refer to."""
_META = frozenset(r"\.+*?()|[]{}^$")
CLASSES = {
    "alpha": r"\p{Alphabetic}",
    "digit": "0-9",
    "alnum": r"\p{Alphabetic}\p{Nd}",
    "upper": r"\p{Lu}",
    "lower": r"\p{Ll}",
    "space": r"\s",
    "blank": r" \t",
    "punct": r"\p{P}\p{S}",
    "print": r"\P{C}",
    "graph": r"[\P{C}--\s]",
    "cntrl": r"\p{Cc}",
    "xdigit": "0-9A-Fa-f",
}
"""The classes of POSIX, as ripgrep's engine has them in a set."""
_LAST_WITH_CASE = 0x2E00
"""Beyond it, letters with case are rare."""
_PYTHON_CLASSES = {
    "alpha": r"[^\W\d_]",
    "digit": "[0-9]",
    "alnum": r"[^\W_]",
    "space": r"[\s]",
    "blank": r"[ \t]",
    "print": r"[^\x00-\x1f\x7f]",
    "graph": r"[^\x00-\x20\x7f]",
    "cntrl": r"[\x00-\x1f\x7f]",
    "xdigit": "[0-9A-Fa-f]",
}
APART = {0x130: 0x2EBE0, 0x131: 0x2EBE1}
"""The `i` of Turkish, with its dot and without, which Python's engine takes for any `i` where case is ignored; and
letters that have no case, to stand in their place."""
_WITH_SIGNS = (range(0x3100), range(0xFE10, 0xFFF0), range(0x1F000, 0x1FC00))
"""Where punctuation and symbols are."""
_NOT_TEXT = r"\udc80-\udcff"
"""Python's stand-ins for bytes that are not UTF-8: nothing matches them but themselves."""
_PYTHON_ESCAPES = {
    "W": rf"[^\w{_NOT_TEXT}]",
    "S": rf"[^\s{_NOT_TEXT}]",
    "D": rf"[^\d{_NOT_TEXT}]",
    "B": r"(?:(?<!\w)(?!\w)|(?<=\w)(?=\w))",  # Python's own does not hold in an empty text
}


def invalid(reason: str) -> TeError:
    """The error for a pattern that cannot be used."""
    return TeError("invalid_pattern", f"invalid regex pattern: {reason}")


def translate(patterns: list[str], *, extended: bool, python: bool = False) -> tuple[list[str], bool]:
    """POSIX patterns in ripgrep's syntax.

    Args:
        patterns: The patterns as they were typed.
        extended: As with grep's `-E`; otherwise basic.
        python: Python's syntax instead, for the search that is used where there is no ripgrep.

    Returns:
        The patterns, and whether they need PCRE2 (then all are written for it).

    Raises:
        TeError: `invalid_pattern`.
    """
    parsers = [_Parser(pattern, extended=extended, pcre=python, python=python) for pattern in patterns]
    written = [parser.parse() for parser in parsers]
    if not any(parser.has_reference for parser in parsers):
        return _widest_first(written), False
    if not all(map(is_text, patterns)):
        raise invalid("beside a back reference it holds a byte that is not UTF-8")
    names = [f"p{number}g" if parser.has_reference else "" for number, parser in enumerate(parsers)]
    parsers = [
        _Parser(pattern, extended=extended, pcre=True, python=python, names=name)
        for pattern, name in zip(patterns, names, strict=True)
    ]
    return [parser.parse().text for parser in parsers], not python


def is_lower(patterns: Iterable[str], *, fixed: bool) -> bool:
    """Whether ripgrep's `--smart-case` ignores case: something stands for itself in its patterns, and no capital does.

    Args:
        patterns: The patterns, in ripgrep's syntax.
        fixed: Whether they are texts, in which the `W` of `\\W` is a capital.
    """
    text = "".join(patterns if fixed else map(_without_escapes, patterns))
    return any(map(str.isalnum, text)) and not any(map(str.isupper, text))


def _without_escapes(pattern: str) -> str:
    plain, *escaped = pattern.replace("\\\\", "").split("\\")
    return plain + "".join(text.partition("}")[2] if text[1:2] == "{" else text[1:] for text in escaped)


def choices(patterns: list[str], *, extended: bool) -> list[list[Part]] | None:
    """The alternatives of POSIX patterns as trees; None where the first of them that matches is the longest anyway.

    None too where a pattern has a back reference, which only an engine can follow. Not None where a match may be empty:
    at the end of a file without a last newline ripgrep prints the whole line for it.
    """
    parsers = [_Parser(pattern, extended=extended, pcre=True, python=True) for pattern in patterns]
    branches = [parser.parse() for parser in parsers]
    if any(parser.has_reference for parser in parsers):
        return None
    parts = [branch.parts for branch in branches]
    leaves_a_choice = any(parser.leaves_a_choice for parser in parsers) or _leaves_a_choice(branches, at_the_end=True)
    return parts if leaves_a_choice or any(map(_may_be_empty, parts)) else None


def _may_be_empty(parts: Sequence[Part]) -> bool:
    """Whether parts may match between two characters; said of what is nested too deeply that they do not."""
    with suppress(RecursionError):
        return all(
            part.width == 0
            if isinstance(part, Atom)
            else any(map(_may_be_empty, part.branches))
            if isinstance(part, Either)
            else not part.least or _may_be_empty([part.part])
            for part in parts
        )
    return False


class Atom:
    """A part that is one character, or a place between two: Python's pattern for it, and its width."""

    __slots__ = ("source", "width")

    def __init__(self, source: str, width: int) -> None:
        self.source = source
        self.width = width


class Either:
    """A part that is one of several branches."""

    __slots__ = ("branches",)

    def __init__(self, branches: list[list[Part]]) -> None:
        self.branches = branches


class Repeated:
    """A part that comes so many times, as its quantifier says: `*`, `+`, `?` or `{N,M}`; `most` is None for any."""

    __slots__ = ("least", "most", "part")

    def __init__(self, part: Part, quantifier: str) -> None:
        self.part = part
        self.least: int
        self.most: int | None
        if quantifier in "*+?":
            self.least, self.most = int(quantifier == "+"), 1 if quantifier == "?" else None
        else:
            least, comma, most = quantifier[1:-1].partition(",")
            self.least = int(least)
            self.most = (int(most) if most else None) if comma else self.least


class _Branch:
    """An alternative: its atoms, and how many characters it matches, or None where that may vary."""

    def __init__(self) -> None:
        self.atoms: list[str] = []
        self.width: int | None = 0
        self.parts: list[Part] = []
        """The atoms, for who reads them one by one."""
        self.head = ""
        """The character that it starts with, where that is known."""

    @property
    def text(self) -> str:
        return "".join(self.atoms)

    def widen(self, width: int | None) -> None:
        self.width = None if width is None or self.width is None else self.width + width


def _widest_first(branches: list[_Branch]) -> list[str]:
    """The texts of branches, the widest first; in the order given where the width of one is not known."""
    if all(branch.width is not None for branch in branches):
        branches = sorted(branches, key=lambda branch: branch.width or 0, reverse=True)
    return [branch.text for branch in branches]


def _leaves_a_choice(branches: list[_Branch], *, at_the_end: bool) -> bool:
    """Whether the first branch that matches may not be the one with which the whole becomes the longest."""
    widths = {branch.width for branch in branches}
    heads = [branch.head.casefold() for branch in branches]
    if len(branches) == 1 or (all(heads) and len(set(heads)) == len(heads)):
        return False  # no two match at the same place
    return None in widths or (len(widths) > 1 and not at_the_end)


class _Parser:
    """Reads one pattern from left to right; groups are kept on a stack, so that depth costs no recursion.

    Args:
        text: The pattern.
        extended: Whether it is an extended one.
        pcre: Whether it is written for PCRE2, or for Python.
        python: Whether it is written for Python.
        names: How the names of groups begin; "" where nothing refers to one.
    """

    def __init__(self, text: str, *, extended: bool, pcre: bool, python: bool = False, names: str = "") -> None:
        self.text = text
        self.at = 0
        self.extended = extended
        self.pcre = pcre
        self.python = python
        self.names = names
        self.has_reference = False
        self.leaves_a_choice = False
        self.opened = 0
        """How many groups have been opened."""
        self.closed: set[int] = set()
        """The numbers of the groups that have been closed."""
        self.groups: list[tuple[int, list[_Branch], _Branch]] = []
        self.branches: list[_Branch] = []
        self.branch = _Branch()
        self.repeated = False
        """The last atom has a quantifier already: `a+?` must not turn into a lazy one."""

    def parse(self) -> _Branch:
        """The pattern in the other syntax, as one branch."""
        while self.at < len(self.text):
            character = self._next()
            if character == "\\":
                self._escaped()
            elif character == "[":
                self._add(self._bracket())
            elif character == ".":
                self._add(rf"[^\n{_NOT_TEXT}]" if self.python else ".")
            elif character == "*" or (self.extended and character in "(){|+?"):
                self._operator(character)
            elif (character == "^" and self._starts()) or (character == "$" and self._ends()):
                self._add(character, 0)
            else:
                self._add_literal(character)
        if self.groups:
            raise invalid("a group is not closed")
        return self._alternatives()

    def _next(self) -> str:
        self.at += 1
        return self.text[self.at - 1]

    def _add(self, atom: str, width: int | None = 1, part: Part | None = None) -> None:
        self.branch.atoms.append(atom)
        self.branch.parts.append(part or Atom(atom, width or 0))
        self.branch.widen(width)
        self.repeated = False

    def _add_literal(self, character: str) -> None:
        if not self.branch.atoms:
            self.branch.head = character
        self._add(character if self.python and not is_text(character) else literal(character))

    def _starts(self) -> bool:
        return self.extended or not self.branch.atoms

    def _ends(self) -> bool:
        return self.extended or self.at == len(self.text) or self.text.startswith(("\\)", "\\|"), self.at)

    def _alternatives(self) -> _Branch:
        """All branches as one, the widest first where the width of each is known."""
        if not self.branches:
            return self.branch
        branches = [*self.branches, self.branch]
        self.leaves_a_choice = self.leaves_a_choice or _leaves_a_choice(branches, at_the_end=not self.groups)
        widths = {branch.width for branch in branches}
        whole = _Branch()
        whole.atoms.append("|".join(_widest_first(branches)))
        whole.parts.append(Either([branch.parts for branch in branches]))
        whole.widen(widths.pop() if len(widths) == 1 else None)
        return whole

    def _escaped(self) -> None:
        if self.at == len(self.text):
            raise invalid("it ends in a backslash")
        character = self._next()
        if character in "(){|+?" and not self.extended:
            self._operator(character)
        elif character in "123456789":
            if int(character) not in self.closed:
                raise invalid(f"\\{character} refers to a group that has not been closed before it")
            self.has_reference = True
            name = self.names + character
            self._add(f"(?P={name})" if self.python else f"\\g{{{name}}}", None)
        elif character in "wWsSbBdDt":
            atom = _PYTHON_ESCAPES.get(character) if self.python else None
            self._add(atom or "\\" + character, 0 if character in "bB" else 1)
        elif character in "<>`'":
            self._add(self._boundary(character), 0)
        else:
            self._add_literal(character)

    def _boundary(self, character: str) -> str:
        if character in "`'":
            return "^" if character == "`" else "$"
        if self.pcre:
            return r"(?<!\w)(?=\w)" if character == "<" else r"(?<=\w)(?!\w)"
        return r"\b{start}" if character == "<" else r"\b{end}"

    def _operator(self, operator: str) -> None:
        if operator == "(":
            self.opened += 1
            self.groups.append((self.opened, self.branches, self.branch))
            self.branches, self.branch = [], _Branch()
        elif operator == ")":
            if not self.groups and self.extended:
                self._add("\\)")
                return
            if not self.groups:
                raise invalid("a group is closed that was not opened")
            inner = self._alternatives()
            number, self.branches, self.branch = self.groups.pop()
            self.closed.add(number)
            is_named = self.names and number <= _MOST_NAMED
            opening = f"(?{'P' * self.python}<{self.names}{number}>" if is_named else "(?:"
            self._add(opening + inner.text + ")", inner.width, Either([inner.parts]))
        elif operator == "|":
            self.branches.append(self.branch)
            self.branch = _Branch()
        else:
            self._repeat(operator)

    def _repeat(self, operator: str) -> None:
        atoms = self.branch.atoms
        nothing = not atoms if self.extended else atoms in ([], ["^"])
        quantifier = self._interval() if operator == "{" and (self.extended or not nothing) else operator
        if nothing and self.extended and quantifier is not None:
            return  # grep takes it for a repeated nothing
        if nothing or quantifier is None:
            self._add_literal(operator)  # grep takes the character itself
            return
        part = self.branch.parts[-1]
        if self.repeated or (isinstance(part, Atom) and not part.width):
            atoms[-1] = f"(?:{atoms[-1]})"
        atoms[-1] += quantifier
        self.branch.parts[-1] = Repeated(part, quantifier)
        if len(atoms) == 1:
            self.branch.head = ""
        self.branch.widen(None)
        self.repeated = True

    def _interval(self) -> str | None:
        close = "}" if self.extended else "\\}"
        end = self.text.find(close, self.at)
        least, comma, most = self.text[self.at : max(end, self.at)].partition(",")
        well_formed = (least.isdecimal() or (comma and not least)) and (most.isdecimal() or not most)
        if end < 0 or not well_formed:
            if self.extended:
                return None
            raise invalid("\\{ needs \\{N\\}, \\{N,\\}, \\{,M\\} or \\{N,M\\}")
        self.at = end + len(close)
        return f"{{{least or '0'}{comma}{most}}}"

    def _bracket(self) -> str:
        start = self.at
        if self.text.startswith("^", self.at):
            self.at += 1
        negated = self.at > start
        first = self.at
        items: list[str] = []
        while True:
            if self.at >= len(self.text):
                raise invalid("a bracket is not closed")
            if self.text[self.at] == "]" and self.at > first:
                break
            items.append(self._bracket_item())
        content = self.text[first : self.at]
        self.at += 1
        if not negated and len(content) > 2 and content[0] == content[-1] == ":":
            raise invalid(f"a class is written [[{content}]], not [{content}]")
        if self.python:  # which has no classes within brackets
            either = "|".join(item if item.startswith("[") else f"[{item}]" for item in items)
            return rf"(?:(?!{either})[^\n{_NOT_TEXT}])" if negated else f"(?:{either})"
        return ("[^" if negated else "[") + "".join(items) + "]"

    def _bracket_item(self) -> str:
        if self.text.startswith("[:", self.at):
            end = self.text.find(":]", self.at + 2)
            name = self.text[self.at + 2 : max(end, 0)]
            if name not in CLASSES:
                raise invalid(f"it has no class of the name in a bracket; there are {' '.join(CLASSES)}")
            self.at = end + 2
            if self.python:
                return python_class(name)
            return f"[:{name}:]" if self.pcre else CLASSES[name]
        low = self._bracket_character()
        if self.text.startswith("-", self.at) and not self.text.startswith("-]", self.at):
            self.at += 1
            if self.at >= len(self.text):
                raise invalid("a bracket is not closed")
            return f"{_in_bracket(low)}-{_in_bracket(self._bracket_character())}"
        return _in_bracket(low)

    def _bracket_character(self) -> str:
        for kind in ("=", "."):
            if self.text.startswith("[" + kind, self.at):
                end = self.text.find(kind + "]", self.at + 2)
                if end != self.at + 3:
                    raise invalid(f"[{kind}x{kind}] takes one character")
                self.at = end + 2
                return self.text[end - 1]
        if not is_text(character := self._next()):
            raise invalid("a bracket in it holds a byte that is not UTF-8")
        return character


def python_class(name: str) -> str:
    """A class as a set of Python's."""
    if name in _PYTHON_CLASSES:
        return _PYTHON_CLASSES[name]
    if name == "punct":
        from unicodedata import category

        signs = (chr(code) for codes in _WITH_SIGNS for code in codes)
        return f"[{''.join(_in_bracket(sign) for sign in signs if category(sign)[0] in 'PS')}]"
    has_case = str.isupper if name == "upper" else str.islower  # Python's patterns cannot ask for it
    return f"[{''.join(character for character in map(chr, range(_LAST_WITH_CASE)) if has_case(character))}]"


def literal(character: str) -> str:
    """A character as ripgrep's engine takes it for itself; a byte that is not UTF-8, by its number."""
    if not is_text(character):
        return rf"(?-u:\x{ord(character) - 0xDC00:02x})"
    return "\\" + character if character in _META else character


def _in_bracket(character: str) -> str:
    return "\\" + character if character in "\\[]^-&~" else character
