"""A sandbox: the roots that one worker or client may use, and what can be done with the files in them.

Every operation takes an alias and a path below that root, and refuses with one line that names `alias/path`; where the
root lies on the host is never said. Results are plain data with exact numbers: what was cut, and how much there is.

All of this blocks, but for a sandbox that does not wait; whoever runs an event loop calls it in a thread.
"""

from __future__ import annotations

import hashlib
import re
import stat
import threading
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from llm_do_mcp.errors import FileMissing, Outdated, SandboxError
from llm_do_mcp.sandbox import names, patterns, text
from llm_do_mcp.sandbox.backend import Backend
from llm_do_mcp.sandbox.opener import NOT_FOLLOWED, Directory, Found, WouldWait
from llm_do_mcp.sandbox.root import Root
from llm_do_mcp.sandbox.text import Encoding

MAX_LISTED = 1_000
MAX_SKIPPED = 20

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://|data:[^,]*,", re.IGNORECASE)
"""What is known as an address elsewhere."""


class Handles:
    """Open roots. What takes a root's place on the host later is never seen through them.

    A sandbox keeps its own for as long as it lives; whoever serves many runs keeps one for all.

    Args:
        tidy: Remove what killed writers left in a writable root when it is first opened.

    Attributes:
        writing: Held while a file is looked at and replaced.
    """

    def __init__(self, *, tidy: bool = False) -> None:
        self.writing = threading.Lock()
        self._tidy = tidy
        self._opened: dict[tuple[str, str, tuple[str, ...]], Directory] = {}
        self._lock = threading.Lock()

    def of(self, root: Root, backend: Backend[Any] | None = None) -> Directory:
        """The root's handle, opened when it is first asked for; a writable root is made when missing."""
        key = (root.alias, root.path, root.hidden)
        with self._lock:
            if key not in self._opened:
                directory = self._opened[key] = Directory.open(
                    root.path,
                    label=root.alias,
                    hidden=root.hidden,
                    follow=False,
                    make=root.mode != "ro",
                    backend=backend,
                )
                if self._tidy and root.mode != "ro":
                    directory.remove_leftovers()
            return self._opened[key]

    def opened(self, root: Root) -> Directory:
        """The root's handle, where it is open already; else raises `WouldWait`."""
        try:
            return self._opened[root.alias, root.path, root.hidden]
        except KeyError:
            raise WouldWait from None

    def forget(self, path: str) -> None:
        """Let go of the roots that were opened at a path: their folder goes now."""
        with self._lock:
            for key in [key for key in self._opened if key[1] == path]:
                self._opened.pop(key).close()

    def close(self) -> None:
        """Let go of all of them."""
        with self._lock:
            while self._opened:
                self._opened.popitem()[1].close()


@dataclass(frozen=True)
class Entry:
    """A file in a listing: its path below the root, in the form that leads back to it, and its size."""

    path: str
    bytes: int


@dataclass(frozen=True)
class Listing:
    """Files in order of their names.

    Args:
        entries: At most `MAX_LISTED`.
        more: How many more match.
        skipped: What could not be listed and why, one line each, at most `MAX_SKIPPED`.
        skipped_more: How many more could not.
    """

    entries: tuple[Entry, ...]
    more: int
    skipped: tuple[str, ...]
    skipped_more: int


@dataclass(frozen=True)
class TextRead:
    """A part of a file as text.

    Args:
        text: Line ends as they are in the file; no byte order mark.
        offset: Where in the file's text it begins, in characters.
        total_chars: How long the text is that can be read from the file.
        truncated: Whether something that follows was left out.
        unread_bytes_from: Where the file goes on beyond the root's `max_file_bytes`; None where it ends before.
    """

    text: str
    offset: int
    total_chars: int
    truncated: bool
    unread_bytes_from: int | None


@dataclass(frozen=True)
class Present:
    """What a write would replace.

    Args:
        state: Is another one when the file has changed, come or gone: the digest of its bytes, or `NOTHING`.
        text: What it holds; None where there is no file, or where that cannot be shown.
        encoding: Which it keeps.
        problem: Why its content cannot be shown, or "".
    """

    state: str
    text: str | None = None
    encoding: Encoding = "utf-8"
    problem: str = ""


NOTHING = "no file"
"""The state of a file that is not there."""


@dataclass(frozen=True)
class Written:
    """What a write did: the file's path below the root, its size, whether it is new, and the bytes' digest."""

    path: str
    bytes: int
    created: bool
    sha256: str


class Sandbox:
    """The roots of one run.

    Each root is opened when it is first used and stays open: what takes its place on the host later is not seen.

    Args:
        roots: With different aliases.
        written: What this run has written so far, as alias and path; writes add to it, and only what is in it can be
            seen in `out` roots.
        unlinked: Aliases in which no link is followed, not even to read a file: each file has the one name there.
        handles: Open roots that outlive this sandbox and are closed by whoever keeps them; None to keep its own.
        backend: Another way to open files than the platform's best.
        waits: Otherwise texts can be read and nothing else, and what would have to wait raises `WouldWait`.

    Raises:
        ValueError: Two roots share an alias.
    """

    def __init__(
        self,
        roots: Sequence[Root],
        written: set[tuple[str, str]] | None = None,
        *,
        unlinked: Collection[str] = (),
        handles: Handles | None = None,
        backend: Backend[Any] | None = None,
        waits: bool = True,
    ) -> None:
        self.roots = {root.alias: root for root in roots}
        if len(self.roots) != len(roots):
            raise ValueError("two roots share an alias")
        self.written = set() if written is None else written
        self._unlinked = frozenset(unlinked)
        self._backend = backend
        self._waits = waits
        self._keeps_own = handles is None
        self._handles = Handles() if handles is None else handles

    def close(self) -> None:
        if self._keeps_own:
            self._handles.close()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def split(self, path: str) -> tuple[str, str]:
        """`alias/path` or `alias:path` as alias and path; an alias alone means its root.

        Raises:
            SandboxError: It does not begin with an alias of this sandbox.
        """
        alias, rel = names.aliased(path)
        self._root(alias, path)
        return alias, rel

    def list(self, alias: str, pattern: str = "**/*", under: str = ".") -> Listing:
        """The regular files below a folder that match a pattern.

        Links to files that lie inside are listed; linked folders are not entered.

        Args:
            pattern: Relative to `under`; see `patterns.py`.
            under: A folder below the root; paths in the result are relative to the root all the same.

        Raises:
            SandboxError: The folder cannot be listed, or the pattern is none.
        """
        _, directory = self._use(alias)
        try:
            wanted = patterns.parse(pattern)
        except names.BadName as error:
            raise SandboxError(f"{alias}: {names.one_line(pattern)}: {error}") from None
        top = tuple(part for part in directory.parts(under) if part != ".")

        def below_top(parts: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(map(names.shown, parts[len(top) :]))

        def may_hold_some(folder: tuple[str, ...]) -> bool:
            return patterns.may_match_below(wanted, below_top(folder))

        def is_named(parts: tuple[str, ...]) -> bool:
            return patterns.matches(wanted, below_top(parts))

        kept: list[tuple[tuple[str, ...], int]] = []
        total = 0
        skipped: list[str] = []
        for parts, size in self._files(alias, top, may_hold_some, is_named):
            if isinstance(size, SandboxError):
                skipped.append(str(size))
                continue
            kept.append((parts, size))
            total += 1
            if len(kept) > 4 * MAX_LISTED:  # bounded, however many files there are
                kept = sorted(kept)[:MAX_LISTED]
        kept = sorted(kept)[:MAX_LISTED]
        more_skipped = max(0, len(skipped) - MAX_SKIPPED)
        return Listing(_entries(kept), total - len(kept), tuple(skipped[:MAX_SKIPPED]), more_skipped)

    def first(self, alias: str, begun: str, most: int, shows: Callable[[str], bool]) -> tuple[str, ...]:
        """The first paths that begin with a text, in upper or lower case: those in a folder before those further down.

        Args:
            most: How many: nothing further is looked at then, so that this takes no longer where there are more.
            shows: Asked for each of these paths whether it may be shown.

        Raises:
            SandboxError: The root cannot be listed.
        """
        begun = begun.casefold()

        def may_hold_some(folder: tuple[str, ...]) -> bool:
            inside = f"{names.shown_path(folder)}/".casefold()
            return inside.startswith(begun) or begun.startswith(inside)

        def is_named(parts: tuple[str, ...]) -> bool:
            return names.shown_path(parts).casefold().startswith(begun)

        kept: list[tuple[tuple[str, ...], int]] = []
        for parts, size in self._files(alias, (), may_hold_some, is_named):
            if not isinstance(size, SandboxError) and shows(names.shown_path(parts)):
                kept.append((parts, size))
                if len(kept) == most:
                    break
        return tuple(entry.path for entry in _entries(kept))

    def _files(
        self,
        alias: str,
        top: tuple[str, ...],
        may_hold_some: Callable[[tuple[str, ...]], bool],
        is_named: Callable[[tuple[str, ...]], bool],
    ) -> Iterator[tuple[tuple[str, ...], int | SandboxError]]:
        """The regular files below a folder that are meant, with their sizes, or why one cannot be listed."""
        root, directory = self._use(alias)
        for found in directory.walk(top, descend=may_hold_some):
            fits = found.kind != "directory" and is_named(found.parts) and root.allows_suffix(found.parts[-1])
            if found.kind != "unreadable" and not (fits and self._is_visible(root, found.parts)):
                continue
            try:
                if found.kind == "link" and alias in self._unlinked:
                    raise SandboxError(f"{_place(alias, found.parts)}: {NOT_FOLLOWED}")
                size: int | SandboxError = _listed_size(alias, directory, found)
            except SandboxError as error:
                size = error
            yield found.parts, size

    def read_text(self, alias: str, rel: str, max_chars: int = 200_000, offset: int = 0) -> TextRead:
        """A part of a text file, in characters.

        Raises:
            FileMissing: There is no such file.
            SandboxError: The path is refused, or the file is not text; then the offset of the byte is named.
        """
        if max_chars < 1 or offset < 0:
            raise SandboxError(f"{alias}/{names.one_line(rel)}: max_chars must be at least 1 and offset at least 0")
        root, directory, parts = self._readable(alias, rel)
        if self._waits:
            data, whole = directory.read(parts, root.max_file_bytes, follow=alias not in self._unlinked)
        else:
            data, whole = directory.read_at_once(parts, root.max_file_bytes), True
        content = _decoded(alias, parts, data, whole)
        part = content[offset : offset + max_chars]
        truncated = not whole or offset + len(part) < len(content)
        return TextRead(part, offset, len(content), truncated, None if whole else len(data))

    def read_bytes(self, alias: str, rel: str, max_bytes: int) -> bytes:
        """A whole file, for an attachment.

        Raises:
            FileMissing: There is no such file.
            SandboxError: The path is refused, or the file is larger than `max_bytes` or the root's cap.
        """
        root, directory, parts = self._readable(alias, rel)
        most = min(max_bytes, root.max_file_bytes)
        return directory.read_whole(parts, most, follow=alias not in self._unlinked)

    def present(self, alias: str, rel: str) -> Present:
        """What a write would replace, for the difference that a person is shown.

        Also in `out` roots, whoever wrote the file: the person decides about it.

        Raises:
            SandboxError: The write would be refused.
        """
        root, directory, parts = self._writable(alias, rel)
        if not directory.would_replace(parts):
            return Present(NOTHING)
        data, whole = directory.read(parts, root.max_file_bytes)
        state, encoding = hashlib.sha256(data).hexdigest(), text.encoding_of(data)
        if not whole:
            about = directory.stat(parts)
            problem = f"{_place(alias, parts)}: larger than the {root.max_file_bytes} bytes that are read"
            return Present(f"{state} of {about.st_size} bytes at {about.st_mtime_ns}", None, encoding, problem)
        try:
            return Present(state, _decoded(alias, parts, data, whole), encoding)
        except SandboxError as error:
            return Present(state, None, encoding, str(error))

    def encoded(self, alias: str, rel: str, content: str) -> bytes:
        """The bytes that a write of a text would put there: in the encoding of what it replaces, else in UTF-8.

        Raises:
            SandboxError: The path is refused, or the content has no such bytes or too many.
        """
        root, directory, parts = self._writable(alias, rel)
        head = directory.read(parts, 3)[0] if directory.would_replace(parts) else b""
        try:
            data = text.encode(content, text.encoding_of(head))
        except text.NotText as error:
            raise SandboxError(f"{_place(alias, parts)}: {error}") from None
        if len(data) > root.max_file_bytes:
            raise SandboxError(f"{_place(alias, parts)}: {len(data)} bytes, allowed are {root.max_file_bytes}")
        return data

    def write_text(self, alias: str, rel: str, content: str, *, over: str = "") -> Written:
        """Create a text file or replace it as a whole; folders on the way are created.

        A file that begins with a byte order mark keeps it and its encoding; others are UTF-8. Line ends are written
        as they are given.

        Args:
            over: The state of what may be replaced, see `Present`; "" for any. Replacing a file by itself always may.

        Raises:
            Outdated: Something else would be replaced. Nothing changed.
            SandboxError: The path is refused, the content too large, or the disk does not take it. Nothing changed.
        """
        data = self.encoded(alias, rel, content)
        _, directory, parts = self._writable(alias, rel)
        # No system exchanges a file only where it is still the one that was looked at. So it is looked at as late as
        # can be, and no other write of ours comes in between.
        with self._handles.writing:
            if over and self.present(alias, rel).state not in (over, hashlib.sha256(data).hexdigest()):
                raise Outdated(f"{_place(alias, parts)} has changed since the write was approved; nothing was written")
            created = directory.write_atomic(parts, data)
        path = names.shown_path(parts)
        self.written.add((alias, path))
        return Written(path, len(data), created, hashlib.sha256(data).hexdigest())

    def _use(self, alias: str, given: str | None = None) -> tuple[Root, Directory]:
        root = self._root(alias, given or alias)
        return root, self._handles.of(root, self._backend) if self._waits else self._handles.opened(root)

    def _root(self, alias: str, given: str) -> Root:
        try:
            return self.roots[alias]
        except KeyError:
            allowed = ", ".join(sorted(self.roots)) or "none"
            what = "an address, from which nothing is fetched" if _ADDRESS.match(given) else "no such sandbox"
            raise SandboxError(f"{names.one_line(given)}: {what}; allowed are {allowed}") from None

    def _readable(self, alias: str, rel: str) -> tuple[Root, Directory, tuple[str, ...]]:
        root, directory = self._use(alias)
        parts = directory.parts(rel)
        self._check_suffix(root, parts)
        if not self._is_visible(root, parts):
            raise FileMissing(f"{_place(alias, parts)}: not written by this run, and `out` shows nothing else")
        return root, directory, parts

    def _writable(self, alias: str, rel: str) -> tuple[Root, Directory, tuple[str, ...]]:
        root, directory = self._use(alias)
        parts = directory.parts(rel)
        if root.mode == "ro":
            raise SandboxError(f"{_place(alias, parts)}: the sandbox is read-only")
        self._check_suffix(root, parts)
        if patterns.is_protected((*patterns.ALWAYS_PROTECTED, *root.protected), parts):
            reason = "protected: workers may not change what the project, its history or its approvals are read from"
            raise SandboxError(f"{_place(alias, parts)}: {reason}")
        return root, directory, parts

    def _check_suffix(self, root: Root, parts: tuple[str, ...]) -> None:
        if parts and parts[-1] != "." and not root.allows_suffix(parts[-1]):
            allowed = ", ".join(root.suffixes or ()) or "none"
            raise SandboxError(f"{_place(root.alias, parts)}: suffix not allowed; allowed are {allowed}")

    def _is_visible(self, root: Root, parts: tuple[str, ...]) -> bool:
        return root.mode != "out" or (root.alias, names.shown_path(parts)) in self.written


def _place(alias: str, parts: tuple[str, ...]) -> str:
    return f"{alias}/{names.one_line(names.shown_path(parts))}"


def _decoded(alias: str, parts: tuple[str, ...], data: bytes, whole: bool) -> str:
    try:
        return text.decode(data, whole=whole)
    except text.NotText as error:
        raise SandboxError(f"{_place(alias, parts)}: {error}") from None


def _listed_size(alias: str, directory: Directory, found: Found) -> int:
    """The size of a file that was found, or why it is not listed."""
    if found.kind == "file":
        return found.size
    reason = found.reason or "not a regular file"
    if found.kind == "link":
        target = directory.stat(found.parts)
        if stat.S_ISREG(target.st_mode):
            return target.st_size
        if stat.S_ISDIR(target.st_mode):
            reason = "a linked folder, not entered"
    raise SandboxError(f"{_place(alias, found.parts)}: {reason}")


def _entries(found: Sequence[tuple[tuple[str, ...], int]]) -> tuple[Entry, ...]:
    """Entries by their shown paths; those that look the same as another are told apart."""
    looks = Counter(unicodedata.normalize("NFC", "/".join(parts)) for parts, _ in found)
    entries = []
    for parts, size in found:
        path = "/".join(parts)
        composed = unicodedata.normalize("NFC", path)
        has_twin = looks[composed] > 1 and composed != path
        entries.append(Entry("/".join(map(names.marked, parts)) if has_twin else names.shown_path(parts), size))
    return tuple(entries)
