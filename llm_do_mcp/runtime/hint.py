"""Command lines that people are told to type: whole, so that they do the same wherever they are pasted."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llm_do_mcp.project.load import Project

Hint = Callable[..., str]
"""`hint("trace", run)` is the line that shows a run."""


def plain(*words: str) -> str:
    """The line for whoever is in the project's folder."""
    line = ["llm-do", *words]
    return subprocess.list2cmdline(line) if sys.platform == "win32" else shlex.join(line)


def of_project(project: Project, state_dir: str | None) -> Hint:
    """What makes lines that name a project, how it was loaded and, where it is not the usual place, its state.

    Args:
        project: What the lines are about.
        state_dir: `--state-dir`.
    """
    named = ["--project", project.given, *["--no-project"] * project.alone]
    named += [word for folder in project.libs for word in ("--lib", folder)]
    named += ["--no-import-tools"] * (not project.python.imported)
    named += ["--allow-module-imports"] * project.python.module_imports
    if state_dir is not None:
        named += ["--state-dir", os.path.abspath(os.path.expanduser(state_dir))]
    return lambda *words: plain(*words, *named)
