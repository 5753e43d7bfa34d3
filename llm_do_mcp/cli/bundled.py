"""The start of a server from a bundle that `llm-do-mcp bundle` made: the project is a folder of the person's own.

A host replaces a bundle's folder with the next version, and hides it. So the project is copied to where the person said
that it shall be, can be seen, and may be changed. A later version of the bundle brings its own files up to date there,
and removes those that it has no more, but for those that the person has changed; what the person removed stays away.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from llm_do_mcp.cli.exits import guarded
from llm_do_mcp.errors import FileMissing, SandboxError, UsageError
from llm_do_mcp.filelock import held
from llm_do_mcp.runtime.state import STATE, make_private
from llm_do_mcp.sandbox.opener import Directory

HERE = "LLM_DO_BUNDLE_FOLDER"
"""The variable with the folder that the person chose."""
PROJECT, LIBRARIES, LIST = "project", "libs", "project.json"
"""In a bundle: the project's files, the libraries that it uses, and the digests of the project's files."""
SETTINGS = (HERE, "LLM_DO_MODEL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")
"""Variables that a person is asked for; a host may hand on what was left empty as it stands in the manifest."""
RECORD = f"{STATE}/bundle.json"
"""In the person's folder: the digests of the files as a bundle brought them."""
LOCK = f"{STATE}/bundle.lock"
"""Held by whoever brings files there."""
MAX_FILE = 100_000_000
"""Bytes of the largest file of a project that a bundle can hold."""

Digests = Mapping[str, str]
"""Of files, by their paths."""


def main(argv: list[str] | None = None) -> int:
    """Entry point of a bundle; its arguments are options of `llm-do-mcp`."""
    from llm_do_mcp.cli import serve

    options = sys.argv[1:] if argv is None else argv
    for name in SETTINGS:
        if os.environ.get(name, "").startswith("${") or not os.environ.get(name):
            os.environ.pop(name, None)
    bundle = Path(__file__).resolve().parents[3]
    folder = ""

    def settle() -> int:
        nonlocal folder
        if HERE not in os.environ:
            raise UsageError("no folder was chosen for the project; choose one in the extension's settings")
        folder = os.path.abspath(os.path.expanduser(os.environ[HERE]))
        bring(bundle, Path(folder))
        return 0

    if code := guarded(settle, "llm-do-mcp"):
        return code
    libraries = bundle / LIBRARIES
    libs = ["--lib", str(libraries)] if libraries.is_dir() else []
    return serve.main([folder, *libs, *options])


def bring(bundle: Path, folder: Path) -> None:
    """Bring the files of a bundle's project to a folder, but for those that are not there as a bundle left them.

    Raises:
        LlmDoError: The folder, or a file that is due, cannot be written. No link is followed: all that is written is
            in this folder.
    """
    wanted: Digests = json.loads((bundle / LIST).read_bytes())
    with Directory.open(folder, label=folder.name, make=True) as there:
        if _recorded(there) == wanted:
            return
        for name in (RECORD, LOCK):  # before anything is made where a link leads
            there.would_replace(name)
        make_private(folder / STATE)
        with held(folder / LOCK):  # some hosts start a server twice at once
            _update(there, bundle / PROJECT, wanted)


def _update(there: Directory, project: Path, wanted: Digests) -> None:
    had = _recorded(there)
    lost = [name for name, digest in had.items() if name not in wanted and _digest(there, name) == digest]
    for name in lost:  # all, before the first one is removed
        there.would_replace(name)
    for name in lost:  # first: what was a file may be a folder now, or its name be written in other letters
        there.remove(name, emptied=True)
    changed = [name for name, digest in wanted.items() if _is_due(there, name, had.get(name), digest)]
    for name in changed:  # all, before the first one is written
        there.would_replace(name)
    for name in changed:
        there.write_atomic(name, (project / PurePosixPath(name)).read_bytes())
    there.write_atomic(RECORD, json.dumps(wanted, indent=1).encode())


def _is_due(there: Directory, name: str, had: str | None, wanted: str) -> bool:
    """Whether a file is new with this bundle, or is as a bundle left it and not as this one has it."""
    return had != wanted and _digest(there, name) == had


def _digest(there: Directory, name: str) -> str | None:
    """Of a file that is there; None where there is none, and "" for what is no file, or lies behind a link.

    Either of these is the person's doing.
    """
    try:
        return hashlib.sha256(_read(there, name)).hexdigest()
    except FileMissing:
        return None
    except SandboxError:
        return ""


def _recorded(there: Directory) -> Digests:
    """What a bundle brought last; nothing where that is not known, so that all that is there stays as it is.

    Nor where none of it is there any more: whoever has emptied the folder begins anew.
    """
    try:
        found = json.loads(_read(there, RECORD))
    except (SandboxError, ValueError, RecursionError):
        return {}
    entries = found.items() if isinstance(found, dict) else ()
    brought = {name: digest for name, digest in entries if isinstance(digest, str) and digest}
    return brought if any(_digest(there, name) is not None for name in brought) else {}


def _read(there: Directory, name: str) -> bytes:
    return there.read_whole(name, MAX_FILE, follow=False)
