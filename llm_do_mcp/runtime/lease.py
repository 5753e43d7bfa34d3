"""Whether the process that drives a run still lives, told by a lock that the kernel releases with the process.

Each process that drives runs holds one locked file in the state folder for as long as it lives. A run's row names
that file; whoever finds it unlocked knows that its process is gone, however it ended, and may take the run over at
once. A lease of another machine (a shared folder) is taken as living: only its own kernel could tell.
"""

from __future__ import annotations

import os
import platform
import secrets
import sys
from pathlib import Path

_MACHINE = platform.node() or "localhost"


class Lease:
    """This process's lock, held until `release` or the end of the process.

    Args:
        folder: The state folder; `leases/` is made in it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "leases"
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._sweep()
        self.name = f"{_MACHINE}-{os.getpid()}-{secrets.token_hex(4)}"
        # Locked before it bears the name that others look for, so that nobody ever finds it unlocked.
        unborn = self._folder / f".{self.name}"
        self._file = os.open(unborn, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        _lock(self._file)
        unborn.rename(self._folder / self.name)

    def alive(self, name: str) -> bool:
        """Whether the process with the lease `name` lives (True where only another machine could tell)."""
        if name == self.name:
            return True
        if not name.startswith(f"{_MACHINE}-"):
            return True
        return _locked(self._folder / name)

    def release(self) -> None:
        """Give the lease up; what this process drove can be taken over."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            (self._folder / self.name).unlink(missing_ok=True)

    def _sweep(self) -> None:
        for path in self._folder.iterdir():
            if path.name.startswith(f"{_MACHINE}-") and not _locked(path):
                path.unlink(missing_ok=True)


if sys.platform == "win32":
    import msvcrt

    def _lock(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)

    _probe = _lock

else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _probe(file: int) -> None:
        # Shared, so that two who look at the same time do not take each other for the holder.
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)


def _locked(path: Path) -> bool:
    try:
        file = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        _probe(file)
    except OSError:
        return True
    finally:
        os.close(file)
    return False
