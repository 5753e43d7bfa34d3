"""Waits until something may have changed in some folders, without looking at them again and again.

Linux tells of changes (inotify, through ctypes: there is no such module in the standard library), so that an idle
server sleeps. Elsewhere, and for what the kernel does not tell of (a share that somebody else writes to, a link to a
file that lies in no watched folder), whoever waits looks again after a while, and that seldom that its looks take a
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
_SETTLES_S = 0.05
"""Changes come in crowds: an editor renames, a checkout writes a hundred files."""


class Watch:
    """Tells of changes in folders."""

    def __init__(self) -> None:
        self._notify = _Inotify() if sys.platform == "linux" else None

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


_CLOSE_WRITE, _ATTRIB, _MOVED, _CREATE, _DELETE = 0x8, 0x4, 0xC0, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF, _ONLYDIR = 0x400, 0x800, 0x01000000
_EVENTS = _CLOSE_WRITE | _ATTRIB | _MOVED | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF | _ONLYDIR


class _Inotify:
    """The kernel's notices of changes; made when first needed, and useless where the kernel has none to give."""

    def __init__(self) -> None:
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
        found = {path: self._libc.inotify_add_watch(self._file, os.fsencode(path), _EVENTS) for path in folders}
        for number in set(self._watched.values()) - set(found.values()):
            self._libc.inotify_rm_watch(self._file, number)
        self._watched = {path: number for path, number in found.items() if number >= 0}
        return all(number >= 0 or not os.path.isdir(path) for path, number in found.items())

    async def change(self) -> None:
        if self._file < 0:
            await anyio.sleep_forever()
        await anyio.wait_readable(self._file)

    def drain(self) -> None:
        """Forget what there is to tell."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self._file, 65536):
                pass

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
