"""Reading without a wait: the whole of a small file that is in memory, or nothing."""

from __future__ import annotations

import os
import sys

import pytest

from llm_do_mcp.errors import FileMissing, SandboxError
from llm_do_mcp.sandbox.opener import SMALL, WouldWait
from tests.sandbox.conftest import World

TEXT = "read at once\n"


@pytest.mark.proves("SANDBOX-AT-ONCE")
def test_a_small_file_is_the_same_read_at_once_where_the_system_can(world: World) -> None:
    (world.root / "note.md").write_text(TEXT)
    with world.usual_and_hasty() as (usual, hasty):
        with pytest.raises(WouldWait):
            hasty.read_text("in", "note.md")  # the folder itself is not open yet
        expected = usual.read_text("in", "note.md", 4, 5)
        fd = os.open(world.root / "note.md", os.O_RDONLY)
        gives = world.backend.gives_at_once(fd)
        os.close(fd)
        if gives:
            assert hasty.read_text("in", "note.md", 4, 5) == expected
            (world.root / "note.md").write_text("changed")
            assert hasty.read_text("in", "note.md").text == "changed"
        else:
            with pytest.raises(WouldWait):
                hasty.read_text("in", "note.md")


@pytest.mark.proves("SANDBOX-AT-ONCE", "A023")
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
@pytest.mark.parametrize("name", ["large.md", "link.md", "out.md", "linked/file.txt", "fifo.md", "sub", "missing.md"])
def test_whatever_else_there_is_is_left_to_whoever_may_wait(world: World, name: str) -> None:
    (world.root / "large.md").write_text("x" * (SMALL + 1))
    (world.root / "link.md").symlink_to("file.txt")
    (world.root / "out.md").symlink_to(world.outside / "file.txt")
    (world.root / "linked").symlink_to(world.outside)
    os.mkfifo(world.root / "fifo.md")
    with world.usual_and_hasty() as (usual, hasty):
        usual.read_text("in", "file.txt")
        with pytest.raises(WouldWait):
            hasty.read_text("in", name)


@pytest.mark.proves("SANDBOX-AT-ONCE", "SANDBOX-HIDDEN", "SANDBOX-CAPS")
def test_what_is_refused_is_refused_at_once_and_a_cap_holds(world: World) -> None:
    (world.root / ".llm-do").mkdir()
    (world.root / ".llm-do" / "runs.sqlite3").write_text("SECRET")
    with world.usual_and_hasty(max_file_bytes=5) as (usual, hasty):
        assert usual.read_text("in", "file.txt").truncated
        with pytest.raises(FileMissing):
            hasty.read_text("in", ".llm-do/runs.sqlite3")
        with pytest.raises(SandboxError, match="not allowed"):
            hasty.read_text("in", "../outside/file.txt")
        with pytest.raises(WouldWait):
            hasty.read_text("in", "file.txt")  # longer than may be read
