"""What a worker may never write: whatever the loader would read. And the reverse: only that is ever loaded.

A worker that can write into a folder of the project must not be able to change what it, or another worker, will be
told or run next time. So these places cannot be written inside any writable root (`sandbox` enforces it), and the
loader takes schemas and tool modules from nowhere else.
"""

from __future__ import annotations

from llm_do_mcp.project.manifest import MANIFEST_NAMES, Manifest
from llm_do_mcp.project.paths import parent, project_path
from llm_do_mcp.project.scan import IGNORE_FILE
from llm_do_mcp.sandbox import patterns

EVERYWHERE = ("**/*.worker", f"**/{IGNORE_FILE}", "**/lib.yaml", *(f"**/{name}" for name in MANIFEST_NAMES))
FOLDERS = ("templates", "prompts", "schemas", "tools", "toolsets")
AT_THE_ROOT = ("*.py", "*.json")
"""`tools.py`, `schemas.py`, and schema files that lie in the project's root."""


ANY_MODULE = "**/*.py"
"""Where modules are imported by their name in Python, any file of the project may be one."""
AS_A_WHOLE = ("./**/*.py", "./**/*.so", "./**/*.pyd", "./**/*.pth", "**/.venv")
"""What the project's Python could come to import, and the environment that it runs in, in a root that holds the whole
project. A folder of the project that is a root by itself was named for a worker to write in, be it Python: tools that
import from there are the author's choice."""


def protected_patterns(manifest: Manifest, module_imports: bool) -> tuple[str, ...]:
    """The patterns, relative to the project, of what cannot be written.

    Args:
        manifest: The manifest.
        module_imports: Whether modules may be imported by their name in Python.
    """
    named = (manifest.workers.root, manifest.prompts.root, *manifest.tools.roots)
    modules = (module for module in manifest.tools.modules if ":" not in module)
    imported = (ANY_MODULE,) if module_imports else ()
    environment = _environment(manifest.tools.python)
    return tuple(dict.fromkeys((*EVERYWHERE, *FOLDERS, *AT_THE_ROOT, *named, *modules, *imported, *environment)))


def _environment(python: str | None) -> tuple[str, ...]:
    """The folder of the interpreter that a project brings along: `env` for `env/bin/python`."""
    try:
        path = project_path(python) if python is not None and "/" in python else ""
    except ValueError:  # it lies elsewhere
        return ()
    return (parent(parent(path)) or path,) if path else ()


def is_loadable(path: str, protected: tuple[str, ...]) -> bool:
    """Whether something may be loaded from a path of the project."""
    return patterns.is_protected(protected, path.split("/"))
