"""Imports the files of a project, under private names, and knows exactly which code it executed.

The whole project is one package with a private name: `workers/x/tools.py` is `llm_do_project.workers.x.tools`. So two
`tools.py` never meet, a project's `json.py` shadows nothing, and relative imports work as an author expects
(`from . import helper`, `from ...shared import helper`). Each library is such a package of its own: `utils:tools.py` is
`llm_do_libraries.utils.tools`, and imports what lies beside it by relative imports only. In the project a plain
`import helper` finds a file in its root, after everything that is installed; so does a module that is named as Python
names it (`my_project.tools:register`).

Sources are compiled as they were read, never taken from `__pycache__`: a file that was edited twice within a second
is not mistaken for its older self, and nothing is written into the project.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import os
import sys
import types
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES, ExtensionFileLoader, FileFinder, SourceFileLoader

PACKAGE = "llm_do_project"
LIBRARIES = "llm_do_libraries"


class ImportFailed(Exception):
    """A module that could not be imported; the text is one line with file and, where known, line number."""


@dataclass(frozen=True)
class Source:
    """A file of the project whose code was executed."""

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

    def code_hash(self, path: str) -> str:
        """Digest of a file of the project and of all project files that it imports, as they were executed.

        The files are found by following import statements, so it does not depend on what else was loaded. Where the
        file was never executed (it cannot be compiled, or is not there), its content alone counts.
        """
        try:
            names = self._closure(self._module_name(path))
        except ImportFailed:
            return ""
        files = {self.relative(self._sources[name].path): self._sources[name].content for name in names}
        if not files:
            content = _content(self._file(path)) or _content(os.path.join(self._absolute(path), "__init__.py"))
            if content is None:
                return ""
            files = {path: content}
        digest = hashlib.sha256()
        for file, content in sorted(files.items()):
            digest.update(f"{file}\0{hashlib.sha256(content).hexdigest()}\n".encode(errors="surrogatepass"))
        return digest.hexdigest()

    def is_stale(self) -> bool:
        """Whether any file of the project that was executed here has changed since."""
        return any(_content(source.path) != source.content for source in list(self._sources.values()))

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

    def _file(self, path: str) -> str:
        """The file of a module, also of one that is installed."""
        module = sys.modules.get(path.partition(":")[0]) if named_in(path) is not None else None
        return getattr(module, "__file__", None) or self._absolute(path)

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

    def _module_name(self, path: str) -> str:
        if named_in(path) is not None:
            return path.partition(":")[0]
        package, _, inside = self._split(path)
        parts = inside.rstrip("/").split("/")
        if not all(parts) or ".." in parts or "." in parts or "\\" in path or "\0" in path or ":" in inside:
            raise ImportFailed(f"{path!r}: a tool module is named by its path in the project, such as tools.py")
        absolute = self._absolute(path)
        if os.path.isdir(absolute):
            if not os.path.isfile(os.path.join(absolute, "__init__.py")):
                raise ImportFailed(f"{path}: a folder of tools needs an __init__.py that names them in __all__")
        elif not parts[-1].endswith(".py"):
            raise ImportFailed(f"{path}: a tool module is a .py file, or a folder with an __init__.py")
        elif not os.path.isfile(absolute):
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
                content = self.get_data(self.path)
                package = fullname if self.is_package(fullname) else fullname.rpartition(".")[0]
                importer._sources[fullname] = Source(self.path, package, content)
                return compile(content, self.path, "exec", dont_inherit=True)

        return FileFinder(folder, (ExtensionFileLoader, EXTENSION_SUFFIXES), (Loader, SOURCE_SUFFIXES))

    def _closure(self, name: str) -> set[str]:
        """The names of the project's modules that one of them leads to, itself included."""
        found: set[str] = set()
        waiting = [name]
        while waiting:
            name = waiting.pop()
            # Importing a.b.c executes a and a.b as well.
            waiting.extend(name[:end] for end in range(len(name)) if name[end] == "." and name[:end] not in found)
            if name in self._sources and name not in found:
                found.add(name)
                waiting.extend(_imported_names(self._sources[name]))
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


def _imported_names(source: Source) -> set[str]:
    """The modules that a file's import statements may mean."""
    try:
        tree = ast.parse(source.content)
    except (SyntaxError, ValueError):
        return set()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            try:
                base = importlib.util.resolve_name("." * node.level + (node.module or ""), source.package)
            except ImportError:
                continue
            names.add(base)
            names.update(f"{base}.{alias.name}" for alias in node.names)
    return names


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
