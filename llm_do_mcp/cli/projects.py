"""The project that a command is about, with what the environment says, and its runs: to drive them, or to read them."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from llm_do_mcp.errors import ProjectError, RunError, UsageError

if TYPE_CHECKING:
    from llm_do_mcp.project.hosting import PythonOptions
    from llm_do_mcp.project.load import Project
    from llm_do_mcp.runtime.engine import Engine
    from llm_do_mcp.runtime.hint import Hint
    from llm_do_mcp.runtime.store import RunRow, Store
    from llm_do_mcp.toolsets.workbench import Workbench


def named(options: argparse.Namespace) -> Project:
    """The project that the options of `add_project` name."""
    return opened(options.project, options)


def opened(path: str | None, options: argparse.Namespace) -> Project:
    """A project, loaded as the options of `add_loading` say."""
    return load(path, no_project=options.no_project, libs=options.libs, python=python_options(options))


def together(paths: Sequence[str], options: argparse.Namespace) -> list[Project]:
    """The projects that are served together, loaded as the options of `add_loading` say.

    Args:
        paths: As they are named; none for the one that is chosen without a name.
        options: The options.

    Raises:
        ProjectError: One cannot be loaded; says which.
        UsageError: One is named twice, be it through a link or by a worker of it.
    """
    from llm_do_mcp.project.checked import quoted

    projects: dict[str, Project] = {}
    for path in paths or (None,):
        try:
            project = opened(path, options)
        except ProjectError as error:
            if len(paths) < 2 or quoted(path) in str(error):
                raise
            raise ProjectError(f"{path}: {error}") from None  # it could be of any of them
        if projects.setdefault(project.root, project) is not project:
            raise UsageError(f"{path}: the project {project.root} is named twice; name it once")
    return list(projects.values())


def python_options(options: argparse.Namespace) -> PythonOptions:
    """What the options of `add_loading` say of the project's Python."""
    from llm_do_mcp.project.hosting import PythonOptions

    return PythonOptions(
        imported=not options.no_import_tools,
        module_imports=options.allow_module_imports,
        state_folder=_state_folder(getattr(options, "state_dir", None)),
    )


def load(
    path: str | None,
    *,
    no_project: bool = False,
    libs: Sequence[str] = (),
    locked: bool = True,
    python: PythonOptions | None = None,
    tolerated: list[ProjectError] | None = None,
) -> Project:
    """Load the project that `chosen` finds.

    Workers for which neither they nor the manifest name a model have that of `LLM_DO_MODEL`.
    """
    from llm_do_mcp.project.hosting import PythonOptions
    from llm_do_mcp.project.load import load_project

    return load_project(
        chosen(path),
        no_project=no_project,
        default_model=os.environ.get("LLM_DO_MODEL") or None,
        libs=libs,
        locked=locked,
        python=python or PythonOptions(state_folder=_state_folder(None)),
        tolerated=tolerated,
    )


def chosen(path: str | None) -> str:
    """What is to be loaded: what is at a path or has a name in `LLM_DO_PATH`, else `LLM_DO_PROJECT`, else `.`."""
    from llm_do_mcp.cli.named import find

    return find(path) if path else os.environ.get("LLM_DO_PROJECT") or "."


def _state_folder(chosen: str | None) -> Callable[[str], str]:
    from llm_do_mcp.runtime.state import state_folder

    return lambda root: str(state_folder(Path(root), chosen))


def state_of(project: Project, chosen: str | None) -> Path:
    """The state folder of a project; `chosen` is `--state-dir`."""
    from llm_do_mcp.runtime.state import state_folder

    return state_folder(Path(project.root), chosen)


def kept_in(chosen: str | None, project: Project, *, several: bool) -> str | None:
    """What `--state-dir` means for a project: of several served together each has a folder of its own in it.

    In one folder, a project would take up the runs of another.
    """
    return os.path.join(chosen, project.name) if chosen is not None and several else chosen


@contextlib.asynccontextmanager
async def driving(bench: Workbench, state_dir: str | None) -> AsyncIterator[Engine]:
    """What drives the runs of a project in this process; at the end all is let go of, and what is left is resumable."""
    from llm_do_mcp.cli.terminal import Log
    from llm_do_mcp.runtime.engine import Engine
    from llm_do_mcp.runtime.hint import of_project
    from llm_do_mcp.runtime.redact import redactor

    redact = redactor(os.environ, bench.project.manifest)
    hint = of_project(bench.project, state_dir)
    engine = Engine(state_of(bench.project, state_dir), bench.body, redact, hint)
    log = Log()
    log.addFilter(redact.filter)
    logging.getLogger().addHandler(log)
    try:
        yield engine
    finally:
        logging.getLogger().removeHandler(log)
        await engine.aclose(bench.kill)
        await bench.aclose()


def living(folder: Path, owners: Iterable[str]) -> set[str]:
    """Those of the processes that drive runs, by the names of their leases, that live."""
    from llm_do_mcp.runtime.lease import Lease

    lease = Lease(folder)
    try:
        return {owner for owner in owners if lease.alive(owner)}
    finally:
        lease.release()


LAST = "last"
"""Stands for the id of the newest run."""


async def run_named(store: Store | None, name: str, hint: Hint) -> RunRow:
    """A run by its id, or the newest one as `last`.

    Raises:
        RunError: There is none; names the line that lists those there are.
    """
    from llm_do_mcp.runtime.display import cut, escape

    newest = next(iter(await store.runs()), None) if store is not None else None
    if store is None or newest is None:
        raise RunError("the project has no runs yet")
    row = newest if name == LAST else await store.get(name)
    if row is None:
        raise RunError(f"there is no run {cut(escape(name), 40)}; to list them: {hint('runs')}")
    return row


async def model_named(model: str | None, project: Project, state_dir: str | None) -> str | None:
    """What `--model` names: of `replay:last` the newest run, whatever runs come later.

    Raises:
        RunError: There is no run.
    """
    from llm_do_mcp.models.replay import replayed

    if model is None or replayed(model) != LAST:
        return model
    async with recorded(project, state_dir, LAST) as (_, row):
        return f"replay:{row.id}"


@contextlib.asynccontextmanager
async def recorded(project: Project, state_dir: str | None, name: str) -> AsyncIterator[tuple[Store, RunRow]]:
    """A run that `run_named` finds, with the record of runs that it is in, only to look at them.

    Raises:
        RunError: There is none.
    """
    from llm_do_mcp.runtime.hint import of_project

    with reading(state_of(project, state_dir)) as store:
        row = await run_named(store, name, of_project(project, state_dir))
        assert store is not None  # it has the run
        yield store, row


@contextlib.contextmanager
def reading(folder: Path) -> Iterator[Store | None]:
    """The record of runs in a state folder, only to look at it; None where there is none yet."""
    from llm_do_mcp.runtime.state import RECORD
    from llm_do_mcp.runtime.store import Store

    if not (folder / RECORD).exists():
        yield None
        return
    store = Store(folder / RECORD)
    try:
        yield store
    finally:
        store.close()
