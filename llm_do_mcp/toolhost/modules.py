"""Imports the files of a project, under private names, and knows exactly which code it executed.

The whole project is one package with a private name: `workers/x/tools.py` is `llm_do_project.workers.x.tools`. So two
`tools.py` never meet, a project's `json.py` shadows nothing, and relative imports work as an author expects
(`from . import helper`, `from ...shared import helper`). Each library is such a package of its own: `utils:tools.py` is
`llm_do_libraries.utils.tools`, and imports what lies beside it by relative imports only. In the project a plain
`import helper` finds a file in its root, after everything that is installed; so does a module that is named as Python
names it (`my_project.tools:register`).

Sources are compiled as they were read, never taken from `__pycache__`: a file that was edited twice within a second
is not mistaken for its older self, and nothing is written into the project. What a call may come to import is read when
the call begins (`keep`), and imported as it was then.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import importlib
import importlib.util
import os
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
)

from llm_do_mcp import leftovers

PACKAGE = "llm_do_project"
LIBRARIES = "llm_do_libraries"


class ImportFailed(Exception):
    """A module that could not be imported; the text is one line with file and, where known, line number."""


@dataclass(frozen=True)
class Source:
    """A file of the project whose code was executed, or is kept to be."""

    path: str
    package: str
    content: bytes


class ProjectImporter:
    """Makes a project importable in this process. There is one per process: it changes the import system.

    Args:
        root: The project's folder, absolute.
        libraries: Name → folder, absolute, of the project's libraries.
    """

    def __init__(self, root: str, libraries: Mapping[str, str] | None = None) -> None:
        self.root = root
        self._libraries = dict(libraries or {})
        self._roots = (root, *self._libraries.values())
        self._sources: dict[str, Source] = {}
        self._kept: dict[str, Source] = {}
        self._entered: dict[str, tuple[str, ...]] = {}
        # A virtual environment inside the project holds installed packages, not files of the project.
        packages = [path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages")]
        self._installed = tuple(
            os.path.abspath(path) + os.sep for path in (sys.prefix, *packages) if self._is_below_root(path)
        )
        sys.path.append(root)
        sys.path_hooks.insert(0, self._finder)
        sys.path_importer_cache.clear()
        _add_package(PACKAGE, root)
        _add_package(LIBRARIES)
        for name, folder in self._libraries.items():
            _add_package(f"{LIBRARIES}.{name}", folder)

    def load(self, path: str) -> types.ModuleType:
        """Imports a file, or a folder with an `__init__.py`, or gives what was imported before.

        Args:
            path: Relative to the project, with `/`; `utils:tools.py` or `utils:tools/` in a library; or
                `my_project.tools:register`, for what Python imports by a name.

        Raises:
            ImportFailed: It is not there, or its import failed in whatever way.
        """
        name = self._module_name(path)
        importlib.invalidate_caches()
        try:
            module = importlib.import_module(name)
        except BaseException as error:  # an import may raise SystemExit or KeyboardInterrupt as well
            raise ImportFailed(self.explain_import(error, path)) from error
        if named_in(path) is not None:
            return module
        expected = self._absolute(path)
        if module.__file__ not in (expected, os.path.join(expected, "__init__.py")):
            raise ImportFailed(f"{path}: hidden by the package of the same name beside it; rename one of the two")
        return module

    def enter(self, path: str) -> tuple[str, ...]:
        """The files of a package that says nothing of what it offers, by their paths; they count as part of it."""
        return self._entered.setdefault(path, self._inside(path))

    def _inside(self, path: str) -> tuple[str, ...]:
        """The files of a package that are no helpers (`_common.py`), and not what makes it a package."""
        try:
            names = os.listdir(self._absolute(path)) if named_in(path) is None and not path.endswith(".py") else []
        except OSError:
            names = []
        offering = (name for name in sorted(names) if name.endswith(".py") and not name.startswith(("_", ".")))
        return tuple(f"{path.rstrip('/')}/{name}" for name in offering)

    def keep(self, paths: Iterable[str]) -> None:
        """Reads modules, and all that they may come to import: whatever is edited later, an import sees this."""
        for path in paths:
            for part in (path, *self._inside(path)):
                with contextlib.suppress(ImportFailed):
                    self._closure(self._module_name(part))

    def code_hash(self, path: str) -> str:
        """Digest of a file of the project and of all project files that it imports, as they were or will be executed.

        The files are found in the text, by import statements wherever they stand and by names of modules that are
        written out, so it does not depend on what else was loaded, nor on what has been called. What is imported only
        when a function is called is kept from now on: that import executes what was hashed.
        """
        try:
            parts = (path, *self._entered.get(path, ()))
            sources = [source for part in parts for source in self._closure(self._module_name(part))]
        except ImportFailed:
            return ""
        files = {self.relative(source.path): source.content for source in sources}
        if not files:  # of an installed module
            module = sys.modules.get(path.partition(":")[0])
            content = _content(getattr(module, "__file__", None) or "")
            if content is None:
                return ""
            files = {path: content}
        digest = hashlib.sha256()
        for file, content in sorted(files.items()):
            digest.update(f"{file}\0{hashlib.sha256(content).hexdigest()}\n".encode(errors="surrogatepass"))
        return digest.hexdigest()

    def is_stale(self) -> bool:
        """Whether any file of the project that was executed here, or is kept, has changed since."""
        sources = {source.path: source for source in (*self._sources.values(), *self._kept.values())}
        return any(_content(source.path) != source.content for source in sources.values()) or any(
            self._inside(path) != entered for path, entered in list(self._entered.items())
        )

    def executed(self) -> dict[str, str]:
        """SHA-256 of all files of the project that were executed here, by their paths."""
        sources = list(self._sources.values())
        return {self.relative(source.path): hashlib.sha256(source.content).hexdigest() for source in sources}

    def is_project_file(self, file: str) -> bool:
        """Whether a file belongs to the project or its libraries, and not to an environment that lies inside it.

        What Python calls `<string>` or `<frozen …>` is no file, though it would be one in the working directory.
        """
        return os.path.isabs(file) and self._is_below_root(file) and not (file + os.sep).startswith(self._installed)

    def relative(self, file: str) -> str:
        """A file of the project as a person would name it."""
        for name, folder in self._libraries.items():  # first: a library may lie inside the project
            if _is_below(file, folder):
                return f"{name}:{os.path.relpath(file, folder)}".replace(os.sep, "/")
        return os.path.relpath(file, self.root).replace(os.sep, "/")

    def place(self, error: BaseException) -> str | None:
        """Where in the project an error arose, as `file:line`: the innermost place that is the project's."""
        if isinstance(error, SyntaxError) and error.filename and self.is_project_file(error.filename):
            return f"{self.relative(error.filename)}:{error.lineno}"
        found = None
        trace = error.__traceback__
        while trace is not None:
            file = trace.tb_frame.f_code.co_filename
            if self.is_project_file(file):
                found = f"{self.relative(file)}:{trace.tb_lineno}"
            trace = trace.tb_next
        if found is None and error.__cause__ is not None:
            return self.place(error.__cause__)
        return found

    def place_of_frame(self, frame: types.FrameType | None) -> str | None:
        """Where in the project a running thread is, as `file:line`."""
        while frame is not None:
            if self.is_project_file(frame.f_code.co_filename):
                return f"{self.relative(frame.f_code.co_filename)}:{frame.f_lineno}"
            frame = frame.f_back
        return None

    def explain(self, error: BaseException, path: str) -> str:
        """An error of the project's code in one line: `file:line: Type: message`, without the host's absolute paths."""
        message = error.msg if isinstance(error, SyntaxError) else _text(error)
        for name, folder in self._libraries.items():
            message = message.replace(folder + os.sep, f"{name}:")
        message = " ".join(message.replace(self.root + os.sep, "").split())
        if len(message) > 2_000:
            message = f"{message[:2_000]}… ({len(message):,} characters)"
        return f"{self.place(error) or path}: {type(error).__name__}{': ' if message else ''}{message}"

    def explain_import(self, error: BaseException, path: str) -> str:
        """The same for an error while importing, where a missing package is told apart from a missing file."""
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if not missing or missing.startswith((PACKAGE, LIBRARIES)):
            return self.explain(error, path)
        where = self.place(error) or path
        top = missing.partition(".")[0]
        if top in sys.modules:  # the package is there, and the module in it is not
            return self.explain(error, path)
        if _content(os.path.join(os.path.dirname(self._absolute(path)), f"{top}.py")) is not None:
            return f"{where}: no module {missing!r}; for the file beside this one write `from . import {top}`"
        version = ".".join(map(str, sys.version_info[:3]))
        return (
            f"{where}: needs the package {top!r}, which the interpreter of the tool host (Python {version}) does not "
            "have; install it there, or name another interpreter in the manifest's tools.python"
        )

    def _split(self, path: str) -> tuple[str, str, str]:
        """The package and the folder that a path belongs to, and the path in it."""
        library, colon, inside = path.partition(":")
        if colon and library in self._libraries:
            return f"{LIBRARIES}.{library}", self._libraries[library], inside
        return PACKAGE, self.root, path

    def _absolute(self, path: str) -> str:
        _, root, inside = self._split(path)
        return os.path.join(root, *inside.rstrip("/").split("/"))

    def _is_below_root(self, path: str) -> bool:
        return any(_is_below(path, root) for root in self._roots)

    def _read(self, name: str) -> Source | None:
        """The file that a module would be imported from if it is one of the project's, which nobody executes here."""
        package, folder = PACKAGE, self.root
        for library, of_library in self._libraries.items():
            if name.startswith(f"{LIBRARIES}.{library}."):
                package, folder = f"{LIBRARIES}.{library}", of_library
        place = os.path.join(folder, *name.removeprefix(f"{package}.").split("."))
        for file, is_package in ((os.path.join(place, "__init__.py"), True), (f"{place}.py", False)):
            if file in self._kept:
                return self._kept[file]
            if os.path.isfile(file) and (content := _content(file)) is not None:
                return Source(file, name if is_package else name.rpartition(".")[0], content)
        return None

    def _is_file(self, path: str) -> bool:
        return path in self._kept or os.path.isfile(path)

    def _module_name(self, path: str) -> str:
        if named_in(path) is not None:
            return path.partition(":")[0]
        package, _, inside = self._split(path)
        parts = inside.rstrip("/").split("/")
        if not all(parts) or ".." in parts or "." in parts or "\\" in path or "\0" in path or ":" in inside:
            raise ImportFailed(f"{path!r}: a tool module is named by its path in the project, such as tools.py")
        absolute = self._absolute(path)
        if os.path.isdir(absolute):
            if not self._is_file(os.path.join(absolute, "__init__.py")):
                raise ImportFailed(f"{path}: a folder of tools needs an __init__.py that names them in __all__")
        elif not parts[-1].endswith(".py"):
            raise ImportFailed(f"{path}: a tool module is a .py file, or a folder with an __init__.py")
        elif not self._is_file(absolute):
            raise ImportFailed(f"{path}: no such file")
        parts[-1] = parts[-1].removesuffix(".py")
        if any("." in part for part in parts):
            raise ImportFailed(f"{path}: Python cannot import from a path with a dot in a name; rename it")
        return ".".join([package, *parts])

    def _finder(self, folder: str) -> FileFinder:
        """The path hook for folders of the project: the standard finder, with a loader that remembers."""
        if folder not in self._roots and not self.is_project_file(folder):
            raise ImportError("not a folder of the project")
        importer = self

        class Loader(SourceFileLoader):
            def get_code(self, fullname: str) -> types.CodeType:
                kept = importer._kept.get(self.path)
                content = self.get_data(self.path) if kept is None else kept.content
                package = fullname if self.is_package(fullname) else fullname.rpartition(".")[0]
                importer._sources[fullname] = Source(self.path, package, content)
                return compile(content, self.path, "exec", dont_inherit=True)

        class Finder(FileFinder):
            def find_spec(self, fullname: str, target: types.ModuleType | None = None) -> ModuleSpec | None:
                """Also finds what is kept and no longer there; refuses what is no part of a library."""
                if (found := super().find_spec(fullname, target)) is not None:
                    importer._check_is_part(found.origin)
                    return found
                place = os.path.join(folder, fullname.rpartition(".")[2])
                for file, within in ((os.path.join(place, "__init__.py"), [place]), (f"{place}.py", None)):
                    if file in importer._kept:
                        loader = Loader(fullname, file)
                        spec = importlib.util.spec_from_file_location
                        return spec(fullname, file, loader=loader, submodule_search_locations=within)
                return None

        return Finder(folder, (ExtensionFileLoader, EXTENSION_SUFFIXES), (Loader, SOURCE_SUFFIXES))

    def _check_is_part(self, file: str | None) -> None:
        """Check that a file may be imported: one in a library is what whoever looked at that has seen.

        Raises:
            ImportError: It lies where a repository, an environment or a cache keeps its files.
        """
        if file is None:  # a folder without an `__init__.py`
            return
        for name, folder in self._libraries.items():
            if _is_below(file, folder):
                path = os.path.relpath(file, folder).replace(os.sep, "/")
                if (complaint := leftovers.complaint(path)) is not None:
                    raise ImportError(f"{name}:{path}: {complaint}")

    def _closure(self, name: str) -> list[Source]:
        """The project's modules that one of them leads to, itself included. What is not executed yet is kept."""
        found: list[Source] = []
        waiting, seen = [name], {name}
        while waiting:
            name = waiting.pop()
            source = self._sources.get(name) or self._read(name)
            if source is not None:
                found.append(source)
                self._kept.setdefault(source.path, source)
            new = {*_above(name), *(() if source is None else _imported_names(source))} - seen
            seen |= new
            waiting += new
        return found


def _add_package(name: str, *folders: str) -> None:
    """Makes a package without a file of its own, whose modules lie in folders."""
    package = types.ModuleType(name, "Code whose tools run here.")
    package.__path__ = [*folders]
    sys.modules[name] = package


def _is_below(path: str, folder: str) -> bool:
    return os.path.abspath(path).startswith(folder.rstrip(os.sep) + os.sep)


def named_in(path: str) -> str | None:
    """What a module is imported for where it is named as Python names it: `register` of `my_project.tools:register`.

    None for the path of a file.
    """
    module, colon, name = path.partition(":")
    is_named = colon and name.isidentifier() and all(part.isidentifier() for part in module.split("."))
    return name if is_named else None


def _above(name: str) -> list[str]:
    """The packages of a module: importing a.b.c executes a and a.b as well."""
    return [name[:end] for end in range(len(name)) if name[end] == "."]


@functools.lru_cache(1_000)
def _imported_names(source: Source) -> frozenset[str]:
    """The modules that a file may come to import, as far as its text names them."""
    try:
        tree = ast.parse(source.content)
    except (SyntaxError, ValueError):
        return frozenset()
    return frozenset(name for node in ast.walk(tree) for name in _named_by(node, source))


def _named_by(node: ast.AST, source: Source) -> Iterator[str]:
    """The modules that one place in a file names: to import them, as part of a package, or in a text."""
    match node:
        case ast.Import(names=imported):
            yield from (alias.name for alias in imported)
        case ast.ImportFrom(module=module, names=imported, level=level):
            yield (base := _resolved("." * level + (module or ""), source))
            yield from (f"{base}.{alias.name}" for alias in imported)
        case ast.Call(
            func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
            args=[ast.Constant(value=str() as text), *_],
        ) if _is_dotted(text.lstrip(".")):
            yield _resolved(text, source)
        case ast.Assign(targets=[ast.Name(id="__all__")], value=value) if source.path.endswith("__init__.py"):
            offered = (part.value for part in ast.walk(value) if isinstance(part, ast.Constant))
            # `import *` imports them
            yield from (f"{source.package}.{name}" for name in offered if isinstance(name, str) and _is_dotted(name))
        case ast.Constant(value=str() as text) if "." in text and _is_dotted(text):
            yield text


def _resolved(name: str, source: Source) -> str:
    """A module that a file names, by its whole name; its own package where the name leads out of all packages."""
    try:
        return importlib.util.resolve_name(name, source.package)
    except ImportError:
        return source.package


def _is_dotted(text: str) -> bool:
    return all(map(str.isidentifier, text.split(".")))


def _content(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def _text(error: BaseException) -> str:
    """What an error says, even where its own `__str__` fails."""
    try:
        return str(error)
    except BaseException:
        return "(its text could not be made)"
