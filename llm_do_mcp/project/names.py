"""Names as they are published: `[a-z0-9_]`, and short enough for every host."""

from __future__ import annotations

import hashlib
import re
import unicodedata

MAX_PUBLISHED = 40

_OPERATIONS = {"list": "files.list", "read_text": "files.read", "write_text": "files.write"}
_FILE_TOOL = re.compile(rf"files_(.+)_({'|'.join(_OPERATIONS)})\Z", re.IGNORECASE)


def slug(text: str) -> str:
    """A text as a published name; empty where nothing of it can be kept. Accents are dropped (`Pläne` → `plane`)."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "_", plain).strip("_")


def file_tool(name: str) -> tuple[str, str] | None:
    """The function and the alias of a name under which a client is given it, such as `files_notes_read_text`.

    Older files write it with a capital. None for what is no such name.
    """
    found = _FILE_TOOL.match(name)
    return (_OPERATIONS[found[2].lower()], slug(found[1])) if found else None


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
