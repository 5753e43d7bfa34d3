"""`te -i …`: the tool itself, in our place, with its own output. The way out where the envelope is not wanted."""

from __future__ import annotations

import os
import signal
import stat
import sys

from llm_do_mcp.te.envelope import Frame, TeError, failure
from llm_do_mcp.te.invocation import COMMANDS
from llm_do_mcp.te.text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_PIPED = (stat.S_ISFIFO, stat.S_ISREG)


def run_raw(
    arguments: list[str], tell: Callable[[str, str], None] | None = None, *, called: str = "te -i"
) -> tuple[str, int]:
    """Become the tool that a command is named for; returns only if that cannot be, with the answer and exit code 2.

    What acts stays refused: whoever lets an agent run `te` has not let it delete files.

    Args:
        arguments: The command.
        tell: Told of it while there is time: its name, and the error's code or "".
        called: What it is called that was asked for this.
    """
    tell = tell or (lambda name, error: None)
    name = arguments[0] if arguments else ""
    try:
        if name not in COMMANDS:
            given = f"not {one_line(name, 40)}" if name else "and none was given"
            raise TeError("unknown_command", f"{called} knows the commands {', '.join(COMMANDS)}, {given}")
        if name == "find":
            from llm_do_mcp.te.expression import ACTS

            if acting := [word for word in arguments if word in ACTS]:
                raise TeError("unsupported_option", f"te find does not take {acting[0]}: it only finds, also with -i")
        if (program := _on_path(name)) is None:
            raise TeError("tool_missing", f"there is no {name} on the PATH, which {called} would run")
    except TeError as error:
        name = name if name in COMMANDS else "te"
        tell(name, error.code)
        return failure(name, error, Frame(16_000)), 2
    tell(name, "")
    words = [name, *(["-r"] if name == "grep" and not _is_piped() else []), *arguments[1:]]
    sys.stdout.flush()
    if os.name == "nt":  # there a process cannot become another
        from subprocess import run

        return "", run([program, *words[1:]], check=False).returncode
    # Python ignores this signal, and what a process ignores its successor ignores too: it would complain instead.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    return os.execv(program, words)


def _on_path(name: str) -> str | None:
    suffix = ".exe" if os.name == "nt" else ""
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        path = os.path.join(folder, name + suffix)
        if folder and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def _is_piped() -> bool:
    """Whether standard input is there to be searched; if not, grep is told to search the working directory."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return any(is_kind(mode) for is_kind in _PIPED)
