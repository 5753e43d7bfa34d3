"""What a library consists of."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from llm_do_mcp.errors import InvalidFile
from llm_do_mcp.project import contents
from tests.project.conftest import problems, write

LIBRARY = {"lib.yaml": "name: utils\n", "workers/a.worker": "x", "templates/é.jinja": "y"}
posix = pytest.mark.skipif(sys.platform == "win32", reason="no such files there")


@pytest.mark.proves("LIB-CONTENTS")
def test_all_files_count_and_nothing_that_a_tool_leaves_behind(tmp_path: Path) -> None:
    write(tmp_path, LIBRARY)
    files = contents.digests(str(tmp_path))
    assert files == {path: hashlib.sha256(text.encode()).hexdigest() for path, text in LIBRARY.items()}
    before = contents.content_hash(files)
    left = (".git/config", ".venv/x.py", "tools/__pycache__/x.pyc", ".llm-do/runs", "node_modules/a.js", ".DS_Store")
    write(tmp_path, dict.fromkeys(left, "z"))
    assert contents.content_hash(contents.digests(str(tmp_path))) == before
    write(tmp_path, {".hidden/x": "part of it"})
    assert contents.content_hash(contents.digests(str(tmp_path))) != before


@posix
@pytest.mark.proves("LIB-CONTENTS")
def test_a_link_to_a_file_inside_is_that_file(tmp_path: Path) -> None:
    write(tmp_path, LIBRARY)
    (tmp_path / "b").symlink_to("workers/a.worker")
    files = contents.digests(str(tmp_path))
    assert files["b"] == files["workers/a.worker"]


def _link_out(root: Path) -> None:
    (root.parent / "secret").write_text("s")
    (root / "bad").symlink_to("../secret")


def _absolute_link(root: Path) -> None:
    (root / "bad").symlink_to(root / "lib.yaml")


def _link_to_folder(root: Path) -> None:
    (root / "bad").symlink_to("workers")


def _broken_link(root: Path) -> None:
    (root / "bad").symlink_to("nowhere")


def _fifo(root: Path) -> None:
    os.mkfifo(root / "bad")


def _too_large(root: Path) -> None:
    with (root / "bad").open("wb") as file:
        file.truncate(contents.MAX_FILE_BYTES + 1)


def _line_end(root: Path) -> None:
    (root / "bad\nname").write_text("x")


def _not_utf8(root: Path) -> None:
    with open(os.fsencode(root) + b"/bad\xff", "wb"):
        pass


@posix
@pytest.mark.proves("LIB-CONTENTS-REFUSED")
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_link_out, "bad: a link that leads outside; a library is complete in itself"),
        (_absolute_link, "bad: a link that leads outside; a library is complete in itself"),
        (_link_to_folder, "bad: a link to a folder; put the folder itself there"),
        (_broken_link, "bad: no such file or folder; a library is complete in itself"),
        (_fifo, "bad: not a regular file"),
        (_too_large, "bad: 10,000,001 bytes; a file of a library may have 10,000,000"),
        (_line_end, "bad\\nname: a name with characters that need escaping; rename it"),
        pytest.param(
            _not_utf8,
            "bad\\xff: a name with characters that need escaping; rename it",
            marks=pytest.mark.skipif(sys.platform == "darwin", reason="refuses such names itself"),
        ),
    ],
)
def test_what_cannot_be_part_of_a_library_is_named(tmp_path: Path, make: Callable[[Path], None], words: str) -> None:
    root = tmp_path / "utils"
    write(root, LIBRARY)
    make(root)
    with pytest.raises(InvalidFile) as caught:
        contents.digests(str(root))
    assert problems(caught.value) == [words]


@pytest.mark.proves("LIB-CONTENTS-REFUSED")
def test_a_library_has_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, LIBRARY)
    monkeypatch.setattr(contents, "MAX_FILES", 2)
    monkeypatch.setattr(contents, "MAX_BYTES", 10)
    with pytest.raises(InvalidFile) as caught:
        contents.digests(str(tmp_path))
    assert problems(caught.value) == [
        "more than 2 files, the most that a library may have",
        "14 bytes in all; a library may have 10",
    ]
