"""What a project and its libraries are to each other: which there are, what they are given, what they start from."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from llm_do_mcp.errors import InvalidFile, ProjectError
from llm_do_mcp.project import roots, toolmodules
from llm_do_mcp.project.build import Defaults
from llm_do_mcp.project.checked import nearest, quoted
from llm_do_mcp.project.library import Library, Spec, closure
from llm_do_mcp.project.libslock import LibsLock
from llm_do_mcp.project.manifest import Manifest
from llm_do_mcp.project.names import slug
from llm_do_mcp.project.protected import protected_patterns
from llm_do_mcp.project.settings import SandboxSettings, narrowed
from llm_do_mcp.project.strictyaml import Document
from llm_do_mcp.sandbox.root import Root


def libraries(
    name: str, document: Document, manifest: Manifest, where: Sequence[str], lock: LibsLock | None
) -> dict[str, Library]:
    """The libraries that a project needs, by their names.

    Args:
        name: The project's name.
        document: Its manifest's file, for the place of what is wrong with the libraries as a whole.
        manifest: Its manifest.
        where: The places that are searched.
        lock: What they are held to; None where they may be as they are.

    Raises:
        ProjectError: As for `library.closure`.
    """
    if not manifest.dependencies:
        return {}
    try:
        found = closure(name, manifest.dependencies, where, lock.library if lock is not None else lambda name: None)
    except ProjectError as error:
        if error.path is not None:
            raise
        place = document.place(("dependencies",))
        raise type(error)(error.message, path=document.path, line=place.line, column=place.column) from None
    return {library.name: library for library in found}


def direct(manifest: Manifest) -> tuple[str, ...]:
    """The names of the libraries that a project itself depends on, in their order; they have been found."""
    return tuple(dict.fromkeys(Spec.parse(text).name for text in manifest.dependencies))


def tool_modules(own: Iterable[str], needed: Iterable[str], found: Mapping[str, Library]) -> tuple[str, ...]:
    """The tool modules for all workers of a project or library: its own, then those of what it depends on."""
    return toolmodules.nearest_first(own, *(found[name].tool_modules for name in needed))


def defaults(library: Library, found: Mapping[str, Library], project: Defaults, own: Iterable[Root]) -> Defaults:
    """What a library's workers start from.

    Args:
        library: The library.
        found: All libraries of the project.
        project: What the project's workers start from.
        own: The roots of the project's manifest.
    """
    manifest = project.manifest
    granted = {slug(alias) for alias in manifest.grants.get(library.name, ())}
    named = manifest.sandbox.paths if manifest.sandbox is not None else {}
    return replace(
        project,
        root=library.root,
        manifest=library.manifest,
        document=library.document,
        tool_modules=tool_modules(library.tool_modules, library.dependencies, found),
        protected=protected_patterns(library.manifest, project.module_imports),
        model=manifest.model or project.model,
        approvals=(*project.approvals, *library.manifest.approvals),
        limits=narrowed(manifest.limits, library.manifest.limits),
        network_enabled=manifest.sandbox is None or manifest.sandbox.network_enabled is not False,
        granted={root.alias: root for root in own if root.alias in granted},
        grants=SandboxSettings(paths={alias: settings for alias, settings in named.items() if alias in granted}),
    )


def check(
    document: Document,
    manifest: Manifest,
    own: Sequence[Root],
    found: Mapping[str, Library],
    lacking: Collection[str] = (),
) -> None:
    """Check that what is granted exists, and that the manifest's folders lead no worker into a library.

    Args:
        document: The manifest's file.
        manifest: The manifest.
        own: Its roots.
        found: The libraries.
        lacking: Names of those that could not be had.

    Raises:
        InvalidFile: With every place where that is not so.
    """
    problems = []
    aliases = {root.alias: root for root in own}
    for name, granted in manifest.grants.items():
        if name not in found and name not in lacking:
            message = f"{quoted(name)} is not a library of this project; {nearest(name, (*found, *lacking))}"
            problems.append(document.error(message, ("grants", name), of_key=True))
        for index, alias in enumerate(granted):
            if slug(alias) not in aliases:
                message = f"{quoted(alias)} is not in the manifest's sandbox.paths; {nearest(alias, aliases)}"
                problems.append(document.error(message, ("grants", name, index)))
    folders = {library.name: library.root for library in found.values()}
    for alias, complaint in roots.reached(own, folders):
        problems.append(document.error(f"sandbox.paths.{alias}: {complaint}", ("sandbox", "paths", alias)))
    if problems:
        raise InvalidFile(problems)
