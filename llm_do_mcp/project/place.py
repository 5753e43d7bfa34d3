"""A folder of installed libraries, and how it changes: at any moment, each library in it is whole, the old or the new.

A change is prepared in a private folder beside the libraries and takes effect by one rename. Whoever is killed before
leaves the old library, whoever is killed after it the new one, and in both cases a private folder, which the next
change clears away. Changes of one place wait for each other; readers wait for nobody.

Where two folders cannot be exchanged (Windows, some file systems) the rename takes two steps. Who is killed between
them leaves the library aside, and the next change puts it back: a weaker promise, and the only other one.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator

from llm_do_mcp.filelock import held
from llm_do_mcp.project.swap import exchange

PRIVATE = ".changing-"
"""What the name of a private folder starts with. No library's name starts with a dot."""
LOCK = ".lock"
ASIDE = "aside"
"""In a private folder: libraries that are being replaced, by their names, while there is nothing in their place."""


@contextlib.contextmanager
def changing(place: str, waits: Callable[[], None]) -> Iterator[str]:
    """The right to change a place, for the duration of the block.

    Args:
        place: The folder of libraries, absolute; made where it is missing.
        waits: Called once where another process has that right and is waited for.

    Yields:
        A private folder on the same file system, empty. It is removed with whatever is in it.

    Raises:
        OSError: The place cannot be written.
    """
    os.makedirs(place, exist_ok=True)
    with held(os.path.join(place, LOCK), waits):
        with os.scandir(place) as entries:
            left = [entry.path for entry in entries if entry.name.startswith(PRIVATE)]
        for private in left:
            _finish(private)
        private = tempfile.mkdtemp(prefix=PRIVATE, dir=place)
        try:
            yield private
        finally:
            _finish(private)


def put(new: str, name: str, private: str) -> None:
    """Put a prepared folder in the place of a library, or where there is none yet.

    Args:
        new: The folder, inside the private one.
        name: The library's.
        private: As `changing` gave it.

    Raises:
        OSError: Nothing was changed.
    """
    target = os.path.join(os.path.dirname(private), name)
    if not os.path.lexists(target):
        os.rename(new, target)
    elif not exchange(new, target):
        aside = os.path.join(private, ASIDE, name)
        os.mkdir(os.path.dirname(aside))
        os.rename(target, aside)
        os.rename(new, target)  # where this fails, `_finish` puts back what lies aside


def take_out(name: str, private: str) -> None:
    """Remove a library, in one step as far as readers see; of a link, only the link.

    Raises:
        OSError: Nothing was changed.
    """
    os.rename(os.path.join(os.path.dirname(private), name), os.path.join(private, name))


def _finish(private: str) -> None:
    """Put back what lies aside and has nothing in its place, and clear a private folder away.

    What cannot be put back stays aside, for the next change.
    """
    place, aside = os.path.dirname(private), os.path.join(private, ASIDE)
    for name in os.listdir(aside) if os.path.isdir(aside) else ():
        if not os.path.lexists(os.path.join(place, name)):
            try:
                os.rename(os.path.join(aside, name), os.path.join(place, name))
            except OSError:
                return
    _remove(private)


def _remove(folder: str) -> None:
    """Remove a private folder. What cannot be removed now is out of sight, and tried again by the next change."""
    if sys.platform == "win32":  # where a read-only file, such as git's objects, cannot be removed
        for parent, _, files in os.walk(folder):
            for file in files:
                with contextlib.suppress(OSError):
                    os.chmod(os.path.join(parent, file), stat.S_IWRITE)
    shutil.rmtree(folder, ignore_errors=True)
