"""Waits until something may have changed in some folders, without looking at them again and again.

Linux tells of changes (inotify, through ctypes: there is no such module in the standard library), so that an idle
server sleeps. Elsewhere, and for what the kernel does not tell of (a share that somebody else writes to, a file that
is written by another of its names), whoever waits looks again after a while, and that seldom that its looks take a
thousandth of the time.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Collection
from typing import Any

import anyio

_LOOKS_SHARE = 0.001
"""How much of the time is spent on looks where nobody tells of changes."""
_LOOK_AT_LEAST_S = 2.0
_LOOK_AT_MOST_S = 60.0
TRUSTED_S = 1.0
"""How long the kernel's silence is taken for an answer."""
_SETTLES_S = 0.05
"""Changes come in crowds: an editor renames, a checkout writes a hundred files."""


class Watch:
    """Tells of changes in folders."""

    def __init__(self) -> None:
        self._notify = _inotify(_CHANGES)

    async def stirred(self, folders: Collection[str], look: Callable[[], bool]) -> None:
        """Wait until something in one of the folders (not below their own folders) may have changed.

        Args:
            folders: Their paths; those that do not exist count for nothing.
            look: Whether something has changed since whoever waits looked last: before anything was watched.
        """
        told = self._notify is not None and self._notify.watch(folders)
        began = time.monotonic()
        if look():
            await anyio.sleep(_SETTLES_S)
            return
        looks_seldom = min(max((time.monotonic() - began) / _LOOKS_SHARE, _LOOK_AT_LEAST_S), _LOOK_AT_MOST_S)
        with anyio.move_on_after(_LOOK_AT_MOST_S if told else looks_seldom):
            if self._notify is None:
                await anyio.sleep_forever()
            else:
                await self._notify.change()
                await anyio.sleep(_SETTLES_S)
                self._notify.drain()

    def close(self) -> None:
        """Watch nothing any more."""
        if self._notify is not None:
            self._notify.close()


class Looks:
    """Looks whether something has changed, again and again, and is spared most of it where the kernel tells of changes.

    The kernel has told of a change before whoever made it can go on. Only what it does not tell of (see above) is
    seen later, after `TRUSTED_S`. Looks that come farther apart than that are not worth a watch.
    """

    def __init__(self) -> None:
        self._notify = _inotify(_CHANGES | _MODIFY)
        self._looked = float("-inf")
        self._trusts = False

    def changed(self, folders: Callable[[], Collection[str]], look: Callable[[], bool]) -> bool:
        """Whether something has changed.

        Args:
            folders: The folders in which changes matter.
            look: Looks.
        """
        now = time.monotonic()
        soon = now - self._looked < TRUSTED_S
        if self._notify is not None:
            self._trusts = self._trusts and not self._notify.drain()
            if soon and self._trusts:
                return False
            # As long as there was nothing to tell, what is watched is what was watched.
            self._trusts = self._trusts or (soon and self._notify.watch(folders()))
        self._looked = now
        found = look()
        self._trusts = self._trusts and not found
        return found

    def close(self) -> None:
        """Watch nothing any more."""
        self._trusts = False
        if self._notify is not None:
            self._notify.close()


def _inotify(events: int) -> _Inotify | None:
    return _Inotify(events) if sys.platform == "linux" else None


_MODIFY, _CLOSE_WRITE, _ATTRIB, _MOVED, _CREATE, _DELETE = 0x2, 0x8, 0x4, 0xC0, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF, _ONLYDIR = 0x400, 0x800, 0x01000000
_CHANGES = _CLOSE_WRITE | _ATTRIB | _MOVED | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF | _ONLYDIR


class _Inotify:
    """The kernel's notices of changes; made when first needed, and useless where the kernel has none to give.

    Args:
        events: What is told of.
    """

    def __init__(self, events: int) -> None:
        self._events = events
        self._libc: Any = None
        self._file = -1
        self._watched: dict[str, int] = {}

    def watch(self, folders: Collection[str]) -> bool:
        """Watch these folders and no others; whether all of them can be."""
        if self._libc is None:
            import ctypes

            self._libc = ctypes.CDLL(None, use_errno=True)
            self._file = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._file < 0:
            return False
        # Said again, a watch stays what it was; or it is of the folder that has taken the name meanwhile.
        found = {path: self._libc.inotify_add_watch(self._file, os.fsencode(path), self._events) for path in folders}
        for number in set(self._watched.values()) - set(found.values()):
            self._libc.inotify_rm_watch(self._file, number)
        self._watched = {path: number for path, number in found.items() if number >= 0}
        return all(number >= 0 or not os.path.isdir(path) for path, number in found.items())

    async def change(self) -> None:
        if self._file < 0:
            await anyio.sleep_forever()
        await anyio.wait_readable(self._file)

    def drain(self) -> bool:
        """Forget what there is to tell; whether there was anything."""
        told = False
        with contextlib.suppress(BlockingIOError):
            while os.read(self._file, 65536):
                told = True
        return told

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
