"""Options that several commands have."""

from __future__ import annotations

import argparse

from llm_do_mcp.runtime.approvals import HELP, MODES

RUN = "the run's id, as `llm-do runs` lists it, or `last` for the newest"
PROJECT = "a project's folder, a .worker file, or a name in LLM_DO_PATH (default: LLM_DO_PROJECT, else here)"

MODEL = "the entry worker's model, such as anthropic:claude-haiku-4-5; replay:RUN answers as a recorded run did"


def add_version(parser: argparse.ArgumentParser) -> None:
    """`--version`, which is looked up when it is asked for."""
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from llm_do_mcp import __version__

        print(f"{parser.prog} {__version__}")
        parser.exit()


def seconds(text: str) -> float:
    """A length of time."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
    return value


def filled(text: str) -> str:
    """A text that says something: "", which a variable gives that is not set, would be taken for nothing at all."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty; say what, or leave it out")
    return text


def add_project(parser: argparse.ArgumentParser) -> None:
    """Which project's runs a command is about, how it is loaded, and where they are."""
    parser.add_argument("--project", metavar="PROJECT", help=PROJECT)
    add_state_dir(parser)
    add_loading(parser)


def add_loading(parser: argparse.ArgumentParser) -> None:
    """How a project is loaded."""
    group = parser.add_argument_group("How the project is loaded")
    add_libs(group)
    group.add_argument("--no-project", action="store_true", help="take a .worker file for itself, without its project")
    group.add_argument("--no-import-tools", action="store_true", help="load none of the project's Python")
    help = "allow tools and schemas by Python's names (my_project.tools:register), as the manifest can"
    group.add_argument("--allow-module-imports", action="store_true", help=help)


def add_libs(parser: argparse._ActionsContainer) -> None:
    """Where libraries are."""
    help = "a folder of libraries, searched before ~/.llm-do/libs and LLM_DO_LIBS; may be repeated"
    parser.add_argument("--lib", metavar="PATH", action="append", default=[], dest="libs", help=help)


def add_state_dir(parser: argparse.ArgumentParser) -> None:
    """Where runs are."""
    parser.add_argument("--state-dir", metavar="DIR", help="where runs are recorded (default: .llm-do/ in the project)")


def add_approvals(parser: argparse.ArgumentParser) -> None:
    """Who answers the questions of a run that a command drives: one mode, whichever option names it."""
    either = parser.add_argument_group("Approvals").add_mutually_exclusive_group()
    either.add_argument("--approvals", choices=MODES, default="ask", help=HELP)
    either.add_argument(
        "--approve-all",
        dest="approvals",
        action="store_const",
        const="all",
        default="ask",
        help="approve every call without asking",
    )
