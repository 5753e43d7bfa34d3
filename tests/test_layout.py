"""What holds for the package as a whole: who imports whom, and that it imports on every platform."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import llm_do_mcp

PACKAGE = Path(llm_do_mcp.__file__).parent
LAYERS = (
    "errors",
    "leftovers",
    "filelock",
    "regular",
    "toolhost",
    "sandbox",
    "te",
    "project",
    "models",
    "runtime",
    "toolsets",
    "serving",
    "check",
    "testing",
    "cli",
    "server",
)
ALONE = "te"
"""It could be a package of its own."""


def _imports() -> Iterator[tuple[str, str, str]]:
    """(layer, layer that it imports, where) of every import, those inside functions and for types included."""
    for path in PACKAGE.rglob("*.py"):
        relative = path.relative_to(PACKAGE)
        layer = relative.parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            names = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{relative}:{node.lineno}: a relative import"
                below = node.module in ("llm_do_mcp", *(f"llm_do_mcp.{layer}" for layer in LAYERS))
                names = [f"{node.module}.{alias.name}" for alias in node.names] if below else [node.module or ""]
            for name in names:
                root, _, rest = name.partition(".")
                if root == "llm_do_mcp" and rest:
                    yield layer, rest.partition(".")[0], f"{relative}:{node.lineno} imports {name}"


@pytest.mark.proves("LAYERS")
def test_a_folder_imports_only_from_the_folders_above_it() -> None:
    wrong, seen = [], defaultdict(set)
    for layer, imported, where in _imports():
        if layer == "__init__" or imported not in LAYERS:  # the package's own names, such as its version
            continue
        seen[layer].add(imported)
        if LAYERS.index(imported) > LAYERS.index(layer) or (layer == ALONE and imported != ALONE):
            wrong.append(where)
    assert wrong == []
    assert {"runtime", "toolsets", "project"} <= seen["serving"], "the imports were not found"


@pytest.mark.proves("LAYERS")
def test_every_module_has_a_place_in_the_order() -> None:
    found = {path.name.removesuffix(".py") for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert found - {"__init__", "__pycache__", "projects", "py.typed"} <= set(LAYERS)


AS_ELSEWHERE = """
import builtins, os, pkgutil, runpy, sys, types

platform, hidden, absent, offered = {platform!r}, {hidden!r}, {absent!r}, {offered!r}

# What others import is there already, as it is on that platform in a form of its own.
import asyncio, ctypes, multiprocessing, sqlite3, subprocess, tempfile
import anyio, anthropic, jinja2, jsonschema, mcp.server.mcpserver, mcp.server.stdio, mcp.client.stdio, pydantic, yaml


class Lacking(types.ModuleType):
    def __init__(self, module, changed, absent):
        super().__init__(module.__name__)
        self.__dict__.update(changed)
        self.lacks = module, absent

    def __getattr__(self, name):
        module, absent = self.__dict__["lacks"]
        if name in absent:
            raise AttributeError(f"module {{module.__name__}} has no {{name}} on {{platform}}")
        return getattr(module, name)


seen_as = {{"os": Lacking(os, {{}}, absent), "sys": Lacking(sys, {{"platform": platform}}, ())}}
seen_as |= {{name: types.ModuleType(name) for name in offered}}
real = builtins.__import__


def importing(name, globals=None, locals=None, fromlist=(), level=0):
    if globals is not None and str(globals.get("__name__")).startswith("llm_do_mcp"):
        if name in hidden:
            raise ModuleNotFoundError(f"No module named {{name!r}} on {{platform}}", name=name)
        if name in seen_as:
            return seen_as[name]
    return real(name, globals, locals, fromlist, level)


builtins.__import__ = importing
import llm_do_mcp

for module in pkgutil.walk_packages(llm_do_mcp.__path__, "llm_do_mcp."):
    if module.name not in ("llm_do_mcp.server", "llm_do_mcp.projects"):  # it is a project's server, once imported
        __import__(module.name)
        print(module.name)
"""
POSIX_ONLY = ("fcntl", "resource", "termios", "pwd", "grp", "tty", "pty", "posix", "syslog", "readline")
NOT_IN_WINDOWS_OS = (
    *("O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_PATH", "O_TMPFILE", "O_SYNC"),
    *("fork", "getuid", "geteuid", "getpgid", "killpg", "setsid", "posix_spawn", "memfd_create", "pread", "fchmod"),
    *("openpty", "sched_getaffinity", "WNOHANG", "register_at_fork", "POSIX_SPAWN_DUP2"),
)
NOT_IN_DARWIN_OS = ("O_PATH", "O_TMPFILE", "memfd_create", "posix_fadvise", "sched_getaffinity", "pidfd_open")


@pytest.mark.proves("PLATFORM-IMPORTS")
@pytest.mark.parametrize(
    ("platform", "hidden", "absent", "offered"),
    [("win32", POSIX_ONLY, NOT_IN_WINDOWS_OS, ("msvcrt",)), ("darwin", ("msvcrt",), NOT_IN_DARWIN_OS, ())],
)
def test_the_package_imports_where_a_platform_lacks_modules(
    platform: str, hidden: tuple[str, ...], absent: tuple[str, ...], offered: tuple[str, ...]
) -> None:
    program = AS_ELSEWHERE.format(platform=platform, hidden=hidden, absent=absent, offered=offered)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    imported = done.stdout.split()
    for layer in (layer for layer in LAYERS if (PACKAGE / layer).is_dir()):
        assert any(name.startswith(f"llm_do_mcp.{layer}.") for name in imported), layer
