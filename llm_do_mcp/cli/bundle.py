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
import zipfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_do_mcp.cli import packed
from llm_do_mcp.cli.bundled import HERE, LIBRARIES, LIST, PROJECT
from llm_do_mcp.cli.exits import DONE, guarded
from llm_do_mcp.cli.install import check_unicode, opened, parts
from llm_do_mcp.cli.options import PROJECT as HELP_PROJECT
from llm_do_mcp.cli.options import add_libs, filled
from llm_do_mcp.cli.parser import Parser
from llm_do_mcp.cli.replacing import replacing
from llm_do_mcp.errors import UsageError
from llm_do_mcp.runtime.display import counted, escape
from llm_do_mcp.sandbox import names

if TYPE_CHECKING:
    from llm_do_mcp.project.load import Project

FORMAT = "0.4"
"""The first version of the manifest that has the type `uv`."""
MANIFEST = "manifest.json"
"""In a bundle: what a host reads of it."""
_START = """\
import sys

from llm_do_mcp.cli.bundled import main

sys.exit(main())
"""


def parser() -> Parser:
    """The command line."""
    made = Parser(
        "llm-do-mcp bundle",
        "Make an .mcpb of a project, which Claude Desktop installs by double click.",
        usage="[PROJECT] [OPTION]… [-- OPTION…]",
        notes=(
            "Not in it are files whose names begin with a dot, private keys (*.pem, *.key, id_rsa, …), other bundles, "
            "folders of the mode `out`, and what the project's .mcpbignore names. All else that is in the project's "
            "folder is: it is listed, so look it through. Options behind `--` are handed to the server.",
        ),
        examples={"llm-do-mcp bundle my-notes": "makes my-notes.mcpb"},
        environment=("LLM_DO_PROJECT",),
        more="Connect a client",
    )
    made.add_argument("project", nargs="?", metavar="PROJECT", help=HELP_PROJECT)
    made.add_argument("--output", type=filled, metavar="FILE", help="the file to make (default: NAME.mcpb, here)")
    made.add_argument("--author", metavar="NAME", help="whose it is (default: the project's name)")
    add_libs(made)
    return made


def main(argv: list[str]) -> int:
    """Entry point of `llm-do-mcp bundle`."""
    made = parser()
    words, handed_on = parts(argv)
    options = made.parse_args(words)

    def make() -> int:
        _movable(handed_on)
        project, _ = opened(options.project, handed_on, options.libs)
        author = options.author or project.name
        check_unicode(handed_on, {"the author": author, "the project's name": project.name})
        if project.broken:
            raise project.broken[0]
        output = Path(options.output or f"{project.name}.mcpb")
        own, left_out = write(project, output, author=author, options=handed_on)
        print(f"{output}: {output.stat().st_size:,} bytes; open it with Claude Desktop to install it")
        print(escape(f"{counted(len(own.files), 'file')} of the project: {own}"))
        for line in left_out:
            print(f"left out: {line}", file=sys.stderr)
        return DONE

    return guarded(make, made.prog)


def _movable(handed_on: list[str]) -> None:
    """See to it that the server can be started with these words on any machine.

    Raises:
        UsageError: One of them is about this one.
    """
    from llm_do_mcp.cli import serve

    options = serve.parser().parse_args(handed_on)
    if options.libs:
        raise UsageError("--lib: give it before the `--`: the libraries that the project uses are in the bundle")
    if options.state_dir or options.projects:
        raise UsageError("a bundle has one project, and its runs lie in that: no --state-dir, no other project")


def write(project: Project, output: Path, *, author: str, options: list[str]) -> tuple[packed.Packed, list[str]]:
    """Make a bundle.

    Args:
        project: Of what.
        output: The file; an earlier bundle is replaced at once when this one is whole.
        author: Whose it is.
        options: Further words of `llm-do-mcp`.

    Returns:
        What is in it of the project; and what is not though it is in the project, or the project uses it.

    Raises:
        LlmDoError: Something cannot be read, or the file is there and no bundle.
    """
    made = {MANIFEST: _json(manifest(project, author, options)), "pyproject.toml": _needs(project)}
    own = packed.of_project(project, str(output))
    left_out = [*own.left_out]
    made |= {LIST: _json({name: hashlib.sha256(data).hexdigest() for name, data in own.files.items()})}
    made |= {"server/main.py": _START.encode()}
    made |= {f"{PROJECT}/{name}": data for name, data in own.files.items()}
    for library in project.libraries.values():
        its = packed.packed(library.root)
        made |= {f"{LIBRARIES}/{library.spec}/{name}": data for name, data in its.files.items()}
        left_out += [f"{library.spec}:{line}" for line in its.left_out]
    made |= {f"server/llm_do_mcp/{name}": data for name, data in _program(files("llm_do_mcp"))}
    for root in project.roots:
        if not names.is_below(root.path, project.root):
            left_out.append(f"{root.alias}: the folder {root.path} is outside the project")
    _zip(output, made)
    return own, left_out


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


def _program(folder: Traversable, above: str = "") -> Iterator[tuple[str, bytes]]:
    """The files of this program."""
    for one in sorted(folder.iterdir(), key=lambda one: one.name):
        if one.is_dir() and packed.is_part(one.name):
            yield from _program(one, f"{above}{one.name}/")
        elif one.is_file() and not one.name.endswith(".pyc"):
            yield f"{above}{one.name}", one.read_bytes()


def _json(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False, indent=2).encode()


def _may_go(file: Path) -> bool:
    """Whether a file is empty, or a bundle of ours; what is none may be anything, a project's source."""
    try:
        if not file.stat().st_size:
            return True
        with zipfile.ZipFile(file) as archive:
            return {MANIFEST, LIST} <= set(archive.namelist())
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile):
        return False


def _zip(output: Path, made: dict[str, bytes]) -> None:
    if os.path.isdir(output):
        raise UsageError(f"--output {output}: that is a folder; name a file, such as {output / 'NAME.mcpb'}")
    if not os.path.isdir(output.parent):
        raise UsageError(f"--output {output}: there is no folder {output.parent}; make it, or name another")
    if os.path.isfile(output) and not _may_go(output):
        raise UsageError(f"--output {output}: that is there and no bundle of ours; remove it, or name another file")
    with replacing(output, mode=0o644) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in made.items():
            entry = zipfile.ZipInfo(path)  # dated 1980, as nothing of the time of its making is in it
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
