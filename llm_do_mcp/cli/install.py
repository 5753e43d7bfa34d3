"""`llm-do-mcp install HOST [PROJECT]`: have an MCP host start a server of a project."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_do_mcp.cli.exits import DONE, guarded
from llm_do_mcp.cli.options import PROJECT, filled
from llm_do_mcp.cli.parser import Parser
from llm_do_mcp.errors import UsageError
from llm_do_mcp.runtime.display import cut, escape

if TYPE_CHECKING:
    from llm_do_mcp.project.load import Project

KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
"""Variables of which a model needs one."""
OVER_HTTP = "--http: a host starts a server and speaks to it over its standard input and output"
"""What is wrong with an option that a server in a host's file may not have."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    from llm_do_mcp.cli.hosts.table import HOSTS

    made = Parser(
        "llm-do-mcp install",
        "Enter a project into the configuration of an MCP host, which then starts it.",
        usage="HOST [PROJECT] [OPTION]… [-- OPTION…]",
        notes=(
            "Nothing else in that file is changed, and a copy of the old one is kept beside it. A key is written only "
            "where --env names it. Options behind `--` are handed to the server.",
        ),
        examples={
            "llm-do-mcp install claude-desktop my-notes --env ANTHROPIC_API_KEY": "",
            "llm-do-mcp install vscode my-notes --print -- --approvals locked": "",
        },
        environment=("LLM_DO_PROJECT",),
        more="Connect a client",
    )
    made.add_argument("host", metavar="HOST", help=f"one of {', '.join(HOSTS)}")
    add_entry(made)
    made.add_argument("--print", action="store_true", help="print what would be written, and change nothing")
    return made


def main(argv: list[str]) -> int:
    """Entry point of `llm-do-mcp install`."""
    made = parser()
    words, handed_on = parts(argv)
    options = made.parse_args(words)
    return guarded(lambda: _install(options, handed_on), made.prog)


def add_entry(made: Parser) -> None:
    """Add what tells an entry of a host's file: its project, name and variables, and which file."""
    made.add_argument("project", type=filled, nargs="?", metavar="PROJECT", help=PROJECT)
    help = "what the host calls it (default: the project's name)"
    made.add_argument("--name", type=filled, metavar="NAME", help=help)
    help = "a variable for the server, with the value that it has now where none is given; may be repeated"
    made.add_argument("--env", metavar="NAME[=VALUE]", action="append", default=[], help=help)
    made.add_argument("--file", type=filled, metavar="FILE", help="another file than the host's usual one")


def parts(argv: list[str]) -> tuple[list[str], list[str]]:
    """The words before a `--`, and those behind it."""
    at = argv.index("--") if "--" in argv else len(argv)
    return argv[:at], argv[at + 1 :]


def handed(words: list[str]) -> argparse.Namespace:
    """The words that are handed on to the server, as it takes them.

    Raises:
        UsageError: A host could not start it with them, or it would take them for something else than is meant here.
    """
    from llm_do_mcp.cli import projects, serve

    options = serve.parser().parse_args(words)
    if options.http is not None:
        raise UsageError(OVER_HTTP)
    serve.authentication_of(options)
    state = [] if options.state_dir is None else [options.state_dir]
    others = [projects.chosen(path) for path in options.projects]
    for option, paths in (("--state-dir ", state), ("--lib ", options.libs), ("", others)):
        for path in paths:
            if not os.path.isabs(os.path.expanduser(path)):
                instead = f"{option}{os.path.abspath(path)}"
                raise UsageError(f"{option}{path}: hosts start a server in a folder of their own; write {instead}")
    return options


def opened(path: str | None, handed_on: list[str], libs: Sequence[str] = ()) -> tuple[Project, str]:
    """A project as its server would load it, and its absolute path.

    Args:
        path: As it was named.
        handed_on: Further words for the server.
        libs: Folders of libraries besides those among them.

    Raises:
        LlmDoError: The server would not start.
    """
    from llm_do_mcp.cli import projects

    options = handed(handed_on)
    options.libs = [*libs, *options.libs]
    chosen = os.path.abspath(projects.chosen(path))
    return projects.together([chosen, *options.projects], options)[0], chosen


def lacks_key(project: Project, models: Iterable[str], env: Mapping[str, str]) -> bool:
    """Whether one of these models of a project could not be called with just these variables, for want of a key."""
    from llm_do_mcp.models import address
    from llm_do_mcp.models.naming import PROVIDER

    local = project.manifest.base_url or env.get(address.VARIABLE)
    key = any(env.get(name, "").strip() for name in KEYS)
    return not local and not key and any(name.startswith(PROVIDER) for name in models)


def check_unicode(handed_on: Sequence[str], named: Mapping[str, str]) -> None:
    """See that a file for a host, which is UTF-8, can hold all words.

    Args:
        handed_on: Further words for the server.
        named: Other words, by what each of them is.

    Raises:
        UsageError: One has bytes that are no UTF-8.
    """
    for what, word in (*zip(handed_on, handed_on, strict=True), *named.items()):
        try:
            word.encode()
        except UnicodeEncodeError:
            raise UsageError(f"{escape(what)}: it has bytes that are no UTF-8, which no host's file can hold") from None


def _install(options: argparse.Namespace, handed_on: list[str]) -> int:
    from llm_do_mcp.cli.hosts import file, start, table

    host = table.named(options.host)
    project, path = opened(options.project, handed_on)
    name = options.name or project.name
    env = start.environment(options.env)
    variables = {f"--env {key}": text for key, text in env.items()}
    check_unicode(handed_on, {"--name": name, "PROJECT": path, **variables})
    entry = host.entry(start.command(path, handed_on), env)
    if options.print:
        print(json.dumps({host.section: {name: entry}}, ensure_ascii=False, indent=2))
        return DONE
    place = Path(options.file) if options.file else host.file()
    try:
        entry = _over(file.servers(place, host.section).get(name), name, path, entry, place)
        kept = file.put(place, (host.section, name), entry)
    except UsageError as error:
        raise UsageError(f"{error}; nothing was changed") from None
    if kept is False:
        print(f"{place} has {name!r} as it is already; nothing was changed")
    else:
        print(f"{name!r} is in {place}" + (f"; the file as it was is {kept.name}" if isinstance(kept, Path) else ""))
        print(f"next: {host.then}")
    _hint(project, env)
    return DONE


def _over(earlier: Any, name: str, path: str, entry: dict[str, Any], place: Path) -> dict[str, Any]:
    """An entry that takes the place of an earlier one: what a person added to that one stays.

    Raises:
        UsageError: There is another server of that name.
    """
    if not isinstance(earlier, dict):
        return entry
    from llm_do_mcp.cli.hosts import start

    had = start.of_entry(earlier, f"{place}: the server {name!r}")
    if path not in had.command:
        raise UsageError(f"there is another server called {name!r}: {cut(' '.join(had.command), 200)}; choose a --name")
    env = {**had.env, **entry.get("env", {})}
    return {**earlier, **entry, **({"env": env} if env else {})}


def _hint(project: Project, env: Mapping[str, str]) -> None:
    """Say where the server would have no key for its model."""
    if lacks_key(project, (name for worker in project.exported() for name in worker.model), env):
        print(
            f"llm-do-mcp install: hosts hand no variables of your terminal on: with --env {KEYS[0]} the key is written "
            "into that file, and without it the workers' model cannot be called",
            file=sys.stderr,
        )
