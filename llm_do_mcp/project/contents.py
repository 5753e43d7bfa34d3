"""What a library consists of: the files that are installed, hashed and locked. All of it, or an error that says why.

A library is plain files below one folder. A link to a file inside counts as that file; whatever else could mean
something different in another place (a link to a folder, or out of it) or to another reader (a name that needs
escaping) is refused, so that two copies with one hash are the same library.
"""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Mapping

from llm_do_mcp.errors import InvalidFile, ProjectError, SandboxError
from llm_do_mcp.leftovers import LEFT_OUT
from llm_do_mcp.project.seen import Seen
from llm_do_mcp.sandbox import names
from llm_do_mcp.sandbox.opener import Directory, Found
from llm_do_mcp.sandbox.root import STATE_FOLDER

MAX_FILES = 5_000
MAX_FILE_BYTES = 10_000_000
MAX_BYTES = 100_000_000


def open_library(root: str) -> Directory:
    """The folder of a library.

    Raises:
        ProjectError: There is none, or it cannot be opened.
    """
    try:
        return Directory.open(root, hidden=(STATE_FOLDER,))
    except SandboxError as error:
        reason = str(error).removeprefix(f"{names.one_line(root)}: ")
        raise ProjectError(f"its folder cannot be opened: {reason}") from None


def survey(directory: Directory, seen: Seen | None = None) -> tuple[tuple[str, ...], tuple[ProjectError, ...]]:
    """The paths of a library's files, in order, and all that cannot be part of a library. Reads no file.

    Args:
        directory: The library's folder.
        seen: Where to note what was looked at.
    """
    paths: list[str] = []
    problems: list[ProjectError] = []
    total = 0

    def enters(parts: tuple[str, ...]) -> bool:
        if parts[-1] in LEFT_OUT:
            return False
        if seen is not None:
            seen.content("/".join(parts))
        return True

    if seen is not None:
        seen.content("")
    for found in directory.walk(descend=enters):
        if found.parts[-1] in LEFT_OUT or found.kind == "directory":
            continue
        try:
            size = _size(directory, found)
        except ProjectError as error:
            problems.append(error)
            continue
        total += size
        paths.append("/".join(found.parts))
        if len(paths) > MAX_FILES:
            problems.append(ProjectError(f"more than {MAX_FILES:,} files, the most that a library may have"))
            break
    if total > MAX_BYTES:
        problems.append(ProjectError(f"{total:,} bytes in all; a library may have {MAX_BYTES:,}"))
    return tuple(sorted(paths)), tuple(problems)


def read(directory: Directory, path: str) -> bytes:
    """One file of a library.

    Raises:
        ProjectError: It cannot be read, or is too large.
    """
    try:
        return directory.read_whole(path.split("/"), MAX_FILE_BYTES)
    except SandboxError as error:
        raise ProjectError(str(error).removeprefix(f"{path}: "), path=path) from None


def digests(root: str, seen: Seen | None = None) -> dict[str, str]:
    """Path → SHA-256 of every file of a library. Reads them as a whole.

    Args:
        root: The library's folder.
        seen: Where to note what was looked at.

    Raises:
        InvalidFile: With all that cannot be part of a library.
        ProjectError: The folder, or a file, cannot be read.
    """
    with open_library(root) as directory:
        paths, problems = survey(directory, seen)
        if problems:
            raise InvalidFile(problems)
        if seen is not None:
            for path in paths:
                seen.content(path)
        return {path: digest(read(directory, path)) for path in paths}


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def listing(files: Mapping[str, str]) -> str:
    """The files as lines in the form of `sha256sum`, which can check them."""
    return "".join(f"{files[path]}  {path}\n" for path in sorted(files))


def content_hash(files: Mapping[str, str]) -> str:
    """One hash for all that a library is: the SHA-256 of its listing."""
    return digest(listing(files).encode())


def _size(directory: Directory, found: Found) -> int:
    """The size of what a walk came by, where that is a file which a library may have."""
    path = names.shown_path(found.parts)
    if path != "/".join(found.parts):
        raise ProjectError("a name with characters that need escaping; rename it", path=path)
    if found.kind == "unreadable":
        raise ProjectError(found.reason, path=path)
    size = found.size
    if found.kind == "link":
        try:
            target = directory.stat(found.parts)
        except SandboxError as error:
            reason = str(error).removeprefix(f"{path}: ")
            raise ProjectError(f"{reason}; a library is complete in itself", path=path) from None
        if stat.S_ISDIR(target.st_mode):
            raise ProjectError("a link to a folder; put the folder itself there", path=path)
        size = target.st_size if stat.S_ISREG(target.st_mode) else -1
    if found.kind == "other" or size < 0:
        raise ProjectError("not a regular file", path=path)
    if size > MAX_FILE_BYTES:
        raise ProjectError(f"{size:,} bytes; a file of a library may have {MAX_FILE_BYTES:,}", path=path)
    return size
