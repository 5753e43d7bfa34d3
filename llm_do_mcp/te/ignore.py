"""What a walk leaves out: hidden names, and what ignore files name (`.gitignore`, `.ignore`, `.rgignore`).

ripgrep has its own reading of the same files; this one serves what does not run ripgrep, and decides as it does: the
nearest file decides, in it the last line that matches, and what is in a folder that is left out is left out.
"""

from __future__ import annotations

import os
from contextlib import suppress

from llm_do_mcp.te.globs import Names, PathGlob, expanded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from llm_do_mcp.te.roots import Folder

IGNORE_FILES = (".gitignore", ".ignore", ".rgignore")
"""In the order of their weight, the heaviest last."""
DECIDING = frozenset((*IGNORE_FILES, ".git"))
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
    """

    def __init__(self, lines: Iterable[str], depth: int, above: Sequence[str] = ()) -> None:
        self._depth = depth
        self._above = list(above)
        rules: list[Rule] = []
        for text in _meant(lines):
            with suppress(ValueError):  # as for ripgrep, a line that cannot be read says nothing
                rules += rules_of(text)
        self._rules = rules[::-1]
        self._any = Names((rule.last if rule.last != "**" else "*" for rule in self._rules), classes=False)

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
    texts = [folder.text(name, LARGEST) for name in reversed(IGNORE_FILES) if name in there]
    if ".git" in there:
        texts.append(_excluded(folder))
    return tuple(Rules(text.split("\n"), depth, above) for text in texts if text is not None)


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
    """The ignore files above a root, up to the repository that it lies in, the nearest first."""
    from llm_do_mcp.te.roots import Folder

    rules: list[Rules] = []
    names: list[str] = []
    while not os.path.exists(os.path.join(path, ".git")) and os.path.dirname(path) != path:
        names.insert(0, os.path.basename(path))
        path = os.path.dirname(path)
        rules.extend(of_folder(Folder(path, None, guarded=False), IGNORE_FILES, 0, names))
    return tuple(rules)


def decided(rules: Iterable[Rules], path: str, name: str, *, is_folder: bool) -> bool | None:
    """What the nearest of these files that says anything about a path says."""
    for file in rules:
        decision = file.decide(path, name, is_folder=is_folder)
        if decision is not None:
            return decision
    return None
