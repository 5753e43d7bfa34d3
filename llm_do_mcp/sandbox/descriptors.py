"""Opening below a directory on POSIX: by descriptor, never by a path that is checked first and opened later.

Whoever can rename files while we look can make a checked path mean something else by the time it is opened. So
nothing is checked: each name is opened relative to the directory that was opened before it, and a link is refused by
the kernel in that same call. Links are followed here, in user space: their names are walked like any others, `..`
goes back to a directory that is still open, and what is absolute or climbs above the root is refused.

`Beneath` lets `openat2` do the common case, a path without links, in one call, and walks only where there is one.
Writes follow no links at all, so that the path that a person approved is the path that is written.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import os
import stat
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from llm_do_mcp.sandbox.backend import Hidden, Scanned, kind_of, write_all
from llm_do_mcp.sandbox.names import new_leftover

MAX_LINKS = 40
_SEARCH = getattr(os, "O_PATH", os.O_RDONLY)  # a descriptor to start from needs no permission to list
_DIRECTORY = getattr(os, "O_DIRECTORY", 0)
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)  # a FIFO must not make us wait
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_LINK_ERRORS = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK)  # what O_NOFOLLOW says, depending on system and flags

Result = TypeVar("Result")


class Descriptor:
    """An open directory, closed when nobody refers to it any more."""

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        close(self.fd)


def _nothing_hidden(name: str) -> bool:
    return False


class NameByName:
    """The back end that asks the kernel for one name at a time."""

    def root(self, path: str, *, follow: bool) -> Descriptor:
        if follow:
            return Descriptor(os.open(path, _SEARCH | _DIRECTORY))
        top = Descriptor(os.open("/", _SEARCH | _DIRECTORY))
        parts = [part for part in path.split("/") if part not in ("", ".")]
        return self.directory(top, parts, follow=False, hidden=_nothing_hidden)

    def directory(self, base: Descriptor, parts: Sequence[str], *, follow: bool, hidden: Hidden) -> Descriptor:
        return Descriptor(self._open(base, parts, _SEARCH | _DIRECTORY, follow=follow, hidden=hidden))

    def file(self, base: Descriptor, parts: Sequence[str], *, hidden: Hidden, follow: bool = True) -> int:
        return self._open(base, parts, _READ, follow=follow, hidden=hidden)

    def at_once(self, base: Descriptor, parts: Sequence[str], limit: int) -> bytes | None:
        return None

    def gives_at_once(self, fd: int) -> bool:
        return False

    def stat(self, base: Descriptor, parts: Sequence[str], *, hidden: Hidden) -> os.stat_result:
        def stat_unless_link(fd: int, name: str) -> os.stat_result:
            found = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if stat.S_ISLNK(found.st_mode):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            return found

        return _walk(base, parts, stat_unless_link, follow=True, hidden=hidden)

    def own_stat(self, base: Descriptor, name: str) -> os.stat_result:
        return os.stat(name, dir_fd=base.fd, follow_symlinks=False)

    def scan(self, base: Descriptor, parts: Sequence[str], *, hidden: Hidden) -> list[Scanned]:
        fd = self._open(base, parts, os.O_RDONLY | _DIRECTORY, follow=False, hidden=hidden)
        try:
            with os.scandir(fd) as entries:
                return [scanned for entry in entries if (scanned := _scanned(entry)) is not None]
        finally:
            os.close(fd)

    def make_directory(self, base: Descriptor, name: str) -> None:
        os.mkdir(name, dir_fd=base.fd)

    def replace_file(self, base: Descriptor, name: str, data: bytes, *, mode: int | None) -> None:
        temporary, fd = _create_locked(base.fd, mode)
        try:
            write_all(fd, data)
            os.fsync(fd)
            os.rename(temporary, name, src_dir_fd=base.fd, dst_dir_fd=base.fd)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=base.fd)
            raise
        finally:
            os.close(fd)
        _sync_directory(base.fd)

    def remove_file(self, base: Descriptor, name: str) -> None:
        os.unlink(name, dir_fd=base.fd)

    def remove_directory(self, base: Descriptor, name: str) -> None:
        os.rmdir(name, dir_fd=base.fd)

    def remove_abandoned(self, base: Descriptor, name: str) -> None:
        import fcntl  # here, so that this module can be imported where it is missing

        fd = os.open(name, _READ | _NOFOLLOW, dir_fd=base.fd)
        try:
            with contextlib.suppress(BlockingIOError):  # its writer lives
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(name, dir_fd=base.fd)
        finally:
            os.close(fd)

    def is_gone(self, base: Descriptor) -> bool:
        return os.fstat(base.fd).st_nlink == 0

    def _open(self, base: Descriptor, parts: Sequence[str], flags: int, *, follow: bool, hidden: Hidden) -> int:
        def open_unless_link(fd: int, name: str) -> int:
            return os.open(name, flags | _NOFOLLOW, dir_fd=fd)

        return _walk(base, parts, open_unless_link, follow=follow, hidden=hidden)


class Beneath(NameByName):
    """The back end that hands a whole path to `openat2`, and walks where the kernel meets a link."""

    @staticmethod
    def works() -> bool:
        """Whether the kernel has the call and whatever confines us lets it through."""
        if not sys.platform.startswith("linux"):
            return False
        here = os.open("/", _SEARCH | _DIRECTORY)
        try:
            os.close(openat2(here, ".", _SEARCH | _DIRECTORY))
        except OSError:
            return False
        finally:
            os.close(here)
        return True

    def at_once(self, base: Descriptor, parts: Sequence[str], limit: int) -> bytes | None:
        try:
            fd = openat2(base.fd, "/".join(parts) or ".", _READ, cached=True)
        except OSError:  # it would wait, or is to be told of by whoever may
            return None
        try:
            about = os.fstat(fd)
            if not stat.S_ISREG(about.st_mode) or about.st_size > limit:
                return None
            data = bytearray(about.st_size + 1)
            length = os.preadv(fd, [data], 0, os.RWF_NOWAIT)
            return bytes(data[:length]) if length == about.st_size else None
        except OSError:
            return None
        finally:
            os.close(fd)

    def gives_at_once(self, fd: int) -> bool:
        # Only file systems on a disk of this machine can be told not to wait: one that a server has (NFS, FUSE) cannot,
        # and would ask that server at each `open`.
        try:
            os.preadv(fd, [bytearray(1)], 0, os.RWF_NOWAIT)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True

    def stat(self, base: Descriptor, parts: Sequence[str], *, hidden: Hidden) -> os.stat_result:
        try:
            fd = openat2(base.fd, "/".join(parts) or ".", _SEARCH)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            return super().stat(base, parts, hidden=hidden)
        try:
            return os.fstat(fd)
        finally:
            os.close(fd)

    def _open(self, base: Descriptor, parts: Sequence[str], flags: int, *, follow: bool, hidden: Hidden) -> int:
        try:
            return openat2(base.fd, "/".join(parts) or ".", flags)
        except OSError as error:
            if error.errno != errno.ELOOP or not follow:
                raise
            return super()._open(base, parts, flags, follow=follow, hidden=hidden)


def _walk(
    base: Descriptor,
    parts: Sequence[str],
    act: Callable[[int, str], Result],
    *,
    follow: bool,
    hidden: Hidden,
) -> Result:
    """Go down from a directory name by name and do something with the last one.

    Args:
        act: Gets the last name's directory and the name; must raise `ELOOP` or `ENOTDIR` where it is a link.
    """
    opened = [base]
    todo = [*reversed(parts)] or ["."]
    links = 0
    while True:
        name = todo.pop()
        if name == "..":
            if len(opened) == 1:
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
            opened.pop()
            if todo:
                continue
            name = "."
        if hidden(name):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        here = opened[-1].fd
        try:
            if not todo:
                return act(here, name)
            opened.append(Descriptor(os.open(name, _SEARCH | _DIRECTORY | _NOFOLLOW, dir_fd=here)))
            continue
        except OSError as error:
            target = _link_target(here, name) if error.errno in _LINK_ERRORS else None
            if target is None:
                raise
        links += 1
        if links > MAX_LINKS or not follow:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if target.startswith("/"):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        todo.extend(part for part in reversed(target.split("/")) if part not in ("", "."))
        todo = todo or ["."]


def _link_target(directory: int, name: str) -> str | None:
    try:
        return os.readlink(name, dir_fd=directory)
    except OSError:  # no link, or none any more: the error that was met first stands
        return None


def _scanned(entry: os.DirEntry[str]) -> Scanned | None:
    try:
        mode = entry.stat(follow_symlinks=False)
    except FileNotFoundError:  # deleted while the directory is read
        return None
    return Scanned(entry.name, kind_of(mode.st_mode), mode.st_size)


def _create_locked(directory: int, mode: int | None) -> tuple[str, int]:
    """Make a new file for writing and lock it.

    The lock tells the one who clears left-over files that a writer lives: the kernel drops it with the process,
    however that ends. A file that was cleared away before it could be locked is made again.
    """
    import fcntl

    while True:
        name = new_leftover()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW
        fd = os.open(name, flags, 0o666 if mode is None else 0o600, dir_fd=directory)
        try:
            with contextlib.suppress(OSError):  # a file system without locks: the file is never cleared away
                fcntl.flock(fd, fcntl.LOCK_EX)
            if mode is not None:
                os.fchmod(fd, mode)
            if os.fstat(fd).st_nlink:
                return name, fd
        except BaseException:
            os.close(fd)
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=directory)
            raise
        os.close(fd)


def _sync_directory(directory: int) -> None:
    """Make the new name outlast a power cut; the descriptor we search with cannot be synced itself."""
    try:
        fd = os.open(".", os.O_RDONLY | _DIRECTORY, dir_fd=directory)
    except PermissionError:  # a folder that may be written and not be listed; the file is in place
        return
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_OPENAT2 = 437
_NO_XDEV, _NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH, _CACHED = 0x01, 0x02, 0x04, 0x08, 0x20
_RETRIES = 128


@functools.cache
def _syscall() -> Callable[..., int]:
    function = ctypes.CDLL(None, use_errno=True).syscall
    function.restype = ctypes.c_long
    function.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(_How), ctypes.c_size_t)
    return function


@functools.cache
def _how(flags: int, resolve: int) -> tuple[Any, int]:
    """What the call is handed, which it only reads, and how long that is."""
    how = _How(flags, 0, resolve)
    return ctypes.pointer(how), ctypes.sizeof(how)


def openat2(directory: int, path: str, flags: int, *, cached: bool = False) -> int:
    """Linux's `openat2`, confined to a directory, following no link: we walk them ourselves.

    Args:
        cached: Only what can be found without the disk, and on the file system of the directory.

    Raises:
        OSError: `ELOOP` for a link, `EXDEV` for a path that leaves, else what `open` would say. `EAGAIN`, after many
            tries, where renames keep the kernel from telling whether `..` stays inside; where `cached`, at once for
            what is not in memory.
    """
    resolve = _BENEATH | _NO_MAGICLINKS | _NO_SYMLINKS | (_CACHED | _NO_XDEV if cached else 0)
    how, size = _how(flags | os.O_CLOEXEC, resolve)
    name = os.fsencode(path)
    for _ in range(1 if cached else _RETRIES):
        fd: int = _syscall()(_OPENAT2, directory, name, how, size)
        if fd >= 0:
            return fd
        error = ctypes.get_errno()
        if error not in (errno.EAGAIN, errno.EINTR):
            break
    raise OSError(error, os.strerror(error), path)
