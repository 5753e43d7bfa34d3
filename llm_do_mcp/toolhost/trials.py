"""What is known of importing modules: which code survived it, and which ended its process or did not end itself.

Code is known by its hash, so what is known holds until a file of it is edited. Where there is no hash (a module that is
installed, a file that is not there) nothing is known.
"""

from __future__ import annotations

import anyio


class Trials:
    """The imports that were tried, whatever the process. A trial is named by what was asked for and the module."""

    def __init__(self) -> None:
        self._locks: dict[tuple[str, str], anyio.Lock] = {}
        self._survived: set[tuple[str, str, str]] = set()
        self._failures: dict[tuple[str, str, str], str] = {}

    def of(self, do: str, path: str) -> anyio.Lock:
        """Held while a module is tried: whoever needs the same one waits for that, and nobody else."""
        return self._locks.setdefault((do, path), anyio.Lock())

    def survived(self, do: str, path: str, code_hash: str) -> bool:
        """Whether this code was imported before, and its process lived on."""
        return (do, path, code_hash) in self._survived

    def failure(self, do: str, path: str, code_hash: str) -> str | None:
        """Why this code must not be imported again, in one line; None where nothing is known against it."""
        return self._failures.get((do, path, code_hash))

    def went_well(self, do: str, path: str, code_hash: str) -> None:
        if code_hash:
            self._survived.add((do, path, code_hash))

    def failed(self, do: str, path: str, code_hash: str, what: str) -> str:
        """Remembers what an import did, and gives the line that says so."""
        if not code_hash:
            return what
        return self._failures.setdefault((do, path, code_hash), f"{what}; it is tried again once its code has changed")
