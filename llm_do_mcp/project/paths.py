"""Paths that are written in a project's files: relative, with `/`, and never leading out of the project."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

from llm_do_mcp.project.checked import Text, quoted

_CONTROL = re.compile("[\x00-\x1f\x7f]")
_DRIVE = re.compile("[A-Za-z]:")


def project_path(text: str) -> str:
    """The normal form of a path relative to the project: without `./`, doubled or closing slashes; "" is the root.

    Raises:
        ValueError: It is not of that kind.
    """
    shown = quoted(text)
    if not text or len(text) > 1000 or _CONTROL.search(text):
        raise ValueError(f"{shown} is not a path")
    if text.startswith(("/", "~", "$")) or "\\" in text or _DRIVE.match(text):
        raise ValueError(f"{shown} is not relative to the project; write it with / and without a leading / or ~")
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise ValueError(f"{shown} has '..'; only what lies inside the project can be named")
    return "/".join(parts)


ProjectPath = Annotated[Text, AfterValidator(project_path)]
"""A key's value that is a path inside the project, in its normal form."""


def join(*parts: str) -> str:
    """Project paths joined; empty ones are left out."""
    return "/".join(part for part in parts if part)


def parent(path: str) -> str:
    """The folder that a project path lies in; "" is the project's root."""
    return path.rpartition("/")[0]
