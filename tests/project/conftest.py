"""Projects made for one test, out of real files."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from llm_do_mcp.errors import InvalidFile, ProjectError
from llm_do_mcp.project.load import Project, load_project
from llm_do_mcp.project.render import Renderer


class Make(Protocol):
    def __call__(self, files: dict[str, str], **options: Any) -> Project: ...


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(textwrap.dedent(text).encode())


def worker(keys: str = "", body: str = "Do it.") -> str:
    """A worker's file."""
    return f"---\n{textwrap.dedent(keys).strip()}\n---\n{body}\n"


def problems(error: ProjectError) -> list[str]:
    """Each problem of an error in one line."""
    return [str(problem) for problem in (error.problems if isinstance(error, InvalidFile) else (error,))]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """`make({"main.worker": "..."})` writes the files into `tmp_path` and loads the project."""

    def load(files: dict[str, str], **options: Any) -> Project:
        write(tmp_path, files)
        return load_project(tmp_path, **options)

    return load


@pytest.fixture
def renderer() -> Iterator[Renderer]:
    made = Renderer(seconds=1.0)
    yield made
    made.close()
