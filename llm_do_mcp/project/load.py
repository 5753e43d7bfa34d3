"""A project: a folder of workers, loaded as plain data.

Loading reads the manifest and looks where things are; a worker's file is read when the worker is first asked for. What
is wrong with the manifest, or with the project as a whole, stops the loading. What is wrong with one worker disables
that worker: asking for it raises, and `Project.broken` lists it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from llm_do_mcp.errors import InvalidFile, ProjectError
from llm_do_mcp.project import roots, strictyaml, toolmodules
from llm_do_mcp.project.build import Defaults, build
from llm_do_mcp.project.checked import check, quoted
from llm_do_mcp.project.effective import Worker
from llm_do_mcp.project.files import ProjectFiles, decode
from llm_do_mcp.project.manifest import MANIFEST_NAMES, Manifest
from llm_do_mcp.project.names import published_name
from llm_do_mcp.project.protected import protected_patterns
from llm_do_mcp.project.references import MAIN, MAIN_FILE, SUFFIXES, as_glob, id_of
from llm_do_mcp.project.resolve import Found, Level, resolve
from llm_do_mcp.project.scan import Scan
from llm_do_mcp.project.strictyaml import Document
from llm_do_mcp.sandbox import patterns
from llm_do_mcp.sandbox.names import BadName
from llm_do_mcp.sandbox.root import Root


@dataclass(frozen=True)
class Project:
    """A project, as it was when it was loaded.

    Args:
        root: Its folder, absolute and without links.
        given: What was named to load it: that folder, or a worker's file, absolute.
        alone: That file was taken by itself, without the project around it.
        name: The manifest's name, else the folder's.
        manifest: The manifest; all defaults where there is none.
        manifest_path: The manifest's file, relative to the project, or None.
        entry: Id of the worker that stands for the project, or None.
        exports: Published name → id of the workers that are published; the entry worker bears the project's name.
    """

    root: str
    given: str
    alone: bool
    name: str
    manifest: Manifest
    manifest_path: str | None
    entry: str | None
    exports: Mapping[str, str]
    defaults: Defaults = field(repr=False)
    levels: tuple[Level, ...] = field(repr=False)
    _loaded: dict[str, Worker | ProjectError] = field(default_factory=dict, repr=False, compare=False)

    def worker(self, reference: str) -> Worker:
        """The worker that a reference means.

        Args:
            reference: `reports/summarizer`, `./workers/reports/summarizer.worker`, or `summarizer` where that is
                the last segment of just one id.

        Raises:
            InvalidReference, AmbiguousWorker, WorkerNotFound: The reference means no worker.
            ProjectError: The worker is broken; `InvalidFile` has all that is wrong with it.
        """
        found = resolve(reference, self.levels)
        loaded = self._loaded.get(found.id)
        if loaded is None:
            loaded = self._loaded[found.id] = self._load(found)
        if isinstance(loaded, ProjectError):
            raise loaded.with_traceback(None)
        return loaded

    def exported(self) -> tuple[Worker, ...]:
        """The published workers that are whole, in the order of their names."""
        return tuple(worker for worker in map(self._whole, self.exports.values()) if worker is not None)

    def scan(self) -> Scan:
        """All workers that lists show, whether whole or not."""
        return self.levels[0].scanned

    @cached_property
    def broken(self) -> tuple[ProjectError, ...]:
        """Everything that is wrong with single workers. Reads all of them."""
        for identifier in {**self.scan().workers, **dict.fromkeys(self.exports.values())}:
            self._whole(identifier)
        errors = [loaded for loaded in self._loaded.values() if isinstance(loaded, ProjectError)]
        single = [p for error in errors for p in (error.problems if isinstance(error, InvalidFile) else (error,))]
        return (*self.scan().problems, *single)

    @cached_property
    def roots(self) -> tuple[Root, ...]:
        """The manifest's own roots, for whoever reaches them without a worker in between."""
        settings = self.manifest.sandbox
        return roots.roots(settings.paths, self.root, self.defaults.protected) if settings is not None else ()

    def _whole(self, identifier: str) -> Worker | None:
        try:
            return self.worker(identifier)
        except ProjectError as error:
            self._loaded.setdefault(identifier, error)
            return None

    def _load(self, found: Found) -> Worker | ProjectError:
        try:
            return build(found, self.levels, self.defaults)
        except ProjectError as error:
            return error


def load_project(
    path: str | os.PathLike[str], *, no_project: bool = False, default_model: str | None = None
) -> Project:
    """Load the project in a folder, or the one that a worker's file belongs to.

    Args:
        path: A folder, or a worker's file, which is then the entry.
        no_project: Take a worker's file by itself: its folder is the root, and there is no manifest.
        default_model: The model of workers where neither they nor the manifest name one.

    Raises:
        ProjectError: There is no project, or something is wrong with it as a whole.
    """
    given = os.path.realpath(path)
    shown = os.fspath(path)
    if os.path.isdir(given):
        root, file = given, None
        if no_project:
            raise ProjectError(f"{quoted(shown)} is a folder; --no-project takes a worker's file")
    elif not os.path.lexists(given):
        raise ProjectError(f"there is no {quoted(shown)}; name a project's folder or a worker's file")
    elif not given.endswith(SUFFIXES):
        raise ProjectError(f"{quoted(shown)} is neither a folder nor a worker's file ({', '.join(SUFFIXES)})")
    else:
        root = os.path.dirname(given) if no_project else _root_of(given)
        file = os.path.relpath(given, root).replace(os.sep, "/")
    files = ProjectFiles(root)
    document = None if no_project else _manifest_document(files)
    manifest = check(Manifest, document) if document is not None else Manifest()
    anything = file is not None or document is not None
    if not anything and not any(map(files.kind, (MAIN_FILE, manifest.workers.root))):
        raise ProjectError(f"no project in {quoted(shown)}: no {MAIN_FILE}, no {MANIFEST_NAMES[0]} and no workers/")
    return _assemble(root, file, files, document, manifest, default_model, alone=no_project)


def _root_of(file: str) -> str:
    """The folder of the project that a worker's file belongs to."""
    folder = os.path.dirname(file)
    ancestor = folder
    while True:
        if any(os.path.lexists(os.path.join(ancestor, name)) for name in (*MANIFEST_NAMES, MAIN_FILE)):
            return ancestor
        above = os.path.dirname(ancestor)
        if above == ancestor:
            break
        ancestor = above
    parts = folder.split(os.sep)
    return os.sep.join(parts[: len(parts) - 1 - parts[::-1].index("workers")]) if "workers" in parts else folder


def _manifest_document(files: ProjectFiles) -> Document | None:
    names = [name for name in MANIFEST_NAMES if files.kind(name) is not None]
    if len(names) > 1:
        raise ProjectError(f"{' and '.join(names)} are two names of one file, the manifest; keep one", path=names[1])
    return strictyaml.load(decode(files.read_bytes(names[0]), names[0]), path=names[0]) if names else None


def _assemble(
    root: str,
    file: str | None,
    files: ProjectFiles,
    document: Document | None,
    manifest: Manifest,
    model: str | None,
    *,
    alone: bool,
) -> Project:
    inside = file is None or file == MAIN_FILE or file.startswith(f"{manifest.workers.root}/")
    level = Level(files, manifest.workers, single=None if inside else file)
    if document is not None:
        _check_manifest(document, manifest, files, root)
    entry, exports = _entry(level, file, document, manifest), manifest.exports
    name = manifest.name or os.path.basename(root) or "project"
    ids = _exported(level, entry, document, exports)
    defaults = Defaults(
        root=root,
        manifest=manifest,
        tool_modules=toolmodules.of_project(files, manifest.tools),
        protected=protected_patterns(manifest),
        model=model,
    )
    return Project(
        root=root,
        given=root if file is None else os.path.join(root, file),
        alone=alone,
        name=name,
        manifest=manifest,
        manifest_path=document.path if document else None,
        entry=entry,
        exports=_published(name, entry, ids),
        defaults=defaults,
        levels=(level,),
    )


def _check_manifest(document: Document, manifest: Manifest, files: ProjectFiles, root: str) -> None:
    """What the keys' own form does not show."""
    problems = list(roots.problems(document, manifest.sandbox, root, absolute=True))
    if manifest.dependencies:
        problems.append(document.error("libraries are not supported yet", ("dependencies",)))
    for index, module in enumerate(manifest.tools.modules):
        if wrong := toolmodules.reference_problem(module, files, lambda path: True):
            problems.append(document.error(wrong, ("tools", "modules", index)))
    if problems:
        raise InvalidFile(problems)


def _entry(level: Level, file: str | None, document: Document | None, manifest: Manifest) -> str | None:
    if file is not None:
        identifier = id_of(file, level.section.root, level.single)
        if identifier is None:
            raise ProjectError("not a name for a worker; allowed are letters, digits, _ and -", path=file)
        found = level.find(identifier)
        return found.id if found is not None else identifier
    if document is not None and manifest.entry is not None:
        return _resolved(manifest.entry, level, document, "entry")
    return MAIN if level.files.kind(MAIN_FILE) is not None else None


def _exported(level: Level, entry: str | None, document: Document | None, exports: tuple[str, ...] | None) -> list[str]:
    """The ids of the published workers."""
    if document is None or exports is None:
        return [entry] if entry is not None else list(level.scanned.workers)
    ids: list[str] = []
    for index, export in enumerate(exports):
        if (glob := as_glob(export, level.section.root)) is not None:
            try:
                pattern = patterns.parse(glob)
            except BadName as error:
                raise document.error(f"{quoted(export)}: {error}", ("exports", index)) from None
            matched = [i for i in level.scanned.workers if patterns.matches(pattern, i.split("/"))]
            if not matched:
                raise document.error(f"{quoted(export)} matches no worker", ("exports", index))
            ids += matched
        else:
            ids.append(_resolved(export, level, document, "exports", index))
    return list(dict.fromkeys(ids))


def _resolved(reference: str, level: Level, document: Document, *location: str | int) -> str:
    try:
        return resolve(reference, (level,)).id
    except ProjectError as error:
        raise document.error(error.message, location) from None


def _published(project: str, entry: str | None, ids: list[str]) -> dict[str, str]:
    """Published name → id.

    Raises:
        ProjectError: Two workers would have one name, or one would have none.
    """
    names: dict[str, str] = {}
    for identifier in ids:
        name = published_name(project if identifier == entry else identifier) or published_name(identifier)
        if name in names:
            both = f"{names[name]!r} and {identifier!r}"
            raise ProjectError(f"workers {both} would both be published as {name!r}; rename one")
        names[name] = identifier
    return names
