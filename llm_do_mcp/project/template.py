"""What a template can see: its variables, and the folders that it includes from. Rendering itself is `render`'s."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llm_do_mcp.errors import InvalidInput
from llm_do_mcp.project.checked import nearest, quoted
from llm_do_mcp.project.effective import Worker
from llm_do_mcp.project.paths import join, parent

if TYPE_CHECKING:
    from llm_do_mcp.project.load import Project

SHARED = "templates"
"""The folder of a library that others include from."""

_JINJA = re.compile(r"\{\{|\{%|\{#")


def has_jinja(text: str) -> bool:
    """Whether a text is a template at all; one without Jinja's marks is used as it stands."""
    return _JINJA.search(text) is not None


def variables(worker: Worker, value: Any, params: Mapping[str, Any] | None) -> dict[str, Any]:
    """The variables of a call: `input`, the fields of an input that is a mapping, and the parameters.

    The function `file` is never hidden: a field of that name is `input.file`.

    Raises:
        InvalidInput: A parameter that is missing or not known, or two variables of one name.
    """
    named = dict(params or {})
    # Programs write null where they have no value.
    given = {name: value for name, value in named.items() if value is not None}
    values = {**worker.params, **given}
    unknown = (name for name in named if name not in worker.params)
    wrong = [f"unknown parameter {quoted(name)}; {nearest(name, worker.params)}" for name in unknown]
    needed = (name for name, default in worker.params.items() if default is None and name not in given)
    wrong += [f"parameter {name!r} is missing" for name in needed]
    if wrong:
        raise InvalidInput(f"worker {worker.id}: {', '.join(wrong)}")
    fields = {name: field for name, field in value.items() if name != "file"} if isinstance(value, Mapping) else {}
    for name in fields:
        if name == "input" or name in values:
            kind = "the input itself" if name == "input" else "a parameter"
            raise InvalidInput(
                f"worker {worker.id}: the input's field {quoted(name)} has the name of {kind}; rename it"
            )
    return {**fields, **values, "input": value}


@dataclass(frozen=True)
class Home:
    """Where the templates of a project, or of one of its libraries, look for what they include.

    Args:
        root: Its folder, absolute.
        folders: Where is looked, in order, relative to it; each with whether a computed name may lead there. A name
            that a template computes may come from a caller, so it reaches only what was made to be included.
        libraries: Names of the libraries that are looked in after that, in their `SHARED` folder only.
        locked: Path → SHA-256 of its files, where `libs.lock` has them.
        lacks: Whether there should be more libraries, which could not be had.
    """

    root: str
    folders: tuple[tuple[str, bool], ...]
    libraries: tuple[str, ...] = ()
    locked: Mapping[str, str] | None = None
    lacks: bool = False


def homes(project: Project, worker: Worker) -> dict[str, Home]:
    """The places that a worker's templates can lead to, by the library's name; that of the project is "".

    A name starts at the template that has it: what a library's template includes is the library's.
    """
    found: dict[str, Home] = {}
    waiting = [worker.library]
    while waiting:
        name = waiting.pop()
        levels, manifest = project.levels_of(name), project.defaults_of(name).manifest
        shared, workers = [(SHARED, True), (manifest.prompts.root, True)], manifest.workers.root
        folders = [*shared, (workers, False)]
        if name == worker.library and worker.folder is not None:
            folders = [(join(worker.folder, "templates"), True), (worker.folder, False), *folders]
        elif name == worker.library and (beside := parent(worker.path.rpartition(":")[2])).startswith(f"{workers}/"):
            folders = [*shared, (beside, False), (workers, False)]
        files = levels[0].files
        needed = tuple(str(level.library) for level in levels[1:])
        locked = None if files.locked is None else files.locked.files
        found[name or ""] = Home(files.root, tuple(folders), needed, locked, bool(levels[0].lacking))
        waiting += [library for library in needed if library not in found]
    return found
