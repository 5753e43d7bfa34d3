"""Commands that are run by forking: a process that has imported them once makes a child for each that is wanted.

A child is a process of its own, with its own standard streams, folder and variables, and ends as the command would.
What it does not do again is to import what all commands need, which is most of what a short one takes. Where Python
itself is to be set up in another way, by its own variables or the locale's, a command has to be started in full.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import json
import os
import pkgutil
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from tests.descriptors import is_readable_within

PACKAGES = ("llm_do_mcp.cli", "llm_do_mcp.runtime", "llm_do_mcp.toolsets", "llm_do_mcp.serving", "llm_do_mcp.models")
"""Where the modules are that are imported once."""
OF_THE_INTERPRETER = re.compile("(PYTHON(?!UNBUFFERED$)|LC_|LANG).*")
"""The names of variables that Python looks at when it starts; what forks is unbuffered."""
MOST_BYTES = 100_000
"""Of the words: what fits into one message, the variables beside it."""
NUMBER = struct.calcsize("i")
"""Bytes of what is told of a process: which it is, and how it ended."""
Command = Callable[[list[str]], int]


class Process:
    """A command that runs without a terminal, to be used as what `Popen` makes.

    Args:
        command: This Python, `-m`, a module whose function `main` takes words and returns the exit code, and the words.
        stdout, stderr: Descriptors.
        env: All its variables.
        cwd: Where it is run; None is where the tests are.

    Attributes:
        pid: Which it is.
        returncode: Its exit code, or minus the signal that ended it; None before it is known.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        stdout: int,
        stderr: int,
        env: Mapping[str, str],
        cwd: Path | None = None,
    ) -> None:
        self.args = command
        self.returncode: int | None = None
        _, _, module, *words = command
        asked = json.dumps([module, words, str(cwd or Path.cwd()), dict(env)]).encode()
        self._told, tells = socket.socketpair()
        with tells, open(os.devnull) as stdin:
            socket.send_fds(_forker(), [asked], [stdin.fileno(), stdout, stderr, tells.fileno()])
        self.pid = self._number()

    def poll(self) -> int | None:
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float) -> int:
        if self.returncode is None:
            if not is_readable_within(self._told.fileno(), timeout):
                raise subprocess.TimeoutExpired(self.args, timeout)
            self.returncode = self._number()
            self._told.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _number(self) -> int:
        return struct.unpack("i", self._told.recv(NUMBER))[0]


def start(
    command: Sequence[str], *, stdout: int, stderr: int, env: Mapping[str, str], cwd: Path | None = None
) -> Process | subprocess.Popen[bytes]:
    """A `Process`, or where forking would not do a process that is started in full."""
    if sys.platform == "linux" and _set_up(env) == _set_up(os.environ) and sum(map(len, command)) < MOST_BYTES:
        return Process(command, stdout=stdout, stderr=stderr, env=env, cwd=cwd)
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, env=env, cwd=cwd)


def _set_up(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if OF_THE_INTERPRETER.fullmatch(name)}


def run(
    command: Sequence[str], *, env: Mapping[str, str], cwd: Path | None = None, timeout: float
) -> subprocess.CompletedProcess[str]:
    """A command to its end, as `subprocess.run` has it: it is killed where it has not ended within seconds."""
    with _text() as stdout, _text() as stderr:
        process = start(command, stdout=stdout.fileno(), stderr=stderr.fileno(), env=env, cwd=cwd)
        try:
            code = process.wait(timeout)
        finally:
            process.kill()
        for each in (stdout, stderr):
            each.seek(0)
        return subprocess.CompletedProcess(command, code, stdout.read(), stderr.read())


def _text() -> IO[str]:
    return tempfile.TemporaryFile("w+", encoding="utf-8")


@functools.cache
def _forker() -> socket.socket:
    """The way to the process that forks, which ends with this one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        subprocess.Popen([sys.executable, "-u", "-m", __name__, str(theirs.fileno())], pass_fds=[theirs.fileno()])
    atexit.register(ours.close)
    return ours


# ---- the process that forks


def _wanted(control: socket.socket) -> tuple[Command, list[str]]:
    """Fork for each command that is wanted. Returns in the children only: the command and its words."""
    for package in map(importlib.import_module, PACKAGES):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    assert threading.active_count() == 1, "a thread would not be there in a child"
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # what waits for a command is not waited for
    while True:
        asked, streams, _, _ = socket.recv_fds(control, 2 * MOST_BYTES, 4)
        if not asked:
            os._exit(0)
        if os.fork() == 0:
            control.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return _begun(asked, *streams)
        for each in streams:
            os.close(each)


def _begun(asked: bytes, stdin: int, stdout: int, stderr: int, tell: int) -> tuple[Command, list[str]]:
    """Fork once more, and tell which process it is and how it ended. Returns in the child only."""
    if process := os.fork():
        os.write(tell, struct.pack("i", process))
        _, status = os.waitpid(process, 0)
        os.write(tell, struct.pack("i", os.waitstatus_to_exitcode(status)))
        os._exit(0)
    os.close(tell)
    for target, stream in enumerate((stdin, stdout, stderr)):
        os.dup2(stream, target)
        os.close(stream)
    module, words, folder, variables = json.loads(asked)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    sys.path[0] = folder
    sys.argv = [sys.modules[module].__file__ or module, *words]
    return sys.modules[module].main, words


if __name__ == "__main__":
    command, given = _wanted(socket.socket(fileno=int(sys.argv[1])))
    sys.exit(command(given))
