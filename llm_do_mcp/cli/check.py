"""`llm-do check`: what a project amounts to, and all that is wrong with it."""

from __future__ import annotations

import argparse
import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING

from llm_do_mcp.cli.exits import DONE, FAILED, USAGE
from llm_do_mcp.cli.options import PROJECT, add_loading
from llm_do_mcp.cli.parser import Parser
from llm_do_mcp.cli.projects import chosen, load, python_options

if TYPE_CHECKING:
    from llm_do_mcp.errors import ProjectError
    from llm_do_mcp.project.load import Project


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = Parser(
        "llm-do check",
        "Show what a project amounts to, and all that is wrong with it.",
        usage="[PROJECT] [OPTION]…",
        notes=(
            "An error is what cannot be used, a warning what is odd, a note what is meant and should be known. Without "
            "--import-tools none of the project's Python is run.",
        ),
        examples={"llm-do check my-notes": "", "llm-do check my-notes --import-tools --json": ""},
        environment=("LLM_DO_MODEL", "LLM_DO_PROJECT", "LLM_DO_PATH", "LLM_DO_LIBS"),
        exits={DONE: "no error", FAILED: "it cannot be looked at", USAGE: "an error"},
        more="Check and test",
    )
    made.add_argument("path", nargs="?", metavar="PROJECT", help=PROJECT)
    made.add_argument("--json", action="store_true", help="print the same as JSON")
    made.add_argument("--import-tools", action="store_true", help="also load its Python, in a child process")
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
