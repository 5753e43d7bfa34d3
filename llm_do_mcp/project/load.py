"""A project: a folder of workers, loaded as plain data.

Loading reads the manifest and looks where things are; a worker's file is read when the worker is first asked for. What
is wrong with the manifest, or with the project as a whole, stops the loading. What is wrong with one worker disables
that worker: asking for it raises, and `Project.broken` lists it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

from llm_do_mcp.errors import InvalidFile, NotLookedUp, ProjectError
from llm_do_mcp.project import builtin, dependencies, exports, libslock, roots, strictyaml, toolmodules
from llm_do_mcp.project.build import Defaults, build
from llm_do_mcp.project.checked import collecting, in_order, quoted, together
from llm_do_mcp.project.classes import ClassSchemas
from llm_do_mcp.project.effective import Worker
from llm_do_mcp.project.files import ProjectFiles, decode
from llm_do_mcp.project.hosting import NO_IMPORT_TOOLS, Hosting, PythonOptions
from llm_do_mcp.project.library import LIBRARY_FILE, Library, manifest_of, places
from llm_do_mcp.project.manifest import MANIFEST_NAMES, Manifest
from llm_do_mcp.project.names import published_name
from llm_do_mcp.project.protected import protected_patterns
from llm_do_mcp.project.references import BUILT_IN, MAIN_FILE, SUFFIXES, Single, id_of
from llm_do_mcp.project.resolve import Found, Level, resolve
from llm_do_mcp.project.scan import Scan
from llm_do_mcp.project.seen import Seen
from llm_do_mcp.project.strictyaml import Document
from llm_do_mcp.sandbox.root import STATE_FOLDER, Root


@dataclass(frozen=True)
class Project:
    """A project, as it was when it was loaded.

    Args:
        root: Its folder, absolute and without links.
        given: What was named to load it: that folder, or a worker's file, absolute.
        alone: That file was taken by itself, without the project around it.
        libs: Folders in which libraries were looked for first, absolute.
        python: What the command line says of its Python.
        name: The manifest's name, else the folder's.
        manifest: The manifest; all defaults where there is none.
        manifest_path: The manifest's file, relative to the project, or None.
        entry: Id of the worker that stands for the project, or None.
        libraries: Name → library, of all that it needs, also through other libraries.
        exports: Published name → id of the workers that are published; the entry worker bears the project's name.
        hosting: How its Python is run.
        again: Loads it anew, as it is on disk by then.
    """

    root: str
    given: str
    alone: bool
    libs: tuple[str, ...]
    python: PythonOptions
    name: str
    manifest: Manifest
    manifest_path: str | None
    entry: str | None
    exports: Mapping[str, str]
    libraries: Mapping[str, Library]
    defaults: Defaults = field(repr=False)
    levels: tuple[Level, ...] = field(repr=False)
    hosting: Hosting = field(repr=False)
    again: Callable[[], Project] = field(repr=False, compare=False)
    _found: dict[tuple[str | None, str], Found] = field(default_factory=dict, repr=False, compare=False)
    _loaded: dict[str, Worker | ProjectError] = field(default_factory=dict, repr=False, compare=False)
    _closures: dict[str, tuple[Worker, ...]] = field(default_factory=dict, repr=False, compare=False)
    _library_defaults: dict[str, Defaults] = field(default_factory=dict, repr=False, compare=False)

    def worker(self, reference: str, *, from_library: str | None = None) -> Worker:
        """The worker that a reference means.

        Args:
            reference: `reports/summarizer`, `./workers/reports/summarizer.worker`, or `summarizer` where that is
                the last segment of just one id; `utils:summarizer` in a library.
            from_library: The library whose worker uses the reference; None for the project itself.

        Raises:
            InvalidReference, AmbiguousWorker, WorkerNotFound: The reference means no worker.
            ProjectError: The worker is broken; `InvalidFile` has all that is wrong with it.
        """
        found = self._found.get((from_library, reference))
        if found is None:
            found = self._found[from_library, reference] = resolve(reference, self.levels_of(from_library))
        loaded = self._loaded.get(found.canonical)
        if loaded is None:
            loaded = self._loaded[found.canonical] = self._load(found)
        if isinstance(loaded, ProjectError):
            raise loaded.with_traceback(None)
        return loaded

    def closure(self, worker: Worker) -> tuple[Worker, ...]:
        """A worker and all that it, and those, import or may call by name; each once, and loaded by now.

        Nothing is scanned for it, and a broken worker stops nobody: it is told of when it is called.
        """
        if worker.id not in self._closures:
            found, todo = {worker.id: worker}, [worker]
            while todo:
                above = todo.pop()
                for name in (*above.imports, *(above.allow_workers or ())):
                    with contextlib.suppress(ProjectError):  # a glob is none of these, and names no worker
                        below = self.worker(name, from_library=above.library)
                        if below.id not in found:
                            found[below.id] = below
                            todo.append(below)
            self._closures[worker.id] = tuple(found.values())
        return self._closures[worker.id]

    def unlisted(self, identifier: str, content: str) -> Worker:
        """A worker whose file is not among the project's, with the project's defaults.

        Args:
            identifier: Its id.
            content: Its file; what that refers to starts at the project's root.

        Raises:
            ProjectError: Something in the file cannot be used.
        """
        found = Found(self.levels[0], identifier, f"{identifier}{SUFFIXES[0]}")
        return build(found, self.levels, self.defaults, content.encode())

    def changed(self) -> bool:
        """Whether loading would find something else by now: a file, a new one, one that is gone."""
        return any(seen.changed() for seen in self._seen())

    def folders(self) -> set[str]:
        """The folders in which a change could make `changed` true: absolute paths."""
        return {folder for seen in self._seen() for folder in seen.folders}

    def _seen(self) -> Iterator[Seen]:
        return (files.seen for files in (self.levels[0].files, *(library.files for library in self.libraries.values())))

    def levels_of(self, library: str | None) -> tuple[Level, ...]:
        """Where references are looked up: in the project or library that they are used in, and what it depends on."""
        if library is None:
            return self.levels
        home = self._library(library)
        return _levels(home.level, home.dependencies, self.libraries)

    def within_reach(self, library: str | None) -> Iterator[str]:
        """The ids of the workers that can be called there, as far as lists show them; policy may allow fewer."""
        home, *others = self.levels_of(library)
        for level in (home, *others):
            yield from map(level.canonical, level.offered(outside=level is not home))

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
            library = found.level.library
            return build(found, self.levels_of(library), self.defaults_of(library))
        except ProjectError as error:
            return error

    def defaults_of(self, name: str | None) -> Defaults:
        """What the workers of the project, or of a library, start from."""
        if name is None:
            return self.defaults
        if name not in self._library_defaults:
            made = dependencies.defaults(self._library(name), self.libraries, self.defaults, self.roots)
            self._library_defaults[name] = made
        return self._library_defaults[name]

    def _library(self, name: str) -> Library:
        if name in self.levels[0].lacking:
            raise NotLookedUp(f"the library {name} could not be had")
        return builtin.library() if name == BUILT_IN else self.libraries[name]


def load_project(
    path: str | os.PathLike[str],
    *,
    no_project: bool = False,
    default_model: str | None = None,
    libs: Sequence[str] = (),
    locked: bool = True,
    python: PythonOptions = PythonOptions(),  # noqa: B008  # frozen
    tolerated: list[ProjectError] | None = None,
) -> Project:
    """Load the project in a folder, or the one that a worker's file belongs to.

    Args:
        path: A folder, or a worker's file, which is then the entry.
        no_project: Take a worker's file by itself: its folder is the root, and there is no manifest.
        default_model: The model of workers where neither they nor the manifest name one.
        libs: Folders in which libraries are looked for first.
        locked: Hold the libraries to `libs.lock`, where there is one.
        python: What may be done with the project's Python.
        tolerated: Where what is wrong with the project as a whole is put instead of raised, as long as something can
            be loaded: for `check`, which looks at the workers all the same.

    Raises:
        UsageError: A folder of libraries that cannot be used.
        ProjectError: There is no project, or something is wrong with it as a whole.
    """
    options = _Options(no_project, default_model, tuple(libs), locked, python)
    problems: list[ProjectError] = []
    again = partial(load_project, os.path.abspath(path), **vars(options))
    project = _assemble(_place(path, no_project=no_project), options, again, problems)
    if tolerated is not None:
        tolerated += problems
    elif problems:
        raise together(problems)
    return project


@dataclass(frozen=True)
class _Options:
    """How a project is loaded: arguments of `load_project`, by their names there."""

    no_project: bool
    default_model: str | None
    libs: tuple[str, ...]
    locked: bool
    python: PythonOptions


@dataclass(frozen=True)
class _Place:
    """Where a project lies, and what its manifest says.

    Args:
        files: Its files.
        file: The worker's file that was named, relative to it; None where the folder was.
        document: The manifest's file, or None.
        manifest: The manifest; all defaults where there is none.
    """

    files: ProjectFiles
    file: str | None
    document: Document | None
    manifest: Manifest

    @property
    def root(self) -> str:
        return self.files.root

    @property
    def name(self) -> str:
        return self.manifest.name or os.path.basename(self.root) or "project"


def _place(path: str | os.PathLike[str], *, no_project: bool) -> _Place:
    """The project around what was named.

    Raises:
        ProjectError: There is none, or its manifest cannot be used.
    """
    given = os.path.realpath(path)
    shown = quoted(os.fspath(path), most=4_096)  # a path that is cut leads nowhere
    if os.path.isdir(given):
        root, file = given, None
        if no_project:
            raise ProjectError(f"{shown} is a folder; --no-project takes a worker's file")
    elif not os.path.lexists(given):
        raise ProjectError(f"there is no {shown}; name a project's folder or a worker's file")
    elif not given.endswith(SUFFIXES):
        raise ProjectError(f"{shown} is neither a folder nor a worker's file ({', '.join(SUFFIXES)})")
    else:
        root = os.path.dirname(given) if no_project else _root_of(given)
        file = os.path.relpath(given, root).replace(os.sep, "/")
    files = ProjectFiles(root)
    document = None if no_project else _manifest_document(files)
    manifest = Manifest()
    if document is not None:
        manifest, wrong = manifest_of(document)
        if wrong:
            wrong += roots.problems(document, manifest.sandbox, files.root, absolute=True)
            raise InvalidFile(in_order(wrong))
    anything = file is not None or document is not None
    if not anything and not any(map(files.kind, (MAIN_FILE, manifest.workers.root))):
        raise ProjectError(f"no project in {shown}: no {MAIN_FILE}, no {MANIFEST_NAMES[0]} and no workers/")
    return _Place(files, file, document, manifest)


def _root_of(file: str) -> str:
    """The folder of the project that a worker's file belongs to."""
    folder = os.path.dirname(file)
    ancestor = folder
    while True:
        if any(os.path.lexists(os.path.join(ancestor, name)) for name in (*MANIFEST_NAMES, LIBRARY_FILE, MAIN_FILE)):
            return ancestor
        above = os.path.dirname(ancestor)
        if above == ancestor:
            break
        ancestor = above
    parts = folder.split(os.sep)
    if "workers" not in parts:
        return folder
    above = os.sep.join(parts[: len(parts) - 1 - parts[::-1].index("workers")])
    return folder if os.path.basename(above) == STATE_FOLDER else above  # `~/.llm-do` has more than workers in it


def _manifest_document(files: ProjectFiles) -> Document | None:
    names = [name for name in MANIFEST_NAMES if files.kind(name) is not None]
    if len(names) > 1:
        raise ProjectError(f"{' and '.join(names)} are two names of one file, the manifest; keep one", path=names[1])
    if not names and files.kind(LIBRARY_FILE) is not None:  # a library, looked at by itself
        names = [LIBRARY_FILE]
    return strictyaml.load(decode(files.read_bytes(names[0]), names[0]), path=names[0]) if names else None


def _assemble(place: _Place, options: _Options, again: Callable[[], Project], problems: list[ProjectError]) -> Project:
    """Put a project together; what is wrong with it is added to the problems.

    Where its libraries cannot be had, it goes without them, and nothing is said of what may be in them.
    """
    files, document, manifest, python = place.files, place.document, place.manifest, options.python
    module_imports = python.module_imports or manifest.tools.allow_module_imports
    problems += _manifest_problems(place, module_imports)
    lacking = frozenset(text.partition("@")[0] for text in manifest.dependencies)
    libraries: dict[str, Library] = {}
    with collecting(problems):
        libraries, lacking = _libraries(place, options), frozenset()
    direct = dependencies.direct(manifest) if not lacking else ()
    levels = _levels(_home(place, options, lacking), direct, libraries)
    entry, published = _front(place, levels, problems)
    modules: tuple[str, ...] = ()
    with collecting(problems):
        modules = toolmodules.of_project(files, manifest.tools)
    refused = None if python.imported else NO_IMPORT_TOOLS
    of_libraries = {name: library.files for name, library in libraries.items()}
    hosting = Hosting(files, manifest.tools, of_libraries, refused, python.prints_to)
    state_folder = python.state_folder and python.state_folder(place.root)
    defaults = Defaults(
        root=place.root,
        manifest=manifest,
        document=document,
        tool_modules=dependencies.tool_modules(modules, direct, libraries),
        protected=protected_patterns(manifest, module_imports),
        model=(options.default_model,) if options.default_model else (),
        approvals=manifest.approvals,
        limits=manifest.limits,
        classes=ClassSchemas(hosting, state_folder, asks=python.classes),
        module_imports=module_imports,
        libraries={library.name: library.root for library in libraries.values()},
    )
    project = Project(
        root=place.root,
        given=place.root if place.file is None else os.path.join(place.root, place.file),
        alone=options.no_project,
        libs=tuple(map(os.path.abspath, options.libs)),
        python=python,
        name=place.name,
        manifest=manifest,
        manifest_path=document.path if document else None,
        entry=entry,
        exports=published,
        libraries=libraries,
        defaults=defaults,
        levels=levels,
        hosting=hosting,
        again=again,
    )
    if document is not None:
        with collecting(problems):
            dependencies.check(document, manifest, project.roots, libraries, lacking)
    return project


def _libraries(place: _Place, options: _Options) -> dict[str, Library]:
    """The libraries that a project needs, by their names.

    Raises:
        UsageError: A folder of libraries that cannot be used.
        ProjectError: They cannot be had.
    """
    needed = place.manifest.dependencies
    where = places(options.libs) if options.libs or needed else ()
    if place.document is None:
        return {}
    lock = libslock.read(place.files) if options.locked and needed else None
    return dependencies.libraries(place.name, place.document, place.manifest, where, lock)


def _home(place: _Place, options: _Options, lacking: frozenset[str]) -> Level:
    """Where the project's own workers come from."""
    file, section, single = place.file, place.manifest.workers, None
    if file is not None and file != MAIN_FILE and not file.startswith(f"{section.root}/"):
        single = Single(file, beside=not options.no_project)
    return Level(place.files, section, single=single, lacking=lacking)


def _levels(home: Level, needed: Iterable[str], libraries: Mapping[str, Library]) -> tuple[Level, ...]:
    """Where references are looked up that are used on a level: there, in what it needs, and in what is built in."""
    built_in = () if home.library == BUILT_IN else (builtin.library().level,)
    return (home, *(libraries[name].level for name in needed), *built_in)


def _manifest_problems(place: _Place, module_imports: bool) -> Iterator[ProjectError]:
    """What is wrong in the manifest that the keys' own form does not show."""
    if place.document is not None:
        yield from roots.problems(place.document, place.manifest.sandbox, place.root, absolute=True)
        tools = place.manifest.tools
        yield from toolmodules.problems(place.document, tools, place.files, module_imports=module_imports)


def _front(place: _Place, levels: Sequence[Level], problems: list[ProjectError]) -> tuple[str | None, dict[str, str]]:
    """The entry worker's id, and published name → id."""
    entry: str | None = None
    ids: list[str] = []
    published: dict[str, str] = {}
    before = len(problems)
    with collecting(problems):
        entry = _entry(place, levels)
    if place.manifest.exports is not None or len(problems) == before:  # without an entry every worker would be exported
        with collecting(problems):
            ids = exports.exported(levels, entry, place.document, place.manifest.exports)
    with collecting(problems):
        published = _published(place.name, entry, ids)
    return entry, published


def _entry(place: _Place, levels: Sequence[Level]) -> str | None:
    file = place.file
    if file is None:
        return exports.entry_of(levels, place.document, place.manifest)
    level = levels[0]
    identifier = id_of(file, level.section.root, level.single)
    if identifier is None:
        raise ProjectError("not a name for a worker; allowed are letters, digits, _ and -", path=file)
    found = level.find(identifier)
    return found.id if found is not None else identifier


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
