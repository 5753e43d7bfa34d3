"""What a question says of a write: each difference can be seen, whatever kind it is of."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest

from llm_do_mcp.runtime.gate import DETAIL_CHARS
from llm_do_mcp.sandbox.files import Sandbox
from llm_do_mcp.sandbox.root import Root
from llm_do_mcp.toolsets.difference import difference

NO_END = "\n\\ No newline at end of file"
LONG = ["".join(f"{letter}{n}\n" for n in range(5000)) for letter in "ab"]


def shown(folder: Path, before: bytes | None, content: str) -> str:
    """What is said of a write, which is then made; the file must hold what was said."""
    if before is not None:
        (folder / "a.md").write_bytes(before)
    with Sandbox([Root("out", str(folder), "rw")]) as sandbox:
        said = difference(sandbox.present("out", "a.md"), content, most=DETAIL_CHARS)
        sandbox.write_text("out", "a.md", content)
    return said


@pytest.mark.proves("ASK-DIFFERENCE")
@pytest.mark.parametrize(
    ("before", "content", "said"),
    [
        (b"one\n", "two\n", "--- now\n+++ then\n@@ -1 +1 @@\n-one\n+two"),
        (None, "one\n", "--- (no file)\n+++ then\n@@ -0,0 +1 @@\n+one"),
        (None, "", "The file would be empty."),
        (b"one\n", "one\n", "It already holds exactly this content."),
        (b"one\n", "one", f"--- now\n+++ then\n@@ -1 +1 @@\n-one\n+one{NO_END}"),
        (b"one", "one\n", f"--- now\n+++ then\n@@ -1 +1 @@\n-one{NO_END}\n+one"),
        (b"one\ntwo\n", "one\r\ntwo\r\n", "Only line ends change: 2 LF now, 2 CRLF then."),
        (b"one\ntwo\n", "one\r\ntwo\n", "Only line ends change: 2 LF now, 1 CRLF and 1 LF then."),
        (b"a\nb\n", "a\r\nc\r\n", "Line ends change: 2 LF now, 2 CRLF then.\n--- now"),
        ("a\u2028b\n".encode(), "a\nb\n", "-a\u2028b\n+a\n+b"),
    ],
)
def test_a_difference_of_any_kind_is_seen(tmp_path: Path, before: bytes | None, content: str, said: str) -> None:
    assert said in shown(tmp_path, before, content)
    assert (tmp_path / "a.md").read_bytes() == content.encode()


@pytest.mark.proves("ASK-DIFFERENCE")
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["without the mark", "with the mark"])
@pytest.mark.parametrize(
    ("bom", "encoding", "said"),
    [
        (codecs.BOM_UTF8, "utf-8", "The file begins with a UTF-8 byte order mark, and keeps it."),
        (codecs.BOM_UTF16_LE, "utf-16-le", "The file is UTF-16, little endian, and stays so."),
    ],
)
def test_an_encoding_that_is_kept_is_said(tmp_path: Path, bom: bytes, encoding: str, said: str, mark: str) -> None:
    assert (
        shown(tmp_path, bom + "neu".encode(encoding), f"{mark}neu") == f"It already holds exactly this content.\n{said}"
    )
    assert shown(tmp_path, bom + "alt\n".encode(encoding), f"{mark}neu\n").startswith(f"{said}\n--- now")
    assert (tmp_path / "a.md").read_bytes() == bom + "neu\n".encode(encoding), "with one mark"


@pytest.mark.proves("ASK-DIFFERENCE")
def test_what_cannot_be_shown_is_said(tmp_path: Path) -> None:
    said = "(its present content cannot be shown: out/a.md: not text: a NUL character at byte 1)"
    assert shown(tmp_path, "alt".encode("utf-16-le"), "neu") == said


@pytest.mark.proves("ASK-DIFFERENCE")
def test_of_a_long_difference_both_sides_are_shown(tmp_path: Path) -> None:
    lines = shown(tmp_path, LONG[0].encode(), LONG[1]).split("\n")
    assert lines[0] == "Lines that go: 5000; that come: 5000."
    assert lines[4:] == [
        *(f"-a{n}" for n in range(6)),
        "… (4988 more such lines)",
        *(f"-a{n}" for n in range(4994, 5000)),
        *(f"+b{n}" for n in range(6)),
        "… (4988 more such lines)",
        *(f"+b{n}" for n in range(4994, 5000)),
    ]
