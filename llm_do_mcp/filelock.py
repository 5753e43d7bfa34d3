"""One process after the other: who holds a lock on a file has its turn, and the others wait.

The kernel gives the lock up with its process, however that ends. The file itself stays, and never has anything in it.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
import time
from collections.abc import Callable, Iterator

_LOOKS_EVERY_S = 0.02


def _in_silence() -> None:
    """Wait without a word."""


@contextlib.contextmanager
def held(
    path: str | os.PathLike[str], waits: Callable[[], None] = _in_silence, *, within_s: float = math.inf
) -> Iterator[None]:
    """Have the turn for the duration of the block.

    Args:
        path: The file, which is made where it is missing.
        waits: Called once where another process has the turn and is waited for.
        within_s: How long it is waited for, in seconds.

    Raises:
        OSError: The file cannot be made, or read.
        TimeoutError: Another process has the turn for longer than that.
    """
    with open(path, "rb", opener=_made) as file:
        if not _taken(file.fileno()):
            waits()
            until = time.monotonic() + within_s
            while not _taken(file.fileno(), waits=math.isinf(within_s)):
                if time.monotonic() > until:
                    raise TimeoutError(f"another process has held {os.path.basename(path)} for {within_s:g} s")
                time.sleep(_LOOKS_EVERY_S)
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

    def _taken(lock: int, *, waits: bool = False) -> bool:
        try:  # whoever waits gives up after ten seconds, and is asked again
            msvcrt.locking(lock, msvcrt.LK_LOCK if waits else msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _taken(lock: int, *, waits: bool = False) -> bool:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
