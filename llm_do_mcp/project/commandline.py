"""A command line as words, and the patterns over words that shell rules are written in.

No shell ever reads the line. Quotes and backslashes mean what they mean in a shell; whatever only a shell could do is
refused where it is not quoted, so that a line never does less, or other, than its author thinks. Globs are the
exception: `*.md` is a word like any other, and nothing puts file names in its place.

A pattern is written in the same way, and matched word by word. An unquoted `*` stands

- as a word of its own for one word, and as the last word for the rest, which is at least one word;
- inside a word for characters other than `/` (`**` for those too), never for a `..` on the way;
- behind the letters of the last word, as in `git status*`, for nothing or the rest: `git status -s`, not `git statusx`.

The last word `**` stands for the rest, which may be nothing. `?` and `[` are characters like any other.

Where no `*` is, what is meant depends on who says it. A rule of the `shell` toolset means whatever begins with these
words (`opened`): `wc` is also `wc -l a`. So does any rule that asks or refuses. One that only allows, beside the
toolset, means the very words: it may be a command that a person was shown.

Elsewhere such patterns are globs on the whole line. What a glob would match and these words do not (`git statusx`) is
in doubt, and a rule is then read to the stricter side: one that allows does not hold, one that asks or refuses does.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import groupby

_OPERATORS = "|&;<>()`"
_EXPANDS = re.compile(r"\$[\w({?!@*#$-]")
_LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_INSTEAD = "run one command at a time, and quote what is meant as it stands"

Character = tuple[str, bool]
"""One character of a word, and whether quotes or a backslash take its special meaning away."""

_STAR: Character = ("*", False)
_ANY_WORD = re.compile(".*", re.DOTALL)
_BELOW, _BELOW_ANY = r"[^/\\]*", ".*"
_CLIMBS_NOT = r"(?!(?:.*[/\\=:,])?\.\.(?:[/\\]|\Z))"


class BadCommand(ValueError):
    """A line that is not one command; the message is the reason."""


def words(line: str) -> tuple[str, ...]:
    """The words of a command line; the first names the program.

    Raises:
        BadCommand: There is none, a quote is not closed, or something would need a shell.
    """
    found = tuple("".join(character for character, _ in word) for word in _characters(line))
    if not found or not found[0]:
        raise BadCommand("there is no command")
    try:
        os.fsencode(line)
    except UnicodeEncodeError:
        raise BadCommand("a character that no word can hold") from None
    return found


def joined(given: Sequence[str]) -> str:
    """A command line that has these words."""
    import shlex

    return shlex.join(given)


@dataclass(frozen=True)
class Pattern:
    """Words as a rule names them.

    Args:
        head: One expression for each of the first words.
        rest: How many further words there are at least; None where there is none.
    """

    head: tuple[re.Pattern[str], ...]
    rest: int | None

    def matches(self, given: Sequence[str]) -> bool:
        """Whether a command has such words."""
        more = len(given) - len(self.head)
        if more < (self.rest or 0) or (more and self.rest is None):
            return False
        return all(wanted.fullmatch(word) for wanted, word in zip(self.head, given, strict=False))


@lru_cache(maxsize=1024)
def pattern(text: str) -> Pattern:
    """A pattern over the words of a command.

    Raises:
        BadCommand: No command could match it.
    """
    found = [*_characters(text)]
    if not found or not found[0]:
        raise BadCommand("there is no command")
    rest: int | None = None
    last = found[-1]
    stars = _stars_at_end(last)
    if stars == len(last):
        found.pop()
        rest = 1 if stars == 1 else 0
    elif stars and last[-stars - 1][0].isalnum():
        found[-1] = last[:-stars]
        rest = 0
    if any(_is(word, "**") for word in found):
        raise BadCommand("`**` stands for the rest, so it can only be the last word")
    return Pattern(tuple(map(_expression, found)), rest)


def opened(text: str) -> str:
    """The pattern of all commands that begin with its words, where it has no `*`; any other as it is.

    Raises:
        BadCommand: It is no pattern.
    """
    return text if any(_STAR in word for word in _characters(text)) else f"{text} **"


def fits(text: str, line: str, *, strictly: bool) -> bool:
    """Whether a rule's pattern speaks of a command line.

    Args:
        text: The pattern.
        line: The command line.
        strictly: Only where the words match; else also where they begin so, or would match as a glob on the line, in
            whatever case.
    """
    try:
        given = words(line)
    except BadCommand:
        return not strictly and _is_like(text, line)
    try:
        if pattern(text).matches(given):
            return True
        if not strictly and pattern(opened(text).casefold()).matches([word.casefold() for word in given]):
            return True
    except BadCommand:
        pass
    return not strictly and _is_like(text, " ".join(given))


def _is_like(glob: str, line: str) -> bool:
    return any(fnmatchcase(line.casefold(), like) for like in (glob.casefold(), f"{glob.casefold()} *"))


def covers(earlier: str, later: str) -> bool:
    """Whether every command whose words match one pattern certainly matches an earlier one, which then counts."""
    wide, narrow = pattern(earlier), pattern(later)
    least = len(narrow.head) + (narrow.rest or 0)
    if least < len(wide.head) + (wide.rest or 0):
        return False
    if wide.rest is None and (narrow.rest is not None or least > len(wide.head)):
        return False
    texts = ["".join(c for c, _ in word) if _STAR not in word else None for word in _characters(later)]
    for index, wanted in enumerate(wide.head):
        if wanted == _ANY_WORD:
            continue
        if index >= len(narrow.head):
            return False
        text = texts[index]
        if narrow.head[index] != wanted and (text is None or not wanted.fullmatch(text)):
            return False
    return True


def _characters(line: str) -> Iterator[list[Character]]:
    """The words, each as its characters."""
    word: list[Character] | None = None
    at = 0
    while at < len(line):
        character = line[at]
        at += 1
        if character in " \t":
            if word is not None:
                yield word
            word = None
            continue
        word = [] if word is None else word
        if character in "'\"":
            at = _quoted(line, at, character, word)
        elif character == "\\" and at < len(line):
            _refuse(line[at], _LINE_ENDS)
            word.append((line[at], True))
            at += 1
        else:
            _refuse(character, _OPERATORS + _LINE_ENDS)
            _refuse_expansion(line, at - 1)
            word.append((character, False))
    if word is not None:
        yield word


def _quoted(line: str, at: int, quote: str, word: list[Character]) -> int:
    """Read up to the closing quote; returns where to go on. In double quotes a backslash escapes a few characters."""
    while at < len(line):
        character = line[at]
        at += 1
        if character == quote:
            return at
        if quote == '"' and character == "\\" and line[at : at + 1] in ("\\", '"', "$", "`"):
            character = line[at]
            at += 1
        elif quote == '"':
            _refuse(character, "`")
            _refuse_expansion(line, at - 1)
        _refuse(character, "")
        word.append((character, True))
    raise BadCommand(f"the quote {quote} is not closed")


def _refuse(character: str, operators: str) -> None:
    if character == "\0":
        raise BadCommand("a NUL character, which no word can hold")
    if character in operators:
        shown = {"`": "a backtick", **dict.fromkeys(_LINE_ENDS, "a line break")}.get(character, f"`{character}`")
        raise BadCommand(f"no shell runs this, so {shown} can do nothing here: {_INSTEAD}")


def _refuse_expansion(line: str, at: int) -> None:
    if found := _EXPANDS.match(line, at):
        raise BadCommand(f"no shell runs this, so `{found[0]}` would not be replaced: {_INSTEAD}, in single quotes")


def _is(word: list[Character], text: str) -> bool:
    return word == [(character, False) for character in text]


def _stars_at_end(word: list[Character]) -> int:
    return next((n for n, character in enumerate(reversed(word)) if character != _STAR), len(word))


def _expression(word: list[Character]) -> re.Pattern[str]:
    if _is(word, "*"):
        return _ANY_WORD
    made = ""
    for stars, run in groupby(word, key=lambda character: character == _STAR):
        text = "".join(character for character, _ in run)
        made += re.escape(text) if not stars else _BELOW_ANY if len(text) > 1 else _BELOW
    return re.compile((_CLIMBS_NOT if _STAR in word else "") + made, re.DOTALL)
