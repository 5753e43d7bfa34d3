"""One process after the other: who holds a lock on a file has its turn, and the others wait.

The kernel gives the lock up with its process, however that ends. The file itself stays, and never has anything in it.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator


def _in_silence() -> None:
    """Wait without a word."""


@contextlib.contextmanager
def held(path: str | os.PathLike[str], waits: Callable[[], None] = _in_silence) -> Iterator[None]:
    """Have the turn for the duration of the block.

    Args:
        path: The file, which is made where it is missing.
        waits: Called once where another process has the turn and is waited for.

    Raises:
        OSError: The file cannot be made, or read.
    """
    with open(path, "rb", opener=_made) as file:
        _take(file.fileno(), waits)
        yield


def _made(path: str, flags: int) -> int:
    """Opens a file, made where it is missing. A pipe in its place is not waited for."""
    flags |= getattr(os, "O_NONBLOCK", 0)
    try:
        return os.open(path, flags | os.O_RDWR | os.O_CREAT, 0o666)  # NFS locks only what can be written
    except PermissionError:
        return os.open(path, flags)


if sys.platform == "win32":
    import msvcrt

    def _take(lock: int, waits: Callable[[], None]) -> None:
        mode = msvcrt.LK_NBLCK
        while True:
            try:
                return msvcrt.locking(lock, mode, 1)
            except OSError:  # the second mode gives up after ten seconds
                if mode == msvcrt.LK_NBLCK:
                    waits()
                mode = msvcrt.LK_LOCK

else:
    import fcntl

    def _take(lock: int, waits: Callable[[], None]) -> None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waits()
            fcntl.flock(lock, fcntl.LOCK_EX)
