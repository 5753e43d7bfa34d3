"""What is no regular file, cannot be read, or has no end."""

from __future__ import annotations

import os
import socket
import sys
import tracemalloc
from collections.abc import Sequence
from typing import Any

import pytest

from llm_do_mcp.errors import SandboxError
from llm_do_mcp.sandbox.backend import Backend
from llm_do_mcp.sandbox.files import MAX_LISTED, Sandbox
from llm_do_mcp.sandbox.root import Root
from tests.sandbox.conftest import OPERATIONS, World, unprivileged

TERABYTE = 1 << 40


@pytest.mark.proves("A023")
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
def test_a_fifo_or_socket_is_refused_and_never_waited_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(world.root / "fifo")
    monkeypatch.chdir(world.root)  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        (world.root / "link").symlink_to("fifo")
        with world.sandbox() as sandbox:
            for path in ("fifo", "socket", "link"):
                for name, operation in OPERATIONS.items():
                    with pytest.raises(SandboxError, match=r"not a regular file|not a folder|a link on the way"):
                        operation(sandbox, path)
                    assert (world.root / path).exists(), name
            listing = sandbox.list("in")
            assert [entry.path for entry in listing.entries if "/" not in entry.path] == ["file.txt"]
            assert sorted(listing.skipped) == [f"in/{name}: not a regular file" for name in ("fifo", "link", "socket")]


@pytest.mark.proves("A023")
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
@pytest.mark.parametrize("device", ["zero", "null", "random", "tty"])
def test_a_device_is_refused(world: World, device: str) -> None:
    with Sandbox([Root("in", "/dev")], backend=world.backend) as sandbox, pytest.raises(SandboxError, match=r"^in/"):
        sandbox.read_text("in", device)


@pytest.mark.proves("A023")
def test_a_folder_is_no_file(world: World) -> None:
    with world.sandbox() as sandbox:
        for name in ("read_text", "read_bytes", "present", "write_text"):
            with pytest.raises(SandboxError, match=r"^in/sub: a folder, not a file"):
                OPERATIONS[name](sandbox, "sub")


@pytest.mark.proves("A025")
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_file_without_a_size_is_read_up_to_the_cap(world: World) -> None:
    root = Root("in", f"/proc/{os.getpid()}", max_file_bytes=64)
    with Sandbox([root], backend=world.backend) as sandbox:
        read = sandbox.read_text("in", "status")
        assert (len(read.text), read.truncated, read.unread_bytes_from) == (64, True, 64)
        with pytest.raises(SandboxError, match=r"at least 65 bytes, allowed are 64"):
            sandbox.read_bytes("in", "status", 1_000)
        with pytest.raises(SandboxError):
            sandbox.read_text("in", "mem")


@pytest.mark.proves("A026")
@pytest.mark.skipif(sys.platform == "win32", reason="permissions are something else on Windows")
def test_what_may_not_be_read_is_named_and_the_rest_is_served(held_world: World) -> None:
    root = held_world.root
    (root / "shut.txt").write_text("no")
    (root / "shut").mkdir()
    (root / "shut" / "inner.txt").write_text("no")
    (root / "no search").mkdir()
    (root / "shut.txt").chmod(0)
    (root / "shut").chmod(0)
    (root / "no search").chmod(0o444)
    with held_world.sandbox() as sandbox:
        sandbox.list("in")  # opens the root while we may
        with unprivileged():
            for path in ("shut.txt", "shut/inner.txt", "no search/x"):
                with pytest.raises(SandboxError, match=rf"^in/{path}: no permission$"):
                    sandbox.read_text("in", path)
            with pytest.raises(SandboxError, match=r"^in/shut/new.txt: no permission$"):
                sandbox.write_text("in", "shut/new.txt", "x")
            listing = sandbox.list("in")
            assert {entry.path for entry in listing.entries} > {"file.txt", "sub/file.txt"}
            assert "in/shut: no permission" in listing.skipped
            assert sandbox.read_text("in", "sub/file.txt").text == "INSIDE"
    (root / "shut").chmod(0o755)
    (root / "no search").chmod(0o755)


@pytest.mark.proves("A027", "A028")
@pytest.mark.skipif(sys.platform != "linux", reason="not every file system has sparse files")
def test_a_huge_file_is_read_up_to_the_cap(world: World) -> None:
    zeros, line = world.root / "zeros.bin", world.root / "line.txt"
    for path, head in ((zeros, b""), (line, b"x" * 2_000_000)):
        path.write_bytes(head)
        os.truncate(path, TERABYTE)
    with world.sandbox(max_file_bytes=1_000_000) as sandbox:
        tracemalloc.start()
        try:
            with pytest.raises(SandboxError, match=r"^in/zeros.bin: not text: a NUL character at byte 0"):
                sandbox.read_text("in", "zeros.bin")
            read = sandbox.read_text("in", "line.txt", max_chars=100)
            with pytest.raises(SandboxError, match=rf"^in/zeros.bin: at least {TERABYTE} bytes, allowed are 1000000$"):
                sandbox.read_bytes("in", "zeros.bin", 10_000_000)
            assert tracemalloc.get_traced_memory()[1] < 10_000_000
        finally:
            tracemalloc.stop()
        assert (read.text, read.total_chars, read.unread_bytes_from) == ("x" * 100, 1_000_000, 1_000_000)
        assert {entry.bytes for entry in sandbox.list("in", "*.bin").entries} == {TERABYTE}
        assert "larger than the 1000000 bytes" in sandbox.present("in", "line.txt").problem


@pytest.mark.proves("A028", "SANDBOX-LISTING")
@pytest.mark.torture
def test_a_full_folder_is_listed_up_to_the_cap(world: World, torture_scaled) -> None:  # type: ignore[no-untyped-def]
    count = torture_scaled(2_000, 100_000)
    folder = world.root / "many"
    folder.mkdir()
    for number in range(count):
        (folder / f"{number:06}").touch()
    with world.sandbox() as sandbox:
        listing = sandbox.list("in", "many/*")
    assert [entry.path for entry in listing.entries] == [f"many/{number:06}" for number in range(MAX_LISTED)]
    assert listing.more == count - MAX_LISTED


class Watched:
    """Notes which folders are looked into."""

    def __init__(self, backend: Backend[Any]) -> None:
        self._backend = backend
        self.scanned: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def scan(self, base: Any, parts: Sequence[str], **options: Any) -> Any:
        self.scanned.append("/".join(parts))
        return self._backend.scan(base, parts, **options)


@pytest.mark.proves("COMPLETION-MANY")
def test_for_the_first_paths_that_begin_so_nothing_else_is_looked_into(world: World) -> None:
    for name in ("Ann/a.md", "anton/b.md", "anton/deep/c.md", "bo/d.md", "zoe/e.md"):
        path = world.root / "many" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    watched = Watched(world.backend)
    with Sandbox([Root("in", str(world.root))], backend=watched) as sandbox:
        every = sandbox.first("in", "MANY/an", 9, lambda path: not path.endswith("b.md"))
        assert every == ("many/Ann/a.md", "many/anton/deep/c.md")
        assert watched.scanned == ["", "many", "many/Ann", "many/anton", "many/anton/deep"]
        del watched.scanned[:]
        assert sandbox.first("in", "many/", 1, lambda path: True) == ("many/Ann/a.md",)
        assert watched.scanned == ["", "many", "many/Ann"]


@pytest.mark.proves("A028")
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no paths of that length")
def test_deep_folders_are_listed_and_read(world: World) -> None:
    deep = world.root.joinpath(*["d"] * 200)
    deep.mkdir(parents=True)
    (deep / "bottom.txt").write_text("bottom")
    too_deep = world.root.joinpath(*["e"] * 260)
    too_deep.mkdir(parents=True)
    with world.sandbox() as sandbox:
        path = "/".join([*["d"] * 200, "bottom.txt"])
        assert sandbox.read_text("in", path).text == "bottom"
        listing = sandbox.list("in", "**/bottom.txt")
        assert [entry.path for entry in listing.entries] == [path]
        assert len(listing.skipped) == 1
        assert listing.skipped[0].endswith("too deep: 257 folders, allowed are 256")
