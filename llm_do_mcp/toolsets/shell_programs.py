"""The programs that commands may name, and the environment that they get.

A program is a bare name on the server's own PATH. What lies in a folder that a worker can reach is no program, and the
PATH that a command sees has no such folder: whoever can write files could otherwise choose what runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from llm_do_mcp.errors import InvalidInput
from llm_do_mcp.sandbox import names
from llm_do_mcp.toolsets.shell_paths import inside

_SUFFIXES = (".exe", ".com") if os.name == "nt" else ("",)
"""On Windows only what the system starts itself: a batch file would be read by a shell."""
_WINDOWS = ("SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "PROGRAMDATA")


def search_path(environment: Mapping[str, str], avoid: Sequence[str]) -> tuple[str, ...]:
    """The folders of the PATH in which programs are looked for.

    Args:
        environment: The server's.
        avoid: Folders, without links, in which nothing is a program.
    """
    given = environment.get("PATH") or os.defpath
    folders = dict.fromkeys(folder for folder in given.split(os.pathsep) if os.path.isabs(folder))
    return tuple(folder for folder in folders if not inside(os.path.realpath(folder), avoid))


def program(name: str, folders: Sequence[str], avoid: Sequence[str]) -> str:
    """The path of a program.

    Args:
        name: As the command has it.
        folders: Where to look.
        avoid: As for `search_path`; no link may lead there either.

    Raises:
        InvalidInput: There is none.
    """
    shown = names.one_line(name)
    if set(name) & {"/", os.sep, "\0"} or (os.name == "nt" and set(name) & set('\\/:"')):
        raise InvalidInput(f"shell: {shown!r} is a path; a program is named, and looked for on the server's PATH")
    for folder in folders:
        for suffix in _SUFFIXES:
            file = name if suffix and name.endswith(suffix) else name + suffix
            path = os.path.join(folder, file)
            is_program = os.path.isfile(path) and os.access(path, os.X_OK)
            if is_program and _spelled(folder, file) and not inside(os.path.realpath(path), avoid):
                return path
    raise InvalidInput(f"shell: there is no program {shown!r} on the server's PATH")


def environment(source: Mapping[str, str], folders: Sequence[str], home: str) -> dict[str, str]:
    """All of a command's environment: where programs are, the language, and a home that is empty and its own.

    Args:
        source: The server's.
        folders: Where programs are.
        home: A folder that is removed afterwards.
    """
    given = {"PATH": os.pathsep.join(folders), "LANG": source.get("LANG", "C.UTF-8")}
    own = ("HOME", "TMPDIR") if os.name != "nt" else ("USERPROFILE", "TEMP", "TMP")
    given |= dict.fromkeys(own, home)
    if os.name == "nt":
        given |= {name: source[name] for name in _WINDOWS if name in source}
    return given


def _spelled(folder: str, file: str) -> bool:
    """Whether a file has this very name: `RM` is not `rm`, or rules could be avoided where a file system folds case."""
    return sys.platform == "linux" or file in os.listdir(folder)
