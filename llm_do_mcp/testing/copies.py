"""A copy of a project, in which a test may write what it likes, and what the test then wrote.

Folders outside the project cannot be copied along: a worker that may write there is not tested, since that would be no
test any more.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping

from llm_do_mcp.errors import UsageError
from llm_do_mcp.leftovers import SKIPPED
from llm_do_mcp.project.checked import quoted
from llm_do_mcp.sandbox.names import below
from llm_do_mcp.sandbox.root import STATE_FOLDER, Root

LEFT_OUT = frozenset({*SKIPPED, STATE_FOLDER})
"""Folders that are not the project's own text; what they hold is neither copied nor taken for a test's work."""

Snapshot = Mapping[str, tuple[int, int]]
"""Path, separated by `/` → what changes whenever a file is written, also as it was."""


@contextlib.contextmanager
def copied(root: str) -> Iterator[str]:
    """A copy of a project in a folder of the same name, for the duration of the block."""
    with tempfile.TemporaryDirectory(prefix="llm-do-test-", ignore_cleanup_errors=True) as folder:
        copy = os.path.join(os.path.realpath(folder), os.path.basename(root) or "project")
        shutil.copytree(root, copy, symlinks=True, ignore=lambda _, names: LEFT_OUT.intersection(names))
        yield copy


def check_inside(root: str, roots: Iterable[Root]) -> None:
    """See that all that can be written lies in the copy.

    Raises:
        UsageError: Something does not.
    """
    for one in roots:
        if one.mode != "ro" and below(one.path, root) is None:
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
