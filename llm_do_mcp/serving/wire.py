"""The two ends of a stdio connection, without a thread where the system can do without.

A message that crosses a thread on its way in and two on its way out costs more than most answers do; and a server
whose threads are all taken is deaf. A pipe can be watched by the event loop, and takes a short message without
blocking when it says that it is ready. Everything else (files, Windows, long messages, a client that does not read)
is left to a thread. The descriptors stay blocking: whoever started us may share them.
"""

from __future__ import annotations

import os
import stat
import sys
import threading
from collections.abc import Callable
from typing import Self

import anyio
import anyio.to_thread

CHUNK = 65536
"""Bytes that are read at a time."""

_out: int | None = None


def guard_stdout() -> int:
    """Keep standard output for the protocol: whatever prints from now on prints to standard error.

    Returns:
        The descriptor that the client reads.
    """
    global _out
    if _out is None:
        sys.stdout.flush()
        _out = os.dup(1)
        os.dup2(2, 1)
    return _out


def guard_stdin() -> int:
    """Keep standard input for the protocol: whatever else reads it, child processes too, finds it at its end.

    Returns:
        The descriptor that the client writes to.
    """
    wire = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return wire


def when_ended(file: int, ended: Callable[[], None]) -> None:
    """Have it called, by a thread, once whoever writes to a pipe has closed it, also where much is left to be read.

    The loop comes to the end only after all that was sent before it, which a busy server, or one whose client does
    not read, may not do in time. Where the system cannot tell, nothing is called.
    """
    if not _kind_in(file, stat.S_ISFIFO, stat.S_ISSOCK):
        return
    import select

    poll = select.poll()
    poll.register(file, getattr(select, "POLLRDHUP", 0))

    def wait() -> None:
        poll.poll()
        ended()

    threading.Thread(target=wait, name="end of input", daemon=True).start()


class Incoming:
    """Lines that come in.

    Args:
        file: The descriptor to read. It is left open: a thread may still be waiting at it.
    """

    def __init__(self, file: int) -> None:
        self._file = file
        self._watched = _kind_in(file, stat.S_ISFIFO, stat.S_ISSOCK)
        self._bytes = bytearray()
        self._searched = 0
        self._ended = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        while True:
            end = self._bytes.find(b"\n", self._searched) + 1
            if end == 0 and self._ended:
                end = len(self._bytes)
                if end == 0:
                    raise StopAsyncIteration
            if end:
                line = self._bytes[:end].decode("utf-8", "replace")
                del self._bytes[:end]
                self._searched = 0
                return line.removeprefix("\ufeff")  # some begin their first line with a mark
            self._searched = len(self._bytes)
            chunk = await self._read()
            self._bytes += chunk
            self._ended = not chunk

    async def _read(self) -> bytes:
        if self._watched:
            await anyio.wait_readable(self._file)
            return os.read(self._file, CHUNK)
        return await anyio.to_thread.run_sync(os.read, self._file, CHUNK, abandon_on_cancel=True)


class Outgoing:
    """Text that goes out.

    Args:
        file: The descriptor to write to; left open.
        at_end: Called when nobody reads any more, before that is raised as a `ConnectionError`.
    """

    def __init__(self, file: int, at_end: Callable[[], None]) -> None:
        self._file, self._at_end = file, at_end
        self._piped = _kind_in(file, stat.S_ISFIFO)

    async def write(self, text: str) -> None:
        """Write a message as a whole."""
        data = text.encode()
        try:
            if self._piped and self._takes(len(data)):
                os.write(self._file, data)
            else:
                await anyio.to_thread.run_sync(self._write, data)
        except ConnectionError:
            self._at_end()
            raise

    def _takes(self, size: int) -> bool:
        # What POSIX promises: a pipe that is ready takes PIPE_BUF bytes at once, and does not block.
        import select

        if size > select.PIPE_BUF:
            return False
        poll = select.poll()
        poll.register(self._file, select.POLLOUT)
        return poll.poll(0) == [(self._file, select.POLLOUT)]

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._file, rest) :]


def _kind_in(file: int, *kinds: Callable[[int], bool]) -> bool:
    mode = os.fstat(file).st_mode
    return sys.platform != "win32" and any(kind(mode) for kind in kinds)
