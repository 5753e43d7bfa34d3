"""Starts another program whose output and complaints are read through pipes.

Where it runs in our own working folder, the system's `posix_spawn` can start it. The command is then spared the import
of `subprocess`, which takes twice as long as a small search. For all else (another folder, handles that it inherits on
other systems than Linux, Windows) that module is the way.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    class Running(Protocol):
        """A program that was started; as much of `subprocess.Popen` as is needed."""

        @property
        def pid(self) -> int: ...
        def kill(self) -> None: ...
        def wait(self) -> int: ...


_PASSES_HANDLES = sys.platform == "linux"
"""Whether a handle that is made a copy of itself is inherited, as POSIX has it since 2024."""
_KILL = 9  # on every POSIX system; the module `signal` takes a millisecond to load


class Program:
    """A running program.

    Args:
        command: Its path, and its arguments.
        folder: Where it runs.
        handles: What it inherits, under the same numbers.
        reading: A handle that it has as its standard input; None for one that is empty.

    Raises:
        OSError: It cannot be started, or the folder cannot be entered.
    """

    def __init__(
        self, command: Sequence[str], *, folder: str, handles: Sequence[int] = (), reading: int | None = None
    ) -> None:
        ours: list[int] = []
        theirs: list[int] = []
        try:
            for _ in range(2):
                read, write = os.pipe()
                ours.append(read)
                theirs.append(write)
            if (_PASSES_HANDLES or not handles) and hasattr(os, "posix_spawn") and min(theirs) > 2 and _is_ours(folder):
                self._running: Running = _Spawned(command, handles, reading, *theirs)
            else:
                self._running = _popen(command, folder, handles, reading, *theirs)
        except BaseException:
            for handle in ours:
                os.close(handle)
            raise
        finally:
            for handle in theirs:
                os.close(handle)
        self.pid = self._running.pid
        self.output, self.complaints = ours
        """What it writes can be read from these handles."""

    def kill(self) -> None:
        self._running.kill()

    def wait(self) -> int:
        """Wait for its end; returns its exit code, which is negative where a signal ended it."""
        return self._running.wait()

    def close(self) -> None:
        """Nothing more is read."""
        os.close(self.output)
        os.close(self.complaints)


def _is_ours(folder: str) -> bool:
    """Whether this is our own working folder, which may be gone."""
    with suppress(OSError):
        return os.path.samefile(folder, os.curdir)
    return False


class _Spawned:
    def __init__(
        self, command: Sequence[str], handles: Sequence[int], reading: int | None, output: int, complaints: int
    ) -> None:
        nothing = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
        actions = [
            nothing if reading is None else (os.POSIX_SPAWN_DUP2, reading, 0),
            (os.POSIX_SPAWN_DUP2, output, 1),
            (os.POSIX_SPAWN_DUP2, complaints, 2),
            *((os.POSIX_SPAWN_DUP2, handle, handle) for handle in handles),
        ]
        self.pid = os.posix_spawn(command[0], tuple(command), os.environ, file_actions=actions)
        self._code: int | None = None

    def kill(self) -> None:
        if self._code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, _KILL)

    def wait(self) -> int:
        try:
            self._code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        except ChildProcessError:  # whoever started us has the system forget how our children end
            self._code = 0
        return self._code


def _popen(
    command: Sequence[str], folder: str, handles: Sequence[int], reading: int | None, output: int, complaints: int
) -> Running:
    from subprocess import DEVNULL, Popen

    stdin = DEVNULL if reading is None else reading
    return Popen(command, stdin=stdin, stdout=output, stderr=complaints, cwd=folder, pass_fds=tuple(handles))
