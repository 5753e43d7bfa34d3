"""Walks the folders of a workspace: every entry once, in the order of names, links told, and followed only on demand.

Each folder is opened from the one above it, so that a folder which is swapped for a link while the walk goes on
leads nowhere. What may not be read, or vanishes, is counted, and the walk goes on.
"""

from __future__ import annotations

import os

from llm_do_mcp.te.ignore import DECIDING, GITS, above, decided, heaviest_first, of_folder
from llm_do_mcp.te.roots import kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from llm_do_mcp.te.ignore import Rules
    from llm_do_mcp.te.patience import Patience
    from llm_do_mcp.te.roots import Folder, Place, Root, Workspace

_CHECK_EVERY = 1024


class Entry:
    """Something in a folder. `kind` is `f`ile, `d`irectory, `l`ink or `o`ther.

    `enter` may be set to False. Where a link leads to what may not be searched, it is so from the start.

    Args:
        folder: The folder that it lies in; None for where a walk starts.
    """

    __slots__ = ("_folder", "depth", "enter", "kind", "name", "relative", "root")

    def __init__(self, root: Root, folder: Folder | None, relative: str, name: str, kind: str, depth: int) -> None:
        self.root = root
        self._folder = folder
        self.relative = relative
        self.name = name
        self.kind = kind
        self.depth = depth
        self.enter = True

    def stat(self, *, itself: bool = True, below: str = "") -> os.stat_result:
        """As `Folder.stat`, or of a path `below` it; raises `OSError`. Only until the walk goes on."""
        if self._folder:
            return self._folder.stat(f"{self.name}{below}", itself=itself)
        return self.root.stat(self.relative, itself=self.kind == "l")

    def is_empty_folder(self) -> bool:
        """Whether it is a folder in which nothing lies, hidden or not; raises `OSError`."""
        folder = self._folder.enter(self.name) if self._folder else self.root.folder(self.relative)
        try:
            return not folder.entries()
        finally:
            folder.close()


class Walk:
    """The walks of one command.

    Args:
        workspace: Where, and what is never seen.
        patience: When to stop.
        hidden: Whether names that start with a dot are seen.
        no_ignore: Whether ignore files are disregarded.
        follows: Whether links are followed; only where nothing is guarded.
        files: Whether regular files are told; what a link leads to is in any case.
        wanted: What is decided before hidden names and ignore files are asked: given a path and whether it is a
            folder, it is seen (True), left out (False), or not decided (None).
        unhides: Given the name of a file, whether it is seen although that is hidden; None is no.
    """

    def __init__(
        self,
        workspace: Workspace,
        patience: Patience,
        *,
        hidden: bool,
        no_ignore: bool,
        follows: bool = False,
        files: bool = True,
        wanted: Callable[[str, bool], bool | None] | None = None,
        unhides: Callable[[str], bool | None] | None = None,
    ) -> None:
        self.errors = 0
        """Folders that could not be read, and links that could not be followed."""
        self.left_out = 0
        """Entries that were hidden or ignored; what lies in them is not counted."""
        self._workspace = workspace
        self._patience = patience
        self._hidden = hidden
        self._no_ignore = no_ignore
        self._follows = follows
        self._files = files
        self._deciding = DECIDING if workspace.gitignore else DECIDING - GITS
        self._wanted = wanted
        self._unhides = unhides

    def below(self, place: Place, depth: int = 0, deepest: int | None = None) -> Iterator[Entry]:
        """What lies below a folder, each folder before what is in it.

        Args:
            place: The folder.
            depth: How deep the folder itself is taken to be.
            deepest: How deep the deepest entries are; None: all are walked.

        Raises:
            Interrupted: It took too long, or was cancelled.
        """
        if deepest is not None and deepest <= depth:
            return
        try:
            folder = place.root.folder(place.relative)
        except (OSError, ValueError):
            self.errors += 1
            return
        prefix = f"{place.relative}/" if place.relative else ""
        stack = [_Level(folder, prefix, self._rules_to(place))]
        try:
            self._list(stack[0])
            yield from self._entries(place.root, stack, depth, deepest)
        finally:
            for level in stack:
                level.folder.close()

    def _entries(self, root: Root, stack: list[_Level], start: int, deepest: int | None) -> Iterator[Entry]:
        seen = 0
        while stack:
            level = stack[-1]
            for name, kind in level.rest:
                seen += 1
                if not seen % _CHECK_EVERY:
                    self._patience.check()
                path = level.prefix + name
                may_enter = True
                if kind == "l" and self._follows:
                    kind = self._led_to(stack, name)
                    may_enter = self._workspace.may_follow(root, path)
                if not self._is_seen(root, level, path, name, kind):
                    continue
                entry = Entry(root, level.folder, path, name, kind, start + len(stack))
                entry.enter = may_enter
                yield entry
                if kind == "d" and entry.enter and entry.depth != deepest and self._enter(stack, entry):
                    break
            else:
                stack.pop().folder.close()

    def _led_to(self, stack: list[_Level], name: str) -> str:
        """The kind of what a link leads to; that of a link where it leads nowhere, or to a folder that it lies in."""
        try:
            target = stack[-1].folder.stat(name, itself=False)
            if not any(os.path.samestat(target, level.folder.stat(".")) for level in stack):
                return kind_of(target.st_mode)
        except OSError:
            pass
        self.errors += 1
        return "l"

    def _enter(self, stack: list[_Level], entry: Entry) -> bool:
        level = stack[-1]
        try:
            folder = level.folder.enter(entry.name)
        except OSError:
            self.errors += 1
            return False
        stack.append(_Level(folder, f"{entry.relative}/", level.rules))
        self._list(stack[-1])
        return True

    def _list(self, level: _Level) -> None:
        try:
            entries = level.folder.entries()
        except OSError:
            self.errors += 1
            return
        level.rest = iter(entries if self._files else [entry for entry in entries if entry[1] != "f"])
        if not self._no_ignore and (deciding := [name for name, _ in entries if name in self._deciding]):
            level.rules = self._rules_in(level.folder, deciding, level.prefix.count("/"), level.rules)

    def _rules_in(
        self, folder: Folder, deciding: Collection[str], depth: int, rules: tuple[Rules, ...]
    ) -> tuple[Rules, ...]:
        """The ignore files that hold in a folder; `deciding` are names of such, `rules` those of the folder above."""
        if ".git" in deciding and self._workspace.lies_in_repository and folder.has(".git"):
            rules = tuple(file for file in rules if not file.of_git)
        return heaviest_first((*of_folder(folder, deciding, depth), *rules))

    def _is_seen(self, root: Root, level: _Level, path: str, name: str, kind: str) -> bool:
        if self._workspace.hides(name) or not (kind == "d" or root.shows(name)):
            return False
        if self._wanted is not None and (wanted := self._wanted(path, kind == "d")) is not None:
            return wanted
        ignored = decided(level.rules, path, name, is_folder=kind == "d") if level.rules else None
        left_out = ignored or (ignored is None and name.startswith(".") and self._is_hidden(name, kind))
        self.left_out += left_out
        return not left_out and not self._workspace.unlists(root, path, is_folder=kind == "d")

    def _is_hidden(self, name: str, kind: str) -> bool:
        """Of a name that starts with a dot."""
        return not (self._hidden or (kind != "d" and self._unhides is not None and self._unhides(name)))

    def _rules_to(self, place: Place) -> tuple[Rules, ...]:
        """The ignore files above a folder, down from the root."""
        if self._no_ignore:
            return ()
        root = place.root
        rules = () if self._workspace.guarded or not self._workspace.gitignore else above(os.path.abspath(root.path))
        names = place.relative.split("/") if place.relative else []
        for depth in range(len(names)):
            try:
                folder = root.folder("/".join(names[:depth]))
            except OSError:
                break
            try:
                rules = self._rules_in(folder, self._deciding, depth, rules)
            finally:
                folder.close()
        return rules


class _Level:
    """A folder on the way down: what of it is still to be seen, and the ignore files that hold for it."""

    __slots__ = ("folder", "prefix", "rest", "rules")

    def __init__(self, folder: Folder, prefix: str, rules: tuple[Rules, ...]) -> None:
        self.folder = folder
        self.prefix = prefix
        self.rules = rules
        self.rest: Iterator[tuple[str, str]] = iter(())
