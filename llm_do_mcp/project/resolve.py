"""From a reference to the one file it means.

Workers come from levels: what the reference is used in (the project, or a library), then the libraries that this
depends on. The first level that has the worker wins; two files for one id on the same level are an error. Of a library
that is not the first level only the exported workers are there. An id says where its file lies, so resolving looks at a
handful of places and reads nothing; only a bare last segment (`summarizer` for `reports/summarizer`) has to be searched
for.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from llm_do_mcp.errors import AmbiguousWorker, NotExported, NotLookedUp, WorkerNotFound
from llm_do_mcp.project import references
from llm_do_mcp.project.checked import nearest, quoted
from llm_do_mcp.project.files import ProjectFiles
from llm_do_mcp.project.manifest import WorkersSection
from llm_do_mcp.project.references import Reference, Single
from llm_do_mcp.project.scan import Scan, scan


@dataclass(frozen=True)
class Level:
    """One place that workers come from.

    Args:
        files: Its files.
        section: Where its workers lie.
        library: The library's name, or None for the project itself.
        exports: Ids of the workers of a library that can be called from outside.
        single: The worker's file outside the workers' folder that a project was opened for.
        lacking: Names of the libraries that it needs and that could not be had.
    """

    files: ProjectFiles
    section: WorkersSection
    library: str | None = None
    exports: frozenset[str] = frozenset()
    single: Single | None = None
    lacking: frozenset[str] = frozenset()
    _files: dict[str, Found] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def scanned(self) -> Scan:
        """What lists show of it."""
        return scan(self.files, self.section, self.single)

    def canonical(self, identifier: str) -> str:
        """A worker's id as it is known everywhere: `utils:summarizer` in the library utils."""
        return identifier if self.library is None else f"{self.library}:{identifier}"

    def offered(self, *, outside: bool) -> Collection[str]:
        """The ids of its workers, as far as lists show them, or as others can call them."""
        return sorted(self.exports) if outside else self.scanned.workers

    def parse(self, text: str) -> Reference:
        """A reference that is used on this level.

        Raises:
            InvalidReference: It is of no allowed form.
        """
        return references.parse(text, self.section.root, self.single)

    def find(self, identifier: str) -> Found | None:
        """The worker with an id. One that was found stays where it is, as long as the project is not loaded anew.

        Raises:
            AmbiguousWorker: More than one file claims the id.
            ProjectError: What is in its place is no file.
        """
        if identifier in self._files:
            return self._files[identifier]
        places = references.candidates(identifier, self.section.root, self.single)
        existing = [path for path in places if self.files.kind(path) == "file"]
        if len(existing) > 1:
            message = f"more than one file for worker {identifier!r}: {', '.join(existing)}; keep one"
            raise AmbiguousWorker(message, path=self.files.shown(existing[0]))
        if existing:
            self._files[identifier] = Found(self, identifier, existing[0])
        return self._files.get(identifier)

    def find_bare(self, name: str, *, outside: bool) -> Found | None:
        """The worker whose id ends in a bare name, where there is just one."""
        ids = [identifier for identifier in self.offered(outside=outside) if identifier.endswith(f"/{name}")]
        if len(ids) > 1:
            raise AmbiguousWorker(f"{quoted(name)} may be {' or '.join(ids)}; write the whole id")
        return self.find(ids[0]) if ids else None


@dataclass(frozen=True)
class Found:
    """A worker's file.

    Args:
        level: Where it comes from.
        id: The worker's id there.
        path: Its file, relative to the level.
    """

    level: Level
    id: str
    path: str

    @property
    def canonical(self) -> str:
        """The worker's id as it is known everywhere."""
        return self.level.canonical(self.id)

    @property
    def folder(self) -> str | None:
        """The worker's own folder, which only the directory form has."""
        return references.folder_of(self.path, self.level.section.root)


def resolve(text: str, levels: Sequence[Level]) -> Found:
    """The worker that a reference means.

    Args:
        text: The reference.
        levels: Where to look, in order; the first is where the reference is used.

    Raises:
        InvalidReference: It is of no allowed form.
        AmbiguousWorker: It means more than one worker.
        NotExported: It means one that its library keeps to itself.
        NotLookedUp: It may mean one of a library that could not be had.
        WorkerNotFound: It means none; says where was looked, and what is near.
    """
    home = levels[0]
    reference = home.parse(text)
    if reference.library in home.lacking:
        raise NotLookedUp(f"no worker {quoted(text)}: the library {reference.library} could not be had")
    if reference.library is not None:
        levels = [level for level in levels if level.library == reference.library]
        if not levels:
            raise WorkerNotFound(f"no worker {quoted(text)}: {reference.library!r} is not among the dependencies")
    elif reference.is_path:
        levels = [home]
    kept: Found | None = None
    for level in levels:
        outside = level is not home
        found = level.find(reference.id)
        if found is not None and outside and found.id not in level.exports:
            kept, found = kept or found, None
        if found is None and reference.path is None and "/" not in reference.id:
            found = level.find_bare(reference.id, outside=outside)
        if found is not None and reference.path in (None, found.path):
            return found
    if kept is not None:
        exported = ", ".join(kept.level.offered(outside=True)) or "nothing"
        message = f"worker {quoted(text)} is internal to the library {kept.level.library}, which exports {exported}"
        raise NotExported(message)
    if home.lacking and reference.library is None and not reference.is_path:
        raise NotLookedUp(f"no worker {quoted(text)}, unless in {', '.join(sorted(home.lacking))}")
    raise _not_found(reference, levels, outside=levels[0] is not home)


def _not_found(reference: Reference, levels: Sequence[Level], *, outside: bool) -> WorkerNotFound:
    level, *others = levels
    places = map(level.files.shown, references.candidates(reference.id, level.section.root, level.single))
    searched = reference.path or ", ".join(places)
    searched_too = [other.library for other in others if other.library not in (None, references.BUILT_IN)]
    libraries = f", and in {', '.join(map(str, searched_too))}" if searched_too else ""
    spelled = level.canonical if outside else str
    known = [spelled(identifier) for identifier in level.offered(outside=outside) if identifier != reference.id]
    hint = nearest(spelled(reference.id), known) if len(known) <= 20 else f"{len(known)} workers are known"
    return WorkerNotFound(f"no worker {quoted(reference.text)} (looked for {searched}{libraries}); {hint}")
