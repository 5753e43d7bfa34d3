"""Keeps what a search printed, so that what is shown can be chosen after all of it has been seen.

Small results stay in memory; larger ones go to an unnamed temporary file, up to a cap. What lies beyond the cap is
counted by the search all the same, but cannot be shown.
"""

from __future__ import annotations

import os
from contextlib import suppress

from llm_do_mcp.te.handles import temporary_folder
from llm_do_mcp.te.roots import HANDLES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

IN_MEMORY = 1 << 20
CAP = 256 << 20
READ_APART = os.path.isdir(HANDLES)
"""Whether a file without a name can be opened once more, and then has a second place at which it is read."""
_PIECE = 1 << 20


class Spool:
    """Bytes that are appended, and read back by their offset."""

    def __init__(self) -> None:
        self._memory = bytearray()
        self._file: IO[bytes] | None = None
        self._full = False
        self._moved = False
        self.size = 0
        """Bytes kept, at most `CAP`."""

    def write(self, piece: bytes) -> None:
        """Append; nothing more is kept once the cap is reached or the disk is full."""
        if self._full:
            return
        try:
            if self._file is None and self.size + len(piece) > IN_MEMORY:
                self._move_to_file()
            if self._file is None:
                self._memory += piece
            else:
                if self._moved:
                    self._file.seek(self.size)
                    self._moved = False
                self._file.write(piece)
        except OSError:
            self._full = True
            return
        self.size += len(piece)
        self._full = self.size >= CAP

    def read(self, offset: int, size: int) -> bytes:
        """At most `size` bytes from `offset`; fewer, or none, where the spool ends."""
        size = min(size, self.size - offset)
        if size <= 0:
            return b""
        if self._file is None:
            return bytes(self._memory[offset : offset + size])
        self._moved = True
        self._file.seek(offset)
        return self._file.read(size)

    def pieces(self) -> Iterator[bytes]:
        """All that is kept, piece by piece."""
        for offset in range(0, self.size, _PIECE):
            yield self.read(offset, _PIECE)

    @property
    def in_memory(self) -> bool:
        """Whether it is small enough to be read whole."""
        return self._file is None

    def handle(self) -> int:
        """A new handle on the file in which a larger result is, at its beginning: for a program that reads all of it.

        Whoever asks closes it. Only where `READ_APART` may several be read at a time, and while the spool is read.
        """
        assert self._file is not None
        if READ_APART:
            return os.open(f"{HANDLES}/{self._file.fileno()}", os.O_RDONLY)
        self._moved = True
        self._file.seek(0)
        return os.dup(self._file.fileno())

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _move_to_file(self) -> None:
        self._file = _unnamed_file()
        self._file.write(self._memory)
        self._memory = bytearray()


def _unnamed_file() -> IO[bytes]:
    """A temporary file; where the system has such without a name (Linux), `tempfile` need not be loaded for it."""
    with suppress(AttributeError, OSError):
        handle = os.open(temporary_folder(), os.O_TMPFILE | os.O_RDWR, 0o600)
        return open(handle, "w+b", buffering=0)
    from tempfile import TemporaryFile

    return TemporaryFile(buffering=0)
