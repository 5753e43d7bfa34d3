"""A project's own files, read through the sandbox's opener: nothing that is loaded lies outside the project."""

from __future__ import annotations

import codecs
import stat
from collections.abc import Callable, Iterator
from typing import Literal

from llm_do_mcp.errors import FileMissing, ProjectError, SandboxError
from llm_do_mcp.sandbox.opener import Directory, Found
from llm_do_mcp.sandbox.root import STATE_FOLDER

MAX_FILE_BYTES = 1_000_000


class ProjectFiles:
    """The files below one folder. Paths are relative to it and separated by `/`.

    Args:
        root: The folder's absolute path.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self._directory = Directory.open(root, hidden=(STATE_FOLDER,))

    def kind(self, path: str) -> Literal["file", "directory"] | None:
        """What is at a path, or None where nothing is.

        Raises:
            ProjectError: Something that is neither (a FIFO, a device), or a link that leads outside.
        """
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
        raise ProjectError("not a regular file", path=path)

    def read_bytes(self, path: str) -> bytes:
        """A whole file.

        Raises:
            ProjectError: It is missing, too large, not a regular file, or not inside.
        """
        try:
            data, whole = self._directory.read(path, MAX_FILE_BYTES)
        except SandboxError as error:
            raise self._error(error, path) from None
        if not whole:
            raise ProjectError(f"larger than {MAX_FILE_BYTES:,} bytes, the most that is loaded", path=path)
        return data

    def walk(self, path: str, descend: Callable[[tuple[str, ...]], bool]) -> Iterator[Found]:
        """All that lies below a folder; nothing where there is no such folder."""
        if self.kind(path) == "directory":
            yield from self._directory.walk(path, descend=descend)

    def _below_a_file(self, path: str) -> bool:
        """Whether a folder on the way is a file, so that there is nothing at the path."""
        folder = path.rpartition("/")[0]
        return bool(folder) and self.kind(folder) != "directory"

    @staticmethod
    def _error(error: SandboxError, path: str) -> ProjectError:
        return ProjectError(str(error).removeprefix(f"{path}: "), path=path)


def decode(data: bytes, path: str) -> str:
    """The text of a file, without a byte order mark.

    Raises:
        ProjectError: It is not UTF-8; names the byte.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ProjectError("UTF-16; save it as UTF-8", path=path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"not UTF-8 at byte {error.start}; save it as UTF-8"
        raise ProjectError(message, path=path, line=data.count(b"\n", 0, error.start) + 1) from None
