"""`llm-do lib`: install, list, remove and show libraries, and lock those of a project."""

from __future__ import annotations

import argparse
import os

from llm_do_mcp.cli import terminal
from llm_do_mcp.cli.exits import DONE
from llm_do_mcp.cli.options import PROJECT, add_libs
from llm_do_mcp.cli.parser import Parser

HELP = {
    "install": "install a library, or replace it by another version",
    "list": "list the installed libraries",
    "info": "show a library, and the commit that it was installed from",
    "remove": "remove a library",
    "lock": "accept a project's libraries as they are, in its libs.lock",
}
"""What is said of each command."""
SOURCE = "a folder with a lib.yaml, or a project; or git+https://…[@COMMIT|TAG|BRANCH][#subdir=DIR]"


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = Parser(
        "llm-do lib",
        "Install, list, show and remove libraries, and lock those of a project.",
        usage="COMMAND …",
        commands={"Commands": HELP},
        examples={
            "llm-do lib install ./utils": "into ~/.llm-do/libs",
            "llm-do lib lock my-notes": "after you have looked at them",
        },
        environment=("LLM_DO_LIBS",),
        more="Libraries",
    )
    commands = made.add_subparsers(prog=made.prog, dest="command", required=True, metavar="COMMAND")

    def command(name: str, usage: str, examples: dict[str, str]) -> Parser:
        purpose = f"{HELP[name][0].upper()}{HELP[name][1:]}."
        return commands.add_parser(name, purpose=purpose, usage=usage, examples=examples, more=made.more)

    install = command(
        "install",
        "SOURCE [OPTION]…",
        {
            "llm-do lib install ./utils --versioned": "as utils@2.1.0, beside others",
            "llm-do lib install git+https://github.com/org/workers.git@v1.2#subdir=utils": "from git",
        },
    )
    install.add_argument("source", metavar="SOURCE", help=SOURCE)
    install.add_argument("--versioned", action="store_true", help="install it as NAME@VERSION, beside other versions")
    help = "also replace what was changed by hand, also install what has broken workers"
    install.add_argument("--force", action="store_true", help=help)
    install.add_argument("--to", metavar="DIR", help="the folder of libraries (default: ~/.llm-do/libs)")

    listed = command("list", "[OPTION]…", {"llm-do lib list": ""})
    add_libs(listed)
    listed.add_argument("--json", action="store_true", help="print JSON")

    info = command("info", "NAME [OPTION]…", {"llm-do lib info utils": ""})
    info.add_argument("name", metavar="NAME", help="utils, or utils@2.0")
    add_libs(info)
    info.add_argument("--json", action="store_true", help="print JSON")

    remove = command("remove", "NAME [OPTION]…", {"llm-do lib remove utils@2.0": ""})
    remove.add_argument("name", metavar="NAME", help="utils, or utils@2.0 for what was installed with --versioned")
    remove.add_argument("--from", metavar="DIR", dest="place", help="the folder of libraries (default: ~/.llm-do/libs)")

    lock = command("lock", "[PROJECT] [OPTION]…", {"llm-do lib lock my-notes": ""})
    lock.add_argument("path", nargs="?", metavar="PROJECT", help=PROJECT)
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
