"""`llm-do-mcp bundle [PROJECT]`: a project as one file that Claude Desktop installs by double click (`.mcpb`).

In it are the project, the libraries that it uses, and this program; the host brings Python and the packages that the
program needs (a bundle of the type `uv`). Keys are no part of it: whoever installs it is asked for them. The same
project makes the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_do_mcp.cli.bundled import HERE, LIBRARIES, LIST, PROJECT
from llm_do_mcp.cli.exits import DONE, guarded
from llm_do_mcp.cli.install import opened, parts
from llm_do_mcp.cli.options import Parser
from llm_do_mcp.errors import UsageError
from llm_do_mcp.sandbox.opener import Directory

if TYPE_CHECKING:
    from llm_do_mcp.project.load import Project

FORMAT = "0.4"
"""The first version of the manifest that has the type `uv`."""
MAX_FILE = 100_000_000
SKIPPED = ("__pycache__", "node_modules")
"""Folders that are no part of a project; neither are those, and files, whose names begin with a dot."""
KEPT = (".llm-doignore",)
_START = """\
import sys

from llm_do_mcp.cli.bundled import main

sys.exit(main())
"""


def main(argv: list[str]) -> int:
    """Entry point of `llm-do-mcp bundle`."""
    made = Parser(
        prog="llm-do-mcp bundle",
        usage="%(prog)s [PROJECT] [--output FILE] [--author NAME] [-- OPTION…]",
        description="Make an .mcpb of a project, which Claude Desktop installs by double click. Keys are not in it, "
        "nor what earlier runs wrote, nor files whose names begin with a dot. Options behind `--` are the server's.",
    )
    made.add_argument("project", nargs="?", metavar="PROJECT", help="the project's folder")
    made.add_argument("--output", metavar="FILE", help="what is made (default: NAME.mcpb here)")
    made.add_argument("--author", metavar="NAME", help="whose it is (default: the project's name)")
    words, handed_on = parts(argv)
    options = made.parse_args(words)

    def make() -> int:
        project, _ = opened(options.project, handed_on)
        if project.broken:
            raise project.broken[0]
        output = Path(options.output or f"{project.name}.mcpb")
        left_out = write(project, output, author=options.author or project.name, options=handed_on)
        print(f"{output}: {output.stat().st_size:,} bytes; open it with Claude Desktop to install it")
        for line in left_out:
            print(f"left out: {line}", file=sys.stderr)
        return DONE

    return guarded(make, made.prog)


def write(project: Project, output: Path, *, author: str, options: list[str]) -> list[str]:
    """Make a bundle.

    Args:
        project: Of what.
        output: The file; replaced at once when the bundle is whole.
        author: Whose it is.
        options: Further words of `llm-do-mcp`.

    Returns:
        What is not in it though it is in the project, or the project uses it.

    Raises:
        LlmDoError: Something cannot be read.
    """
    left_out: list[str] = []
    made = {"manifest.json": _json(manifest(project, author, options)), "pyproject.toml": _needs(project)}
    own = {f"{PROJECT}/{name}": data for name, data in _files(project.root, _results(project), left_out)}
    digests = {name.removeprefix(f"{PROJECT}/"): hashlib.sha256(data).hexdigest() for name, data in own.items()}
    made |= {LIST: _json(digests), "server/main.py": _START.encode(), **own}
    for library in project.libraries.values():
        inside = {f"{LIBRARIES}/{library.spec}/{name}": data for name, data in _files(library.root, (), left_out)}
        made |= inside
    made |= {f"server/llm_do_mcp/{name}": data for name, data in _program(files("llm_do_mcp"))}
    for root in project.roots:
        if os.path.relpath(root.path, project.root).startswith(".."):
            left_out.append(f"{root.alias}: the folder {root.path} is outside the project")
    _zip(output, made)
    return left_out


def manifest(project: Project, author: str, options: list[str]) -> dict[str, Any]:
    """What a host reads of a bundle."""
    from llm_do_mcp.serving.surface import publish
    from llm_do_mcp.toolsets.workbench import Workbench

    version = project.manifest.version
    tools = publish(Workbench(project)).values()
    about = project.manifest.description or f"Workers of the project {project.name}, called like functions."
    asked = {
        "folder": ("directory", "Folder", "Where the project and the files that it writes are", True),
        "model": ("string", "Model", "Such as anthropic:claude-haiku-4-5; the project may name its own", False),
        "key": ("string", "Anthropic API key", "For workers; without one, use the prompts", False),
        "address": ("string", "Address of the model", "Of a local server; empty for Anthropic's", False),
    }
    config = {
        name: {"type": kind, "title": title, "description": text, "required": required}
        for name, (kind, title, text, required) in asked.items()
    }
    config["folder"]["default"] = f"${{DOCUMENTS}}/{project.name}"
    config["key"]["sensitive"] = True
    variables = {
        HERE: "folder",
        "LLM_DO_MODEL": "model",
        "ANTHROPIC_API_KEY": "key",
        "ANTHROPIC_BASE_URL": "address",
    }
    return {
        "manifest_version": FORMAT,
        "name": project.name,
        "version": version if isinstance(version, str) else "1.0.0",
        "description": about,
        "author": {"name": author},
        "server": {
            "type": "uv",
            "entry_point": "server/main.py",
            "mcp_config": {
                "command": "uv",
                "args": ["run", "--directory", "${__dirname}", "server/main.py", *options],
                "env": {variable: f"${{user_config.{name}}}" for variable, name in variables.items()},
            },
        },
        "tools": [{"name": tool.name, "description": tool.description} for tool in tools],
        "prompts_generated": True,
        "compatibility": {"platforms": ["darwin", "win32", "linux"], "runtimes": {"python": ">=3.11"}},
        "user_config": config,
    }


def _needs(project: Project) -> bytes:
    """What the host has to fetch for the program."""
    try:
        needed = [line for line in requires("llm-do-mcp") or () if "extra ==" not in line]
    except PackageNotFoundError:
        raise UsageError("this llm-do-mcp was not installed as a package, so what it needs is not known") from None
    lines = "".join(f"    {json.dumps(line)},\n" for line in needed)
    name = re.sub(r"[^A-Za-z0-9]+", "-", project.name).strip("-") or "project"
    head = f'[project]\nname = "{name}-bundle"\nversion = "1.0.0"\nrequires-python = ">=3.11"\n'
    return f"{head}dependencies = [\n{lines}]\n\n[tool.uv]\npackage = false\n".encode()


def _results(project: Project) -> tuple[tuple[str, ...], ...]:
    """The folders of a project that hold what its runs wrote."""
    roots = (*project.roots, *(root for worker in project.exported() for root in worker.roots))
    paths = {os.path.relpath(root.path, project.root) for root in roots if root.mode == "out"}
    return tuple(tuple(Path(path).parts) for path in sorted(paths) if not path.startswith(".."))


def _files(root: str, without: tuple[tuple[str, ...], ...], left_out: list[str]) -> Iterator[tuple[str, bytes]]:
    """The files of a folder, by their paths."""

    def belongs(folder: tuple[str, ...]) -> bool:
        return _is_part(folder[-1]) and folder not in without

    with Directory.open(root, label=os.path.basename(root)) as directory:
        for found in sorted(directory.walk(descend=belongs), key=lambda one: one.parts):
            name = "/".join(found.parts)
            if found.kind == "directory" or not _is_part(found.parts[-1]):
                continue
            if found.kind == "file":
                yield name, directory.read_whole(found.parts, MAX_FILE)
            else:
                left_out.append(f"{name}: {found.reason or 'a link, or no regular file'}")


def _is_part(name: str) -> bool:
    return name in KEPT or (name not in SKIPPED and not name.startswith("."))


def _program(folder: Traversable, above: str = "") -> Iterator[tuple[str, bytes]]:
    """The files of this program."""
    for one in sorted(folder.iterdir(), key=lambda one: one.name):
        if one.is_dir() and _is_part(one.name):
            yield from _program(one, f"{above}{one.name}/")
        elif one.is_file() and not one.name.endswith(".pyc"):
            yield f"{above}{one.name}", one.read_bytes()


def _json(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False, indent=2).encode()


def _zip(output: Path, made: dict[str, bytes]) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{output.name}.", dir=output.parent)
    try:
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for path, data in made.items():
                entry = zipfile.ZipInfo(path)  # dated 1980, as nothing of the time of its making is in it
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
        os.chmod(name, 0o644)
        os.replace(name, output)
    except BaseException:
        os.unlink(name)
        raise
