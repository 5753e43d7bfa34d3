"""What can be attached, told from the bytes."""

from __future__ import annotations

import pytest

from llm_do_mcp.errors import InvalidInput
from llm_do_mcp.models.attachments import attachment

PDF = b"%PDF-1.7\n1 0 obj\nendobj\nstartxref\n9\n%%EOF\n"
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


@pytest.mark.parametrize(
    ("name", "data", "media_type"),
    [
        ("in/a.pdf", PDF, "application/pdf"),
        ("in/A.PDF", b"junk before\n" + PDF + b"\n\n", "application/pdf"),
        ("in/scan", PDF, "application/pdf"),
        ("in/a.png", PNG, "image/png"),
        ("in/a.JPEG", b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
        ("in/a.gif", b"GIF89a\1\0\1\0", "image/gif"),
        ("in/a.webp", b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
        ("in/a.md", "# Übersicht".encode(), "text/plain"),
        ("in/windows.txt", "\ufeffNotepad".encode("utf-16-le"), "text/plain"),
        ("in/archive.tar.csv", b"a;b\n", "text/plain"),
    ],
)
@pytest.mark.proves("MODEL-ATTACHMENTS")
def test_a_media_type_is_read_from_the_bytes(name: str, data: bytes, media_type: str) -> None:
    assert attachment(name, data) == {"type": "attachment", "name": name, "media_type": media_type, "data": data}


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("in/a.pdf", b"", "in/a.pdf: the file is empty"),
        ("in/a.pdf", PDF[:20], "in/a.pdf: the PDF is cut short or damaged"),
        ("in/a.pdf", b"trailer<< /Encrypt 5 0 R >>".join((PDF[:18], PDF[18:])), "in/a.pdf: the PDF is encrypted"),
        ("in/a.pdf", PNG, "in/a.pdf: named .pdf, but its content is image/png"),
        ("in/a.pdf", b"just words", "in/a.pdf: named .pdf, but its content is text/plain"),
        ("in/a.pdf.exe", PDF, "in/a.pdf.exe: named .exe, but its content is application/pdf"),
        ("in/a.txt", PNG, "in/a.txt: named .txt, but its content is image/png"),
        ("in/a.bin", b"\x7fELF\2\1\1\0\xff", "in/a.bin: neither PDF"),
        ("in/a.txt", "Grüße".encode("latin-1"), "in/a.txt: neither PDF"),
        ("in/a.txt", b"a\0b", "in/a.txt: neither PDF"),
    ],
)
@pytest.mark.proves("MODEL-ATTACHMENTS")
def test_what_a_model_cannot_be_sent_is_refused(name: str, data: bytes, says: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        attachment(name, data)
    assert str(caught.value).startswith(says)
