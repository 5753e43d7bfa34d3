"""Attachments: a file's bytes with a media type that was read from the bytes, not believed from the name.

A model is sent PDF documents, images and text. Anything else would be refused by the API one turn later, or
silently dropped by a local server, so it is refused here, where the caller can still choose another file.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

from llm_do_mcp.errors import InvalidInput
from llm_do_mcp.sandbox.names import shown
from llm_do_mcp.sandbox.text import NotText, decode

PDF = "application/pdf"
TEXT = "text/plain"
IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")

_SUFFIXES = {
    PDF: (".pdf",),
    "image/png": (".png",),
    "image/jpeg": (".jpg", ".jpeg"),
    "image/gif": (".gif",),
    "image/webp": (".webp",),
}
_PDF = b"%PDF-"
_ENCRYPTED = re.compile(rb"/Encrypt(?:\s+\d+\s+\d+\s+R|\s*<<)")
_INDEX = re.compile(rb"startxref\s+(\d{1,12})")
_TAIL = 2048  # where a PDF says where its index is; readers allow some junk after it


def attachment(name: str, data: bytes) -> dict[str, Any]:
    """The content block of a file.

    Args:
        name: The name a person knows it by, `alias/path`.
        data: The whole file.

    Raises:
        InvalidInput: Empty, of no kind that a model can be sent, not what its suffix says, or a PDF that is
            cut or encrypted.
    """
    if not data:
        raise InvalidInput(f"{name}: the file is empty; attach one with content")
    suffix = PurePosixPath(name).suffix.lower()
    media_type = sniffed(data, suffix)
    if media_type is None:
        raise InvalidInput(f"{name}: neither PDF, PNG, JPEG, GIF, WebP nor text; only these can be attached")
    claimed = next((kind for kind, suffixes in _SUFFIXES.items() if suffix in suffixes), None)
    if (claimed or (suffix and media_type in _SUFFIXES)) and claimed != media_type:
        raise InvalidInput(f"{name}: named {suffix}, but its content is {media_type}; give it the right suffix")
    if media_type == PDF and b"startxref" not in data[-_TAIL:]:
        raise InvalidInput(f"{name}: the PDF is cut short or damaged (no startxref at its end); attach a whole one")
    if media_type == PDF and _is_encrypted(data):
        raise InvalidInput(f"{name}: the PDF is encrypted; attach one that opens without a password")
    return {"type": "attachment", "name": name, "media_type": media_type, "data": data}


def _is_encrypted(data: bytes) -> bool:
    """Whether a PDF's index says so, which stands in the clear; what its text says does not count."""
    found = _INDEX.match(data, data.rfind(b"startxref"))
    begins = data.find(_PDF) + int(found[1]) if found is not None else len(data)
    if data[begins : begins + 32].lstrip().startswith(b"xref"):  # a table, with its trailer behind it
        begins, end = data.find(b"trailer", begins), data.find(b"startxref", begins)
    else:  # a stream, of which the dictionary is in front
        end = data.find(b"stream", begins)
    return _ENCRYPTED.search(data, begins, end if end >= 0 else len(data)) is not None


def as_text(name: str, data: bytes) -> str:
    """What a model is told of a text file: its name in one line, whatever it is, and the text."""
    return f"Attachment {shown(name)}:\n\n{decode(data, whole=True)}"


def sniffed(data: bytes, suffix: str) -> str | None:
    """The media type that bytes show; None where they are of no kind that a model can be sent.

    Args:
        data: The whole file.
        suffix: Of its name, for what may be two things: a PDF with junk before it, or a text about PDF.
    """
    if data.startswith(_PDF) or (_PDF in data[:1024] and (suffix in ("", *_SUFFIXES[PDF]) or not _is_text(data))):
        return PDF
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    return TEXT if _is_text(data) else None


def _is_text(data: bytes) -> bool:
    try:
        decode(data, whole=True)
    except NotText:
        return False
    return True
