"""What lies in a folder and is part of nothing: what a repository, an environment or a cache keeps there.

Whoever lists, hashes or copies leaves it out; so no code of a library is imported from it either, which nobody would
have looked at.
"""

from __future__ import annotations

SKIPPED = frozenset({".git", ".venv", "__pycache__", "node_modules"})
"""Folders that no scan for workers enters, besides the state folder, which no project file lies in."""

LEFT_OUT = SKIPPED | {".hg", ".svn", ".tox", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".DS_Store"}
"""Names that are no part of a library, besides the state folder."""


def complaint(path: str) -> str | None:
    """What is wrong with a file that a library is to use, by its path in it with `/`; None where it is a part of it."""
    left = next((part for part in path.split("/") if part in LEFT_OUT), None)
    return None if left is None else f"what is in {left} is no part of a library; move it"
