"""Projects made for one test, and what `check` finds in them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llm_do_mcp.check.examine import Report, examine
from llm_do_mcp.check.finding import Severity
from llm_do_mcp.project.hosting import PythonOptions
from llm_do_mcp.project.load import load_project
from tests.project.conftest import worker, write
from tests.project.shelf import shelve

MODEL = "anthropic:claude-haiku-4-5"
MAIN = worker(f"model: {MODEL}")


async def look(
    root: Path,
    files: Mapping[str, str],
    libraries: Mapping[str, Mapping[str, str]] | None = None,
    *,
    import_tools: bool = False,
    path: str = "",
    **options: Any,
) -> Report:
    """What is found in a project of these files, in `root/project`.

    Args:
        root: A folder for the test.
        files: The project's files.
        libraries: Libraries, in `root/shelf`.
        import_tools: `--import-tools`.
        path: What is looked at, below the project.
        options: For `load_project`.
    """
    shelve(root / "shelf", libraries or {})
    (root / "shelf").mkdir(exist_ok=True)
    write(root / "project", dict(files))
    where = os.path.join(root / "project", path)
    python = PythonOptions(classes=import_tools)
    shelf = [str(root / "shelf")] if libraries else []
    return await examine(
        where,
        lambda problems: load_project(where, libs=shelf, python=python, tolerated=problems, **options),
        import_tools=import_tools,
    )


def said(report: Report, severity: Severity) -> list[str]:
    """The findings of one severity, each in a line."""
    return [str(finding) for finding in report.of(severity)]
