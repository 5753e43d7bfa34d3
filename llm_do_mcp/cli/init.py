"""`llm-do init`: a new project from a template, which passes `llm-do check` and runs at once.

A template is a folder beside this module, copied as it is. Its model is a script that comes with it, so that the first
run needs no key; its files say what to write instead.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from llm_do_mcp.cli.exits import DONE
from llm_do_mcp.cli.parser import Parser
from llm_do_mcp.errors import UsageError
from llm_do_mcp.project.checked import nearest, quoted
from llm_do_mcp.project.names import published_name

TEMPLATES = {
    "minimal": ("one worker that reads input/ and writes output/", "What do the notes say?"),
    "pipeline": ("an orchestrator and three stages, each a worker of its own", "Report on the feedback."),
    "research-agent": (
        "a question is planned, the sources are searched, the findings are checked and written up",
        "Why did the second trial fail?",
    ),
}
"""Name → what it makes, and what its worker can be asked."""
DEFAULT = "minimal"
RENAMED = {"gitignore": ".gitignore", "gitkeep": ".gitkeep"}
"""Files of a template that must not mean anything where the templates lie."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*\Z")
_MAX_LENGTH = 60


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = Parser(
        "llm-do init",
        "Begin a project, which runs at once: a script answers, and no key is needed.",
        usage=("NAME [--template T]", "--list-templates"),
        examples={
            "llm-do init my-notes": "one worker, in a new folder",
            "llm-do init my-report --template pipeline": "several that call each other",
        },
        more="Your own worker in five minutes",
    )
    made.add_argument("name", nargs="?", metavar="NAME", help="the new folder; its last part names the project")
    made.add_argument("--template", metavar="T", default=DEFAULT, help=f"{', '.join(TEMPLATES)} (default: {DEFAULT})")
    made.add_argument("--list-templates", action="store_true", help="say what each template makes")
    return made


def main(given: list[str]) -> int:
    """Entry point of `llm-do init`."""
    options = parser().parse_intermixed_args(given)
    if options.list_templates:
        for name, (what, _) in TEMPLATES.items():
            print(f"{name:16} {what}")
        return DONE
    if options.name is None:
        raise UsageError("name the new project: llm-do init my-project")
    folder = Path(os.path.abspath(options.name))
    made = create(folder, options.template)
    print(f"created {options.name} ({options.template}): {', '.join(made)}")
    shown = shlex.quote(options.name)
    print("next:")
    for command, why in (
        (f"llm-do check {shown}", "what it amounts to"),
        (f"llm-do {shown} {shlex.quote(TEMPLATES[options.template][1])}", "a script answers, no model is called"),
        (f"llm-do-mcp {shown}", "serve it to MCP clients"),
    ):
        print(f"  {command:62} # {why}")
    return DONE


def create(folder: Path, template: str) -> list[str]:
    """Make a project.

    Args:
        folder: Where; it is not there yet, or empty.
        template: One of `TEMPLATES`.

    Returns:
        The files, relative to the folder.

    Raises:
        UsageError: The template, the name or the folder cannot be used. Nothing is ever overwritten.
    """
    from llm_do_mcp.serving.surface import is_taken

    if template not in TEMPLATES:
        raise UsageError(f"there is no template {quoted(template)}; {nearest(template, TEMPLATES)}")
    if not _NAME.match(folder.name) or len(folder.name) > _MAX_LENGTH:
        raise UsageError(f"{quoted(folder.name)} cannot name a project; use letters, digits, - and _")
    if is_taken(name := published_name(folder.name)):
        raise UsageError(f"{quoted(folder.name)} cannot name a project: {name!r} is another tool; choose another name")
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise UsageError(f"{quoted(str(folder))} is there already, and not empty; choose another name")
    made = []
    for source, place in _files(files(__package__).joinpath("templates", template), ()):
        target = folder.joinpath(*place)
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(target, "xb") as file:
            file.write(source.read_bytes())
        made.append("/".join(place))
    return made


def _files(folder: Traversable, above: tuple[str, ...]) -> list[tuple[Traversable, tuple[str, ...]]]:
    """The files of a template, and where they go."""
    found = []
    for entry in sorted(folder.iterdir(), key=lambda entry: (entry.is_dir(), entry.name)):
        if entry.name == "__pycache__":
            continue
        place = (*above, RENAMED.get(entry.name, entry.name))
        found += _files(entry, place) if entry.is_dir() else [(entry, place)]
    return found
