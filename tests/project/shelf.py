"""Libraries made for one test, in a folder of their own that `--lib` names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llm_do_mcp.project.load import Project, load_project
from tests.project.conftest import write

Files = Mapping[str, str]


def shelve(folder: Path, libraries: Mapping[str, Files]) -> None:
    """Put libraries into a folder; one without a manifest of its own gets an empty `lib.yaml`."""
    for name, files in libraries.items():
        has_own = {"lib.yaml", "project.yaml", "llm-do.yaml"} & set(files)
        write(folder / name, {**({} if has_own else {"lib.yaml": ""}), **files})


def load_with(root: Path, files: Files, libraries: Mapping[str, Files], **options: Any) -> Project:
    """The project of these files in `root/project`, with these libraries in `root/shelf`."""
    shelve(root / "shelf", libraries)
    (root / "shelf").mkdir(exist_ok=True)
    write(root / "project", dict(files))
    return load_project(root / "project", libs=[str(root / "shelf")], **options)
