"""The only opens: files below a directory that is held open, so that nothing leads outside, whoever moves what.

A `Directory` is a handle, not a path. If its folder is renamed or something else takes its place, the handle stays
with the folder it was opened on; if that is deleted, every operation says so. What is opened below it goes through
one of the back ends of `backend.py`.

Reads follow links whose target lies inside; writes follow none. Only regular files are opened, and never by waiting:
a FIFO, socket or device is refused. A file is replaced as a whole or not at all. Hard links cannot be told from files
of their own; a write never changes the file that they share.

All of this but `read_at_once` blocks; whoever runs an event loop calls it in a thread.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from llm_do_mcp.errors import FileMissing, SandboxError
from llm_do_mcp.sandbox import names
from llm_do_mcp.sandbox.backend import Backend, Kind, default_backend

Name = str | Sequence[str]
"""A file below a directory: text as a caller gives it (`a/b`, names in their real or shown form), or real names."""

_REASONS = {
    errno.ENOENT: "no such file or folder",
    errno.ENOTDIR: "not a folder",
    errno.EISDIR: "a folder, not a file",
    errno.EXDEV: "a link that leads outside",
    errno.EACCES: "no permission",
    errno.EPERM: "no permission",
    errno.ENAMETOOLONG: "name too long",
    errno.ENXIO: "not a regular file",
    errno.ENODEV: "not a regular file",
    errno.EAGAIN: "the folders on the way keep changing; try again",
}
NOT_FOLLOWED = (
    "a link on the way; links are followed only to read a file, and not where the policy tells single files apart"
)
SMALL = 1 << 16
"""Bytes of the largest file that is read at once."""
_NO_FOLDER_ANY_MORE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_CHUNK = 1 << 20


class WouldWait(Exception):
    """What was to be done at once would have to wait: it is to be done by somebody who may."""


@dataclass(frozen=True, slots=True)
class Found:
    """Something that a walk came by. An unreadable folder is found as such, and the walk goes on."""

    parts: tuple[str, ...]
    kind: Kind
    size: int = 0
    reason: str = ""


def _everything(folder: tuple[str, ...]) -> bool:
    return True


class Directory:
    """A directory that is held open, and what can be opened below it.

    Made by `Directory.open`. Threads may share it. Closing it is prompt but never pulls the handle from under an
    operation that another thread has in hand.
    """

    def __init__(self, backend: Backend[Any], handle: object, label: str, hidden: frozenset[str]) -> None:
        self._backend = backend
        self._handle: object | None = handle
        self._label = label
        self._hidden_names = hidden
        self._at_once: bool | None = None

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        label: str = "",
        hidden: Sequence[str] = (),
        follow: bool = True,
        make: bool = False,
        backend: Backend[Any] | None = None,
    ) -> Directory:
        """Open a directory of the host.

        Args:
            path: Taken from the working directory where it is relative.
            label: What stands before each name in messages, such as a sandbox's alias. The host's path never does.
            hidden: Names that do not exist for callers, at any depth, in any spelling.
            follow: Whether links in `path` itself are followed. Without, a folder that has been replaced by a link
                since its real path was taken is refused.
            make: Create the directory where it is missing.

        Raises:
            FileMissing: There is nothing at `path`.
            SandboxError: It is no directory, or cannot be opened.
        """
        absolute = os.path.abspath(path)
        chosen = backend or default_backend()
        try:
            handle = _root_made(chosen, absolute, follow) if make else chosen.root(absolute, follow=follow)
        except OSError as error:
            where = label or names.one_line(os.fspath(path))
            reason = "a link took the place of a folder on the way" if error.errno == errno.ELOOP else _reason(error)
            raise _error(error, f"{where}: {reason}") from error
        return cls(chosen, handle, label, frozenset(map(names.fold, hidden)))

    @property
    def descriptor(self) -> int | None:
        """The folder's descriptor, for a search that must stay in it: good to start from, until this is closed.

        None on Windows, where the folder is known by its path.
        """
        fd: int | None = getattr(self._held(), "fd", None)
        return fd

    def close(self) -> None:
        self._handle = None

    def __enter__(self) -> Directory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def parts(self, rel: Name) -> tuple[str, ...]:
        """The real names that a path consists of; empty for the directory itself.

        Raises:
            FileMissing: One of the names is hidden.
            SandboxError: Not a path below this directory, whatever there is on disk.
        """
        try:
            if isinstance(rel, str):
                parts = names.components(rel)
            else:
                parts = tuple(rel)
                names.check_length(parts)
        except names.BadName as error:
            given = rel if isinstance(rel, str) else names.shown_path(rel)
            raise SandboxError(f"{self._place(names.one_line(given))}: {error}") from None
        if any(map(self._hidden, parts)):
            raise FileMissing(f"{self._place(names.shown_path(parts))}: {_REASONS[errno.ENOENT]}")
        return parts

    def open_file(self, rel: Name, *, follow: bool = True) -> int:
        """A descriptor for reading a regular file; the caller closes it.

        Args:
            follow: Whether links that stay inside are followed; else the file is the one that is named, or none.

        Raises:
            FileMissing: There is no such file.
            SandboxError: The path leads outside, or what is there is not a regular file.
        """
        parts = self.parts(rel)
        with self._explained(parts, follow=follow):
            fd = self._backend.file(self._held(), parts, hidden=self._hidden, follow=follow)
            try:
                mode = os.fstat(fd).st_mode
                if stat.S_ISDIR(mode):
                    raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
                if not stat.S_ISREG(mode):
                    raise OSError(errno.ENXIO, os.strerror(errno.ENXIO))
            except BaseException:
                os.close(fd)
                raise
            return fd

    def read(self, rel: Name, limit: int, *, follow: bool = True) -> tuple[bytes, bool]:
        """A file's first `limit` bytes, and whether that is all of it.

        The file may grow or shrink meanwhile: what is returned was in it, in this order.

        Raises:
            FileMissing, SandboxError: As `open_file`.
        """
        with self._reading(rel, follow) as fd:
            if self._at_once is None:
                self._at_once = self._backend.gives_at_once(fd)
            return _read(fd, limit)

    def read_at_once(self, rel: Name, limit: int) -> bytes:
        """A whole small file, where that takes no wait: the one part of this that an event loop may do itself.

        Raises:
            FileMissing, SandboxError: As `parts`.
            WouldWait: It is to be read with `read`. So is each file before the first that was read so.
        """
        parts = self.parts(rel)
        data = self._backend.at_once(self._held(), parts, min(limit, SMALL)) if self._at_once else None
        if data is None:
            raise WouldWait
        return data

    def read_whole(self, rel: Name, limit: int, *, follow: bool = True) -> bytes:
        """A whole file, or an error that names its size where that is above `limit` bytes.

        Raises:
            FileMissing, SandboxError: As `open_file`.
        """
        with self._reading(rel, follow) as fd:
            size = os.fstat(fd).st_size
            data, is_whole = _read(fd, limit) if size <= limit else (b"", False)
        if not is_whole:
            place = self._place(names.one_line(names.shown_path(self.parts(rel))))
            raise SandboxError(f"{place}: at least {max(size, limit + 1)} bytes, allowed are {limit}")
        return data

    def stat(self, rel: Name) -> os.stat_result:
        """What is known of a file or folder; of a link's target where it lies inside."""
        parts = self.parts(rel)
        with self._explained(parts):
            return self._backend.stat(self._held(), parts, hidden=self._hidden)

    def open_directory(self, rel: Name) -> Directory:
        """Open a folder below this one. What is opened below it cannot leave it, not even for this one."""
        parts = self.parts(rel)
        with self._explained(parts):
            handle = self._backend.directory(self._held(), parts, follow=True, hidden=self._hidden)
        label = "/".join(filter(None, (self._label, *map(names.shown, parts))))
        return Directory(self._backend, handle, label, self._hidden_names)

    def walk(self, rel: Name = ".", *, descend: Callable[[tuple[str, ...]], bool] = _everything) -> Iterator[Found]:
        """All that lies below a folder, each folder's names in order, folders before what is in them.

        Links are found as links and never entered, so the walk ends. Hidden names and half-written files are left
        out.

        Args:
            descend: Asked for each folder, by its names from this directory, whether to look into it.

        Raises:
            FileMissing, SandboxError: `rel` itself cannot be listed. What cannot be listed further down is found as
                `unreadable`, with the reason.
        """
        top = tuple(part for part in self.parts(rel) if part != ".")
        return (found for found in self._walk(top, descend) if not names.is_leftover(found.parts[-1]))

    def would_replace(self, rel: Name) -> bool:
        """Whether a write would replace a file. Changes nothing, and refuses what `write_atomic` would refuse."""
        parts = self.parts(rel)
        with self._explained(parts, follow=False):
            if self._backend.is_gone(self._held()):
                raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
            try:
                folder = self._folder(parts[:-1], make=False)
            except FileNotFoundError:
                return False
            return self._mode_of_replaced(folder, parts) is not None

    def write_atomic(self, rel: Name, data: bytes) -> bool:
        """Create a file, with the folders on its way, or replace it as a whole; it is on the disk on return.

        A file that exists keeps its permission bits. One that nobody may write is refused, and so is a link.

        Returns:
            Whether the file is new.

        Raises:
            SandboxError: Nothing was changed; there is no half-written file either.
        """
        parts = self.parts(rel)
        with self._explained(parts, follow=False):
            folder = self._folder(parts[:-1], make=True)
            mode = self._mode_of_replaced(folder, parts)
            self._backend.replace_file(folder, parts[-1], data, mode=mode)
        return mode is None

    def remove(self, rel: Name, *, emptied: bool = False) -> None:
        """Remove a file. What `write_atomic` would refuse is refused.

        Args:
            rel: The file.
            emptied: Whether the folders above it go that are empty then.

        Raises:
            FileMissing, SandboxError: Nothing was changed.
        """
        parts = self.parts(rel)
        with self._explained(parts, follow=False):
            folder = self._folder(parts[:-1], make=False)
            if self._mode_of_replaced(folder, parts) is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            self._backend.remove_file(folder, parts[-1])
        with contextlib.suppress(OSError):  # something else is in it
            for above in range(len(parts) - 1 if emptied else 0, 0, -1):
                self._backend.remove_directory(self._folder(parts[: above - 1], make=False), parts[above - 1])

    def remove_leftovers(self) -> None:
        """Remove the half-written files of writers that were killed."""
        for found in self._walk((), _everything):
            if names.is_leftover(found.parts[-1]) and found.kind == "file":
                with contextlib.suppress(OSError):
                    folder = self._folder(found.parts[:-1], make=False)
                    self._backend.remove_abandoned(folder, found.parts[-1])

    @contextlib.contextmanager
    def _reading(self, rel: Name, follow: bool) -> Iterator[int]:
        fd = self.open_file(rel, follow=follow)
        try:
            with self._explained(self.parts(rel)):
                yield fd
        finally:
            os.close(fd)

    def _held(self) -> object:
        if self._handle is None:
            raise ValueError(f"{self._label or 'directory'}: already closed")
        return self._handle

    def _hidden(self, name: str) -> bool:
        return names.fold(name) in self._hidden_names or names.is_leftover(name)

    def _place(self, text: str) -> str:
        return f"{self._label}/{text}" if self._label else text

    @contextlib.contextmanager
    def _explained(self, parts: tuple[str, ...], *, follow: bool = True) -> Iterator[None]:
        """Turn what the system says into one line that names the file as callers know it."""
        try:
            yield
        except OSError as error:
            if error.errno == errno.ENOENT and self._handle is not None and self._backend.is_gone(self._handle):
                gone = "its folder was deleted or replaced while it was in use; start again"
                raise SandboxError(f"{self._label or 'directory'}: {gone}") from error
            reason = _reason(error)
            if error.errno == errno.ELOOP:
                reason = "too many links" if follow else NOT_FOLLOWED
            raise _error(error, f"{self._place(names.one_line(names.shown_path(parts)))}: {reason}") from error

    def _folder(self, parts: Sequence[str], *, make: bool) -> object:
        """A folder to write in: no link leads to it."""
        try:
            return self._backend.directory(self._held(), parts, follow=False, hidden=self._hidden)
        except FileNotFoundError:
            if not make:
                raise
        folder = self._held()
        for name in parts:
            try:
                folder = self._backend.directory(folder, (name,), follow=False, hidden=self._hidden)
            except FileNotFoundError:
                with contextlib.suppress(FileExistsError):
                    self._backend.make_directory(folder, name)
                folder = self._backend.directory(folder, (name,), follow=False, hidden=self._hidden)
        return folder

    def _mode_of_replaced(self, folder: object, parts: tuple[str, ...]) -> int | None:
        """The permission bits of the file that is to be replaced; None where there is none."""
        if not parts or parts[-1] == ".":
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        try:
            mode = self._backend.own_stat(folder, parts[-1]).st_mode
        except FileNotFoundError:
            return None
        if stat.S_ISLNK(mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if stat.S_ISDIR(mode):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(mode):
            raise OSError(errno.ENXIO, os.strerror(errno.ENXIO))
        if not mode & 0o222:
            raise SandboxError(f"{self._place(names.shown_path(parts))}: the file is read-only")
        return mode & 0o777

    def _walk(self, top: tuple[str, ...], descend: Callable[[tuple[str, ...]], bool]) -> Iterator[Found]:
        todo = [top]
        while todo:
            folder = todo.pop()
            try:
                names.check_length(folder)
                scanned = self._backend.scan(self._held(), folder, hidden=self._hidden)
            except (OSError, names.BadName) as error:
                if folder == top:
                    with self._explained(top, follow=False):
                        raise
                if isinstance(error, names.BadName):
                    yield Found(folder, "unreadable", reason=str(error))
                elif error.errno not in _NO_FOLDER_ANY_MORE:
                    yield Found(folder, "unreadable", reason=_reason(error))
                continue
            below = []
            for entry in sorted(scanned, key=lambda entry: entry.name):
                parts = (*folder, entry.name)
                if names.fold(entry.name) in self._hidden_names:
                    continue
                yield Found(parts, entry.kind, entry.size)
                if entry.kind == "directory" and descend(parts):
                    below.append(parts)
            todo.extend(reversed(below))


def _root_made(backend: Backend[Any], path: str, follow: bool) -> object:
    try:
        return backend.root(path, follow=follow)
    except FileNotFoundError:
        above, name = os.path.split(path)
        if not name:
            raise
    folder = _root_made(backend, above, follow)
    with contextlib.suppress(FileExistsError):
        backend.make_directory(folder, name)
    return backend.directory(folder, (name,), follow=False, hidden=names.is_leftover)


def _read(fd: int, limit: int) -> tuple[bytes, bool]:
    data = bytearray()
    while len(data) <= limit and (chunk := os.read(fd, min(_CHUNK, limit + 1 - len(data)))):
        data += chunk
    return bytes(data[:limit]), len(data) <= limit


def _reason(error: OSError) -> str:
    return _REASONS.get(error.errno or 0, os.strerror(error.errno or errno.EIO))


def _error(error: OSError, message: str) -> SandboxError:
    return (FileMissing if error.errno == errno.ENOENT else SandboxError)(message)
