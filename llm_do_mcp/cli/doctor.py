"""`llm-do-mcp doctor [PROJECT]`: start a server as a host would, speak to it, and say what is wrong.

What works in a terminal may not work in a host: there are no variables of a shell's profile, no working directory, and
nobody reads error output. So nothing of that is looked up here; a server is started without them.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from llm_do_mcp.cli.exits import DONE, FAILED, MEANINGS, USAGE, guarded
from llm_do_mcp.cli.install import KEYS, add_entry, handed, lacks_key, opened, parts
from llm_do_mcp.cli.parser import Parser
from llm_do_mcp.errors import LlmDoError, UsageError
from llm_do_mcp.runtime.account import calls_model
from llm_do_mcp.runtime.display import counted

if TYPE_CHECKING:
    from llm_do_mcp.cli.hosts.probe import Heard
    from llm_do_mcp.project.load import Project

CURSOR_CHARS = 60
"""What Cursor allows a server's and a tool's name together."""
MAX_ERRORS = 10
"""Lines of a server's error output that are shown."""


@dataclass(frozen=True)
class Finding:
    """One line of the report."""

    kind: Literal["ok", "note", "wrong"]
    text: str


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = Parser(
        "llm-do-mcp doctor",
        "Start a server as a host would, and say in plain words what is wrong.",
        usage="[PROJECT] [OPTION]… [-- OPTION…]",
        notes=(
            "It is started in the root folder with hardly any environment, and spoken to in both eras of the protocol. "
            "Without --host it is started as `install` would enter it. Options behind `--` are handed to the server.",
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
        print(f"{finding.kind:5}  {finding.text}")
        wrong += finding.kind == "wrong"
    print(f"{wrong} {'thing is' if wrong == 1 else 'things are'} wrong" if wrong else "nothing is wrong")
    return FAILED if wrong else DONE


def _started(options: argparse.Namespace, handed_on: list[str]) -> tuple[str, list[str], dict[str, str]]:
    """The server's name, its command, and its environment.

    Raises:
        UsageError: The host has no such server.
    """
    from llm_do_mcp.cli import projects
    from llm_do_mcp.cli.hosts import file, start, table

    if options.host is None:
        handed(handed_on)
        path = os.path.abspath(projects.chosen(options.project))
        return "", start.command(path, handed_on), start.environment(options.env)
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
    return name, *start.of_entry(entry, f"{place}: the server {name!r}")


def examine(name: str, command: Sequence[str], env: Mapping[str, str], *, host: str = "") -> Iterator[Finding]:
    """Start a server once for each era, and say what there is to say.

    Args:
        name: What its host calls it.
        command: What starts it.
        env: The variables that its host gives it.
        host: Which host that is, where it has rules of its own.
    """
    from llm_do_mcp.cli.hosts import probe, start

    if not os.path.isabs(command[0]):
        yield Finding("note", f"the command {command[0]!r} is not absolute: whether it is found is up to the host")
    heard = {era: probe.speak(command, start.bare(env), era) for era in probe.ERAS}
    said: dict[str, None] = {}
    for era, what in heard.items():
        if what.problem and not any(map(_is_ours, what.errors)):  # else it says so itself, in its last line
            yield Finding("wrong", f"{era}: {what.problem}")
        elif not what.problem:
            counts = ", ".join(counted(len(items), kind.removesuffix("s")) for kind, items in what.lists.items())
            yield Finding("ok", f"{era}: the first answer after {what.seconds:.1f} s; {counts}")
        for stray in what.strays[:MAX_ERRORS]:
            yield Finding("wrong", f"{era}: on its output, where only messages may be: {stray[:200]!r}")
        said.update(dict.fromkeys(what.errors[:MAX_ERRORS]))
    for line in said:
        yield Finding("wrong" if _is_ours(line) else "note", line.removeprefix("llm-do-mcp: "))
    whole = [what for what in heard.values() if not what.problem]
    if len(whole) == len(heard):
        yield from _tools(name, whole, host)
        with _as_started(env):
            found = [*_projects(command)]
        yield from found


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


@contextlib.contextmanager
def _as_started(env: Mapping[str, str]) -> Iterator[None]:
    """The place and the variables of a server that a host starts, for what is looked at in this process."""
    from llm_do_mcp.cli.hosts import start

    mine = dict(os.environ)
    with contextlib.chdir(os.sep):
        try:
            os.environ.clear()
            os.environ.update(start.bare(env))
            yield
        finally:
            os.environ.clear()
            os.environ.update(mine)


def _projects(command: Sequence[str]) -> Iterator[Finding]:
    """What a server would only say when a worker is called."""
    from llm_do_mcp.cli.hosts import start
    from llm_do_mcp.cli.projects import kept_in, state_of, together

    told = start.handed_on(command)
    options = None if told is None else _understood(told[0])
    if told is None or options is None:
        yield Finding("note", "the command does not tell what is served: models and search were not looked at")
        return
    os.environ.update(told[1])
    if options.state_dir and not os.path.isabs(os.path.expanduser(options.state_dir)):
        yield Finding("note", f"--state-dir {options.state_dir} is not absolute: where that is, is up to the host")
    try:
        projects = together(options.projects, options)
    except LlmDoError as error:
        yield Finding("note", f"models and search were not looked at: {error}")
        return
    for project in projects:
        try:
            kept = kept_in(options.state_dir, project, several=len(projects) > 1)
            yield Finding("ok", f"runs are recorded in {state_of(project, kept)}")
        except LlmDoError as error:
            yield Finding("wrong", str(error))
        yield from _models(project, options.model)
        yield from _search(project)


def _understood(words: list[str]) -> argparse.Namespace | None:
    """Options of the server that was started; None where the words turn out to be somebody else's."""
    from llm_do_mcp.cli.serve import parser as server_parser

    try:
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            return server_parser().parse_args(words)
    except SystemExit:
        return None


def _models(project: Project, model: str | None) -> Iterator[Finding]:
    from llm_do_mcp.check.odd import model_problem
    from llm_do_mcp.toolsets.workbench import Workbench

    bench = Workbench(project, model=model)
    reached = dict.fromkeys(inner.id for worker in project.exported() for inner in project.closure(worker))
    scripted: dict[str, None] = {}
    problems: dict[str, None] = {}
    for identifier in reached:
        try:
            worker = project.worker(identifier)
            bench.check_model(worker)
            names = bench.models_of(worker)
        except LlmDoError as error:
            problems[str(error)] = None
            continue
        problems |= {problem: None for name in names if (problem := model_problem(bench, name)) is not None}
        if lacks_key(project, names, os.environ):
            problems[f"worker {identifier}: {names[0]} cannot be called without {KEYS[0]} among its variables"] = None
        scripted |= dict.fromkeys(name for name in names if not calls_model(name))
    yield from (Finding("wrong", problem) for problem in problems)
    if scripted:
        yield Finding("note", f"no model is called: {', '.join(scripted)} answers")


def _search(project: Project) -> Iterator[Finding]:
    from llm_do_mcp.te import ripgrep
    from llm_do_mcp.te.envelope import TeError

    if project.manifest.publish.te is False or not project.manifest.tool_envelope.enabled:
        return
    try:
        yield Finding("ok", f"searches with {ripgrep.find()}")
    except TeError as error:
        yield Finding("wrong", f"te grep cannot search: {error}")
