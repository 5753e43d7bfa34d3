"""Libraries: folders of workers, templates and tools that several projects use.

A library lies in one of a few places, as `utils/` or, for one version, as `utils@2.0/`. What a project depends on is
found there by its name and never fetched; `closure` adds what its libraries depend on in turn. A library is there in
one version: a version that anybody names holds for all who name none, and two that are named are a conflict.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from llm_do_mcp.errors import (
    InvalidFile,
    InvalidReference,
    LibraryConflict,
    LibraryNotFound,
    ProjectError,
    UsageError,
)
from llm_do_mcp.project import contents, exports, roots, strictyaml, toolmodules
from llm_do_mcp.project.checked import Checked, Text, Texts, check_partly, in_order, quoted
from llm_do_mcp.project.files import ProjectFiles, decode
from llm_do_mcp.project.manifest import MANIFEST_NAMES, Manifest, Version
from llm_do_mcp.project.references import BUILT_IN
from llm_do_mcp.project.resolve import Level
from llm_do_mcp.project.strictyaml import Document
from llm_do_mcp.sandbox.names import at_home

if TYPE_CHECKING:
    from llm_do_mcp.project.libslock import LockedLibrary

LIBRARY_FILE = "lib.yaml"
ENVIRONMENT = "LLM_DO_LIBS"
HOME = "~/.llm-do/libs"
GIT = "git+"

_NAME = re.compile(r"[a-z0-9_-]+\Z")
_VERSION = re.compile(r"[0-9A-Za-z](?:[0-9A-Za-z.+_-]*[0-9A-Za-z])?\Z")
_MAX_LENGTH = 100


class LibraryManifest(Checked):
    """The keys of `lib.yaml`. A project that is used as a library has its own manifest instead."""

    name: Text | None = None
    version: Version = None
    description: Text | None = None
    exports: Texts | None = None
    dependencies: Texts = ()


@dataclass(frozen=True)
class Spec:
    """What a dependency names.

    Args:
        name: The library.
        version: Its version, or None for whichever is there.
    """

    name: str
    version: str | None = None

    def __str__(self) -> str:
        return self.name if self.version is None else f"{self.name}@{self.version}"

    @classmethod
    def parse(cls, text: str) -> Spec:
        """Read a dependency: `utils`, or `utils@2.0`.

        Raises:
            InvalidReference: It is neither.
            LibraryNotFound: It is an address that the library has to be installed from first.
        """
        if text.startswith(GIT):
            how = f"install it with `llm-do lib install {text}`, and write its name here"
            raise LibraryNotFound(f"{quoted(text)} is an address, and loading a project fetches nothing; {how}")
        name, at, version = text.partition("@")
        if len(text) > _MAX_LENGTH or not _NAME.match(name) or (at and not _VERSION.match(version)):
            forms = "write its name in a-z, 0-9, _ and -, with a version where it must be one: utils, utils@2.0"
            raise InvalidReference(f"{quoted(text)} is not a library; {forms}")
        if name == BUILT_IN:
            raise InvalidReference(f"{BUILT_IN!r} is the built-in library: every project has it without naming it")
        return cls(name, version or None)


@dataclass(frozen=True)
class Library:
    """A library, as it was when the project was loaded.

    Args:
        name: Its name, which is its folder's.
        version: Its version, or None where nothing says it.
        root: Its folder, absolute and without links.
        files: Its files.
        manifest: Its keys; all others at their defaults where it has a `lib.yaml`.
        document: The file they stand in, for the places.
        exports: Ids of the workers that can be called from outside, in their order.
        dependencies: Names of the libraries that it needs itself.
    """

    name: str
    version: str | None
    root: str
    files: ProjectFiles = field(repr=False)
    manifest: Manifest = field(repr=False)
    document: Document = field(repr=False)
    level: Level = field(repr=False)
    exports: tuple[str, ...]
    dependencies: tuple[str, ...] = ()

    @property
    def spec(self) -> Spec:
        """Its name with its version."""
        return Spec(self.name, self.version)

    @cached_property
    def tool_modules(self) -> tuple[str, ...]:
        """The Python files whose functions are for everybody who uses the library, as `utils:tools.py`."""
        return toolmodules.labelled(self.files, toolmodules.of_project(self.files, self.manifest.tools))

    @cached_property
    def python(self) -> tuple[str, ...]:
        """All its Python files, relative to it, in order."""
        with contents.open_library(self.root) as directory:
            paths, _ = contents.survey(directory)
        return tuple(path for path in paths if path.endswith(".py"))

    @cached_property
    def python_hash(self) -> str:
        """SHA-256 over the names and contents of all its Python files."""
        return contents.content_hash({path: contents.digest(self.files.read_bytes(path)) for path in self.python})


# ---- where libraries lie


def places(extra: Sequence[str] = ()) -> tuple[str, ...]:
    """The folders in which libraries are looked for, in order: `--lib`, `~/.llm-do/libs`, `LLM_DO_LIBS`.

    Args:
        extra: The folders of `--lib`.

    Raises:
        UsageError: One of `--lib` is no folder of libraries, or one of `LLM_DO_LIBS` is not absolute.
    """
    found = []
    for folder in extra:
        if not os.path.isdir(folder):
            raise UsageError(f"--lib {folder}: there is no such folder")
        if any(os.path.lexists(os.path.join(folder, name)) for name in (LIBRARY_FILE, *MANIFEST_NAMES)):
            raise UsageError(f"--lib {folder}: is a library itself; name the folder that it lies in")
        found.append(os.path.abspath(folder))
    found.append(os.path.expanduser(HOME))
    for folder in os.environ.get(ENVIRONMENT, "").split(os.pathsep):
        if not folder:
            continue  # as `A::B` or a trailing colon leave one; it never means the working directory
        if not os.path.isabs(expanded := os.path.expanduser(folder)):
            raise UsageError(f"{ENVIRONMENT}: {quoted(folder)} is not absolute; it would mean another folder elsewhere")
        found.append(expanded)
    return tuple(dict.fromkeys(found))


def locate(spec: Spec, where: Sequence[str]) -> str:
    """The folder of a library: `utils/`, else the highest `utils@*/`; for a version `utils@2.0/`, else `utils/`.

    The first place that has it counts. Whether `utils/` has the version is seen when it is opened.

    Raises:
        LibraryNotFound: It is in none; says where was looked, and which versions there are.
    """
    others: list[str] = []
    for place in where:
        plain = os.path.join(place, spec.name)
        if spec.version is None and os.path.lexists(plain):
            return plain
        versions = [f"{spec.name}@{version}" for version in _versions(spec.name, place)]
        wanted = versions[-1:] if spec.version is None else [name for name in versions if name == str(spec)]
        if wanted:
            return os.path.join(place, wanted[0])
        others += [plain] if os.path.lexists(plain) else []
    if others:
        return others[0]
    known = sorted({version for place in where for version in _versions(spec.name, place)}, key=_order)
    there = ", ".join(f"{spec.name}@{version}" for version in known)
    instead = f"there is {there}" if there else "install it with `llm-do lib install`"
    raise LibraryNotFound(f"no library {str(spec)!r} (looked in {', '.join(map(at_home, where))}); {instead}")


def _versions(name: str, place: str) -> list[str]:
    """The versions of a library that a place has in folders of their own, the highest last."""
    try:
        entries = os.listdir(place)
    except OSError:
        return []
    prefix = f"{name}@"
    found = (entry.removeprefix(prefix) for entry in entries if entry.startswith(prefix))
    return sorted((version for version in found if _VERSION.match(version)), key=_order)


def _order(version: str) -> tuple[object, ...]:
    """What versions are compared by: numbers as numbers, and `2.0-rc1` before `2.0`."""
    release, _, before = version.partition("+")[0].partition("-")
    return _parts(release), not before, _parts(before), version


def _parts(text: str) -> tuple[tuple[bool, int, str], ...]:
    return tuple((not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in text.split("."))


# ---- one library


def read_library(root: str, name: str | None = None, locked: LockedLibrary | None = None) -> Library:
    """A library in a folder.

    Args:
        root: The folder. It may be a link to one.
        name: The name that it must have; None for the one that it gives itself.
        locked: What `libs.lock` has of it.

    Raises:
        LibraryNotFound: There is no library.
        InvalidFile: With everything that is wrong with its manifest.
    """
    root = os.path.realpath(root)
    whose = name or os.path.basename(root)
    if not os.path.isdir(root):
        raise LibraryNotFound(f"library {whose}: {at_home(root)} is not a folder")
    files = ProjectFiles(root, locked, label=f"{name}:" if name else "")
    there = [file for file in (LIBRARY_FILE, *MANIFEST_NAMES) if files.kind(file) is not None]
    if not there:
        raise LibraryNotFound(f"library {whose}: no {LIBRARY_FILE} and no {MANIFEST_NAMES[0]} in {at_home(root)}")
    if len(there) > 1:
        both = " and ".join(there)
        raise ProjectError(f"{both} both say what the library is; keep one", path=files.shown(there[1]))
    document = strictyaml.load(decode(files.read_bytes(there[0]), files.shown(there[0])), path=files.shown(there[0]))
    manifest, wrong = manifest_of(document)
    wrong += roots.clashes(document, manifest.sandbox)
    if wrong:
        raise InvalidFile(in_order(wrong))
    if name is None:
        name = _own_name(document, manifest)
        files.label = f"{name}:"
    elif manifest.name is not None and manifest.name != name:
        raise document.error(f"name {quoted(manifest.name)} is not that of the folder, {name!r}", ("name",))
    allowed = manifest.tools.allow_module_imports
    if wrong := [*toolmodules.problems(document, manifest.tools, files, module_imports=allowed)]:
        raise InvalidFile(wrong)
    level = Level(files, manifest.workers, library=name)
    ids = exports.of_library(level, document, manifest)
    return Library(
        name=name,
        version=manifest.version if isinstance(manifest.version, str) else None,
        root=root,
        files=files,
        manifest=manifest,
        document=document,
        level=replace(level, exports=frozenset(ids)),
        exports=ids,
    )


def manifest_of(document: Document) -> tuple[Manifest, list[ProjectError]]:
    """The keys of a manifest, or of a `lib.yaml` as a manifest with no others, as far as they can be used.

    Returns:
        The manifest, and everything that is wrong with it.
    """
    if not document.path.endswith(LIBRARY_FILE):
        manifest, problems, _ = check_partly(Manifest, document)
        return manifest, problems
    keys, problems, _ = check_partly(LibraryManifest, document)
    return Manifest(**keys.model_dump(exclude_unset=True)), problems


def _own_name(document: Document, manifest: Manifest) -> str:
    if manifest.name is None:
        raise document.error("a library needs a 'name', by which projects depend on it", ())
    if not _NAME.match(manifest.name) or len(manifest.name) > _MAX_LENGTH:
        raise document.error(f"name {quoted(manifest.name)} has more than a-z, 0-9, _ and -", ("name",))
    return manifest.name


# ---- all libraries of a project


def closure(
    project: str,
    dependencies: Sequence[str],
    where: Sequence[str],
    locked: Callable[[str], LockedLibrary | None] = lambda name: None,
) -> tuple[Library, ...]:
    """The libraries that a project needs, each once: its own in their order, each followed by what that needs.

    Args:
        project: Its name, for messages.
        dependencies: What it names.
        where: The places that are searched.
        locked: What `libs.lock` has of a library.

    Raises:
        LibraryConflict: Libraries that depend on each other, or two versions of one.
        ProjectError: A library that is not there, or whose manifest cannot be used.
    """
    named: dict[str, tuple[str, Spec]] = {}
    while True:
        search = _Search(where, locked, named)
        found = search.all(project, [Spec.parse(text) for text in dependencies])
        # A version that was named late holds for those before as well, and that version may need other libraries.
        if not search.outdated():
            return found


class _Search:
    """One pass over all dependencies.

    Args:
        where: The places that are searched.
        locked: What `libs.lock` has of a library.
        named: Name → who needs it in which version, as far as that is known; grows.
    """

    def __init__(
        self,
        where: Sequence[str],
        locked: Callable[[str], LockedLibrary | None],
        named: dict[str, tuple[str, Spec]],
    ) -> None:
        self._where, self._locked, self._named = where, locked, named
        self._found: dict[str, Library] = {}

    def all(self, project: str, specs: Sequence[Spec]) -> tuple[Library, ...]:
        """Every library that is needed."""
        for spec in specs:  # what the project says holds for all
            self._note(project, spec)
        for spec in specs:
            self._add(spec, ())
        return tuple(self._found.values())

    def outdated(self) -> bool:
        """Whether a library was taken before somebody named another version of it."""
        named = self._named.items()
        return any(name in self._found and self._found[name].version != spec.version for name, (_, spec) in named)

    def _wanted(self, name: str) -> Spec:
        return self._named[name][1] if name in self._named else Spec(name)

    def _note(self, who: str, spec: Spec) -> None:
        if spec.version is None:
            return
        other, first = self._named.setdefault(spec.name, (who, spec))
        if first != spec:
            lines = f"\n  - {other} requires {first}\n  - {who} requires {spec}"
            raise LibraryConflict(f"Version conflict for {spec.name}{lines}")

    def _add(self, spec: Spec, chain: tuple[str, ...]) -> None:
        if spec.name in chain:
            cycle = " → ".join((*chain[chain.index(spec.name) :], spec.name))
            raise LibraryConflict(f"Circular dependency detected: {cycle}")
        if spec.name in self._found:
            return
        library = self._open(self._wanted(spec.name))
        needs = []
        for index, text in enumerate(library.manifest.dependencies):
            try:
                needs.append(Spec.parse(text))
            except ProjectError as error:
                raise library.document.error(error.message, ("dependencies", index)) from None
        self._found[spec.name] = library = replace(library, dependencies=tuple(need.name for need in needs))
        who = str(library.spec)
        for need in needs:
            self._note(who, need)
        for need in needs:
            self._add(need, (*chain, spec.name))

    def _open(self, spec: Spec) -> Library:
        folder = locate(spec, self._where)
        library = read_library(folder, spec.name, self._locked(spec.name))
        _, at, version = os.path.basename(folder).partition("@")
        if not at:
            version = spec.version or ""
        if library.version is None and at:
            return replace(library, version=version)
        if version and library.version != version:
            has = f"is {library.version}" if library.version else "does not say its version"
            raise LibraryNotFound(f"no library {f'{spec.name}@{version}'!r}: what is in {at_home(folder)} {has}")
        return library
