"""Globs, as `find`, ignore files and ripgrep's `--glob` have them, matched in bounded time whatever they are.

A tree that is searched brings its own globs (`.gitignore`), so none may take long: a star is an atomic group, which
never tries again, and `**` goes over whole names. The usual forms (`name`, `*.suffix`, `prefix*`) need no regular
expression at all.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Sequence

MOST_ALTERNATIVES = 256
"""What the braces of one glob may expand to."""
_SPECIAL = frozenset("*?[\\")
_CLASSES = {
    "alnum": r"^\W_",
    "alpha": r"^\W\d_",
    "blank": r" \t",
    "digit": r"\d",
    "lower": "a-z",
    "space": r"\s",
    "upper": "A-Z",
    "word": r"\w",
    "xdigit": "0-9A-Fa-f",
}


class Names:
    """Several globs without a meaning for `/`: whether a text matches one of them.

    Args:
        globs: The globs.
        ignore_case: Whether case does not count.
        classes: Whether they have `[[:alpha:]]`, as those of find do, and those of ripgrep not.
    """

    def __init__(self, globs: Iterable[str], *, ignore_case: bool = False, classes: bool = True) -> None:
        self._ignore_case = ignore_case
        exact: set[str] = set()
        prefixes: list[str] = []
        suffixes: list[str] = []
        others: list[str] = []
        for glob in globs:
            folded = glob.lower() if ignore_case else glob
            if _SPECIAL.isdisjoint(folded):
                exact.add(folded)
            elif folded[0] == "*" and _SPECIAL.isdisjoint(folded[1:]):
                suffixes.append(folded[1:])
            elif folded[-1] == "*" and _SPECIAL.isdisjoint(folded[:-1]):
                prefixes.append(folded[:-1])
            else:
                others.append(folded)
        self._exact = frozenset(exact)
        self._prefixes = tuple(prefixes)
        self._suffixes = tuple(suffixes)
        self._others = _compiled(others, classes=classes)

    def match(self, text: str) -> bool:
        if self._ignore_case:
            text = text.lower()
        return (
            text in self._exact
            or text.endswith(self._suffixes)
            or text.startswith(self._prefixes)
            or (self._others is not None and self._others.match(text) is not None)
        )


class PathGlob:
    """One of ripgrep's globs over the names of a path: a star stays within a name, `**` is any number of them."""

    def __init__(self, glob: str, *, ignore_case: bool) -> None:
        self._parts: list[Names | None] = []
        for part in glob.split("/"):
            if part != "**":
                self._parts.append(Names([part], ignore_case=ignore_case, classes=False))
            elif self._parts[-1:] != [None]:
                self._parts.append(None)
        if self._parts[-1] is None:  # `folder/**` is what lies in the folder, and not the folder
            self._parts.insert(-1, Names(["*"]))

    def match(self, names: Sequence[str]) -> bool:
        """Whether all the names of a path match. Only the last `**` ever needs another try."""
        at = part = again = 0
        any_number = -1
        while at < len(names):
            if part < len(self._parts) and (wanted := self._parts[part]) is None:
                any_number, again = part, at
                part += 1
            elif part < len(self._parts) and wanted is not None and wanted.match(names[at]):
                at += 1
                part += 1
            elif any_number >= 0:
                again += 1
                at, part = again, any_number + 1
            else:
                return False
        return all(wanted is None for wanted in self._parts[part:])


def expanded(glob: str) -> list[str]:
    """A glob with braces as globs without.

    Raises:
        ValueError: A brace is not closed, or there are more than `MOST_ALTERNATIVES`.
    """
    done: list[str] = []
    waiting = [glob]
    while waiting:
        text = waiting.pop()
        span = _innermost_braces(text)
        if span is None:
            done.append(text)
        else:
            start, end = span
            waiting.extend(text[:start] + choice + text[end + 1 :] for choice in text[start + 1 : end].split(","))
        if len(done) + len(waiting) > MOST_ALTERNATIVES:
            raise ValueError(f"its braces stand for more than {MOST_ALTERNATIVES} globs")
    return done


def _innermost_braces(text: str) -> tuple[int, int] | None:
    start, at = -1, 0
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] == "{":
            start = at
        elif text[at] == "}" and start >= 0:
            return start, at
        at += 1
    if start >= 0:
        raise ValueError("a brace is not closed")
    return None


def _compiled(globs: list[str], *, classes: bool) -> re.Pattern[str] | None:
    if not globs:
        return None
    import re

    return re.compile("|".join(_translated(glob, classes=classes) for glob in globs), re.DOTALL)


def _translated(glob: str, *, classes: bool) -> str:
    """A regular expression for a whole text. What lies between two stars is best matched as early as it can be."""
    between: list[list[str]] = [[]]
    at = 0
    while at < len(glob):
        character = glob[at]
        at += 1
        if character == "*":
            if len(between) == 1 or between[-1]:
                between.append([])
        elif character == "?":
            between[-1].append(".")
        elif character == "[" and (bracket := _bracket(glob, at, classes=classes)):
            source, at = bracket
            between[-1].append(source)
        else:
            if character == "\\" and at < len(glob):
                character = glob[at]
                at += 1
            between[-1].append(_literal(character))
    first, *others = ["".join(part) for part in between]
    if not others:
        return f"(?:{first})\\Z"
    return "".join([first, *(f"(?>.*?{part})" for part in others[:-1]), ".*", others[-1], "\\Z"])


def _bracket(glob: str, at: int, *, classes: bool) -> tuple[str, int] | None:
    """`[...]` from behind its bracket as a set, and where it ends; None where it is not closed."""
    negated = glob[at : at + 1] in ("!", "^") and at < len(glob)
    start = at = at + negated
    items: list[str] = []
    while at < len(glob) and (glob[at] != "]" or at == start):
        end = glob.find(":]", at) if classes and glob.startswith("[:", at) else -1
        if end > 0:
            items.append(_class(glob[at + 2 : end]))
            at = end + 2
            continue
        if glob[at] == "\\" and at + 1 < len(glob):
            at += 1
        low = high = glob[at]
        at += 1
        if glob[at : at + 1] == "-" and glob[at + 1 : at + 2] not in ("]", ""):
            high = glob[at + 1]
            at += 2
        if low <= high:
            items.append(f"[{_literal(low)}-{_literal(high)}]")
    if at >= len(glob):
        return None
    either = "|".join(items) or "(?!)"
    return (f"(?:(?!{either}).)" if negated else f"(?:{either})"), at + 1


def _class(name: str) -> str:
    return f"[{_CLASSES[name]}]" if name in _CLASSES else "(?!)"


def _literal(character: str) -> str:
    return (
        character
        if character.isalnum() or character == "_"
        else f"\\x{ord(character):02x}"
        if character < "\x80"
        else character
    )
