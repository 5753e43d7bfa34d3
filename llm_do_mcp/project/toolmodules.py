"""Which Python holds a worker's tools. It is only named here; the tool host imports it.

A tool module is a file (`toolsets/formatting.py`), a folder with an `__init__.py` (`tools`), or, where the manifest
or `--allow-module-imports` allows it, whatever Python imports by a name, with the function that registers its tools
(`my_project.tools:register`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from llm_do_mcp.errors import ProjectError
from llm_do_mcp.project.checked import quoted
from llm_do_mcp.project.files import ProjectFiles
from llm_do_mcp.project.manifest import ToolsSection
from llm_do_mcp.project.paths import join, project_path
from llm_do_mcp.project.strictyaml import Document

_IMPORT = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*(?<!\.py):[^\W\d]\w*\Z")
ALLOW = "allow them with `tools: {allow_module_imports: true}` in the manifest, or with --allow-module-imports"


def of_folder(files: ProjectFiles, folder: str) -> tuple[str, ...]:
    """The tool modules of a worker's own folder, or of the root of a project or library.

    `tools/` is one module where it has an `__init__.py`, which says what it offers; else each of its files is one.

    Raises:
        ProjectError: Something that is no regular file stands in their place.
    """
    file, package = join(folder, "tools.py"), join(folder, "tools")
    found = [file] if files.kind(file) == "file" else []
    whole = files.kind(f"{package}/__init__.py") == "file"
    return (*found, package) if whole else (*found, *_inside(files, package))


def of_project(files: ProjectFiles, section: ToolsSection) -> tuple[str, ...]:
    """The tool modules that every worker of the project has: its own, those of the manifest, those of tool folders."""
    found = [*of_folder(files, ""), *map(normal, section.modules)]
    for root in section.roots:
        found += _inside(files, root)
    return tuple(dict.fromkeys(found))


def _inside(files: ProjectFiles, folder: str) -> Iterator[str]:
    """The files of a folder of tool modules."""
    for entry in files.walk(folder, lambda parts: False):
        path = "/".join(entry.parts)
        if path.endswith(".py") and not entry.parts[-1].startswith("_") and files.kind(path) == "file":
            yield path


def reference_problem(
    text: str, files: ProjectFiles, loadable: Callable[[str], bool], *, module_imports: bool
) -> str | None:
    """What is wrong with a reference to a tool module, or None.

    Args:
        text: The reference.
        files: The files that it is looked up in.
        loadable: Whether a path is one that no worker can write.
        module_imports: Whether modules may be imported by their name in Python.
    """
    if ":" in text:
        if not _IMPORT.match(text):
            return f"{quoted(text)} is no tool module; write toolsets/formatting.py, or my_project.tools:register"
        return None if module_imports else f"module imports such as {quoted(text)} are not allowed; {ALLOW}"
    try:
        path = project_path(text)
    except ValueError as error:
        return str(error)
    if not loadable(path):
        return f"{path!r} is not where tools are loaded from: tools.py, tools/, toolsets/, or the manifest's 'tools'"
    module = path if path.endswith(".py") else f"{path}/__init__.py"
    return None if files.kind(module) == "file" else f"there is no tool module {path!r}"


def problems(
    document: Document, section: ToolsSection, files: ProjectFiles, *, module_imports: bool
) -> Iterator[ProjectError]:
    """What is wrong with the tool modules that a manifest names. What it names is protected, wherever it lies."""
    for index, module in enumerate(section.modules):
        if wrong := reference_problem(module, files, lambda path: True, module_imports=module_imports):
            yield document.error(wrong, ("tools", "modules", index))


def normal(reference: str) -> str:
    """The one spelling of a reference, by which the tool host knows the module; one with problems stays as it is."""
    try:
        return reference if ":" in reference else project_path(reference)
    except ValueError:
        return reference


def labelled(files: ProjectFiles, modules: Iterable[str]) -> tuple[str, ...]:
    """Modules as the tool host knows them: those of a library as `utils:tools.py`, a folder as `utils:tools/`."""
    if not files.label:
        return tuple(modules)
    spelled = (module if module.endswith(".py") or ":" in module else f"{module}/" for module in modules)
    return tuple(module if ":" in module else files.shown(module) for module in spelled)


def library_of(module: str) -> str | None:
    """The library that a module lies in, or None for one of the project or of Python's own."""
    library, colon, _ = module.partition(":")
    return library if colon and not _IMPORT.match(module) else None


def nearest_first(*groups: Iterable[str]) -> tuple[str, ...]:
    """Modules of several places as one list, each once."""
    return tuple(dict.fromkeys(module for group in groups for module in group))
