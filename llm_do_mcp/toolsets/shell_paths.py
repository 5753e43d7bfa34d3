"""Which words of a command could name a file, and that none of them leads out of the folders it may touch.

Nobody can tell in general which words a program takes for paths. So every word is resolved as one, from the working
folder and through the links that are there now; and so is whatever follows the separators by which programs tack a path
to something else (`--file=PATH`, `-fPATH`, `host:PATH`, `@PATH`). A word that is no path resolves to a name in the
working folder, and passes. One that begins with `/`, such as a pattern, is taken for a path and has to be written
differently.

A word that names a protected file (`patterns.is_protected`) in a writable folder is refused as well, but to programs
that only read. This binds what is typed, not what a program then does: it can open what it likes, and read paths from
files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence

from llm_do_mcp.errors import InvalidInput, SandboxError
from llm_do_mcp.sandbox import names
from llm_do_mcp.sandbox.files import Handles
from llm_do_mcp.sandbox.patterns import ALWAYS_PROTECTED, is_protected
from llm_do_mcp.sandbox.root import Root

_ONLY_READ = frozenset(("cat", "cmp", "diff", "du", "file", "grep", "head", "ls", "stat", "tail", "wc"))
"""Programs that write nothing but their output, whatever their words."""
_READ_PATHS = ("cat", "cmp", "diff", "du", "file", "find", "head", "ls", "sort", "stat", "tail", "tree", "wc")
_TAKE_PATHS = frozenset((*_READ_PATHS, "cp", "mkdir", "mv", "rm", "rmdir", "touch"))
"""Programs whose words are paths, so that an alias alone is meant as the folder: elsewhere it may be any word. Of
`find` only those before its first option are."""
_BEFORE_A_PATH = re.compile(r"[=:,@]")
_URL = re.compile(r"https?:(?=//[^/])", re.IGNORECASE)
_SEPARATORS = "/\\" if os.name == "nt" else "/"
_MOST_PARTS = 400
"""How many parts of one word are resolved where they are more than names: each takes time."""
_HOME = r"~(?:\Z|[/\\A-Za-z_+-])"
_ELSEWHERE = re.compile(rf"{_HOME}|[A-Za-z]:(?![/\\])" if os.name == "nt" else _HOME)


class Reach:
    """The folders that a command may touch.

    Args:
        roots: Those that its words may lead into.
        known: All roots by alias: how words may spell them.
        folder: Where it runs, absolute and without links.
        own: A folder that is the command's own, and may be touched besides; or None.
        handles: Open roots.
    """

    def __init__(
        self, roots: Sequence[Root], known: Mapping[str, Root], folder: str, own: str | None, handles: Handles
    ) -> None:
        self._roots, self._known, self._folder, self._own, self._handles = roots, known, folder, own, handles

    def confined(self, program: str, words: Sequence[str]) -> tuple[str, ...]:
        """The words as the program is given them: `alias/path` is written as it is found from the working folder.

        Args:
            program: Its name.
            words: All others.

        Raises:
            InvalidInput: One of them leads elsewhere.
        """
        paths = len(words) if program in _TAKE_PATHS else 0
        if program == "find":
            paths = next((index for index, word in enumerate(words) if word.startswith("-")), paths)
        given = tuple(self._translated(word, is_path=index < paths) for index, word in enumerate(words))
        for word, typed in zip(given, words, strict=True):
            parts = [*_paths_in(word)]
            if len(parts) > _MOST_PARTS and any(character in word for character in _SEPARATORS):
                raise InvalidInput(
                    f"shell: {names.one_line(typed)!r}: too many parts of it could be paths to check them"
                )
            if not all(map(self._stays, parts)):
                folders = ", ".join(f"{root.alias}/" for root in self._roots) or "its own empty folder"
                raise InvalidInput(
                    f"shell: {names.one_line(typed)!r} leads out of what this command may touch: {folders}"
                )
            if program not in _ONLY_READ and any(map(self._is_protected, parts)):
                reading = ", ".join(sorted(_ONLY_READ))
                raise InvalidInput(
                    f"shell: {names.one_line(typed)!r} names a protected file: commands may not change what the "
                    f"project, its history or its approvals are read from; programs that may look at it: {reading}"
                )
        return given

    def _translated(self, word: str, *, is_path: bool) -> str:
        option, equals, value = word.partition("=") if word.startswith("-") else ("", "", word)
        alias, slash, rel = value.partition("/")
        root = self._known.get(alias)
        if root is None or not (slash or (is_path and not option)):
            return word
        try:
            parts = self._handles.of(root).parts(rel or ".")
        except SandboxError as error:
            raise InvalidInput(f"shell: {error}") from None
        path = os.path.relpath(os.path.join(root.path, *parts), self._folder)
        if not path.startswith(os.pardir) and not os.path.isabs(path):
            path = os.path.join(os.curdir, path)  # never an option, whatever the file is called
        return f"{option}{equals}{path}{os.sep if parts[-1:] == ('.',) else ''}"

    def _is_protected(self, path: str) -> bool:
        place = os.path.realpath(os.path.join(self._folder, path))
        for root in self._roots:
            parts = names.below(place, root.path)
            if parts and root.mode != "ro" and is_protected((*ALWAYS_PROTECTED, *root.protected), parts):
                return True
        return False

    def _stays(self, path: str) -> bool:
        if path == os.devnull:
            return True
        if _ELSEWHERE.match(path):
            return False
        place = os.path.realpath(os.path.join(self._folder, path))
        if self._own is not None and names.below(place, self._own) is not None:
            return True
        for root in self._roots:
            parts = names.below(place, root.path)
            if parts is not None:
                hidden = {names.fold(name) for name in root.hidden}
                return not any(names.fold(name) in hidden for name in parts)
        return False


def inside(path: str, folders: Sequence[str]) -> bool:
    """Whether a path, without links, is one of these folders or lies in one."""
    return any(names.is_below(path, folder) for folder in folders)


def _paths_in(word: str) -> Iterator[str]:
    """Every part of a word that a program might take for a path."""
    yield word
    urls = {url.end() for url in _URL.finditer(word)}
    for separator in _BEFORE_A_PATH.finditer(word):
        if separator.end() not in urls:
            yield word[separator.end() :]
    if word.startswith("-"):
        letters = len(re.split(r"[/\\=]", word, maxsplit=1)[0])
        for begin in range(max(1, letters - names.MAX_NAME_BYTES), letters + 1):
            yield word[begin:]
