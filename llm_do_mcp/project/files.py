"""A project's own files, read through the sandbox's opener: nothing that is loaded lies outside the project.

What is there, and what not, is found out once: whoever has these files sees no file come or go. `seen` tells when it is
time to load them anew.
"""

from __future__ import annotations

import codecs
import stat
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal

from llm_do_mcp.errors import FileMissing, ProjectError, SandboxError
from llm_do_mcp.project.seen import Seen
from llm_do_mcp.sandbox import names
from llm_do_mcp.sandbox.opener import Directory, Found
from llm_do_mcp.sandbox.root import STATE_FOLDER

if TYPE_CHECKING:
    from llm_do_mcp.project.libslock import LockedLibrary

MAX_FILE_BYTES = 1_000_000

Kind = Literal["file", "directory"]


class ProjectFiles:
    """The files below one folder. Paths are relative to it and separated by `/`.

    Args:
        root: The folder's absolute path.
        locked: What `libs.lock` has of it, where it is a library: what is not as it was is refused.
        label: What errors put before a path: `utils:` where it is the library utils.
    """

    def __init__(self, root: str, locked: LockedLibrary | None = None, *, label: str = "") -> None:
        self.root = root
        self.locked = locked
        self.label = label
        self.seen = Seen(root)
        self._directory = Directory.open(root, hidden=(STATE_FOLDER,))
        self._whole: Seen | None = None
        self._kinds: dict[str, Kind | None] = {}
        self._listed: dict[str, set[str]] = {}

    def shown(self, path: str) -> str:
        """A path as a person would name it: `utils:workers/x.worker` in a library."""
        return f"{self.label}{path}"

    def kind(self, path: str) -> Kind | None:
        """What is at a path, or None where nothing is.

        Raises:
            ProjectError: Something that is neither (a FIFO, a device), or a link that leads outside.
            LibraryChanged: It is not what the lock has.
        """
        kind = self._kind(path)
        if self.locked is not None:
            self.locked.check_kind(path, kind)
        return kind

    def _kind(self, path: str) -> Kind | None:
        if path not in self._kinds:
            self._kinds[path] = None if self._is_absent(path) else self._look(path)
        return self._kinds[path]

    def _is_absent(self, path: str) -> bool:
        """Whether what was listed tells that there is nothing at a path."""
        folder, _, name = path.rpartition("/")
        listed = self._listed.get(folder)
        if listed is None:
            return bool(folder) and self._is_absent(folder)
        return names.fold(name) not in listed

    def _look(self, path: str) -> Kind | None:
        self.seen.kind(path)
        try:
            mode = self._directory.stat(path).st_mode
        except FileMissing:
            return None
        except SandboxError as error:
            if self._below_a_file(path):
                return None
            raise self._error(error, path) from None
        if stat.S_ISREG(mode):
            return "file"
        if stat.S_ISDIR(mode):
            return "directory"
        raise ProjectError("not a regular file", path=self.shown(path))

    def read_bytes(self, path: str) -> bytes:
        """A whole file.

        Raises:
            ProjectError: It is missing, too large, not a regular file, or not inside.
            LibraryChanged: It is not what the lock has.
        """
        self.seen.content(path)
        try:
            data, whole = self._directory.read(path, MAX_FILE_BYTES)
        except SandboxError as error:
            raise self._error(error, path) from None
        if not whole:
            raise ProjectError(f"larger than {MAX_FILE_BYTES:,} bytes, the most that is loaded", path=self.shown(path))
        if self.locked is not None:
            self.locked.check(path, data)
        return data

    def check_whole(self) -> None:
        """Check all of a locked library, also what nobody has read; once, and again when something has changed.

        Raises:
            LibraryChanged: Something is not what the lock has, or cannot be read any more.
        """
        if self.locked is None or (self._whole is not None and not self._whole.changed()):
            return
        seen = Seen(self.root)
        self.locked.check_whole(self.root, seen)
        self._whole = seen

    def walk(self, path: str, descend: Callable[[tuple[str, ...]], bool]) -> Iterator[Found]:
        """All that lies below a folder; nothing where there is no such folder."""

        listed: dict[str, set[str]] = {path: set()}

        def noted(parts: tuple[str, ...]) -> bool:
            enters = descend(parts)
            if enters:
                self.seen.content("/".join(parts))
                listed["/".join(parts)] = set()
            return enters

        if self.kind(path) == "directory":
            self.seen.content(path)
            for found in self._directory.walk(path, descend=noted):
                if found.kind == "unreadable":
                    listed.pop("/".join(found.parts), None)
                listed.setdefault("/".join(found.parts[:-1]), set()).add(names.fold(found.parts[-1]))
                yield found
            self._listed.update(listed)

    def _below_a_file(self, path: str) -> bool:
        """Whether a folder on the way is a file, so that there is nothing at the path."""
        folder = path.rpartition("/")[0]
        return bool(folder) and self._kind(folder) != "directory"

    def _error(self, error: SandboxError, path: str) -> ProjectError:
        return ProjectError(str(error).removeprefix(f"{path}: "), path=self.shown(path))


def decode(data: bytes, path: str) -> str:
    """The text of a file, without a byte order mark.

    Raises:
        ProjectError: It is not UTF-8; names the byte.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ProjectError("UTF-16; save it as UTF-8", path=path)
    body = data.removeprefix(codecs.BOM_UTF8)
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        before = body[: error.start].decode()
        message = f"not UTF-8 at byte {len(data) - len(body) + error.start}; save it as UTF-8"
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        raise ProjectError(message, path=path, line=line, column=column) from None
