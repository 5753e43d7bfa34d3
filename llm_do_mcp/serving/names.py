"""Names of projects that are served together, and of their tools: each is one project's, also after an edit."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

from llm_do_mcp.errors import ProjectError
from llm_do_mcp.serving.surface import FOLLOWING, worker_names

if TYPE_CHECKING:
    from llm_do_mcp.project.load import Project


class Names:
    """Who has which name."""

    def __init__(self) -> None:
        self._taken: dict[str, tuple[str, frozenset[str]]] = {}
        """By the folders of projects: the project's name, and those of its tools."""
        self._taking = threading.Lock()  # projects are loaded in threads

    def take(self, project: Project, tools: Iterable[str]) -> None:
        """Give a project its names, in place of those that it had before.

        Args:
            project: Whose; it also has the names of workers that are not published until a mistake is mended.
            tools: The names of what it publishes.

        Raises:
            ProjectError: Another project has one of them. The names are as they were.
        """
        wanted = frozenset({*tools, *worker_names(project, beside=True)} - {*FOLLOWING})
        with self._taking:
            for root, (name, theirs) in self._taken.items():
                both = f"{root} and {project.root}; give one of them another `name` in its project.yaml"
                if root == project.root:
                    continue
                if name == project.name:
                    raise ProjectError(f"two projects are called {name!r}, {both}")
                if shared := wanted & theirs:
                    raise ProjectError(f"two tools would be called {min(shared)!r}, of the projects {both}")
            self._taken[project.root] = (project.name, wanted)
