"""From the sandbox paths of manifest and worker to the roots that the sandbox works with.

Relative roots start at the project, whatever the working directory. Absolute ones are the manifest's privilege: it is
the one file that says what of the machine a project reaches. Nothing is created here; a writable root that is missing
is made when it is first used.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace

from llm_do_mcp.errors import ProjectError
from llm_do_mcp.project.checked import quoted
from llm_do_mcp.project.names import slug
from llm_do_mcp.project.paths import project_path
from llm_do_mcp.project.protected import AS_A_WHOLE
from llm_do_mcp.project.settings import PathSettings, SandboxSettings
from llm_do_mcp.project.strictyaml import Document
from llm_do_mcp.sandbox.names import below, fold, is_below
from llm_do_mcp.sandbox.patterns import protected_in
from llm_do_mcp.sandbox.root import STATE_FOLDER, Root

PRIVATE = frozenset({STATE_FOLDER, ".git"})
"""Folders of a project that are nobody's data: its record of runs, and its history."""


def problems(
    document: Document,
    settings: SandboxSettings | None,
    project: str,
    *,
    absolute: bool,
    inherited: Container[str] = (),
) -> Iterator[ProjectError]:
    """What is wrong with the roots of one file.

    Args:
        document: The file, for the places.
        settings: Its `sandbox`.
        project: The project's folder, without links.
        absolute: Whether roots outside the project may be named.
        inherited: Aliases that have a root already.
    """
    if settings is None or not isinstance(written := document.data["sandbox"].get("paths"), Mapping):
        return
    yield from clashes(document, settings)
    for alias, said in written.items():
        root = said.get("root") if isinstance(said, Mapping) else str(said).partition(":")[2] or None
        if isinstance(said, Mapping) and "root" not in said and slug(alias) not in inherited:
            yield document.error("key 'root' is missing", ("sandbox", "paths", alias))
        if not isinstance(root, str):  # its form is wrong, which is told with all keys
            continue
        if complaint := _complaint(root, project, absolute=absolute):
            location = ("sandbox", "paths", alias, "root")
            yield document.error(f"sandbox.paths.{alias}: {complaint}", location)


def clashes(document: Document, settings: SandboxSettings | None) -> Iterator[ProjectError]:
    """The aliases of one file of which another one has the slug. Arguments as for `problems`."""
    written = () if settings is None else document.data["sandbox"].get("paths")
    slugs: dict[str, str] = {}
    for alias in written if isinstance(written, Mapping) else ():
        if (other := slugs.setdefault(slug(alias), alias)) != alias:
            message = f"aliases {quoted(other)} and {quoted(alias)} are both {slug(alias)!r} in tool names; rename one"
            yield document.error(message, ("sandbox", "paths", alias), of_key=True)


def roots(settings: Mapping[str, PathSettings], project: str, protected: Iterable[str]) -> tuple[Root, ...]:
    """The roots for checked settings, in the order of their aliases.

    Args:
        settings: alias → settings, manifest and worker merged.
        project: The project's folder, without links.
        protected: Patterns, relative to the project, of what cannot be written.
    """
    return tuple(_root(alias, settings[alias], project, tuple(protected)) for alias in sorted(settings))


def of_library(
    asked: Mapping[str, PathSettings], granted: Mapping[str, Root], library: str
) -> Iterator[tuple[str, Root | str]]:
    """The roots of a library's worker: what the project grants it, and the library's own data, which is only read.

    What was granted is the project's folder on the project's terms; the library can ask for less of it, never for more.

    Args:
        asked: alias → settings, as the library's files have them.
        granted: alias → the project's root.
        library: The library's folder, without links.

    Yields:
        Each alias with its root, or with what is wrong with it.
    """
    for alias in sorted({*asked, *granted}):
        settings = asked.get(alias)
        if settings is None:
            yield alias, granted[alias]
        elif alias in granted:
            yield alias, _narrowed(granted[alias], settings)
        elif not settings.root:
            yield alias, "key 'root' is missing"
        elif settings.mode != "ro" or _is_absolute(settings.root):
            yield alias, f"{settings.mode} {quoted(settings.root)} is not a library's to name"
        else:
            yield alias, _complaint(settings.root, library, absolute=False) or _root(alias, settings, library, ())


def _narrowed(granted: Root, asked: PathSettings) -> Root | str:
    if asked.mode not in ("ro", granted.mode):
        return f"asks for {asked.mode}, and the project grants {granted.mode}"
    suffixes = granted.suffixes
    if asked.suffixes is not None:
        suffixes = tuple(suffix for suffix in asked.suffixes if suffixes is None or suffix in suffixes)
    return replace(
        granted,
        mode=asked.mode,
        suffixes=suffixes,
        max_file_bytes=min(granted.max_file_bytes, asked.max_file_bytes or granted.max_file_bytes),
        read_approval=granted.read_approval or asked.read_approval,
        write_approval=True if asked.write_approval else granted.write_approval,
    )


def reached(found: Iterable[Root], libraries: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The roots through which a worker could write into a library, which is code: alias, and what is wrong.

    Args:
        found: The roots.
        libraries: Name → folder.
    """
    for root in found:
        for name, folder in libraries.items():
            if root.mode != "ro" and (is_below(folder, root.path) or is_below(root.path, folder)):
                yield root.alias, f"through it the library {name} could be written; name another folder, or mode: ro"


def _root(alias: str, settings: PathSettings, project: str, protected: tuple[str, ...]) -> Root:
    path = _place(settings.root, project)
    if is_below(project, path):
        protected = (*protected, *AS_A_WHOLE)
    root = Root(
        alias=alias,
        path=path,
        mode=settings.mode,
        suffixes=settings.suffixes,
        read_approval=settings.read_approval,
        write_approval=settings.write_approval,
        protected=() if settings.mode == "ro" else protected_in(path, project, protected),
    )
    return root if settings.max_file_bytes is None else replace(root, max_file_bytes=settings.max_file_bytes)


def _complaint(root: str, project: str, *, absolute: bool) -> str | None:
    if _is_absolute(root):
        if not absolute:
            return f"{quoted(root)} lies outside the project; only the manifest can name such a folder"
    else:
        try:
            project_path(root)
        except ValueError as error:
            return str(error)
    place = _place(root, project)
    inside = below(place, project)
    if inside is None and not _is_absolute(root):
        return f"{quoted(root)} is a link out of the project; name the folder itself in the manifest"
    if PRIVATE & {*map(fold, inside or ())}:
        return f"{quoted(root)} lies in {' or '.join(sorted(PRIVATE))}, which no worker can reach; name another folder"
    return f"{quoted(root)} is not a folder" if os.path.lexists(place) and not os.path.isdir(place) else None


def _is_absolute(root: str) -> bool:
    return root.startswith("~") or os.path.isabs(root)


def _place(root: str, project: str) -> str:
    return os.path.realpath(os.path.join(project, os.path.expanduser(root)))
