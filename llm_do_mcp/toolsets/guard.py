"""Stands between the server and one command, and ends all of the command's processes when they should end.

A script of its own, started by path with nothing but the standard library. It starts the command and waits for it. When
the command has ended, or the server closes its end of the pipe `life` (it does so to stop the command, and the system
does it when the server dies, however it dies), everything that the command left behind is killed. A server that died
cannot tidy up either, so the folder that was made for the command is then removed here.

On Linux that includes what tried to get away, since orphans below a *subreaper* become its children; elsewhere what is
in the command's process group, which the server kills.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys

_IGNORED = ("SIGINT", "SIGTERM", "SIGHUP")
"""A command that signals its own group does not mean us."""
_SET_CHILD_SUBREAPER = 36


def main(life: int, report: int, made: str, program: str, words: list[str]) -> None:
    """Run the command to its end, and tell how it ended.

    Args:
        life: Where the end of input means that it is time to stop.
        report: Takes one line: `exit N` (negative: minus the signal's number) or `failed ERRNO`.
        made: The folder that was made for the command.
        program: Path of the program.
        words: Its arguments, its name first.
    """
    for descriptor in (life, report):
        os.set_inheritable(descriptor, False)
    signals = [getattr(signal, name) for name in _IGNORED]
    for number in signals:
        signal.signal(number, signal.SIG_IGN)
    adopts = _become_subreaper()
    try:
        command = os.posix_spawn(program, words, _environment(), setsigdef=[*signals, signal.SIGPIPE, signal.SIGXFSZ])
    except OSError as error:
        _tell(report, f"failed {error.errno}")
        return
    stopped = _thread.allocate_lock()
    _thread.start_new_thread(_watch, (life, stopped, adopts))
    code: int | None = None
    while True:
        try:
            ended, status = os.waitpid(-1, 0)
        except ChildProcessError:
            break
        if ended == command:
            code = os.waitstatus_to_exitcode(status)
            if not adopts:
                break
        if code is not None or stopped.locked():
            _kill_children()
    if stopped.locked():
        _remove(made)
    _tell(report, f"exit {code}")


def _watch(life: int, stopped: _thread.LockType, adopts: bool) -> None:
    """Wait until the server closes its end; then kill. Each child's death brings the next generation."""
    os.read(life, 1)
    stopped.acquire()
    if not adopts:
        os.killpg(0, signal.SIGKILL)
    _kill_children()


def _kill_children() -> None:
    own = os.getpid()
    for name in os.listdir("/proc"):
        if name.isdigit() and _parent_of(name) == own:
            try:
                os.kill(int(name), signal.SIGKILL)
            except OSError:
                continue  # gone already, or another user's


def _parent_of(process: str) -> int | None:
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            # The name, in parentheses, may hold anything; behind it come the state and the parent.
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return None


def _become_subreaper() -> bool:
    if sys.platform != "linux":
        return False
    import ctypes

    return bool(ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def _environment() -> dict[str, str]:
    """Ours is the command's, but for what Python adds where the locale is `C`."""
    return {name: value for name, value in os.environ.items() if name != "LC_CTYPE"}


def _remove(folder: str) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def _tell(report: int, line: str) -> None:
    try:
        os.write(report, line.encode())
    except BrokenPipeError:
        return  # the server is gone


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5:])
