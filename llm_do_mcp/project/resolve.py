"""From a reference to the one file it means.

Workers come from levels: the project, then its libraries. The first level that has the worker wins; two files for one
id on the same level are an error. An id says where its file lies, so resolving looks at a handful of places and reads
nothing; only a bare last segment (`summarizer` for `reports/summarizer`) has to be searched for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from llm_do_mcp.errors import AmbiguousWorker, WorkerNotFound
from llm_do_mcp.project import references
from llm_do_mcp.project.checked import nearest, quoted
from llm_do_mcp.project.files import ProjectFiles
from llm_do_mcp.project.manifest import WorkersSection
from llm_do_mcp.project.references import Reference
from llm_do_mcp.project.scan import Scan, scan


@dataclass(frozen=True)
class Level:
    """One place that workers come from.

    Args:
        files: Its files.
        section: Where its workers lie.
        library: Its name, or None for the project itself.
        single: The file of a project that was opened for one worker's file outside the workers' folder.
    """

    files: ProjectFiles
    section: WorkersSection
    library: str | None = None
    single: str | None = None

    @cached_property
    def scanned(self) -> Scan:
        """What lists show of it."""
        return scan(self.files, self.section, self.single)

    def parse(self, text: str) -> Reference:
        """A reference that is used on this level.

        Raises:
            InvalidReference: It is of no allowed form.
        """
        return references.parse(text, self.section.root, self.single)

    def find(self, identifier: str) -> Found | None:
        """The worker with an id.

        Raises:
            AmbiguousWorker: More than one file claims the id.
            ProjectError: What is in its place is no file.
        """
        places = references.candidates(identifier, self.section.root, self.single)
        existing = [path for path in places if self.files.kind(path) == "file"]
        if len(existing) > 1:
            message = f"more than one file for worker {identifier!r}: {', '.join(existing)}; keep one"
            raise AmbiguousWorker(message, path=existing[0])
        return Found(self, identifier, existing[0]) if existing else None

    def find_bare(self, name: str) -> Found | None:
        """The worker whose id ends in a bare name, where there is just one."""
        ids = [identifier for identifier in self.scanned.workers if identifier.endswith(f"/{name}")]
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
        WorkerNotFound: It means none; says where was looked, and what is near.
    """
    home = levels[0]
    reference = home.parse(text)
    if reference.library is not None:
        levels = [level for level in levels if level.library == reference.library]
        if not levels:
            raise WorkerNotFound(f"no worker {quoted(text)}: {reference.library!r} is not among the dependencies")
    for level in levels:
        found = level.find(reference.id)
        if found is None and reference.path is None and "/" not in reference.id:
            found = level.find_bare(reference.id)
        if found is not None and reference.path in (None, found.path):
            return found
    raise _not_found(reference, levels[0])


def _not_found(reference: Reference, level: Level) -> WorkerNotFound:
    places = references.candidates(reference.id, level.section.root, level.single)
    searched = reference.path or ", ".join(places)
    known = [identifier for identifier in level.scanned.workers if identifier != reference.id]
    hint = nearest(reference.id, known) if len(known) <= 20 else f"{len(known)} workers are known"
    return WorkerNotFound(f"no worker {quoted(reference.text)} (looked for {searched}); {hint}")
