"""One tool host process: how it is started, spoken to, and killed.

It is a process group of its own, so that a Ctrl-C in the server's terminal does not reach it, nothing that it signals
is ours, and what its tools started dies with it (on Windows only the process itself). Its output, and what its tools
print, goes to the server's error output, or to a file: never to the standard output, which belongs to the protocol.

Pipes and the end of a process are watched by threads, not by the event loop, so that it works the same on every
platform and loop, and a tool host that does not read cannot block the server.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future

from llm_do_mcp.toolhost import frames

HOST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "host.py")

_EVERYWHERE = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TMP", "TEMP")
_WINDOWS = ("SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "PROGRAMDATA")
_WINDOWS_USER = ("USERNAME", "USERPROFILE", "APPDATA", "LOCALAPPDATA")
BASIC_ENVIRONMENT = frozenset((*_EVERYWHERE, *_WINDOWS, *_WINDOWS_USER))
"""What a program needs to run at all, and no more: keys and tokens are given by name (the manifest's `tools.env`)."""


class CannotStart(Exception):
    """No tool host can be started; the text says why and what to change."""


def environment(names: Collection[str], source: Mapping[str, str]) -> dict[str, str]:
    """The environment of a tool host: the basics, the locale, and what is named."""
    wanted = {*BASIC_ENVIRONMENT, *(name.upper() if os.name == "nt" else name for name in names)}
    return {name: value for name, value in source.items() if name in wanted or name.startswith("LC_")}


def interpreter(python: str | None, root: str) -> str:
    """The interpreter to start: ours, a command on the PATH, or a path from the project's folder.

    Raises:
        CannotStart: There is none.
    """
    if python is None:
        return sys.executable
    is_path = "/" in python or os.sep in python
    found = shutil.which(os.path.join(root, os.path.expanduser(python)) if is_path else python)
    if found is None:
        raise CannotStart(f"tools.python: no interpreter {python!r}; name a command, or a path from the project")
    return found


class HostProcess:
    """A running tool host.

    Args:
        python: The interpreter, absolute.
        root: The project's folder, absolute.
        env: Its whole environment.
        receive: Called with each frame that it sends, in a thread of ours.
        libraries: Name → folder, absolute, of the project's libraries.
        prints_to: An open file to which its output goes; None for the server's error output.

    Attributes:
        ended: Done when the process has ended and all its frames were received; says how it ended.

    Raises:
        CannotStart: The process cannot be started.
    """

    def __init__(
        self,
        python: str,
        root: str,
        env: Mapping[str, str],
        receive: Callable[[frames.Frame], None],
        libraries: Mapping[str, str],
        prints_to: int | None = None,
    ) -> None:
        self.ended: Future[str] = Future()
        self.ended.set_running_or_notify_cancel()  # whoever stops waiting for it cannot cancel it for the others
        self._receive = receive
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        requests, self._requests = os.pipe()
        self._replies, replies = os.pipe()
        life, self._life = os.pipe()
        theirs = (requests, replies, life)
        try:
            output = _error_output() if prints_to is None else prints_to
            self._popen = _popen(python, root, env, theirs, libraries, output)
        except OSError as error:
            for descriptor in (self._requests, self._replies, self._life):
                os.close(descriptor)
            what = "the project's folder" if error.filename == root else f"tools.python: {os.path.basename(python)}"
            raise CannotStart(f"{what}: {error.strerror}") from error
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        self._reader = threading.Thread(target=self._read, daemon=True, name="toolhost-reader")
        for thread in (
            self._reader,
            threading.Thread(target=self._write, daemon=True, name="toolhost-writer"),
            threading.Thread(target=self._wait, daemon=True, name="toolhost-waiter"),
        ):
            thread.start()

    def send(self, frame: frames.Frame) -> None:
        """Sends a frame, without waiting. To a process that has ended, nothing is sent.

        Raises:
            ValueError, TypeError, RecursionError: The frame holds something that JSON cannot carry.
        """
        self._outgoing.put(frames.encode(frame))

    def kill(self) -> None:
        """Kills the process and what it started, at once. `ended` tells when it is gone."""
        if self._popen.poll() is None:
            self._kill_group()

    def _read(self) -> None:
        with open(self._replies, "rb") as stream, contextlib.suppress(frames.BrokenStream, OSError):
            while (frame := frames.read(stream)) is not None:
                self._receive(frame)
        # It closed its end, or a tool wrote into the pipe: no more results can come.
        self.kill()

    def _write(self) -> None:
        with contextlib.suppress(OSError):
            while (data := self._outgoing.get()) is not None:
                frames.write_all(self._requests, data)
        os.close(self._requests)

    def _wait(self) -> None:
        status = self._popen.wait()
        self._kill_group()  # what its tools left behind; no new group can have this id while one of it lives
        self._reader.join(1.0)  # frames on their way; a process that left the group may hold the pipe open for longer
        self._outgoing.put(None)
        os.close(self._life)
        self.ended.set_result(_how_it_ended(status))

    def _kill_group(self) -> None:
        if sys.platform == "win32":
            self._popen.kill()
        else:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._popen.pid, signal.SIGKILL)


def _popen(
    python: str,
    root: str,
    env: Mapping[str, str],
    theirs: tuple[int, int, int],
    libraries: Mapping[str, str],
    output: int,
) -> subprocess.Popen[bytes]:
    """Starts host.py, which inherits the three pipe ends and nothing else."""
    folders = (root, json.dumps(dict(libraries)))
    if sys.platform == "win32":
        import msvcrt

        handles = [msvcrt.get_osfhandle(descriptor) for descriptor in theirs]
        for handle in handles:
            os.set_handle_inheritable(handle, True)
        return subprocess.Popen(
            [python, "-X", "utf8", HOST, *map(str, handles), *folders],
            cwd=root,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            startupinfo=subprocess.STARTUPINFO(lpAttributeList={"handle_list": handles}),
            creationflags=subprocess.CREATE_NEW_PROCESS_GROUP,
        )
    return subprocess.Popen(
        [python, "-X", "utf8", HOST, *map(str, theirs), *folders],
        cwd=root,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        pass_fds=theirs,
        start_new_session=True,
    )


def _error_output() -> int:
    """The server's error output, where it has one (a windowed program has none)."""
    try:
        os.fstat(2)
    except OSError:
        return subprocess.DEVNULL
    return 2


def _how_it_ended(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
