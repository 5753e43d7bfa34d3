"""Patterns over paths: which files a listing shows, and which a writable root protects.

A pattern is names joined by `/`, counted from the root: `*`, `?` and `[…]` stand for characters within one name,
`**` for any number of folders, none included. There are no braces and no backtracking: a pattern is tried on a path
name by name, by the set of its tails that are still to be matched, so that no pattern costs more than its length.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase

from llm_do_mcp.sandbox.names import BadName, aliased, fold
from llm_do_mcp.sandbox.root import STATE_FOLDER

MAX_PATTERN = 1_000
MAX_PATTERN_NAMES = 32

ALWAYS_PROTECTED = ("**/.git", f"**/{STATE_FOLDER}", "**/approvals.lock", "**/libs.lock")
"""What no worker may write, whatever the root: the history, the journal, and what a person has approved."""

Pattern = tuple[str, ...]
_Tails = frozenset[Pattern]


def parse(pattern: str) -> Pattern:
    """Split a listing's pattern.

    Raises:
        BadName: Too long, empty, or one that could only match outside the root.
    """
    if len(pattern) > MAX_PATTERN:
        raise BadName(f"pattern too long: {len(pattern)} characters, allowed are {MAX_PATTERN}")
    parts = _split(pattern)
    if not parts or pattern.startswith("/") or ".." in parts or "\0" in pattern:
        raise BadName("not a pattern; allowed are names below the root with `*`, `?`, `[…]` and `**`")
    if len(parts) > MAX_PATTERN_NAMES:
        raise BadName(f"pattern too long: {len(parts)} names, allowed are {MAX_PATTERN_NAMES}")
    return parts


def parse_aliased(pattern: str) -> Pattern:
    """Split a pattern over `alias/path`, which may be written `alias:path` as well; its first name is the alias's.

    Raises:
        BadName: As `parse`.
    """
    alias, below = aliased(pattern)
    return parse(alias if below == "." else f"{alias}/{below}")


def matches(pattern: Pattern, path: Sequence[str], *, folded: bool = False) -> bool:
    """Whether a whole path fits a pattern.

    Args:
        pattern: As `parse` gives it.
        path: Names.
        folded: Take names for the same that some file system takes for the same, such as upper and lower case.
    """
    return () in _advance(_start(pattern), path, _same_folded if folded else fnmatchcase)


def may_match_below(pattern: Pattern, folder: Sequence[str]) -> bool:
    """Whether anything in a folder can fit a pattern; where not, it need not be entered."""
    return any(tail != () for tail in _advance(_start(pattern), folder, fnmatchcase))


def tails(pattern: Pattern, folder: Sequence[str]) -> tuple[Pattern, ...]:
    """What a pattern comes to for what lies in a folder, in upper or lower case; nothing where it is not about that."""
    return tuple(sorted(tail for tail in _advance(_start(pattern), folder, _same_folded) if tail))


def literal(name: str) -> str:
    """The pattern that only a name itself fits."""
    return "".join(f"[{character}]" if character in "*?[" else character for character in name)


def is_protected(patterns: Iterable[str], path: Sequence[str]) -> bool:
    """Whether a path or a folder that it lies in fits one of the patterns, in upper or lower case."""
    return any(_reached(_split(pattern), path) for pattern in patterns)


def protected_in(root: str, project: str, patterns: Iterable[str]) -> tuple[str, ...]:
    """What is protected in one root, for patterns that are written relative to the project.

    The root may be the project itself, a folder in it, a folder around it, or a place elsewhere. Patterns that begin
    with `**/` hold in all of them; the others only where the root and the project overlap. What lies inside a
    protected folder is protected as a whole.

    Args:
        root: The root's folder.
        project: The project's folder.
        patterns: Such as `workers`, `tools.py`, `**/*.worker`; a folder's pattern covers all that is in it.

    Returns:
        The patterns relative to the root, `ALWAYS_PROTECTED` among them.
    """
    place, home = _parts_of(root), _parts_of(project)
    shared = next((i for i, (a, b) in enumerate(zip(place, home, strict=False)) if fold(a) != fold(b)), None)
    everywhere = [pattern for pattern in (*ALWAYS_PROTECTED, *patterns) if pattern.startswith("**/")]
    anchored = [pattern for pattern in patterns if not pattern.startswith("**/")]
    if any(_reached(_split(pattern), place) for pattern in everywhere):
        return ("**",)
    if shared is not None:
        return tuple(dict.fromkeys(everywhere))
    if len(place) <= len(home):
        prefix = home[len(place) :]
        return tuple(dict.fromkeys([*everywhere, *("/".join((*prefix, pattern)) for pattern in anchored)]))
    inner = place[len(home) :]
    if any(_reached(_split(pattern), inner) for pattern in anchored):
        return ("**",)
    tails = {tail for pattern in anchored for tail in _advance(_start(_split(pattern)), inner, _same_folded)}
    return tuple(dict.fromkeys([*everywhere, *sorted("/".join(tail) for tail in tails)]))


def _parts_of(folder: str) -> tuple[str, ...]:
    return tuple(part for part in os.path.realpath(folder).split(os.sep) if part)


def _split(pattern: str) -> Pattern:
    parts: list[str] = []
    for part in pattern.split("/"):
        if part not in ("", ".") and not (part == "**" and parts[-1:] == ["**"]):
            parts.append(part)
    return tuple(parts)


def _same_folded(name: str, pattern: str) -> bool:
    return fnmatchcase(fold(name), fold(pattern))


def _reached(pattern: Pattern, path: Sequence[str]) -> bool:
    tails = _start(pattern)
    for name in path:
        tails = _advance(tails, (name,), _same_folded)
        if () in tails:
            return True
    return False


def _start(pattern: Pattern) -> _Tails:
    """The tails that are open before any name is read: `**` may stand for no folder at all."""
    return frozenset((pattern, pattern[1:]) if pattern[:1] == ("**",) else (pattern,))


def _advance(tails: _Tails, path: Sequence[str], same: Callable[[str, str], bool]) -> _Tails:
    for name in path:
        following: set[Pattern] = set()
        for tail in tails:
            if tail[:1] == ("**",):
                following |= _start(tail)
            elif tail and same(name, tail[0]):
                following |= _start(tail[1:])
        tails = frozenset(following)
    return tails
