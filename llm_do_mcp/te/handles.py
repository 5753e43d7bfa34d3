"""Where what was left out of an answer is kept until it is asked for: a private folder of the user.

A handle names a file that only its session finds: the file's name begins with a digest of the session's id, so a
handle of another session is as good as none. Handles die with their session: files that nobody asked for within a
day are removed, and the newest are kept where the cap on all of them is met. Nothing else is kept. All sessions share
one folder, since each command that keeps something looks at all that is kept.

A file begins with a line that names the command whose text it is. It holds the text itself, or, where writing all lines
would take longer than the search did, what the text is made from when somebody asks for it (`recall.py`).
"""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress

from llm_do_mcp.te.regular import opened
from llm_do_mcp.te.settings import KEPT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, BinaryIO

CAP = 512 << 20
"""Bytes of all that is kept for a user."""
LARGEST = 256 << 20
"""Bytes of one text."""
LIFE_SECONDS = 24 * 3600.0
PREFIX = "res_"
RECIPE = ".recipe"
"""The ending of a file that a text is made from."""
_DIGITS = 16
_HEXADECIMAL = frozenset("0123456789abcdef")
NOT_OURS = (ValueError, EOFError, TypeError, KeyError)
"""What comes of reading something that was not written here: what a crash has left, or somebody else."""
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class Handles:
    """What one session keeps.

    Args:
        session: The session's id; any text.
        folder: Where all sessions of this user keep their things; None for the usual place.
    """

    def __init__(self, session: str, folder: str | None = None) -> None:
        self._session = session
        self._folder = folder or usual_folder()
        self._digest = ""
        self.problem = ""
        """Why the last text could not be kept."""

    def keep(self, write: Callable[[BinaryIO], object], *, of: str = "", recipe: bool = False) -> str:
        """Keep what `write` writes, and return its handle; "" where it cannot be kept.

        Args:
            write: Writes the text.
            of: The command whose text it is.
            recipe: Whether it is what the text is made from.
        """
        handle = PREFIX + os.urandom(_DIGITS // 2).hex()
        try:
            self._write(handle + RECIPE * recipe, of, write)
        except OSError as error:  # the disk is full, the folder is not ours: there is no handle, and that is told
            self.problem = _reason(error)
            return ""
        return handle

    def text(self, handle: str, make: Callable[[BinaryIO, BinaryIO], object]) -> tuple[str, BinaryIO] | None:
        """The text behind a handle, from where the file stands on, and the command whose it is.

        None where this session has no such handle, or where, as `problem` says, the text cannot be made.

        Args:
            handle: As it was given; see `is_handle`.
            make: Writes the text (second) that is made from a recipe (first).
        """
        with suppress(OSError, *NOT_OURS):
            if (found := self._open(handle)) is not None:
                return found
            if (kept := self._open(handle + RECIPE)) is not None:
                of, recipe = kept
                with recipe:
                    try:
                        self._write(handle, of, lambda file: make(recipe, file))
                    except OSError as error:  # as where it is kept; the recipe stays, for who makes room
                        self.problem = _reason(error)
                        return None
                with suppress(OSError):  # who asked at the same time has made it too
                    os.unlink(self._path(handle + RECIPE))
            return self._open(handle)
        return None

    def _open(self, name: str) -> tuple[str, BinaryIO] | None:
        try:
            path = self._path(name)
            file = open(opened(path, links=False), "rb")  # noqa: SIM115 - the caller closes it
        except FileNotFoundError:
            return None
        try:
            with suppress(OSError):  # a folder that may only be read
                os.utime(path)  # in use: among the newest
            return file.readline().decode().rstrip("\n"), file
        except BaseException:
            file.close()
            raise

    def _write(self, name: str, of: str, write: Callable[[BinaryIO], object]) -> None:
        """Write a file that is there whole or not at all."""
        path = self._path(name)
        draft = f"{path}.{os.urandom(4).hex()}"
        handle = os.open(draft, _NEW, 0o600)
        try:
            with open(handle, "wb") as file:
                file.write(f"{of}\n".encode())
                write(file)
            os.replace(draft, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(draft)
            raise
        self._tidy(path)

    def _path(self, name: str) -> str:
        """Where a file of this session is; the folder is made and checked when it is first needed."""
        if not self._digest:
            _make_private(self._folder)
            self._digest = _blake2b()(self._session.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        return os.path.join(self._folder, f"{self._digest}-{name}")

    def _tidy(self, newest: str) -> None:
        """Remove what nobody has asked for in a day, and the oldest where there is more than the cap."""
        files: list[tuple[float, int, str]] = []
        with os.scandir(self._folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    about = entry.stat(follow_symlinks=False)
                    files.append((about.st_mtime, about.st_size, entry.path))
        left, oldest = CAP, time.time() - LIFE_SECONDS
        for modified, size, path in sorted(files, reverse=True):
            left -= size
            if path != newest and (left < 0 or modified < oldest):
                with suppress(OSError):  # another process was faster, or has it open (Windows)
                    os.unlink(path)


def is_handle(text: str) -> bool:
    """Whether a text has the form of a handle."""
    digits = text.removeprefix(PREFIX)
    return len(text) == len(PREFIX) + _DIGITS == len(digits) + len(PREFIX) and _HEXADECIMAL.issuperset(digits)


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _blake2b() -> Any:
    """`hashlib.blake2b`, where possible without all of `hashlib`: loading OpenSSL takes as long as a small search."""
    try:
        from _blake2 import blake2b
    except ImportError:
        from hashlib import blake2b
    return blake2b


def usual_folder() -> str:
    """The user's folder below the one for temporary files."""
    return os.path.join(temporary_folder(), KEPT)


def temporary_folder() -> str:
    """The folder for temporary files, without `tempfile`, whose import takes as long as a small search."""
    return next((folder for name in ("TMPDIR", "TEMP", "TMP") if (folder := os.environ.get(name))), "/tmp")


def _make_private(folder: str) -> None:
    """Make a folder for the user alone, or make sure that it is one; raises `OSError` where it is not."""
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    about = os.lstat(folder)
    if not stat.S_ISDIR(about.st_mode) or (
        hasattr(os, "getuid") and (about.st_uid != os.getuid() or stat.S_IMODE(about.st_mode) & 0o077)
    ):
        raise PermissionError("not a private folder of this user")
