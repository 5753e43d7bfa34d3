"""A copy of a project, in which a test may write what it likes, and what the test then wrote.

Folders outside the project cannot be copied along: a worker that may write there is not tested, since that would be no
test any more.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping

from llm_do_mcp.errors import SandboxError, UsageError
from llm_do_mcp.leftovers import SKIPPED
from llm_do_mcp.project.checked import quoted
from llm_do_mcp.sandbox.names import below, is_below, one_line
from llm_do_mcp.sandbox.opener import Directory
from llm_do_mcp.sandbox.root import STATE_FOLDER, Root

LEFT_OUT = frozenset({*SKIPPED, STATE_FOLDER})
"""Folders that are not the project's own text; what they hold is neither copied nor taken for a test's work."""

Snapshot = Mapping[str, tuple[int, int]]
"""Path, separated by `/` → what changes whenever a file is written, also as it was."""


@contextlib.contextmanager
def copied(root: str) -> Iterator[str]:
    """A copy of a project in a folder of the same name, for the duration of the block.

    Raises:
        UsageError: Something cannot be read, or there is no room.
    """
    with tempfile.TemporaryDirectory(prefix="llm-do-test-", ignore_cleanup_errors=True) as folder:
        copy = os.path.join(os.path.realpath(folder), os.path.basename(root) or "project")
        try:
            shutil.copytree(root, copy, symlinks=True, ignore=_no_part)
        except OSError as error:
            place, why = _first(error)
            where = "/".join(below(place, root) or ()) or "."
            raise UsageError(f"the project cannot be copied for a test: {one_line(where)}: {why}") from None
        yield copy


def _no_part(folder: str, names: Iterable[str]) -> set[str]:
    """What of a folder is not copied: what is no text of the project's, and what is neither file nor folder."""
    return {name for name in names if name in LEFT_OUT or not _is_kept(os.path.join(folder, name))}


def _is_kept(path: str) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False  # it has gone meanwhile
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)


def _first(error: OSError) -> tuple[str, str]:
    """The first of the places that could not be copied, and why; `copytree` goes on to the end and tells of all."""
    if isinstance(error, shutil.Error) and isinstance(error.args[0], list):
        place, _, why = error.args[0][0]
        return str(place), str(why).partition("] ")[2].partition(": ")[0] or str(why)
    return str(error.filename or ""), error.strerror or str(error)


def leave_out(root: str, paths: Iterable[str]) -> None:
    """Remove files from a copy, as far as they are there.

    Args:
        root: The copy's folder.
        paths: Relative to it. What only a link leads to is left alone.
    """
    with Directory.open(root) as folder:
        for path in paths:
            with contextlib.suppress(SandboxError):
                folder.remove(path)


def check_inside(root: str, roots: Iterable[Root]) -> None:
    """See that all that can be written lies in the copy.

    Raises:
        UsageError: Something does not.
    """
    for one in roots:
        if one.mode != "ro" and not is_below(one.path, root):
            raise UsageError(
                f"a test would write to {quoted(one.path)} (alias {one.alias}), which lies outside the project; "
                "name a folder of the project, or mode: ro"
            )


def snapshot(root: str) -> Snapshot:
    """The files of a copy as they are now."""
    found = {}
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in LEFT_OUT]
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                status = os.stat(path)
                found[os.path.relpath(path, root).replace(os.sep, "/")] = (status.st_ino, status.st_mtime_ns)
    return found


def written(root: str, before: Snapshot) -> dict[str, str]:
    """The files that were written since: path → text, with what is no UTF-8 replaced."""
    changed = {}
    for path, version in sorted(snapshot(root).items()):
        if before.get(path) != version:
            with open(os.path.join(root, path), encoding="utf-8", errors="replace", newline="") as file:
                changed[path] = file.read()
    return changed
