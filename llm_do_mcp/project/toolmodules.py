"""Which Python files hold a worker's tools. They are only named here; the tool host imports them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from llm_do_mcp.project.files import ProjectFiles
from llm_do_mcp.project.manifest import ToolsSection
from llm_do_mcp.project.paths import join, project_path


def of_folder(files: ProjectFiles, folder: str) -> tuple[str, ...]:
    """The tool modules of a worker's own folder, or of the project's root.

    Raises:
        ProjectError: Something that is no regular file stands in their place.
    """
    file, package = join(folder, "tools.py"), join(folder, "tools")
    places = {file: file, package: f"{package}/__init__.py"}
    return tuple(module for module, place in places.items() if files.kind(place) == "file")


def of_project(files: ProjectFiles, section: ToolsSection) -> tuple[str, ...]:
    """The tool modules that every worker of the project has: its own, those of the manifest, those of tool folders."""
    found = [*of_folder(files, ""), *(module for module in section.modules if module.endswith(".py"))]
    for root in section.roots:
        for entry in files.walk(root, lambda parts: False):
            path = "/".join(entry.parts)
            if path.endswith(".py") and not entry.parts[-1].startswith("_") and files.kind(path) == "file":
                found.append(path)
    return tuple(dict.fromkeys(found))


def reference_problem(text: str, files: ProjectFiles, loadable: Callable[[str], bool]) -> str | None:
    """What is wrong with a reference to a tool module, or None."""
    if ":" in text:
        return f"module imports such as {text!r} are not supported; name the file, such as toolsets/formatting.py"
    try:
        path = project_path(text)
    except ValueError as error:
        return str(error)
    if not loadable(path):
        return f"{path!r} is not where tools are loaded from: tools.py, tools/, toolsets/, or the manifest's 'tools'"
    module = path if path.endswith(".py") else f"{path}/__init__.py"
    return None if files.kind(module) == "file" else f"there is no tool module {path!r}"


def nearest_first(*groups: Iterable[str]) -> tuple[str, ...]:
    """Modules of several places as one list, each once."""
    return tuple(dict.fromkeys(module for group in groups for module in group))
