"""The commands as people run them: real processes, with and without a terminal."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType

from tests.forked import run

LLM_DO = [sys.executable, "-m", "llm_do_mcp.cli.run"]
SERVE = [sys.executable, "-m", "llm_do_mcp.cli.serve"]
PATIENCE_S = 60


def environment(**added: str) -> dict[str, str]:
    """The environment of a person who has set nothing."""
    ours = ("ANTHROPIC_", "LLM_DO_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours) and name != "CI"}
    return {**kept, "PYTHONUNBUFFERED": "1", **added}


def llm_do(
    *arguments: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `llm-do` to its end, without a terminal."""
    return run([*LLM_DO, *map(str, arguments)], env=environment(**(env or {})), cwd=cwd, timeout=PATIENCE_S)


def llm_do_mcp(
    *arguments: str | Path, home: Path, cwd: Path | None = None, **env: str
) -> subprocess.CompletedProcess[str]:
    """Run `llm-do-mcp` to its end, as somebody whose home is `home`."""
    places = {"HOME": str(home), "USERPROFILE": str(home), "APPDATA": str(home / "roaming"), "XDG_CONFIG_HOME": ""}
    return run([*SERVE, *map(str, arguments)], env=environment(**places, **env), cwd=cwd, timeout=PATIENCE_S)


class Terminal:
    """A command at a terminal of its own: keyboard and standard error are the terminal, standard output a pipe.

    As a context manager; at its end the process is gone.
    """

    def __init__(self, command: list[str], *, env: Mapping[str, str] | None = None) -> None:
        import pty

        self._keyboard, theirs = pty.openpty()
        self.process = subprocess.Popen(
            command,
            stdin=theirs,
            stderr=theirs,
            stdout=subprocess.PIPE,
            env=environment(**(env or {})),
            text=True,
            preexec_fn=_own_terminal,
        )
        os.close(theirs)
        self.screen = ""
        self._read = 0
        self._more = threading.Condition()
        self._closed = False
        threading.Thread(target=self._watch, daemon=True).start()

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        with self._more:
            self._more.wait_for(lambda: self._closed, PATIENCE_S)
        os.close(self._keyboard)

    def expect(self, *words: str) -> str:
        """Wait until one of these is on the screen, behind what was expected before; returns what came up to it."""

        def ends() -> list[int]:
            found = [(self.screen.find(each, self._read), len(each)) for each in words]
            return [position + length for position, length in found if position >= 0]

        with self._more:
            self._more.wait_for(lambda: ends() or self._closed, PATIENCE_S)
            found = ends()
            assert found, f"{' or '.join(map(repr, words))} did not come; on the screen: {self.screen[self._read :]!r}"
            begin, self._read = self._read, min(found)
            return self.screen[begin : self._read]

    def type(self, keys: str) -> None:
        """Type keys; a line ends with `\\n`, and `\\x03` is Ctrl-C."""
        os.write(self._keyboard, keys.encode())

    def finish(self) -> tuple[int, str]:
        """Wait for the end: exit code and standard output."""
        try:
            output, _ = self.process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it did not end; on the screen: {self.screen[self._read :]!r}") from None
        return self.process.returncode, output

    def _watch(self) -> None:
        # A terminal whose other side is closed is an error (Linux) or an end (macOS).
        with contextlib.suppress(OSError):
            while data := os.read(self._keyboard, 4096):
                with self._more:
                    self.screen += data.decode("utf-8", "replace").replace("\r\n", "\n")
                    self._more.notify_all()
        with self._more:
            self._closed = True
            self._more.notify_all()


def _own_terminal() -> None:
    """In the child: a session whose controlling terminal is standard input, so that Ctrl-C reaches it."""
    import fcntl
    import termios

    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@contextlib.contextmanager
def running(command: list[str], **options: object) -> Iterator[subprocess.Popen[str]]:
    """A process that is gone at the end of the block."""
    with subprocess.Popen(command, text=True, env=environment(), **options) as process:  # type: ignore[call-overload]
        try:
            yield process
        finally:
            process.kill()
