"""`llm-do lib lock`: accept a project's libraries as they are, and say what that changes."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from llm_do_mcp.cli import terminal
from llm_do_mcp.cli.exits import DONE
from llm_do_mcp.cli.projects import load
from llm_do_mcp.errors import ProjectError
from llm_do_mcp.project import libslock
from llm_do_mcp.project.files import ProjectFiles
from llm_do_mcp.project.libslock import LibsLock, LockedLibrary
from llm_do_mcp.runtime.display import escape

MOST_SHOWN = 20


def lock(options: argparse.Namespace) -> int:
    """Write the lock of a project.

    Returns:
        The exit code.
    """
    project = load(options.path, libs=options.libs, locked=False)
    before = _before(project.root)
    if not project.libraries and not before.libraries:
        print("this project needs no libraries; there is nothing to lock")
        return DONE
    now = libslock.lock_of((one.name, one.version, one.root) for one in project.libraries.values())
    libslock.write(project.root, now)
    for name in sorted({*before.libraries, *now.libraries}):
        for line in _lines(name, before.libraries.get(name), now.libraries.get(name)):
            print(escape(line))
    terminal.say(f"Review {libslock.NAME} and what has changed before you commit it")
    return DONE


def _before(root: str) -> LibsLock:
    try:
        return libslock.read(ProjectFiles(root)) or LibsLock({})
    except ProjectError as error:
        terminal.say(f"{error}; it is written anew")
        return LibsLock({})


def _lines(name: str, before: LockedLibrary | None, now: LockedLibrary | None) -> Iterator[str]:
    """What has become of one library."""
    if now is None:
        yield f"{name}: not needed any more"
        return
    title = f"{name} {now.version}" if now.version else name
    if before is None:
        yield f"{title}: new ({len(now.files)} files, {now.content[:12]})"
        return
    found = list(libslock.differences(before.files, now.files))
    if not found:
        yield f"{title}: as before"
        return
    yield f"{title}: changed ({before.version or before.content[:12]} → {now.version or now.content[:12]})"
    for difference in found[:MOST_SHOWN]:
        yield f"  {difference.kind:8} {difference.path}"
    if len(found) > MOST_SHOWN:
        yield f"  and {len(found) - MOST_SHOWN} more"
