"""How a host starts a server: an absolute command, in a folder of the host's own, with hardly any environment."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from llm_do_mcp.errors import UsageError

SETTINGS = ("LLM_DO_MODEL", "ANTHROPIC_BASE_URL", "LLM_DO_LIBS", "LLM_DO_PATH")
"""Variables that a server reads, that are no secrets, and that a host would not hand on by itself."""
_SYSTEM = ("SYSTEMROOT", "SYSTEMDRIVE", "PATHEXT")
"""Without these nothing starts on Windows."""


def command(project: str, options: Sequence[str] = ()) -> list[str]:
    """What starts a server of a project, wherever it is started.

    Args:
        project: An absolute path.
        options: Further words of `llm-do-mcp`.
    """
    program = Path(sysconfig.get_path("scripts")) / ("llm-do-mcp.exe" if sys.platform == "win32" else "llm-do-mcp")
    # Without the script that an installation makes: -I, since a working directory can hold modules of any name.
    start = [str(program)] if program.exists() else [sys.executable, "-I", "-m", "llm_do_mcp.cli.serve"]
    return [*start, project, *options]


def environment(given: Sequence[str]) -> dict[str, str]:
    """The variables of an entry: the settings of now, and those that were asked for.

    Args:
        given: `NAME=VALUE`, or `NAME` for the value of now.

    Raises:
        UsageError: One has no value now, or no name.
    """
    found = {name: os.environ[name] for name in SETTINGS if os.environ.get(name)}
    for word in given:
        name, equals, value = word.partition("=")
        if not name.replace("_", "").isalnum() or name[0].isdigit():
            raise UsageError(
                f"--env {name}: not the name of a variable; write NAME=VALUE, or NAME for its value of now"
            )
        if not equals and name not in os.environ:
            raise UsageError(f"--env {name}: it is not set here; set it, or write {name}=VALUE")
        found[name] = value if equals else os.environ[name]
    return found


def bare(added: dict[str, str]) -> dict[str, str]:
    """The environment of a server that a host starts: what its entry says, and nothing of this terminal's."""
    return {**{name: os.environ[name] for name in _SYSTEM if name in os.environ}, **added}
