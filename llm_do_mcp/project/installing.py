"""Installing a library into a place, from a folder or a git repository, and removing one.

It is copied first and looked at then: what is checked is what will be there. Where everything is right, it takes its
place in one step (`place.py`). With it goes a record of where it came from, in its state folder, which is no part of
the library: nobody lists, reads, hashes or locks it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime

from llm_do_mcp.errors import InvalidFile, LibraryNotFound, ProjectError, UsageError
from llm_do_mcp.project import contents, gitsource
from llm_do_mcp.project.checked import collecting, quoted
from llm_do_mcp.project.files import decode
from llm_do_mcp.project.hosting import PythonOptions
from llm_do_mcp.project.library import LIBRARY_FILE, Library, Spec, read_library
from llm_do_mcp.project.load import load_project
from llm_do_mcp.project.manifest import MANIFEST_NAMES
from llm_do_mcp.project.place import changing, put, take_out
from llm_do_mcp.project.worker import read_worker
from llm_do_mcp.sandbox.names import is_below
from llm_do_mcp.sandbox.root import STATE_FOLDER

RECORD = "installed.json"


@dataclass(frozen=True)
class Record:
    """Where an installed library came from.

    Args:
        source: The folder or URL that was named, without the revision.
        commit: The git commit, or None for a folder.
        content: The content's hash.
        installed: When, in UTC (ISO 8601).
    """

    source: str
    commit: str | None
    content: str
    installed: str

    @property
    def shown(self) -> str:
        """In one word: a URL that installs the same again, or the folder."""
        if self.commit is None:
            return self.source
        url, mark, folder = self.source.partition("#")
        return f"{url}@{self.commit}{mark}{folder}"


def record_of(root: str) -> Record | None:
    """The record of a library; None where it was put there by hand."""
    try:
        with open(os.path.join(root, STATE_FOLDER, RECORD), encoding="utf-8") as file:
            record = Record(**json.load(file))
    except (OSError, ValueError, TypeError):
        return None
    given = (record.source, record.content, record.installed, record.commit or "")
    return record if all(isinstance(value, str) for value in given) else None


@dataclass(frozen=True)
class Installed:
    """What an installation did.

    Args:
        folder: The name of the library's folder in the place.
        library: The library.
        files: How many it has.
        record: What was recorded.
        replaced: The version that was there before, "" where it had none; None where nothing was there.
    """

    folder: str
    library: Library
    files: int
    record: Record
    replaced: str | None


def install(
    source: str, place: str, *, versioned: bool = False, force: bool = False, waits: Callable[[], None] = lambda: None
) -> Installed:
    """Install a library, or replace it.

    Args:
        source: A folder, or a `git+` URL.
        place: The folder of libraries.
        versioned: Install it as `name@version`, beside others.
        force: Replace also what was not installed, or was changed since, and by what has broken workers.
        waits: Called where another process is changing the place and is waited for.

    Raises:
        UsageError: The source cannot be used, or something is there that would be lost.
        InvalidFile: With all that is wrong with the library.
        ProjectError: It cannot be fetched.
    """
    place = os.path.abspath(os.path.expanduser(place))
    origin = gitsource.GitSource.parse(source) if source.startswith(gitsource.PREFIX) else None
    root = _folder(source, place) if origin is None else ""
    with changing(place, waits) as private:
        commit = None
        if origin is not None:
            root, commit = gitsource.fetch(origin, private)
        new = os.path.join(private, "library")
        files = _copied(root, new, source)
        library = _read(new, source)
        if not force:
            _check_exports(library, place)
        folder = _name(library, versioned)
        content = contents.content_hash(files)
        target = os.path.join(place, folder)
        replaced = _replaced(target, content, force)
        named = origin.named if origin is not None else root
        record = Record(named, commit, content, datetime.now(UTC).isoformat(timespec="seconds"))
        _write(os.path.join(new, STATE_FOLDER, RECORD), json.dumps(asdict(record), indent=2).encode(), 0o666)
        put(new, folder, private)
    return Installed(folder, replace(library, root=target), len(files), record, replaced)


def remove(name: str, place: str, *, waits: Callable[[], None] = lambda: None) -> None:
    """Remove a library from a place.

    Args:
        name: `utils`, or `utils@2.0` for what was installed so.
        place: The folder of libraries.
        waits: Called where another process is changing the place and is waited for.

    Raises:
        UsageError, ProjectError: That is no name of a library.
        LibraryNotFound: It is not there.
    """
    folder = str(Spec.parse(name))
    place = os.path.abspath(os.path.expanduser(place))
    if os.path.lexists(os.path.join(place, folder)):
        with changing(place, waits) as private:
            try:
                return take_out(folder, private)
            except FileNotFoundError:
                pass  # another process was faster
    there = ", ".join(folders(place)) or "nothing"
    raise LibraryNotFound(f"there is no library {folder} in {place}; there is {there}")


def folders(place: str) -> tuple[str, ...]:
    """The names of the libraries' folders in a place, in order."""
    try:
        names = os.listdir(place)
    except OSError:
        return ()
    return tuple(sorted(name for name in names if _is_name(name) and os.path.isdir(os.path.join(place, name))))


def _is_name(name: str) -> bool:
    try:
        return str(Spec.parse(name)) == name
    except (UsageError, ProjectError):
        return False


def _folder(source: str, place: str) -> str:
    """The folder to install from, without links."""
    root = os.path.realpath(os.path.expanduser(source))
    if not os.path.isdir(root):
        raise UsageError(f"there is no folder {quoted(source)}; name a library's folder, or {gitsource.FORM}")
    if is_below(os.path.realpath(place), root):
        raise UsageError(f"{quoted(source)} holds the folder of libraries itself; name the folder of one library")
    return root


def _copied(root: str, new: str, source: str) -> dict[str, str]:
    """Copy a library's files; path → SHA-256 of what was copied."""
    files: dict[str, str] = {}
    with contents.open_library(root) as directory:
        paths, problems = contents.survey(directory)
        if problems:
            raise InvalidFile([*_problems(root, source), *problems])
        os.mkdir(new)
        for path in paths:
            data = contents.read(directory, path)
            files[path] = contents.digest(data)
            mode = 0o777 if directory.stat(path.split("/")).st_mode & 0o100 else 0o666
            _write(os.path.join(new, *path.split("/")), data, mode)
    return files


def _problems(root: str, source: str) -> tuple[ProjectError, ...]:
    """All that is wrong with the library in a folder, apart from the files that it consists of."""
    try:
        _read(root, source)
    except ProjectError as error:
        return error.problems if isinstance(error, InvalidFile) else (error,)
    return ()


def _write(path: str, data: bytes, mode: int) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags, mode), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _read(root: str, source: str) -> Library:
    """The library in a folder.

    Args:
        root: The folder.
        source: What the user calls it.

    Raises:
        ProjectError: It is none, or something is wrong with it.
    """
    try:
        library = read_library(root)
    except LibraryNotFound:
        names = f"no {LIBRARY_FILE} and no {MANIFEST_NAMES[0]}"
        raise ProjectError(f"{names} in {quoted(source)}; a library says there what it is") from None
    problems = []
    for index, dependency in enumerate(library.manifest.dependencies):
        try:
            Spec.parse(dependency)
        except ProjectError as error:
            problems.append(library.document.error(error.message, ("dependencies", index)))
    if problems:
        raise InvalidFile(problems)
    return library


def _check_exports(library: Library, place: str) -> None:
    """See that the workers that a library exports can be loaded, as far as that shows without running its Python.

    Args:
        library: The library.
        place: Where those lie that it may depend on. Where one is missing each file is read for itself: it may be
            installed later.

    Raises:
        InvalidFile: With all that is wrong with them.
    """
    problems: list[ProjectError] = []
    try:
        options = PythonOptions(classes=False)
        libs = [place] if os.path.isdir(place) else []
        project = load_project(library.root, libs=libs, locked=False, python=options, tolerated=[])
    except (ProjectError, UsageError):
        project = None
    for identifier in library.exports:
        with collecting(problems):
            if project is not None:
                project.worker(identifier)
            elif (found := library.level.find(identifier)) is not None:
                read_worker(decode(library.files.read_bytes(found.path), found.path), found.path)
    if problems:
        first, *others = problems
        message = f"{first.message}; --force installs the library all the same"
        raise InvalidFile([ProjectError(message, path=first.path, line=first.line, column=first.column), *others])


def _name(library: Library, versioned: bool) -> str:
    if not versioned:
        return library.name
    if library.version is None:
        raise UsageError(f"library {library.name} has no version; give it one in lib.yaml, or leave --versioned out")
    return str(Spec.parse(f"{library.name}@{library.version}"))


def _replaced(target: str, content: str, force: bool) -> str | None:
    """The version of what will be replaced, where nothing that anybody needs is lost; None where nothing is there."""
    name = os.path.basename(target)
    if os.path.islink(target):
        raise UsageError(f"{name} is a link to another folder; `llm-do lib remove {name}` removes the link")
    if not os.path.lexists(target):
        return None
    record = record_of(target)
    try:
        there = contents.content_hash(contents.digests(target))
    except ProjectError:
        there = ""
    if not force and there not in (content, record.content if record else content):
        how = "was changed since it was installed" if record else "was not installed by this command"
        raise UsageError(f"{name} is there and {how}; --force replaces it")
    try:
        return read_library(target, name.partition("@")[0]).version or ""
    except ProjectError:
        return ""
