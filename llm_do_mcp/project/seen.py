"""What loading has looked at, so that a look at the same places tells whether it would find the same again.

Nothing here watches the files; `folders` says where whoever wants to has to look. Each place that was asked about (also
one where nothing was), each file that was read and each folder that was listed leaves a stamp, and comparing the stamps
is a `stat` each: well below a millisecond for a project of some dozen workers. A stamp is taken before the reading that
it stands for, so what changes in between shows as a change later, and never the other way round.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Collection

Stamp = tuple[int, ...] | None

_TICK_NS = 20_000_000
"""Two changes may bear one time stamp, as close as this: how far apart the kernel's ticks are, and some."""
_MOST = 100_000
"""Places beyond which loading anew is cheaper: whoever asks for workers that are not there leaves some each time."""
_UNSURE: Stamp = ()
"""Of what was changed just now: a second change might leave the same stamp."""


class Seen:
    """The places below one folder that were looked at. Threads may share it.

    Args:
        root: The folder's absolute path.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._kinds: dict[str, Stamp] = {}
        self._contents: dict[str, Stamp] = {}

    def kind(self, path: str) -> None:
        """Note that it matters whether there is a file, a folder or nothing at a path."""
        if path not in self._kinds:
            self._kinds[path] = self._kind(path)

    def content(self, path: str) -> None:
        """Note that it matters what a file holds, or which names a folder has."""
        if path not in self._contents:
            self._contents[path] = self._content(path)

    @property
    def contents(self) -> Collection[str]:
        """The files that were read, and the folders that were listed."""
        return self._contents.keys()

    @property
    def folders(self) -> set[str]:
        """The folders in which a change could make `changed` true: absolute paths, of those that there are."""
        found = {self._root}
        for path in (*self._kinds, *self._contents):
            place = os.path.normpath(os.path.join(self._root, path))
            if place == self._root:
                continue
            if os.path.isdir(place):
                found.add(place)
            above = os.path.dirname(place)
            while not os.path.isdir(above):  # in the nearest one a name on the way there would appear
                above = os.path.dirname(above)
            found.add(above)
            if os.path.islink(place):
                found.add(os.path.dirname(os.path.realpath(place)))
        return found

    def changed(self) -> bool:
        """Whether anything is no longer as it was when it was noted; in doubt, yes."""
        if len(self._kinds) > _MOST:
            return True
        return any(self._kind(path) != stamp for path, stamp in tuple(self._kinds.items())) or any(
            stamp == _UNSURE or self._content(path) != stamp for path, stamp in tuple(self._contents.items())
        )

    def _kind(self, path: str) -> Stamp:
        found = self._stat(path)
        return None if found is None else (stat.S_IFMT(found.st_mode),)

    def _content(self, path: str) -> Stamp:
        found = self._stat(path)
        if found is None:
            return None
        if abs(time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns)) < _TICK_NS:
            return _UNSURE
        times = (found.st_mtime_ns, found.st_ctime_ns)
        return (stat.S_IFMT(found.st_mode), found.st_dev, found.st_ino, found.st_size, *times)

    def _stat(self, path: str) -> os.stat_result | None:
        try:
            return os.stat(os.path.join(self._root, path))
        except (OSError, ValueError):
            return None
