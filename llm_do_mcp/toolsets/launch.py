"""One command under way: started without a shell, read as it prints, and ended together with all it started.

What ends with it is chosen here: on Windows what is in its job (`job.py`), elsewhere what its guard finds
(`guard.py`). In both cases the system sees to it when the server dies.

Pipes and the end of a process are watched by threads, as for the tool host, so that it is the same on every platform,
and no command holds a place in the pool of threads that files are read on.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import IO, Protocol

from llm_do_mcp.toolsets.capture import Capture

GUARD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "guard.py")

GRACE_S = 0.5
"""How long a guard may take to end everything, before it is killed with its group."""
_CHUNK = 1 << 16


@dataclass(frozen=True)
class Ended:
    """How a command ended.

    Args:
        exit_code: As a shell would give it: 128 and the signal's number where a signal ended it; None where it is not
            known, because the command was stopped.
        stdout, stderr: What it printed, as far as that is kept.
        left_out: How many bytes are not kept.
        problem: Why it could not be started, or "".
        flooded: It was stopped because it printed more than it may.
    """

    exit_code: int | None
    stdout: str
    stderr: str
    left_out: int
    problem: str = ""
    flooded: bool = False


class Processes(Protocol):
    """A command with what it started, as the platform keeps them together."""

    popen: subprocess.Popen[bytes]

    def wait(self) -> tuple[int | None, str]:
        """Block until all have ended; the exit code, and why the command could not be started, or ""."""

    def end(self) -> None:
        """Begin to end all of them; from any thread, any number of times."""


class Command:
    """A command.

    Args:
        program: Path of the program.
        words: Its arguments, its name first.
        folder: Where it runs.
        environment: All of its environment.
        made: A folder that was made for it. Whoever starts it removes it; should that process die, it goes as well.
        most: How many bytes of each of its outputs are kept.
        flood: How many bytes of each of them it may print, before it is stopped.

    Attributes:
        ended: Done when all of its processes have ended; not before it was started.
    """

    def __init__(
        self,
        program: str,
        words: Sequence[str],
        folder: str,
        environment: Mapping[str, str],
        made: str,
        *,
        most: int,
        flood: int,
    ) -> None:
        self.ended: Future[Ended] = Future()
        self.ended.set_running_or_notify_cancel()  # whoever stops waiting for it cannot cancel it for the others
        self._given = program, words, folder, environment
        self._made = made
        self._captures = Capture(most), Capture(most)
        self._flood = flood
        self._processes: Processes | None = None
        self._stopped = False
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start it, unless it was stopped already. `ended` tells where it cannot be started."""
        with self._lock:
            if self._stopped:
                self.ended.set_result(Ended(None, "", "", 0))
                return
            try:
                windows = sys.platform == "win32"
                self._processes = _InJob(*self._given) if windows else _Guarded(*self._given, self._made)
            except (OSError, ValueError) as error:
                self.ended.set_result(Ended(None, "", "", 0, getattr(error, "strerror", None) or str(error)))
                return
        streams = zip((self._processes.popen.stdout, self._processes.popen.stderr), self._captures, strict=True)
        readers = [threading.Thread(target=self._read, args=s, daemon=True, name="shell-reader") for s in streams]
        waiter = threading.Thread(target=self._wait, args=(self._processes, readers), daemon=True, name="shell-waiter")
        for thread in (*readers, waiter):
            thread.start()

    def stop(self) -> None:
        """End it with all that it started, from any thread; `ended` tells when they are gone."""
        with self._lock:
            self._stopped = True
            if self._processes is not None and not self.ended.done():
                self._processes.end()

    def _wait(self, processes: Processes, readers: list[threading.Thread]) -> None:
        code, problem = processes.wait()
        for reader in readers:
            reader.join(1.0)  # a process that left its group, where that can be, may hold the pipe open for longer
        (out, more_out), (err, more_err) = (capture.text() for capture in self._captures)
        flooded = any(capture.total > self._flood for capture in self._captures)
        self.ended.set_result(Ended(None if flooded else code, out, err, more_out + more_err, problem, flooded))

    def _read(self, stream: IO[bytes], capture: Capture) -> None:
        with stream:
            while data := stream.read(_CHUNK):
                capture.take(data)
                if capture.total > self._flood:
                    self.stop()


class _Guarded:
    """On POSIX: the guard is the leader of a session, so a terminal's Ctrl-C does not reach it."""

    def __init__(
        self, program: str, words: Sequence[str], folder: str, environment: Mapping[str, str], made: str
    ) -> None:
        life, self._life = os.pipe()
        self._report, report = os.pipe()
        self._ending = self._gone = False
        self._lock = threading.Lock()
        guard = [sys.executable, "-I", "-S", "-X", "utf8", GUARD, str(life), str(report), made]
        try:
            self.popen = subprocess.Popen(
                [*guard, program, *words],
                bufsize=0,
                cwd=folder,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(life, report),
                start_new_session=True,
            )
        except BaseException:
            os.close(self._life)
            os.close(self._report)
            raise
        finally:
            os.close(life)
            os.close(report)

    def wait(self) -> tuple[int | None, str]:
        with open(self._report, "rb") as report:
            kind, _, number = report.read().partition(b" ")
        with self._lock:
            # The guard, alive or not, still has its number: nobody else can have it before it is waited for.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.popen.pid, signal.SIGKILL)
            self.popen.wait()
            self._gone = True
            if not self._ending:
                os.close(self._life)
            if self._ending or not number:
                return None, ""
        if kind == b"failed":
            return None, os.strerror(int(number))
        return (int(number) if int(number) >= 0 else 128 - int(number)), ""

    def end(self) -> None:
        with self._lock:
            if self._ending or self._gone:
                return
            self._ending = True
            os.close(self._life)
        timer = threading.Timer(GRACE_S, self._force)
        timer.daemon = True
        timer.start()

    def _force(self) -> None:
        """For a guard that was itself stopped by what it guards."""
        with self._lock:
            if not self._gone:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.popen.pid, signal.SIGKILL)


class _InJob:
    """On Windows."""

    def __init__(self, program: str, words: Sequence[str], folder: str, environment: Mapping[str, str]) -> None:
        from llm_do_mcp.toolsets import job

        self.popen, self._job = job.start(program, words, folder, environment)
        self._ending = False

    def wait(self) -> tuple[int | None, str]:
        code = self.popen.wait()
        self._job.close()
        return (None if self._ending else code), ""

    def end(self) -> None:
        self._ending = True
        self._job.close()
