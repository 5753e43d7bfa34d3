"""`libs.lock`: what the libraries of a project were when somebody looked at them, and that they still are.

Per library it has the version, and of every file the hash. Nothing is read to load a project that it would not read
anyway: a file of a locked library is checked when it is read, and where something is looked for, what is there and what
is not must be as it was. Before a run uses anything of a library, all of it is checked: what its Python reads beside
itself is known to nobody else.

The files stand in the lock as lines of `sha256sum`: one text, which costs nothing to load and compares well.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field

from llm_do_mcp import leftovers
from llm_do_mcp.errors import LibraryChanged, ProjectError
from llm_do_mcp.project import contents, strictyaml
from llm_do_mcp.project.checked import Checked, Text, check
from llm_do_mcp.project.files import MAX_FILE_BYTES, ProjectFiles, decode
from llm_do_mcp.project.seen import Seen
from llm_do_mcp.sandbox.opener import Directory

NAME = "libs.lock"
ACCEPT = "look at it, and accept it with `llm-do lib lock`"

HEAD = f"""\
# What this project's libraries were when somebody looked at them. A library that differs is refused.
# Written by `llm-do lib lock`, which accepts them as they are. Review {NAME} like code, and commit it.
version: 1
libraries:
"""


@dataclass(frozen=True)
class LockedLibrary:
    """A library as it was.

    Args:
        name: Its name.
        version: Its version, or None.
        files: Path → SHA-256 of all its files.
    """

    name: str
    version: str | None
    files: Mapping[str, str] = field(repr=False)

    def check(self, path: str, data: bytes) -> None:
        """Check a file that was read.

        Raises:
            LibraryChanged: It is not in the lock, or was something else then.
        """
        wanted = self.files.get(_normal(path))
        if wanted is None:
            raise self._unknown(path)
        if wanted != contents.digest(data):
            raise self._error(f"{path} has changed since {NAME} was written")

    def check_kind(self, path: str, kind: Literal["file", "directory"] | None) -> None:
        """Check what is at a path. A folder without files that matter may come and go.

        Raises:
            LibraryChanged: Something else was there, or nothing was, or something that has gone.
        """
        normal = _normal(path)
        if kind == "file" and normal not in self.files:
            raise self._unknown(path)
        if kind != "file" and normal in self.files:
            raise self._error(f"{path} is in {NAME}, and is no file any more")
        if kind is None and normal in self._folders:
            raise self._error(f"{path} is in {NAME}, and is gone")

    def check_whole(self, root: str, seen: Seen) -> None:
        """Check every file of the library. Reads them all.

        Args:
            root: Its folder.
            seen: Where to note what was looked at.

        Raises:
            LibraryChanged: One differs, is new, or is gone, or they cannot be read any more.
        """
        try:
            now = contents.digests(root, seen)
        except ProjectError as error:
            raise self._error(str(error)) from None
        if found := list(differences(self.files, now)):
            more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
            raise self._error(f"{found[0].path}{more}: {found[0].kind} since {NAME} was written")

    @cached_property
    def content(self) -> str:
        """One hash for all of it."""
        return contents.content_hash(self.files)

    @cached_property
    def _folders(self) -> frozenset[str]:
        parents = (path.split("/")[:-1] for path in self.files)
        return frozenset("/".join(parts[:end]) for parts in parents for end in range(1, len(parts) + 1))

    def _unknown(self, path: str) -> LibraryChanged:
        if (complaint := leftovers.complaint(path)) is not None:
            return LibraryChanged(f"library {self.name}: {path}: {complaint}")
        return self._error(f"{path} is not in {NAME}")

    def _error(self, what: str) -> LibraryChanged:
        return LibraryChanged(f"library {self.name}: {what}; {ACCEPT}")


@dataclass(frozen=True)
class LibsLock:
    """The libraries of a lock file, by their names."""

    libraries: Mapping[str, LockedLibrary]

    def library(self, name: str) -> LockedLibrary:
        """One of them.

        Raises:
            LibraryChanged: It is not in the lock.
        """
        if name not in self.libraries:
            raise LibraryChanged(f"library {name} is not in {NAME}; {ACCEPT}")
        return self.libraries[name]

    def text(self) -> str:
        """The file."""
        if not self.libraries:
            return HEAD.rstrip("\n") + " {}\n"
        return HEAD + "".join(_lines(library) for _, library in sorted(self.libraries.items()))


@dataclass(frozen=True)
class Difference:
    """One file in which two versions of a library differ."""

    kind: Literal["changed", "added", "removed"]
    path: str


def differences(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[Difference]:
    """In what two versions of a library differ, in the order of the paths."""
    for path in sorted({*before, *now}):
        if path not in now:
            yield Difference("removed", path)
        elif path not in before:
            yield Difference("added", path)
        elif before[path] != now[path]:
            yield Difference("changed", path)


def lock_of(libraries: Iterable[tuple[str, str | None, str]]) -> LibsLock:
    """The lock that accepts libraries as they are. Reads all of them.

    Args:
        libraries: Name, version and folder of each.

    Raises:
        ProjectError: One cannot be locked.
    """
    locked: dict[str, LockedLibrary] = {}
    for name, version, root in libraries:
        try:
            locked[name] = LockedLibrary(name, version, contents.digests(root))
        except ProjectError as error:
            raise ProjectError(f"library {name} cannot be locked: {error}") from None
    return LibsLock(locked)


def parse(text: str) -> LibsLock:
    """A lock file's text.

    Raises:
        ProjectError: With the place of what is wrong.
    """
    document = strictyaml.load(text, path=NAME, max_characters=MAX_FILE_BYTES)
    file = check(_File, document)
    return LibsLock(
        {
            name: LockedLibrary(name, section.version, _files(document, name, section))
            for name, section in file.libraries.items()
        }
    )


def read(files: ProjectFiles) -> LibsLock | None:
    """The lock of a project; None where it has none.

    Raises:
        ProjectError: It cannot be read, or something in it cannot be used.
    """
    return parse(decode(files.read_bytes(NAME), NAME)) if files.kind(NAME) is not None else None


def write(root: str, lock: LibsLock) -> None:
    """Replace the lock of a project, as a whole or not at all.

    Raises:
        ProjectError: It would be too large to be read again.
        SandboxError: It cannot be written.
    """
    data = lock.text().encode()
    if len(data) > MAX_FILE_BYTES:
        raise ProjectError(f"{len(data):,} bytes would be too many ({MAX_FILE_BYTES:,}); use fewer files", path=NAME)
    with Directory.open(root, label=".") as folder:
        folder.write_atomic(NAME, data)


class _Section(Checked):
    version: Text | None = None
    content: Annotated[Text, Field(pattern="^[0-9a-f]{64}$")]
    files: Text


class _File(Checked):
    version: Literal[1]
    libraries: dict[Text, _Section]


def _files(document: strictyaml.Document, name: str, section: _Section) -> dict[str, str]:
    files: dict[str, str] = {}
    for line in section.files.splitlines():
        sha256, _, path = line.partition("  ")
        files[path] = sha256
    # What was merged or edited by hand is caught here: nobody has looked at what it stands for.
    if contents.listing(files) != section.files or contents.content_hash(files) != section.content:
        raise document.error(
            "the hash is not that of the files; write it with `llm-do lib lock`", ("libraries", name, "content")
        )
    return files


def _lines(library: LockedLibrary) -> str:
    version = [f"    version: {json.dumps(library.version, ensure_ascii=False)}"] if library.version else []
    head = [f"  {library.name}:", *version, f"    content: {library.content}", "    files: |"]
    return "\n".join((*head, *(f"      {line}" for line in contents.listing(library.files).splitlines()))) + "\n"


def _normal(path: str) -> str:
    return "/".join(part for part in path.split("/") if part not in ("", "."))
