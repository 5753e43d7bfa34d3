"""Which workers are there for others: those that a project publishes, and those of a library that can be called.

An export is an id, a path, a glob, or a worker of a library (`utils:summarizer`, `utils:*`). What is exported exists:
an export that means no worker is an error of the manifest.
"""

from __future__ import annotations

from collections.abc import Sequence

from llm_do_mcp.errors import NotLookedUp, ProjectError
from llm_do_mcp.project.checked import collecting, quoted, together
from llm_do_mcp.project.manifest import Manifest
from llm_do_mcp.project.references import MAIN, MAIN_FILE, as_glob
from llm_do_mcp.project.resolve import Level, resolve
from llm_do_mcp.project.strictyaml import Document
from llm_do_mcp.sandbox import patterns
from llm_do_mcp.sandbox.names import BadName


def of_library(level: Level, document: Document, manifest: Manifest) -> tuple[str, ...]:
    """Ids, inside a library, of the workers that can be called from outside.

    Raises:
        ProjectError: An export that means no worker.
    """
    entry = entry_of((level,), document, manifest)
    identifiers = exported((level,), entry, document, manifest.exports)
    return tuple(identifier.removeprefix(f"{level.library}:") for identifier in identifiers)


def entry_of(levels: Sequence[Level], document: Document | None, manifest: Manifest) -> str | None:
    """The worker that stands for a project: the manifest's `entry`, else the one in `main.worker`, or None."""
    if document is not None and manifest.entry is not None:
        return _resolved(manifest.entry, levels, document, "entry")
    return levels[0].canonical(MAIN) if levels[0].files.kind(MAIN_FILE) is not None else None


def exported(
    levels: Sequence[Level], entry: str | None, document: Document | None, exports: tuple[str, ...] | None
) -> list[str]:
    """The ids of exported workers, each once.

    Args:
        levels: What exports; behind it what it may take exports from.
        entry: What is exported where nothing is said; every worker where there is no entry.
        document: The manifest, for the places.
        exports: Its `exports`.

    Raises:
        ProjectError: Exports that mean no worker, all of them.
    """
    home = levels[0]
    if document is None or exports is None:
        return [entry] if entry is not None else list(map(home.canonical, home.scanned.workers))
    ids: list[str] = []
    problems: list[ProjectError] = []
    for index, export in enumerate(exports):
        with collecting(problems):
            ids += _exported(export, levels, document, index)
    if problems:
        raise together(problems)
    return list(dict.fromkeys(ids))


def _exported(export: str, levels: Sequence[Level], document: Document, index: int) -> list[str]:
    if as_glob(export, levels[0].section.root) is None:
        return [_resolved(export, levels, document, "exports", index)]
    try:
        matched = _matched(export, levels)
    except BadName as error:
        raise document.error(f"{quoted(export)}: {error}", ("exports", index)) from None
    if not matched:
        raise document.error(f"{quoted(export)} matches no worker", ("exports", index))
    return matched


def _matched(export: str, levels: Sequence[Level]) -> list[str]:
    """The ids that a glob matches: one without a library's name is about the first level only."""
    library, colon, rest = export.rpartition(":")
    if library in levels[0].lacking:
        raise NotLookedUp(f"{quoted(export)}: the library {library} could not be had")
    searched = [level for level in levels if level.library == library] if colon else levels[:1]
    pattern = patterns.parse(as_glob(rest, levels[0].section.root) or rest)
    return [
        level.canonical(identifier)
        for level in searched
        for identifier in level.offered(outside=level is not levels[0])
        if patterns.matches(pattern, identifier.split("/"))
    ]


def _resolved(reference: str, levels: Sequence[Level], document: Document, *location: str | int) -> str:
    try:
        return resolve(reference, levels).canonical
    except NotLookedUp:
        raise
    except ProjectError as error:
        raise document.error(error.message, location) from None
