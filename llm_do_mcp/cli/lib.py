"""`llm-do lib`: install, list, remove and show libraries, and lock those of a project."""

from __future__ import annotations

import argparse
import os

from llm_do_mcp.cli import terminal
from llm_do_mcp.cli.exits import DONE
from llm_do_mcp.cli.options import Parser, add_libs

EPILOG = """\
A library is a folder with a lib.yaml, or a project with a name. It is installed as a whole or not at all: whoever
is killed meanwhile leaves the old one or the new one. A git URL may name a commit, tag or branch, and a folder:

  llm-do lib install git+https://github.com/org/workers.git@v1.2#subdir=utils

The commit that was installed is kept; `llm-do lib info` shows it.
"""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = Parser(
        prog="llm-do lib",
        description="Install, list, remove and show libraries, and lock those of a project.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = made.add_subparsers(dest="command", required=True, metavar="COMMAND")

    install = commands.add_parser("install", help="install a library, or replace it by another version")
    install.add_argument(
        "source", metavar="PATH|URL", help="a library's folder, or git+https://…[@COMMIT][#subdir=DIR]"
    )
    install.add_argument("--versioned", action="store_true", help="install it as NAME@VERSION, beside other versions")
    install.add_argument(
        "--force", action="store_true", help="replace also what was changed by hand, also by broken workers"
    )
    install.add_argument("--to", metavar="DIR", help="the folder of libraries (default: ~/.llm-do/libs)")

    listed = commands.add_parser("list", help="list the installed libraries")
    add_libs(listed)
    listed.add_argument("--json", action="store_true", help="print JSON")

    remove = commands.add_parser("remove", help="remove a library")
    remove.add_argument("name", metavar="NAME", help="utils, or utils@2.0 for what was installed with --versioned")
    remove.add_argument("--from", metavar="DIR", dest="place", help="the folder of libraries (default: ~/.llm-do/libs)")

    info = commands.add_parser("info", help="show a library")
    info.add_argument("name", metavar="NAME", help="utils, or utils@2.0")
    add_libs(info)
    info.add_argument("--json", action="store_true", help="print JSON")

    lock = commands.add_parser("lock", help="accept a project's libraries as they are, in its libs.lock")
    lock.add_argument(
        "path", nargs="?", metavar="PROJECT", help="the project (default: LLM_DO_PROJECT, else the working directory)"
    )
    add_libs(lock)
    return made


def main(given: list[str]) -> int:
    """Entry point of `llm-do lib`."""
    options = parser().parse_args(given)
    match options.command:
        case "install":
            return _install(options)
        case "remove":
            return _remove(options)
        case "lock":
            from llm_do_mcp.cli.lib_lock import lock

            return lock(options)
        case _:
            from llm_do_mcp.cli.lib_show import info, show

            return show(options) if options.command == "list" else info(options)


def _install(options: argparse.Namespace) -> int:
    from llm_do_mcp.errors import LibraryNotFound
    from llm_do_mcp.project.installing import install
    from llm_do_mcp.project.library import HOME, Spec, locate, places

    place = options.to or HOME
    done = install(options.source, place, versioned=options.versioned, force=options.force, waits=_waits)
    version = f" {done.library.version}" if done.library.version else ""
    instead = "" if done.replaced is None else f", in place of {done.replaced or 'one without a version'}"
    print(f"installed {done.folder}{version}{instead} ({done.files} files) from {done.record.shown}")
    for dependency in done.library.manifest.dependencies:
        try:
            locate(Spec.parse(dependency), (os.path.abspath(os.path.expanduser(place)), *places()))
        except LibraryNotFound:
            terminal.say(f"{done.folder} needs {dependency}, which is not installed")
    return DONE


def _remove(options: argparse.Namespace) -> int:
    from llm_do_mcp.project.installing import remove
    from llm_do_mcp.project.library import HOME

    remove(options.name, options.place or HOME, waits=_waits)
    print(f"removed {options.name}")
    return DONE


def _waits() -> None:
    terminal.say("waiting for another llm-do that installs or removes libraries")
