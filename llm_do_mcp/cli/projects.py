"""The project that a command is about, with what the environment says."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llm_do_mcp.project.load import Project


def load(path: str | None, *, no_project: bool = False) -> Project:
    """Load a project: the one named, else `LLM_DO_PROJECT`, else the working directory's.

    Workers for which neither they nor the manifest name a model have that of `LLM_DO_MODEL`.
    """
    from llm_do_mcp.project.load import load_project

    chosen = path or os.environ.get("LLM_DO_PROJECT") or "."
    return load_project(chosen, no_project=no_project, default_model=os.environ.get("LLM_DO_MODEL") or None)
