"""From the sandbox paths of manifest and worker to the roots that the sandbox works with.

Relative roots start at the project, whatever the working directory. Absolute ones are the manifest's privilege: it is
the one file that says what of the machine a project reaches. Nothing is created here; a writable root that is missing
is made when it is first used.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from llm_do_mcp.errors import ProjectError
from llm_do_mcp.project.checked import quoted
from llm_do_mcp.project.names import slug
from llm_do_mcp.project.paths import project_path
from llm_do_mcp.project.settings import PathSettings, SandboxSettings
from llm_do_mcp.project.strictyaml import Document
from llm_do_mcp.sandbox.patterns import protected_in
from llm_do_mcp.sandbox.root import Root


def problems(
    document: Document, settings: SandboxSettings | None, project: str, *, absolute: bool
) -> Iterator[ProjectError]:
    """What is wrong with the roots of one file.

    Args:
        document: The file, for the places.
        settings: Its `sandbox`.
        project: The project's folder, without links.
        absolute: Whether roots outside the project may be named.
    """
    if settings is None:
        return
    for alias in document.data["sandbox"].get("paths") or ():
        root = settings.paths[slug(alias)].root
        if complaint := _complaint(root, project, absolute=absolute):
            location = ("sandbox", "paths", alias, "root")
            yield document.error(f"sandbox.paths.{alias}: {complaint}", location)


def roots(settings: Mapping[str, PathSettings], project: str, protected: Iterable[str]) -> tuple[Root, ...]:
    """The roots for checked settings, in the order of their aliases.

    Args:
        settings: alias → settings, manifest and worker merged.
        project: The project's folder, without links.
        protected: Patterns, relative to the project, of what cannot be written.
    """
    return tuple(_root(alias, settings[alias], project, tuple(protected)) for alias in sorted(settings))


def _root(alias: str, settings: PathSettings, project: str, protected: tuple[str, ...]) -> Root:
    path = _place(settings.root, project)
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
    inside = place == project or place.startswith(os.path.join(project, ""))
    if not inside and not _is_absolute(root):
        return f"{quoted(root)} is a link out of the project; name the folder itself in the manifest"
    return f"{quoted(root)} is not a folder" if os.path.lexists(place) and not os.path.isdir(place) else None


def _is_absolute(root: str) -> bool:
    return root.startswith("~") or os.path.isabs(root)


def _place(root: str, project: str) -> str:
    return os.path.realpath(os.path.join(project, os.path.expanduser(root)))
