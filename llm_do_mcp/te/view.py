"""What `te cat` may be asked: several files, each whole or in part, named as `cat`, `head`, `tail` and editors do."""

from __future__ import annotations

from llm_do_mcp.te.envelope import TeError
from llm_do_mcp.te.text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MAX_FILES = 500
_SWITCHES = {
    "-n": ("numbers",),
    "--number": ("numbers",),
    "-b": ("numbers", "only_full"),
    "--number-nonblank": ("numbers", "only_full"),
    "-E": ("ends",),
    "--show-ends": ("ends",),
    "-e": ("ends",),
    "-T": ("tabs",),
    "--show-tabs": ("tabs",),
    "-t": ("tabs",),
    "-A": ("ends", "tabs"),
    "--show-all": ("ends", "tabs"),
    "-v": (),
    "--show-nonprinting": (),
    "-u": (),
}
_DIGITS = "0123456789"


class Lines:
    """Which lines of a file: from `first` to `last`, both counted from 1; a negative `first` counts from the end."""

    __slots__ = ("first", "last")

    def __init__(self, first: int = 1, last: int | None = None) -> None:
        self.first = first
        self.last = last


class View:
    """One parsed `te cat` command.

    Args:
        arguments: What follows `cat`.
        exists: Whether a path leads to something.
    """

    def __init__(self, arguments: Sequence[str], exists: Callable[[str], bool]) -> None:
        self.numbers = self.only_full = self.ends = self.tabs = False
        self.files: list[tuple[str, Lines]] = []
        self._exists = exists
        everywhere: Lines | None = None
        names: list[str] = []
        rest = list(reversed(arguments))
        while rest:
            word = rest.pop()
            if word == "--":
                names.extend(reversed(rest))
                break
            amount = rest[-1] if rest else ""
            if word in ("-n", "--lines") and _is_amount(amount) and not exists(amount):
                everywhere = _amount(rest.pop())
            elif word.startswith(("-n", "--lines=")) and _is_amount(word.removeprefix("-n").removeprefix("--lines=")):
                everywhere = _amount(word.removeprefix("-n").removeprefix("--lines="))
            elif word[:1] in ("+", "-") and word[1:].isdecimal() and not exists(word):
                everywhere = _amount(word.removeprefix("-"))  # `head -20`, `tail +20`
            elif word.startswith("-") and len(word) > 1:
                self._switch(word)
            else:
                names.append(word)
        if not names:
            raise TeError("usage", "te cat needs a file: te cat [-n] FILE[:FROM-TO]... ")
        if len(names) > MAX_FILES:
            raise TeError("too_long", f"te cat takes no more files than {MAX_FILES}")
        self.files = [self._part(name, everywhere) for name in names]

    def _switch(self, word: str) -> None:
        for name in [word] if word.startswith("--") else ["-" + letter for letter in word[1:]]:
            if name not in _SWITCHES:
                known = " ".join(switch for switch in _SWITCHES if len(switch) == 2)
                raise TeError(
                    "unsupported_option",
                    f"te cat does not take {one_line(name, 40)}; it takes {known}, -n 50 (the first), "
                    "-n -50 (the last), -n +100 (from there on) and FILE:10-40",
                )
            for effect in _SWITCHES[name]:
                setattr(self, effect, True)

    def _part(self, name: str, everywhere: Lines | None) -> tuple[str, Lines]:
        """`FILE:10-40`, `FILE:10-`, `FILE:-40`, `FILE:10`, also with `,` or `:` between, or an `L` before a number."""
        whole = name, everywhere or Lines()
        if ":" not in name or self._exists(name):
            return whole
        path, _, part = name.rpartition(":")
        start = path.rpartition(":")[2]
        if part and part.isdecimal() and start.isdecimal() and ":" in path and not self._exists(path):
            path, part = path.rpartition(":")[0], f"{start}-{part}"
        first, mark, last = part.replace("L", "").replace(",", "-").partition("-")
        if not (first or last) or not all(number.isdecimal() or not number for number in (first, last)):
            return whole
        if everywhere is not None:
            raise TeError("usage", f"{one_line(name)} says which lines, and so do -n, + or - with a number: use one")
        if max(len(first), len(last)) > 18 or first == "0" or (first and last and int(first) > int(last)):
            raise TeError("usage", f"lines are counted from 1, and from the first to the last: {one_line(name)}")
        only = int(first) if not mark else None
        return path, Lines(int(first or 1), int(last) if last else only)


def _is_amount(word: str) -> bool:
    return (
        word.lstrip("+-")[:1] in _DIGITS and word[1 if word[:1] in ("+", "-") else 0 :].isdecimal() and len(word) < 19
    )


def _amount(word: str) -> Lines:
    """`50`: the first 50 lines; `+100`: from line 100 on; `-50`: the last 50."""
    if word.startswith("+"):
        return Lines(max(int(word[1:]), 1))
    return Lines(int(word)) if word.startswith("-") and int(word) else Lines(1, int(word))
