"""The built-in library `pkg`: the workers and templates that every project has, and that its own go before."""

from __future__ import annotations

import os
from functools import cache

from llm_do_mcp.project.library import Library, read_library
from llm_do_mcp.project.references import BUILT_IN

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "built_in")


@cache
def library() -> Library:
    """The library; its files are part of this package."""
    return read_library(FOLDER, BUILT_IN)
