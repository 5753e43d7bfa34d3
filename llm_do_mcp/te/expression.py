"""What `te find` may be asked: paths, then find's tests, with `!`, `-o` and brackets. Nothing that acts.

The expression becomes one function of an entry. As in find, `-a` binds more tightly than `-o`, and where `-print`
is written, only what it is asked for is found.
"""

from __future__ import annotations

import stat
import time

from llm_do_mcp.te.envelope import TeError
from llm_do_mcp.te.globs import Names
from llm_do_mcp.te.text import one_line, passable, real_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from llm_do_mcp.te.roots import Root
    from llm_do_mcp.te.walk import Entry

    Test = Callable[[Entry], bool]

MAX_WORDS = 500
MAX_WORD_CHARACTERS = 1_000
MAX_BRACKETS = 50
ACTS = ("-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls")
"""What runs or changes something: refused in every form of the command."""
_REFUSED = {
    **dict.fromkeys(ACTS, "te find only finds, and runs and changes nothing"),
    **dict.fromkeys(("-L", "-follow"), "links are found and never followed"),
    **dict.fromkeys(("-regex", "-iregex"), "-name and -path take globs, and te grep searches texts"),
    **dict.fromkeys(("-print0", "-printf", "-ls"), "it answers with paths, one a line"),
}
_UNITS = {"c": 1, "w": 2, "b": 512, "k": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_OTHERS = {"p": stat.S_ISFIFO, "s": stat.S_ISSOCK, "b": stat.S_ISBLK, "c": stat.S_ISCHR}
"""What is neither a file nor a folder nor a link."""
_DAY, _MINUTE = 86_400, 60
_NAMES = ("-name", "-iname")
_PATHS = ("-path", "-ipath", "-wholename", "-iwholename")
_WITH_VALUE = (*_NAMES, *_PATHS, "-type", "-size", "-mtime", "-mmin", "-newer", "-maxdepth", "-mindepth")
_ALONE = ("-empty", "-print", "-prune", "-true", "-false")
_JOINING = frozenset(("(", ")", "!", "-not", "-a", "-and", "-o", "-or"))
KNOWN = (*_WITH_VALUE, "-not", "-o", "-empty", "-prune", "-print", "--hidden", "--no-ignore")


class Expression:
    """One parsed `te find` command.

    Args:
        arguments: What follows `find`.
        newer_than: The time of modification of the file that `-newer` names.
        typed: A path below a root as it is typed in the working folder.
    """

    def __init__(
        self, arguments: Sequence[str], newer_than: Callable[[str], float], typed: Callable[[Root, str], str]
    ) -> None:
        if len(arguments) > MAX_WORDS or max(map(len, arguments), default=0) > MAX_WORD_CHARACTERS:
            raise TeError("too_long", f"te find takes {MAX_WORDS} words of {MAX_WORD_CHARACTERS:,} characters at most")
        self.hidden = self.no_ignore = False
        self.follows = False
        """Whether a link is followed that is named as a path."""
        self.deepest: int | None = None
        self.shallowest = 0
        self.wanted: list[str] = []
        """The fixed part of what `-name` asks for, without its stars: what is called just that comes first."""
        self._newer_than = newer_than
        self._as_typed = typed
        self._now = time.time()
        self._words = [word for word in arguments if not self._sets_something(word)]
        self._at = 0
        self._printed = False
        self._prints = False
        self._typed, self._skipped = ".", 0
        self.paths = self._paths()
        self._test = self._either(0) if self._at < len(self._words) else _always
        if self._at < len(self._words):
            raise TeError("usage", f"te find has no place for {one_line(self._words[self._at], 40)} there")

    def start(self, typed: str, relative: str) -> None:
        """The entries that follow lie below a path that was typed so, and leads to `relative`."""
        self._typed = typed.rstrip("/")
        self._skipped = len(relative) + 1 if relative else 0

    def finds(self, entry: Entry) -> bool:
        """Whether an entry is to be told. May set its `enter` to False."""
        if entry.depth < self.shallowest:
            return False  # nor is it tested, and so not pruned
        self._printed = False
        passed = self._test(entry)
        return self._printed if self._prints else passed

    def _sets_something(self, word: str) -> bool:
        if word in ("--hidden", "-hidden"):
            self.hidden = True
        elif word in ("--no-ignore", "-no-ignore"):
            self.no_ignore = True
        elif word in ("-P", "-H"):
            self.follows = word == "-H"
        else:
            return False
        return True

    def _paths(self) -> list[str]:
        while self._at < len(self._words):
            word = self._words[self._at]
            if word == "--":
                self._at += 1
                continue
            if word in _JOINING or word.startswith("-"):
                break
            self._at += 1
        return [word for word in self._words[: self._at] if word != "--"] or ["."]

    # ---- the grammar, from what binds least to what binds most ----

    def _either(self, depth: int) -> Test:
        tests = [self._all(depth)]
        while self._peek() in ("-o", "-or"):
            self._at += 1
            tests.append(self._all(depth))
        return tests[0] if len(tests) == 1 else lambda entry: any(test(entry) for test in tests)

    def _all(self, depth: int) -> Test:
        tests = [self._one(depth)]
        while self._peek() not in ("", "-o", "-or", ")"):
            if self._peek() in ("-a", "-and"):
                self._at += 1
            tests.append(self._one(depth))
        return tests[0] if len(tests) == 1 else lambda entry: all(test(entry) for test in tests)

    def _one(self, depth: int) -> Test:
        word = self._next("a test")
        negated = False
        while word in ("!", "-not"):
            negated = not negated
            word = self._next(f"a test after {word}")
        if word == "(":
            if depth == MAX_BRACKETS:
                raise TeError("too_long", f"te find takes {MAX_BRACKETS} brackets within one another at most")
            test = self._either(depth + 1)
            if self._next("a closing bracket") != ")":
                raise TeError("usage", "te find needs a closing bracket")
        else:
            wanted = len(self.wanted)
            test = self._named(word)
            if negated:
                del self.wanted[wanted:]
        return (lambda entry: not test(entry)) if negated else test

    def _peek(self) -> str:
        return self._words[self._at] if self._at < len(self._words) else ""

    def _next(self, what: str) -> str:
        if self._at == len(self._words):
            raise TeError("usage", f"te find needs {what}")
        self._at += 1
        return self._words[self._at - 1]

    # ---- the tests ----

    def _named(self, word: str) -> Test:
        if word in _REFUSED:
            raise TeError("unsupported_option", f"te find does not take {word}: {_REFUSED[word]}")
        if word in ("-a", "-and", "-o", "-or", ")"):
            raise TeError("usage", f"te find needs a test before {word}")
        if word not in _WITH_VALUE and word not in _ALONE:
            known = " ".join(KNOWN)
            raise TeError("unsupported_option", f"te find does not take {one_line(word, 40)}; it takes {known}")
        if word == "-print":
            self._prints = True
            return self._print
        if word in _ALONE:
            return {"-empty": _is_empty, "-prune": _prune, "-false": _never}.get(word, _always)
        value = self._next(f"a value for {word}")
        if not passable(value):
            raise TeError("usage", f"the value of {word} holds a NUL, or half of a surrogate pair")
        if word in _NAMES:
            return self._by_name(value, ignore_case=word == "-iname")
        if word in _PATHS:
            return self._by_path(value, ignore_case=word in ("-ipath", "-iwholename"))
        if word == "-type":
            return _by_type(value)
        if word == "-newer":
            after = self._newer_than(value)
            return lambda entry: entry.stat().st_mtime > after
        if word == "-size":
            return _by_size(value)
        if word in ("-mtime", "-mmin"):
            return self._by_age(word, value)
        depth = _number(word, value)
        if word == "-maxdepth":
            self.deepest = depth
        else:
            self.shallowest = depth
        return _always

    def _print(self, entry: Entry) -> bool:
        self._printed = True
        return True

    def _by_name(self, glob: str, *, ignore_case: bool) -> Test:
        self.hidden = self.hidden or glob.startswith(".")
        self.wanted.append(glob.strip("*").lower())
        match = Names([glob], ignore_case=ignore_case).match
        return lambda entry: match(entry.name)

    def _by_path(self, glob: str, *, ignore_case: bool) -> Test:
        """As find compares it: with a path that starts as the one that was typed, or else as it is shown."""
        self.hidden = self.hidden or any(part[:1] == "." and part.strip(".") for part in glob.split("/"))
        match = Names([real_path(glob)], ignore_case=ignore_case).match
        typed = self._as_typed

        def test(entry: Entry) -> bool:
            below = entry.relative[self._skipped :]
            as_find = f"{self._typed}/{below}" if below else self._typed
            return match(as_find) or match(typed(entry.root, entry.relative))

        return test

    def _by_age(self, word: str, value: str) -> Test:
        """In whole days that have passed (`-mtime`), or in minutes (`-mmin`): for `-N` such that have passed too."""
        sign, number = _signed(word, value, "")
        unit = _DAY if word == "-mtime" else _MINUTE
        begun = int(word == "-mmin" and sign != "-")  # `N` is the minute that has begun then

        def age(entry: Entry) -> int:
            return int((self._now - entry.stat().st_mtime) // unit) + begun

        return lambda entry: _compare(age(entry), sign, number)


def _always(entry: Entry) -> bool:
    return True


def _never(entry: Entry) -> bool:
    return False


def _prune(entry: Entry) -> bool:
    entry.enter = False
    return True


def _is_empty(entry: Entry) -> bool:
    return entry.is_empty_folder() if entry.kind == "d" else entry.kind == "f" and not entry.stat().st_size


def _by_type(value: str) -> Test:
    kinds = frozenset(value.split(","))
    if not kinds <= {"f", "d", "l", *_OTHERS}:
        raise TeError("usage", f"-type takes f, d, l, p, s, b or c, or several with commas, not {one_line(value, 40)}")
    others = [_OTHERS[kind] for kind in kinds if kind in _OTHERS]

    def test(entry: Entry) -> bool:
        if entry.kind != "o" or not others:
            return entry.kind in kinds
        mode = entry.stat().st_mode
        return any(is_kind(mode) for is_kind in others)

    return test


def _by_size(value: str) -> Test:
    """In units that are begun: a file of one byte has a size of `1k`."""
    unit = _UNITS.get(value[-1:], 512)
    sign, number = _signed("-size", value[:-1] if value[-1:] in _UNITS else value, " and a unit (c k M G)")
    return lambda entry: _compare(-(-entry.stat().st_size // unit), sign, number)


def _signed(word: str, value: str, more: str) -> tuple[str, int]:
    sign = value[:1] if value[:1] in ("+", "-") else ""
    digits = value[len(sign) :]
    if not digits.isdecimal() or len(digits) > 18:
        raise TeError("usage", f"{word} takes a number{more}, with + for more and - for less")
    return sign, int(digits)


def _number(word: str, value: str) -> int:
    if not value.isdecimal() or len(value) > 9:
        raise TeError("usage", f"{word} takes a number")
    return int(value)


def _compare(measured: int, sign: str, number: int) -> bool:
    if sign == "+":
        return measured > number
    return measured < number if sign == "-" else measured == number
