"""How a project's Python is run: what its tool host is started with, or why it must not be started at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from llm_do_mcp.project.files import ProjectFiles
from llm_do_mcp.project.manifest import ToolsSection

if TYPE_CHECKING:
    from llm_do_mcp.toolhost.client import ToolHost

NO_IMPORT_TOOLS = "the project's Python is not loaded (--no-import-tools)"


@dataclass(frozen=True)
class PythonOptions:
    """What the command line says of a project's Python.

    Args:
        imported: False for `--no-import-tools`: none is ever loaded.
        classes: False where none is loaded to learn what a class describes: one that is not known from before is
            `classes.UNSEEN`.
        module_imports: `--allow-module-imports`, as the manifest's `tools.allow_module_imports`.
        state_folder: Gives the state folder of a project by its root; None where nothing is kept.
        prints_to: An open file to which what the Python prints goes; None for our error output.
    """

    imported: bool = True
    classes: bool = True
    module_imports: bool = False
    state_folder: Callable[[str], str] | None = None
    prints_to: int | None = None


@dataclass(frozen=True)
class Hosting:
    """What a tool host of the project is started with.

    Args:
        files: The project's files.
        section: `tools` of the manifest.
        libraries: Name → files of the project's libraries.
        refused: Why none may be started, or None.
        prints_to: See `PythonOptions`.
    """

    files: ProjectFiles
    section: ToolsSection
    libraries: Mapping[str, ProjectFiles]
    refused: str | None = None
    prints_to: int | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """What a tool host that runs depends on: an edit of one of these is for later runs, which have another one."""
        roots = ((name, files.root) for name, files in self.libraries.items())
        locked = (files.locked and files.locked.content for files in self.libraries.values())
        return (self.section.python, self.section.env, self.refused, *roots, *locked)

    def open(self) -> ToolHost:
        """A tool host; its process is started when something is first asked of it."""
        from llm_do_mcp.toolhost.client import ToolHost

        return ToolHost(
            self.files.root,
            python=self.section.python,
            env=self.section.env,
            libraries={name: files.root for name, files in self.libraries.items()},
            admit=self.admit if any(files.locked for files in self.libraries.values()) else None,
            refused=self.refused,
            prints_to=self.prints_to,
        )

    def admit(self, module: str) -> None:
        """Check, before a module is imported, that its library is what `libs.lock` has of it.

        Args:
            module: As the tool host is told: `utils:tools.py` in a library.

        Raises:
            LibraryChanged: It is not.
        """
        files = self.libraries.get(module.partition(":")[0])
        if files is not None:
            files.check_whole()

    def read(self, path: str) -> bytes:
        """A file of the project or of a library (`utils:schemas.py`), as the tool host names it.

        Raises:
            ProjectError: It cannot be read.
        """
        library, colon, inside = path.partition(":")
        return self.libraries[library].read_bytes(inside) if colon else self.files.read_bytes(path)
