"""Names as they are published: `[a-z0-9_]`, and short enough for every host."""

from __future__ import annotations

import hashlib
import re
import unicodedata

MAX_PUBLISHED = 40


def slug(text: str) -> str:
    """A text as a published name; empty where nothing of it can be kept. Accents are dropped (`Pläne` → `plane`)."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "_", plain).strip("_")


def published_name(text: str, most: int = MAX_PUBLISHED) -> str:
    """The name of a tool for a worker's id or a project's name: a slug, cut where it is too long but still its own.

    Args:
        text: What it is made from.
        most: Characters that it may have.
    """
    name = slug(text)
    if len(name) <= most:
        return name
    digest = hashlib.sha256(text.encode()).hexdigest()[:6]
    return f"{name[: most - 7]}_{digest}"
