"""How a host starts a server: an absolute command, in a folder of the host's own, with hardly any environment."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llm_do_mcp.errors import UsageError

SETTINGS = ("LLM_DO_MODEL", "ANTHROPIC_BASE_URL", "LLM_DO_LIBS", "LLM_DO_PATH")
"""Variables that a server reads, that are no secrets, and that a host would not hand on by itself."""
_PROGRAM, _MODULE = "llm-do-mcp", "llm_do_mcp.cli.serve"
_SYSTEM = ("SYSTEMROOT", "SYSTEMDRIVE", "PATHEXT")
"""Without these nothing starts on Windows."""


@dataclass(frozen=True)
class Start:
    """How a host starts a server.

    Args:
        command: The program and its arguments.
        env: The variables that the host gives it.
        folder: Where it is started.
        off: Whether the host has it switched off, so that it starts nothing.
    """

    command: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    folder: str = os.path.abspath(os.sep)
    off: bool = False


def command(project: str, options: Sequence[str] = ()) -> list[str]:
    """What starts a server of a project, wherever it is started.

    Args:
        project: An absolute path.
        options: Further words of `llm-do-mcp`.
    """
    program = Path(sysconfig.get_path("scripts")) / (f"{_PROGRAM}.exe" if sys.platform == "win32" else _PROGRAM)
    # Without the script that an installation makes: -I, since a working directory can hold modules of any name.
    start = [str(program)] if program.exists() else [sys.executable, "-I", "-m", _MODULE]
    return [*start, project, *options]


def of_entry(entry: Mapping[str, Any], place: str) -> Start:
    """What a host's file says.

    Args:
        entry: A server's.
        place: Where it stands, for messages.

    Raises:
        UsageError: No host could start that.
    """
    program, args, env = entry.get("command"), entry.get("args") or [], entry.get("env") or {}
    if not isinstance(program, str) or not program:
        raise UsageError(f"{place}: `command` is no text")
    if not isinstance(args, list) or not all(isinstance(word, str) for word in args):
        raise UsageError(f"{place}: `args` is no list of texts")
    if not isinstance(env, dict):
        raise UsageError(f"{place}: `env` is no object")
    folder = entry.get("cwd") or Start.folder
    if not isinstance(folder, str):
        raise UsageError(f"{place}: `cwd` is no text")
    for name in env:
        if not name or "=" in name:
            raise UsageError(f"{place}: `env`: {name!r} is not the name of a variable")
    off = entry.get("disabled") is True or entry.get("enabled") is False
    return Start([program, *args], {str(name): str(value) for name, value in env.items()}, folder, off)


def handed_on(command: Sequence[str]) -> tuple[list[str], dict[str, str]] | None:
    """What a command hands on to `llm-do-mcp`, be it behind other programs (`env A=1 …`, `uv run …`).

    Returns:
        Its words, and the variables that are set before it; None where the command itself does not tell.
    """
    for at, word in enumerate(command):
        if word == _MODULE or os.path.basename(word).removesuffix(".exe") == _PROGRAM:
            found = (before.partition("=") for before in command[:at])
            return list(command[at + 1 :]), {name: value for name, equals, value in found if equals and _is_name(name)}
    return None


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
        if not _is_name(name):
            raise UsageError(
                f"--env {name}: not the name of a variable; write NAME=VALUE, or NAME for its value of now"
            )
        if not equals and name not in os.environ:
            raise UsageError(f"--env {name}: it is not set here; set it, or write {name}=VALUE")
        found[name] = value if equals else os.environ[name]
    return found


def bare(added: Mapping[str, str]) -> dict[str, str]:
    """The environment of a server that a host starts: what its entry says, and nothing of this terminal's."""
    return {**{name: os.environ[name] for name in _SYSTEM if name in os.environ}, **added}


def _is_name(name: str) -> bool:
    """Whether a variable can be called that."""
    return name.replace("_", "").isalnum() and not name[0].isdigit()
