"""The start of a server from a bundle that `llm-do-mcp bundle` made: the project is a folder of the person's own.

A host replaces a bundle's folder with the next version, and hides it. So the project is copied to where the person said
that it shall be, can be seen, and may be changed. A later version of the bundle brings its own files up to date there,
but for those that the person has changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from llm_do_mcp.cli.exits import guarded
from llm_do_mcp.errors import UsageError

HERE = "LLM_DO_BUNDLE_FOLDER"
"""The variable with the folder that the person chose."""
PROJECT, LIBRARIES, LIST = "project", "libs", "project.json"
"""In a bundle: the project's files, the libraries that it uses, and the digests of the project's files."""
SETTINGS = (HERE, "LLM_DO_MODEL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")
"""Variables that a person is asked for; a host may hand on what was left empty as it stands in the manifest."""
RECORD = PurePosixPath(".llm-do/bundle.json")
"""In the person's folder: the digests of the files as a bundle brought them."""


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
    """Bring the files of a bundle's project to a folder, but for those that are there and not as a bundle left them."""
    wanted = _digests(bundle / LIST)
    had = _digests(folder / RECORD)
    if wanted == had:
        return
    for name, digest in wanted.items():
        target = folder / PurePosixPath(name)
        there = _digest(target)
        if there in (None, had.get(name)) and there != digest:
            _write(target, (bundle / PROJECT / PurePosixPath(name)).read_bytes())
    _write(folder / RECORD, json.dumps(wanted, indent=1).encode())


def _digests(path: Path) -> Mapping[str, str]:
    try:
        found: Mapping[str, str] = json.loads(path.read_bytes())
        return found
    except FileNotFoundError:
        return {}


def _digest(path: Path) -> str | None:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return None


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700 if path.parent.name == ".llm-do" else 0o777)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
