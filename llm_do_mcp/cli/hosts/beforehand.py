"""What a server would only say when a worker is called, looked at beforehand: models, keys, folders, search, runs.

This is looked at in this process, with the place and the variables that a host gives the server.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from llm_do_mcp.cli.hosts import start
from llm_do_mcp.cli.install import KEYS, lacks_key
from llm_do_mcp.errors import LlmDoError
from llm_do_mcp.runtime.account import calls_model
from llm_do_mcp.runtime.display import counted, cut

if TYPE_CHECKING:
    from llm_do_mcp.project.effective import Worker
    from llm_do_mcp.project.load import Project

Told = tuple[argparse.Namespace, Mapping[str, str]]
"""What a command tells of a server: its options, and the variables that are set before it."""


@dataclass(frozen=True)
class Finding:
    """One line of the report."""

    kind: Literal["ok", "note", "wrong"]
    text: str


def server_options(command: Sequence[str]) -> Told | None:
    """Options and variables of a server that is started; None where the command does not tell.

    The words behind the program may turn out to be somebody else's.
    """
    from llm_do_mcp.cli.serve import parser as server_parser

    if (told := start.handed_on(command)) is None:
        return None
    try:
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            return server_parser().parse_args(told[0]), told[1]
    except SystemExit:
        return None


def at_a_call(begun: start.Start, told: Told | None) -> list[Finding]:
    """What there is to say of the projects that a server serves.

    Args:
        begun: How the server is started.
        told: Its options and variables; None where the command does not tell.
    """
    with _as_started(begun):
        return [*_projects(told)]


@contextlib.contextmanager
def _as_started(begun: start.Start) -> Iterator[None]:
    """The place and the variables of a server that a host starts, for what is looked at in this process."""
    mine = dict(os.environ)
    with contextlib.chdir(begun.folder):
        try:
            os.environ.clear()
            os.environ.update(start.bare(begun.env))
            yield
        finally:
            os.environ.clear()
            os.environ.update(mine)


def _projects(told: Told | None) -> Iterator[Finding]:
    from llm_do_mcp.cli.projects import kept_in, state_of, together
    from llm_do_mcp.runtime.state import exposed_keys
    from llm_do_mcp.runtime.tryout import try_out

    if told is None:
        yield Finding("note", "the command does not tell what is served: models and search were not looked at")
        return
    options, variables = told
    os.environ.update(variables)
    if options.state_dir and not os.path.isabs(os.path.expanduser(options.state_dir)):
        yield Finding("note", f"--state-dir {options.state_dir} is not absolute: where that is, is up to the host")
    try:
        projects = together(options.projects, options)
    except LlmDoError as error:
        yield Finding("note", f"models and search were not looked at: {error}")
        return
    for project in projects:
        try:
            kept = state_of(project, kept_in(options.state_dir, project, several=len(projects) > 1))
            runs = try_out(kept)
            yield Finding("ok", f"runs are recorded in {kept}")
            if exposed := exposed_keys(kept):
                yield Finding("wrong", exposed)
        except LlmDoError as error:
            runs = frozenset()
            yield Finding("wrong", str(error))
        reached = _reached(project)
        yield from _folders(project, reached)
        yield from _models(project, reached, options.model, runs)
        yield from _search(project)


def _reached(project: Project) -> Collection[Worker]:
    """All workers that a call may come to; of one that is broken the server has told."""
    return {inner.id: inner for worker in project.exported() for inner in project.closure(worker)}.values()


def _folders(project: Project, workers: Collection[Worker]) -> Iterator[Finding]:
    from llm_do_mcp.check.odd import missing

    roots = {root.path: root for worker in workers for root in worker.roots} | {one.path: one for one in project.roots}
    for root in roots.values():
        if root.mode == "ro" and (message := missing(root)) is not None:
            yield Finding("note", message)


def _models(
    project: Project, workers: Collection[Worker], model: str | None, runs: Collection[str]
) -> Iterator[Finding]:
    from llm_do_mcp.check.odd import model_problem
    from llm_do_mcp.cli.projects import LAST
    from llm_do_mcp.models.naming import PROVIDER
    from llm_do_mcp.models.replay import replayed
    from llm_do_mcp.toolsets.workbench import Workbench

    bench = Workbench(project, model=model)
    scripted: dict[str, None] = {}
    problems: dict[str, None] = {}
    alike: dict[str, list[str]] = {}
    known = {*runs, LAST} if runs and model == f"replay:{LAST}" else runs
    for worker in workers:
        try:
            bench.check_model(worker)
            names = bench.models_of(worker)
        except LlmDoError as error:
            problem = str(error).removeprefix(f"worker {worker.id} ")
            if problem == str(error):  # it is about no worker, such as a model's name
                problems[problem] = None
            else:
                alike.setdefault(problem, []).append(worker.id)
            continue
        problems |= {found: None for name in names if (found := model_problem(bench, name)) is not None}
        lost = [name for name in names if (run := replayed(name)) is not None and run not in known]
        problems |= {f"model {name!r}: no run of that name is recorded": None for name in lost}
        if lacks_key(project, names, os.environ):
            alike.setdefault(f"cannot call {names[0]} without {KEYS[0]} among its variables", []).append(worker.id)
        if any(name.startswith(PROVIDER) for name in names):
            problems |= dict.fromkeys(_address(project.manifest.base_url))
        scripted |= dict.fromkeys(name for name in names if not calls_model(name))
    for problem, (first, *others) in alike.items():
        also = f" (nor {counted(len(others), 'other')}: {cut(', '.join(others), 200)})" if others else ""
        problems[f"worker {first} {problem}{also}"] = None
    yield from (Finding("wrong", problem) for problem in problems)
    if scripted:
        yield Finding("note", f"no model is called: {', '.join(scripted)} answers")


def _address(base_url: str | None) -> Iterator[str]:
    """What is wrong with the address of the model, where the server's variables and not the project name it."""
    from llm_do_mcp.models import address
    from llm_do_mcp.project.manifest import web_address

    if address.is_foreign(base_url):
        return
    try:
        web_address(address.own())
    except ValueError as error:
        yield f"{address.VARIABLE}: {error}"


def _search(project: Project) -> Iterator[Finding]:
    from llm_do_mcp.te import ripgrep
    from llm_do_mcp.te.envelope import TeError

    if project.manifest.publish.te is False:
        return
    try:
        yield Finding("ok", f"searches with {ripgrep.find()}")
    except TeError as error:
        yield Finding("wrong", f"te grep cannot search: {error}")
