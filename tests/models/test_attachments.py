"""What can be attached, told from the bytes."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from llm_do_mcp.errors import InvalidInput, SandboxError
from llm_do_mcp.models.attachments import as_text, attachment
from llm_do_mcp.sandbox.files import Sandbox
from llm_do_mcp.sandbox.root import Root

PDF = b"%PDF-1.7\n1 0 obj\nendobj\nstartxref\n9\n%%EOF\n"
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


def indexed(index: bytes) -> bytes:
    """A PDF with this index, whose text tells how PDFs are encrypted."""
    before = b"%PDF-1.7\n1 0 obj\n(write trailer << /Encrypt 5 0 R >>)\nendobj\n"
    return b"%s%s\nstartxref\n%d\n%%%%EOF\n" % (before, index, len(before))


@pytest.mark.parametrize(
    ("name", "data", "media_type"),
    [
        ("in/a.pdf", PDF, "application/pdf"),
        ("in/A.PDF", b"junk before\n" + PDF + b"\n\n", "application/pdf"),
        ("in/scan", PDF, "application/pdf"),
        ("in/about.pdf", indexed(b"xref\n0 1\ntrailer\n<< /Root 1 0 R >>"), "application/pdf"),
        ("in/about.pdf", indexed(b"7 0 obj<</Type/XRef>>stream\n/Encrypt 5 0 R"), "application/pdf"),
        ("in/a.png", PNG, "image/png"),
        ("in/a.JPEG", b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
        ("in/a.gif", b"GIF89a\1\0\1\0", "image/gif"),
        ("in/a.webp", b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
        ("in/a.md", "# Übersicht".encode(), "text/plain"),
        ("in/windows.txt", "\ufeffNotepad".encode("utf-16-le"), "text/plain"),
        ("in/archive.tar.csv", b"a;b\n", "text/plain"),
        ("in/about.txt", b"A PDF begins with %PDF-1.7.\n", "text/plain"),
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
        ("in/a.pdf", indexed(b"xref\n0 1\ntrailer\n<< /Encrypt 5 0 R >>"), "in/a.pdf: the PDF is encrypted"),
        ("in/a.pdf", b"junk\n" + indexed(b"xref trailer<</Encrypt<</V 1>>>>"), "in/a.pdf: the PDF is encrypted"),
        ("in/a.pdf", indexed(b"7 0 obj<</Type/XRef/Encrypt 6 0 R>>stream\n"), "in/a.pdf: the PDF is encrypted"),
        ("in/a.pdf", PNG, "in/a.pdf: named .pdf, but its content is image/png"),
        ("in/a.pdf", b"just words", "in/a.pdf: named .pdf, but its content is text/plain"),
        ("in/a.pdf.exe", PDF, "in/a.pdf.exe: named .exe, but its content is application/pdf"),
        ("in/a.txt", b"junk\xff\n" + PDF, "in/a.txt: named .txt, but its content is application/pdf"),
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


@pytest.mark.proves("MODEL-ATTACHMENTS")
def test_a_name_stays_in_its_line() -> None:
    assert as_text("in/a\nb.txt", b"text") == "Attachment in/a\\nb.txt:\n\ntext"


@pytest.mark.proves("A065")
def test_a_file_that_is_swapped_while_it_is_read_is_one_of_the_two(tmp_path: Path) -> None:
    """A PDF and a picture that is too large take each other's place under one name."""
    folder = tmp_path / "in"
    folder.mkdir()
    large = PNG + bytes(300_000)
    for name, data in (("small", PDF), ("large", large), ("a.pdf", PDF)):
        (folder / name).write_bytes(data)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            for name in ("large", "small"):
                os.link(folder / name, folder / "next")
                os.replace(folder / "next", folder / "a.pdf")

    swapper = threading.Thread(target=swap)
    swapper.start()
    seen: set[str] = set()
    try:
        sandbox, ample = Sandbox((Root("in", str(folder)),)), 1_000_000
        for _ in range(2000):
            for most in (len(PDF), ample):
                try:
                    data = sandbox.read_bytes("in", "a.pdf", most)
                except SandboxError as error:
                    assert most == len(PDF) and "allowed are" in str(error)
                    seen.add("too large")
                    continue
                assert len(data) <= most
                try:
                    assert attachment("in/a.pdf", data)["data"] == PDF
                    seen.add("taken")
                except InvalidInput as error:
                    assert data == large and "its content is image/png" in str(error)
                    seen.add("another type")
            if len(seen) == 3:
                break
    finally:
        stop.set()
        swapper.join()
    assert seen == {"taken", "too large", "another type"}
