"""`llm-do check`: what a project amounts to, and all that is wrong with it."""

from __future__ import annotations

import argparse
import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING

from llm_do_mcp.cli.exits import DONE, USAGE
from llm_do_mcp.cli.options import Parser, add_loading
from llm_do_mcp.cli.projects import chosen, load, python_options

if TYPE_CHECKING:
    from llm_do_mcp.errors import ProjectError
    from llm_do_mcp.project.load import Project

EPILOG = """\
Errors (the project, or a worker, cannot be used) exit 2. What is merely odd is a warning, what is meant and should be
known is a note; with only those it exits 0. Without --import-tools none of the project's Python is run.
"""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = Parser(
        prog="llm-do check",
        description="Show what a project amounts to, and all that is wrong with it.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        "path", nargs="?", metavar="PROJECT", help="the project (default: LLM_DO_PROJECT, else the working directory)"
    )
    made.add_argument("--json", action="store_true", help="print the same as JSON")
    made.add_argument("--import-tools", action="store_true", help="load the project's Python too, in a child process")
    add_loading(made)
    return made


def main(given: list[str]) -> int:
    """Entry point of `llm-do check`."""
    made = parser()
    options = made.parse_intermixed_args(given)
    if options.import_tools and options.no_import_tools:
        made.error("--import-tools and --no-import-tools: choose one")
    return check(options, import_tools=options.import_tools)


def check(options: argparse.Namespace, *, import_tools: bool = False) -> int:
    """Look at a project and print what was found.

    Args:
        options: `path`, `json` and those of `add_loading`.
        import_tools: Whether the project's Python may be loaded.

    Returns:
        The exit code: 2 where there is an error.
    """
    from llm_do_mcp.check.examine import examine
    from llm_do_mcp.cli.check_text import text

    # Where it is not to be loaded nothing asks for it; refusing it would make errors of what is only not looked at.
    python = replace(python_options(options), imported=True, classes=import_tools)

    def loaded(problems: list[ProjectError]) -> Project:
        return load(options.path, no_project=options.no_project, libs=options.libs, python=python, tolerated=problems)

    report = asyncio.run(examine(chosen(options.path), loaded, import_tools=import_tools))
    if options.json:
        print(json.dumps(report.to_json(), indent=2, ensure_ascii=False))
    else:
        print("\n".join(text(report)))
    return DONE if report.ok else USAGE
