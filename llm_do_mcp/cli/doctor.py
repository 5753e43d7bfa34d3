"""`llm-do-mcp doctor [PROJECT]`: start a server as a host would, speak to it, and say what is wrong.

What works in a terminal may not work in a host: there are no variables of a shell's profile, no working directory, and
nobody reads error output. So nothing of that is looked up here; a server is started without them. What it says may be
anything, and is shown escaped.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from llm_do_mcp.cli.exits import DONE, FAILED, MEANINGS, USAGE, guarded
from llm_do_mcp.cli.hosts.beforehand import Finding, at_a_call, server_options
from llm_do_mcp.cli.install import OVER_HTTP, add_entry, handed, opened, parts
from llm_do_mcp.cli.parser import Parser
from llm_do_mcp.errors import UsageError
from llm_do_mcp.runtime.display import counted, cut, escape

if TYPE_CHECKING:
    from llm_do_mcp.cli.hosts.probe import Heard
    from llm_do_mcp.cli.hosts.start import Start

CURSOR_CHARS = 60
"""What Cursor allows a server's and a tool's name together."""
MAX_ERRORS = 10
"""Lines of a server's output, and of its error output, that are shown; of its own, all."""
MAX_CHARS = 500
"""Characters that are shown of what a server wrote."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = Parser(
        "llm-do-mcp doctor",
        "Start a server as a host would, and say in plain words what is wrong.",
        usage="[PROJECT] [OPTION]… [-- OPTION…]",
        notes=(
            "It is started in the root folder with hardly any environment, and spoken to in both eras of the protocol. "
            "Without --host it is started as `install` would enter it. Options behind `--` are handed to the server. "
            "It has 30 seconds for each answer.",
        ),
        examples={"llm-do-mcp doctor my-notes": "", "llm-do-mcp doctor my-notes --host claude-desktop": ""},
        environment=("LLM_DO_PROJECT",),
        exits={DONE: "nothing is wrong", FAILED: "something is", USAGE: MEANINGS[USAGE]},
        more="Connect a client",
    )
    add_entry(made)
    made.add_argument("--host", metavar="HOST", help="start what this host's file says")
    return made


def main(argv: list[str]) -> int:
    """Entry point of `llm-do-mcp doctor`."""
    made = parser()
    words, handed_on = parts(argv)
    options = made.parse_args(words)
    if options.host is None and (options.name or options.file):
        made.error("--name and --file belong to --host")
    return guarded(lambda: _look(options, handed_on), made.prog)


def _look(options: argparse.Namespace, handed_on: list[str]) -> int:
    wrong = 0
    for finding in examine(*_started(options, handed_on), host=options.host or ""):
        print(escape(f"{finding.kind:5}  {finding.text}"), flush=True)
        wrong += finding.kind == "wrong"
    print(f"{wrong} {'thing is' if wrong == 1 else 'things are'} wrong" if wrong else "nothing is wrong")
    return FAILED if wrong else DONE


def _started(options: argparse.Namespace, handed_on: list[str]) -> tuple[str, Start]:
    """The server's name, and how it is started.

    Raises:
        UsageError: The host has no such server.
    """
    from llm_do_mcp.cli import projects
    from llm_do_mcp.cli.hosts import file, start, table

    if options.host is None:
        handed(handed_on)
        path = os.path.abspath(projects.chosen(options.project))
        return "", start.Start(start.command(path, handed_on), start.environment(options.env))
    if handed_on or options.env:
        raise UsageError("--host: the host's file says which variables and options the server is given")
    host = table.named(options.host)
    place = Path(options.file) if options.file else host.file()
    servers = file.servers(place, host.section)
    name = options.name or opened(options.project, [])[0].name
    entry = servers.get(name)
    if not isinstance(entry, dict):
        there = ", ".join(servers) or "none"
        raise UsageError(f"{place} has no server {name!r} under {host.section!r}; there are: {there}")
    return name, start.of_entry(entry, f"{place}: the server {name!r}")


def examine(name: str, begun: Start, *, host: str = "") -> Iterator[Finding]:
    """Start a server once for each era, and say what there is to say.

    Args:
        name: What its host calls it.
        begun: How it is started.
        host: Which host that is, where it has rules of its own.
    """
    from llm_do_mcp.cli.hosts import probe, start

    program = begun.command[0]
    if not os.path.isabs(program):
        yield Finding("note", f"the command {program!r} is not absolute: whether it is found is up to the host")
    if not os.path.isabs(begun.folder):
        yield Finding("note", f"`cwd` {begun.folder!r} is not absolute: where that is, is up to the host")
        begun = replace(begun, folder=start.Start.folder)
    if begun.off:
        yield Finding("note", "the host's file has it switched off")
    told = server_options(begun.command)
    if told is not None and told[0].http is not None:
        yield Finding("wrong", OVER_HTTP)
        return
    heard: list[Heard] = []
    said: dict[str, None] = {}
    for era in probe.ERAS:
        what = probe.speak(begun, era)
        heard.append(what)
        if what.problem and not any(map(_is_ours, what.errors)):  # else it says so itself, in its last line
            yield Finding("wrong", f"{era}: {what.problem}")
        elif not what.problem:
            counts = ", ".join(counted(len(items), kind.removesuffix("s")) for kind, items in what.lists.items())
            yield Finding("ok", f"{era}: the first answer after {what.seconds:.1f} s; {counts}")
        for stray in [*dict.fromkeys(what.strays)][:MAX_ERRORS]:
            yield Finding("wrong", f"{era}: on its output, where only messages may be: {stray[:200]!r}")
        said.update(dict.fromkeys(_worth_showing(what.errors)))
        if what.silent:
            break  # no need to be silent with it once more
    for line in said:
        yield Finding("wrong" if _is_ours(line) else "note", cut(line.removeprefix("llm-do-mcp: "), MAX_CHARS))
    if not any(what.problem for what in heard):
        yield from _tools(name, heard, host)
        yield from at_a_call(begun, told)


def _worth_showing(errors: Sequence[str]) -> list[str]:
    """Of lines on a server's error output its own, and the last of others: of a traceback, that is what tells why."""
    others = [line for line in errors if not _is_ours(line)]
    return [line for line in errors if _is_ours(line)] + others[-MAX_ERRORS:]


def _is_ours(line: str) -> bool:
    return line.startswith("llm-do-mcp: ")


def _tools(name: str, heard: Sequence[Heard], host: str) -> Iterator[Finding]:
    first, *others = [[tool["name"] for tool in what.lists.get("tools", [])] for what in heard]
    if not first:
        yield Finding("wrong", "no tools are published: `exports` in the manifest says which workers are")
    if any(other != first for other in others):
        yield Finding("wrong", "the two eras do not have the same tools")
    for tool in first if host == "cursor" else ():
        if len(name) + len(tool) > CURSOR_CHARS:
            yield Finding(
                "wrong", f"Cursor leaves {tool} out: with {name!r} it has more than {CURSOR_CHARS} characters"
            )
