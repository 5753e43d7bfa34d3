"""What a platform must offer so that files can be opened below a directory, and the choice of who offers it.

There are three answers, and this is the one place that chooses:

- Linux with `openat2`: the kernel resolves the path and refuses to leave the directory (`descriptors.py`).
- Other POSIX systems, and Linux where a container forbids that call: one `openat` a name (`descriptors.py`).
- Windows: open, then ask the system which file was really opened (`finalpath.py`). The promise is weaker there: a
  read never returns a foreign file's content, but what is moved in the middle of a write may misdirect it.
"""

from __future__ import annotations

import functools
import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

Kind = Literal["file", "directory", "link", "other", "unreadable"]
Hidden = Callable[[str], bool]
"""Whether a real name does not exist as far as callers are concerned."""

Handle = TypeVar("Handle")


@dataclass(frozen=True, slots=True)
class Scanned:
    """One name in a directory, as it was when the directory was read."""

    name: str
    kind: Kind
    size: int


class Backend(Protocol[Handle]):
    """Operations on open directories. All raise `OSError`; `EXDEV` means that a link leads outside.

    A handle stays good for as long as it is referenced, and is closed by being dropped: a thread that is still busy
    with it can then never meet another file under a reused number. `parts` are real names that
    the caller has checked; `hidden` is asked about the names that links lead to.
    """

    def root(self, path: str, *, follow: bool) -> Handle:
        """Open a directory by its absolute path. Without `follow` no name in it may be a link."""

    def directory(self, base: Handle, parts: Sequence[str], *, follow: bool, hidden: Hidden) -> Handle: ...

    def file(self, base: Handle, parts: Sequence[str], *, hidden: Hidden, follow: bool = True) -> int:
        """Open whatever is there for reading, following links that stay inside, or none. Never blocks."""

    def at_once(self, base: Handle, parts: Sequence[str], limit: int) -> bytes | None:
        """A whole regular file of at most `limit` bytes that no link leads to, where the system has it in memory and
        gives it without a wait; else None."""

    def gives_at_once(self, fd: int) -> bool:
        """Whether `at_once` may be tried where this file is: it never waits there, not even for a server far away."""

    def stat(self, base: Handle, parts: Sequence[str], *, hidden: Hidden) -> os.stat_result: ...

    def own_stat(self, base: Handle, name: str) -> os.stat_result:
        """The `lstat` of one name."""

    def scan(self, base: Handle, parts: Sequence[str], *, hidden: Hidden) -> list[Scanned]:
        """The names in a directory that no link leads to, hidden ones included."""

    def make_directory(self, base: Handle, name: str) -> None: ...

    def replace_file(self, base: Handle, name: str, data: bytes, *, mode: int | None) -> None:
        """Put a whole file in place: readers see the old one or the new one, also after a crash.

        Args:
            mode: Permission bits; None for what the system gives a new file.
        """

    def remove_file(self, base: Handle, name: str) -> None: ...

    def remove_directory(self, base: Handle, name: str) -> None:
        """Remove an empty directory."""

    def remove_abandoned(self, base: Handle, name: str) -> None:
        """Remove a left-over file, unless its writer may live."""

    def is_gone(self, base: Handle) -> bool:
        """Whether the directory was deleted, or (Windows) is another one now."""


def kind_of(mode: int) -> Kind:
    """What a file is by its `st_mode`."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "other"


def write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


@functools.cache
def default_backend() -> Backend[Any]:
    """The strongest back end that works here."""
    if os.name == "nt":
        from llm_do_mcp.sandbox.finalpath import OpenThenVerify

        return OpenThenVerify()
    from llm_do_mcp.sandbox.descriptors import Beneath, NameByName

    return Beneath() if Beneath.works() else NameByName()
