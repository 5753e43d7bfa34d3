"""What a walk leaves out: hidden names, and what ignore files name (`.gitignore`, `.ignore`, `.rgignore`).

ripgrep has its own reading of the same files; this one serves what does not run ripgrep, and decides as it does: of the
heaviest kind of file that says anything the nearest decides, in it the last line that matches, and what is in a folder
that is left out is left out.
"""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import takewhile

from llm_do_mcp.te.globs import Names, PathGlob, expanded
from llm_do_mcp.te.text import is_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from llm_do_mcp.te.roots import Folder

IGNORE_FILES = (".gitignore", ".ignore", ".rgignore")
"""In the order of their weight, the heaviest last."""
GITS = frozenset((".gitignore", ".git"))
"""Names of what git reads too, and what it says nothing of a repository that lies below."""
DECIDING = GITS.union(IGNORE_FILES)
"""Names whose presence in a folder means that there is something to read."""
EXCLUDED = "/info/exclude"
"""git's own ignore file, below `.git`."""
LARGEST = 256 << 10
MOST_LINES = 5_000


class Rule:
    """One line of an ignore file, or one of ripgrep's globs, which are written alike."""

    __slots__ = ("_name", "_path", "folders_only", "last", "negated")

    def __init__(self, text: str, *, ignore_case: bool = False) -> None:
        self.negated = text.startswith("!")
        text = text[1:] if self.negated else text.removeprefix("\\") if text[:2] in ("\\!", "\\#") else text
        self.folders_only = text.endswith("/")
        text = text.rstrip("/")
        body = text.removeprefix("**/")
        self.last = body.rpartition("/")[2]
        self._name = None if "/" in body else Names([body], ignore_case=ignore_case, classes=False)
        self._path = PathGlob(text.removeprefix("/"), ignore_case=ignore_case) if self._name is None else None

    def matches(self, names: Sequence[str], *, is_folder: bool) -> bool:
        """Whether it is about a path, given as its names from the folder of the file on."""
        if self.folders_only and not is_folder:
            return False
        return self._name.match(names[-1]) if self._name is not None else bool(self._path and self._path.match(names))


def rules_of(text: str, *, ignore_case: bool = False) -> list[Rule]:
    """What a line or a glob says; one with braces, which ripgrep reads in both, other than git, says several things.

    Raises:
        ValueError: As `expanded`.
    """
    mark = "!" if text.startswith("!") else ""
    return [Rule(mark + glob, ignore_case=ignore_case) for glob in expanded(text.removeprefix("!"))]


class Rules:
    """One ignore file.

    Args:
        lines: Its lines.
        depth: How many names lead from the root to its folder.
        above: The names from its folder down to the root, for a file above the root.
        kind: The name of the file, if it is an ignore file; `.git` for git's own.
        ignore_case: Whether case does not count.
    """

    def __init__(
        self,
        lines: Iterable[str],
        depth: int,
        above: Sequence[str] = (),
        *,
        kind: str = "",
        ignore_case: bool = False,
    ) -> None:
        self.of_git = kind in GITS
        self.weight = IGNORE_FILES.index(kind) if kind in IGNORE_FILES else -1
        self._depth = depth
        self._above = list(above)
        rules: list[Rule] = []
        for text in _meant(lines):
            with suppress(ValueError):  # as for ripgrep, a line that cannot be read says nothing
                rules += rules_of(text, ignore_case=ignore_case)
        self._rules = rules[::-1]
        lasts = (rule.last if rule.last != "**" else "*" for rule in self._rules)
        self._any = Names(lasts, ignore_case=ignore_case, classes=False)

    def decide(self, path: str, name: str, *, is_folder: bool) -> bool | None:
        """Whether a path (of names from the root) is ignored; None where this file does not say."""
        if not self._any.match(name):
            return None
        names = [*self._above, *path.split("/")[self._depth :]]
        for rule in self._rules:
            if rule.matches(names, is_folder=is_folder):
                return not rule.negated
        return None


def _meant(lines: Iterable[str]) -> list[str]:
    meant: list[str] = []
    for line in lines:
        text = line.rstrip("\r")
        bare = text.rstrip(" ")
        if bare.endswith("\\") and bare != text:
            bare += " "
        if bare and not bare.startswith("#") and bare not in ("/", "!", "\\"):
            meant.append(bare)
        if len(meant) == MOST_LINES:
            break
    return meant


def of_folder(folder: Folder, names: Iterable[str], depth: int, above: Sequence[str] = ()) -> tuple[Rules, ...]:
    """The ignore files of a folder that holds these names, the heaviest first; `above` as `Rules` has it."""
    there = set(names)
    texts = {name: folder.text(name, LARGEST) for name in reversed(IGNORE_FILES) if name in there}
    if ".git" in there:
        texts[".git"] = _excluded(folder)
    found = [(name, text) for name, text in texts.items() if text is not None]
    return tuple(Rules(_read(text), depth, above, kind=name) for name, text in found)


def _read(text: str) -> Iterable[str]:
    """The lines that ripgrep reads: no mark before the first, and none from one on that is not UTF-8."""
    return takewhile(is_text, text.lstrip("\ufeff").split("\n"))


def _excluded(folder: Folder) -> str | None:
    """`.git/info/exclude`, reached without following a link."""
    try:
        git = folder.enter(".git")
    except OSError:
        return None
    try:
        info = git.enter("info")
    except OSError:
        return None
    else:
        text = info.text("exclude", LARGEST)
        info.close()
        return text
    finally:
        git.close()


def above(path: str) -> tuple[Rules, ...]:
    """The ignore files above a root, the heaviest first; git's up to the top of the repository that it lies in."""
    from llm_do_mcp.te.roots import Folder

    rules: list[Rules] = []
    names: list[str] = []
    kinds = DECIDING
    while os.path.dirname(path) != path:
        kinds = DECIDING - GITS if _is_repository(path) else kinds
        names.insert(0, os.path.basename(path))
        path = os.path.dirname(path)
        rules.extend(of_folder(Folder(path, None, guarded=False), kinds, 0, names))
    return heaviest_first(rules)


def heaviest_first(rules: Iterable[Rules]) -> tuple[Rules, ...]:
    """Ignore files by their kind, which outweighs how near they are; those of a kind in the order given."""
    return tuple(sorted(rules, key=lambda file: -file.weight))


def lies_in_repository(path: str) -> bool:
    """Whether a folder is the top of a repository of git, or lies in one."""
    while not (found := _is_repository(path)) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return found


def _is_repository(path: str) -> bool:
    return os.path.exists(os.path.join(path, ".git"))


def decided(rules: Iterable[Rules], path: str, name: str, *, is_folder: bool) -> bool | None:
    """What the first of these files that says anything about a path says."""
    for file in rules:
        decision = file.decide(path, name, is_folder=is_folder)
        if decision is not None:
            return decision
    return None
