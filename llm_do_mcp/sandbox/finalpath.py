"""Opening below a directory on Windows: open by path, then ask the system which file that was.

Windows has no call that opens relative to a directory. What it can tell is the true path of an open handle, so a read
never hands out a file that lies elsewhere, whatever was moved in between. A new file is checked in the same way
before anything is written into it; the rename that puts it in place goes by path, and whoever swaps folders at that
very moment can misdirect it. Links and junctions are followed only to read a file.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llm_do_mcp.sandbox.backend import Hidden, Kind, Scanned, kind_of, write_all
from llm_do_mcp.sandbox.names import below, new_leftover

_BINARY = getattr(os, "O_BINARY", 0)
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)
_JUNCTION = 0xA0000003  # IO_REPARSE_TAG_MOUNT_POINT; Python takes a junction for a directory
_ABANDONED_AFTER = 60.0  # seconds; an open file cannot be removed on Windows, this covers the moment of its rename


def _path_of_handle(fd: int) -> str:
    """The true path of an open file, as Windows knows it."""
    if sys.platform != "win32":
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    import ctypes
    import msvcrt

    final_path = ctypes.WinDLL("kernel32", use_last_error=True).GetFinalPathNameByHandleW
    final_path.argtypes = (ctypes.c_void_p, ctypes.c_wchar_p, ctypes.c_uint32, ctypes.c_uint32)
    final_path.restype = ctypes.c_uint32
    buffer = ctypes.create_unicode_buffer(32_768)
    if not final_path(msvcrt.get_osfhandle(fd), buffer, len(buffer), 0):
        raise ctypes.WinError(ctypes.get_last_error())
    path = buffer.value
    if path.startswith("\\\\?\\UNC\\"):
        return "\\\\" + path.removeprefix("\\\\?\\UNC\\")
    return path.removeprefix("\\\\?\\")


@dataclass(frozen=True)
class Place:
    """A directory by its true path, with what tells it from another one that takes its place."""

    path: str
    identity: tuple[int, int]


class OpenThenVerify:
    """The back end that verifies after opening.

    Args:
        path_of: The true path of an open file.
    """

    def __init__(self, path_of: Callable[[int], str] = _path_of_handle) -> None:
        self._path_of = path_of

    def root(self, path: str, *, follow: bool) -> Place:
        true = os.path.realpath(path)
        if not follow and os.path.normcase(true) != os.path.normcase(os.path.normpath(path)):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        return _place(true)

    def directory(self, base: Place, parts: Sequence[str], *, follow: bool, hidden: Hidden) -> Place:
        path = self._below(base, ())
        for name in parts:
            path = os.path.join(path, name)
            if _kind(os.lstat(path)) == "link":
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        return _place(os.path.realpath(path))

    def file(self, base: Place, parts: Sequence[str], *, hidden: Hidden, follow: bool = True) -> int:
        path = self._below(base, parts)
        if os.path.isdir(path):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        fd = os.open(path, os.O_RDONLY | _BINARY | _NONBLOCK)
        try:
            inner = self._verify(base, fd, hidden)
            if not follow and inner != tuple(os.path.normcase(name) for name in parts if name != "."):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        except BaseException:
            os.close(fd)
            raise
        return fd

    def at_once(self, base: Place, parts: Sequence[str], limit: int) -> bytes | None:
        return None

    def gives_at_once(self, fd: int) -> bool:
        return False

    def stat(self, base: Place, parts: Sequence[str], *, hidden: Hidden) -> os.stat_result:
        found = os.lstat(self._below(base, parts))
        if _kind(found) != "link":
            self.directory(base, parts[:-1], follow=False, hidden=hidden)
            return found
        fd = self.file(base, parts, hidden=hidden)
        try:
            return os.fstat(fd)
        finally:
            os.close(fd)

    def own_stat(self, base: Place, name: str) -> os.stat_result:
        return os.lstat(self._below(base, (name,)))

    def scan(self, base: Place, parts: Sequence[str], *, hidden: Hidden) -> list[Scanned]:
        found = []
        with os.scandir(self.directory(base, parts, follow=False, hidden=hidden).path) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):  # deleted while the directory is read
                    status = entry.stat(follow_symlinks=False)
                    found.append(Scanned(entry.name, _kind(status), status.st_size))
        return found

    def make_directory(self, base: Place, name: str) -> None:
        os.mkdir(self._below(base, (name,)))

    def replace_file(self, base: Place, name: str, data: bytes, *, mode: int | None) -> None:
        temporary = self._below(base, (new_leftover(),))
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o666 if mode is None else mode)
        try:
            try:
                self._verify(base, fd, lambda name: False)
                write_all(fd, data)
                os.fsync(fd)
            finally:
                os.close(fd)  # an open file cannot be renamed
            os.replace(temporary, self._below(base, (name,)))
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise

    def remove_file(self, base: Place, name: str) -> None:
        os.unlink(self._below(base, (name,)))

    def remove_directory(self, base: Place, name: str) -> None:
        os.rmdir(self._below(base, (name,)))

    def remove_abandoned(self, base: Place, name: str) -> None:
        path = self._below(base, (name,))
        if time.time() - os.lstat(path).st_mtime >= _ABANDONED_AFTER:
            with contextlib.suppress(PermissionError):  # its writer lives
                os.unlink(path)

    def is_gone(self, base: Place) -> bool:
        try:
            return _place(base.path).identity != base.identity
        except OSError:
            return True

    def _below(self, base: Place, parts: Sequence[str]) -> str:
        if self.is_gone(base):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return os.path.join(base.path, *parts)

    def _verify(self, base: Place, fd: int, hidden: Hidden) -> tuple[str, ...]:
        """The names that lead to what was opened."""
        inner = below(self._path_of(fd), base.path)
        if inner is None:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        if any(map(hidden, inner)):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return inner


def _place(path: str) -> Place:
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    return Place(path, (status.st_dev, status.st_ino))


def _kind(status: os.stat_result) -> Kind:
    return "link" if getattr(status, "st_reparse_tag", 0) == _JUNCTION else kind_of(status.st_mode)
