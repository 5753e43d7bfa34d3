"""Reading text: what is taken for text, where it is cut, and what a write keeps."""

from __future__ import annotations

import codecs
import os
import subprocess
import sys

import pytest

from llm_do_mcp.errors import SandboxError
from tests.sandbox.conftest import World

LINES = "one\r\ntwo\rthree\u2028four\x0cfive\nno end"

TEXTS = {
    "utf-8": LINES.encode(),
    "utf-8 with mark": codecs.BOM_UTF8 + LINES.encode(),
    "utf-16 little": codecs.BOM_UTF16_LE + LINES.encode("utf-16-le"),
    "utf-16 big": codecs.BOM_UTF16_BE + LINES.encode("utf-16-be"),
}

NOT_TEXT = {
    "cp1252": ("caf\u00e9!".encode("cp1252"), "not utf-8 text: byte 3 is 0xe9"),
    "gbk": ("a中文".encode("gbk"), "not utf-8 text: byte 1 is 0xd6"),
    "utf-16 without mark": ("ab".encode("utf-16-le"), "a NUL character at byte 1"),
    "utf-16 big without mark": ("ab".encode("utf-16-be"), "a NUL character at byte 0"),
    "utf-16 with half a pair": (codecs.BOM_UTF16_LE + b"a\0\x00\xd8b\0", "not utf-16-le text: byte 4 is 0x00"),
    "utf-16 with half a unit": (codecs.BOM_UTF16_BE + b"\0a\0", "not utf-16-be text: byte 4 is 0x00"),
    "utf-32": ("a".encode("utf-32"), "a NUL character at byte 2"),
    "surrogate in utf-8": (b"ab\xed\xa0\x80", "not utf-8 text: byte 2 is 0xed"),
    "cut utf-8": ("abé".encode()[:-1], "not utf-8 text: byte 2 is 0xc3"),
    "NUL": ("é\0".encode(), "a NUL character at byte 2"),
    "NUL after mark": (codecs.BOM_UTF8 + b"a\0", "a NUL character at byte 4"),
    "pdf": (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "not utf-8 text: byte 10 is 0xe2"),
}


@pytest.mark.proves("A031")
@pytest.mark.parametrize("data", TEXTS.values(), ids=TEXTS)
def test_text_is_read_as_it_stands_and_written_back_the_same(world: World, data: bytes) -> None:
    (world.root / "text").write_bytes(data)
    with world.sandbox() as sandbox:
        read = sandbox.read_text("in", "text")
        assert (read.text, read.total_chars, read.truncated) == (LINES, len(LINES), False)
        assert sandbox.present("in", "text").text == LINES
        written = sandbox.write_text("in", "text", read.text)
    assert (world.root / "text").read_bytes() == data
    assert (written.bytes, written.created) == (len(data), False)


@pytest.mark.proves("A031")
@pytest.mark.parametrize(("data", "message"), NOT_TEXT.values(), ids=NOT_TEXT)
def test_what_is_not_text_is_refused_with_the_byte(world: World, data: bytes, message: str) -> None:
    (world.root / "file").write_bytes(data)
    with world.sandbox() as sandbox:
        with pytest.raises(SandboxError, match=rf"^in/file: .*{message}"):
            sandbox.read_text("in", "file")
        assert sandbox.read_bytes("in", "file", 100) == data


@pytest.mark.proves("A031")
def test_half_of_a_surrogate_pair_is_not_written(world: World) -> None:
    with world.sandbox() as sandbox, pytest.raises(SandboxError, match=r"character 2 is half of a surrogate pair"):
        sandbox.write_text("in", "file.txt", "ab\ud800")
    assert (world.root / "file.txt").read_text() == "INSIDE"


@pytest.mark.proves("A030")
def test_text_is_cut_between_characters_with_the_whole_length_told(world: World) -> None:
    content = "aé😀e\u0301\r\nz"
    (world.root / "text").write_bytes(content.encode())
    with world.sandbox() as sandbox:
        for size in range(1, len(content) + 1):
            parts = [sandbox.read_text("in", "text", size, offset) for offset in range(0, len(content), size)]
            assert "".join(part.text for part in parts) == content
            assert {part.total_chars for part in parts} == {len(content)}
            assert [part.truncated for part in parts] == [True] * (len(parts) - 1) + [False]
        beyond = sandbox.read_text("in", "text", 10, 1_000)
        assert (beyond.text, beyond.total_chars, beyond.truncated) == ("", len(content), False)
        for max_chars, offset in ((0, 0), (-1, 0), (1, -1)):
            with pytest.raises(SandboxError, match=r"max_chars must be at least 1 and offset at least 0"):
                sandbox.read_text("in", "text", max_chars, offset)


@pytest.mark.proves("A030", "SANDBOX-CAPS")
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
def test_the_cap_in_bytes_cuts_between_characters_too(world: World, encoding: str) -> None:
    content = "aé😀b" * 3
    data = (codecs.BOM_UTF16_LE if encoding == "utf-16-le" else b"") + content.encode(encoding)
    (world.root / "text").write_bytes(data)
    for cap in range(2, len(data)):
        with world.sandbox(max_file_bytes=cap) as sandbox:
            read = sandbox.read_text("in", "text")
        assert content.startswith(read.text)
        assert len(read.text) == read.total_chars
        assert (read.truncated, read.unread_bytes_from) == (True, cap)
    with world.sandbox(max_file_bytes=len(data)) as sandbox:
        assert sandbox.read_text("in", "text").truncated is False


@pytest.mark.proves("SANDBOX-CAPS")
def test_caps_hold_for_writes_and_attachments(world: World) -> None:
    with world.sandbox(max_file_bytes=6) as sandbox:
        with pytest.raises(SandboxError, match=r"^in/sub/file.txt: 7 bytes, allowed are 6$"):
            sandbox.write_text("in", "sub/file.txt", "ééé1")
        with pytest.raises(SandboxError, match=r"^in/file.txt: at least 6 bytes, allowed are 5$"):
            sandbox.read_bytes("in", "file.txt", 5)
        assert sandbox.read_bytes("in", "file.txt", 6) == b"INSIDE"
        assert sandbox.write_text("in", "sub/file.txt", "ééé").bytes == 6
    assert (world.root / "sub" / "file.txt").read_text() == "ééé"


GROWING_AND_SHRINKING = """
import itertools, os, sys
pattern = b"0123456789" * 20_000
print("ready", flush=True)
for number in itertools.count():
    with open(sys.argv[1], "wb", buffering=0) as file:
        for start in range(0, len(pattern), 20_000):
            file.write(pattern[start:start + 20_000])
    os.truncate(sys.argv[1], number * 7919 % len(pattern))
"""


@pytest.mark.proves("A029")
def test_a_file_that_grows_and_shrinks_gives_a_prefix_or_one_line(world: World) -> None:
    path = world.root / "moving.txt"
    path.touch()
    writer = subprocess.Popen([sys.executable, "-c", GROWING_AND_SHRINKING, str(path)], stdout=subprocess.PIPE)
    try:
        assert writer.stdout is not None
        writer.stdout.readline()
        pattern = "0123456789" * 20_000
        lengths: set[int] = set()
        refused = 0
        with world.sandbox() as sandbox:
            while len(lengths) < 5 and refused < 10_000:
                try:
                    text = sandbox.read_text("in", "moving.txt").text
                except SandboxError as error:  # the kernel shows the end of a file that is cut meanwhile as zeros
                    assert "a NUL character at byte" in str(error)
                    refused += 1
                    continue
                assert pattern.startswith(text)
                lengths.add(len(text))
        assert len(lengths) == 5, "the file must have changed between the reads"
    finally:
        writer.kill()
        writer.communicate()
    assert os.path.exists(path)
