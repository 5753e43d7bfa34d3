"""Links: inside they may be read through, and nothing else about them works."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from llm_do_mcp.errors import SandboxError
from llm_do_mcp.sandbox.files import Handles, Sandbox
from llm_do_mcp.sandbox.finalpath import OpenThenVerify
from llm_do_mcp.sandbox.opener import Directory
from llm_do_mcp.sandbox.root import Root
from tests.sandbox.conftest import OPERATIONS, READING, SECRET, World

LEADING_OUT = {
    "absolute": "/etc/passwd",
    "absolute folder": "/etc",
    "up": "..",
    "relative": "../outside/file.txt",
    "sibling": "../root-evil",
    "other root": "../outside",
    "round": "sub/../../outside/file.txt",
    "itself": "itself",
    "dangling": "nowhere",
    "magic": "/proc/self/root/etc/passwd",
    "standard input": "/proc/self/fd/0",
    "device": "/dev/zero",
    "stdin": "/dev/stdin",
}


@pytest.mark.proves("A007", "A013", "A015", "A023")
@pytest.mark.parametrize("target", LEADING_OUT.values(), ids=LEADING_OUT)
@pytest.mark.parametrize("below", ["", "/file.txt"], ids=["itself", "below"])
def test_a_link_that_leads_out_is_refused(world: World, target: str, below: str) -> None:
    around = world.around()
    (world.root / (target if target == "itself" else "link")).symlink_to(target)
    path = ("itself" if target == "itself" else "link") + below
    with world.sandbox() as sandbox:
        for name, operation in OPERATIONS.items():
            with pytest.raises(SandboxError) as refused:
                operation(sandbox, path)
            assert str(refused.value).startswith(f"in/{path}: "), name
        assert not any("link" in entry.path for entry in sandbox.list("in").entries)
    assert world.around() == around


@pytest.mark.proves("A007")
def test_a_link_that_stays_inside_is_read_and_listed(world: World) -> None:
    (world.root / "leaf").symlink_to("sub/file.txt")
    (world.root / "folder").symlink_to("sub/deep/..")
    (world.root / "sub" / "up").symlink_to("../file.txt")
    with world.sandbox() as sandbox:
        for path in ("leaf", "folder/file.txt", "folder/deep/file.txt", "sub/up", "folder/up"):
            assert sandbox.read_text("in", path).text == "INSIDE"
            assert sandbox.read_bytes("in", path, 10) == b"INSIDE"
        listing = sandbox.list("in")
        paths = [entry.path for entry in listing.entries]
        assert paths == ["file.txt", "leaf", "sub/deep/file.txt", "sub/file.txt", "sub/up"]
        assert {entry.bytes for entry in listing.entries} == {6}
        assert len(listing.skipped) == 1, "a linked folder is not entered, and that is said"
        assert listing.skipped[0].startswith("in/folder: ")


@pytest.mark.proves("A007")
def test_a_link_that_leads_out_is_called_that(world: World) -> None:
    for target in ("/etc/passwd", "../outside/file.txt", str(world.outside / "file.txt")):
        (world.root / "link").symlink_to(target)
        with world.sandbox() as sandbox, pytest.raises(SandboxError, match=r"^in/link: a link that leads outside$"):
            sandbox.read_text("in", "link")
        (world.root / "link").unlink()


@pytest.mark.proves("A007")
def test_a_chain_of_links_ends(held_world: World) -> None:
    (held_world.root / "l0").symlink_to("file.txt")
    for number in range(1, 45):
        (held_world.root / f"l{number}").symlink_to(f"l{number - 1}")
    (held_world.root / "loop").symlink_to("sub/loop")
    (held_world.root / "sub" / "loop").symlink_to("../loop")
    with held_world.sandbox() as sandbox:
        assert sandbox.read_text("in", "l39").text == "INSIDE"
        for path in ("l40", "l41", "l44", "loop", "loop/file.txt"):
            with pytest.raises(SandboxError, match=r"too many links"):
                sandbox.read_text("in", path)


@pytest.mark.proves("A013")
def test_nothing_is_written_through_a_link(world: World) -> None:
    (world.root / "leaf").symlink_to("../outside/file.txt")
    (world.root / "inner").symlink_to("sub/file.txt")
    (world.root / "folder").symlink_to("../outside")
    (world.root / "sub" / "other").symlink_to("deep")
    around = world.around()
    with world.sandbox() as sandbox:
        for path in ("leaf", "inner", "folder/new.txt", "folder/new/new.txt", "sub/other/new.txt", "sub/other"):
            with pytest.raises(SandboxError, match=r"a link on the way"):
                sandbox.write_text("in", path, "written")
            with (
                Directory.open(world.root, backend=world.backend) as directory,
                pytest.raises(SandboxError, match=r"a link on the way"),
            ):
                directory.write_atomic(path, b"written")
    assert world.around() == around
    assert os.listdir(world.root / "sub" / "deep") == ["file.txt"]
    assert (world.root / "sub" / "file.txt").read_text() == "INSIDE"


@pytest.mark.proves("A013")
def test_a_planted_temporary_name_is_not_used(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The names are random; here the attacker has guessed right all the same."""
    planted = ".llm-do.0000000000000000.tmp"
    monkeypatch.setattr("os.urandom", lambda size: b"\0" * size)
    (world.root / planted).symlink_to("../outside/file.txt")
    around = world.around()
    with world.sandbox() as sandbox, pytest.raises(SandboxError, match=r"^in/new.txt: "):
        sandbox.write_text("in", "new.txt", "written")
    assert world.around() == around
    assert not (world.root / "new.txt").exists()


@pytest.mark.proves("A014")
def test_a_write_never_changes_a_file_that_shares_its_content(world: World) -> None:
    os.link(world.outside / "file.txt", world.root / "hard.txt")
    with world.sandbox() as sandbox:
        assert sandbox.read_text("in", "hard.txt").text == SECRET, "the documented limit: it is a file like any other"
        sandbox.write_text("in", "hard.txt", "mine")
    assert (world.outside / "file.txt").read_text() == SECRET
    assert (world.root / "hard.txt").read_text() == "mine"


@pytest.mark.proves("A015", "A025")
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize(
    "path", ["root/etc/passwd", "cwd/pyproject.toml", "exe", "fd/0", "fd/1", "task/../exe", "root"]
)
def test_the_magic_links_of_proc_are_refused(world: World, path: str) -> None:
    sandbox = Sandbox([Root("in", f"/proc/{os.getpid()}")], backend=world.backend)
    with sandbox, pytest.raises(SandboxError):
        sandbox.read_text("in", path)


@pytest.mark.proves("A016")
@pytest.mark.parametrize("replacement", ["link", "folder", "nothing"])
def test_what_takes_the_place_of_a_root_is_not_served(world: World, replacement: str) -> None:
    with world.sandbox() as sandbox:
        assert sandbox.read_text("in", "file.txt").text == "INSIDE"
        world.root.rename(world.root.with_name("moved"))
        if replacement == "link":
            world.root.symlink_to("outside")
        if replacement == "folder":
            shutil.copytree(world.outside, world.root)
        for operation in READING:
            try:
                content = OPERATIONS[operation](sandbox, "file.txt")
            except SandboxError as error:
                assert "deleted or replaced" in str(error)
            else:
                assert "INSIDE" in str(content)
        around = {path: path.read_text() for path in world.outside.iterdir()}
        try:
            sandbox.write_text("in", "new.txt", "written")
        except SandboxError as error:
            assert "deleted or replaced" in str(error)
        assert {path: path.read_text() for path in world.outside.iterdir()} == around


@pytest.mark.proves("A016")
def test_the_descriptor_of_a_directory_stays_with_its_folder(world: World) -> None:
    own = world.root.stat()
    with Directory.open(world.root, backend=world.backend) as directory:
        world.root.rename(world.root.with_name("moved"))
        world.root.symlink_to("outside")
        by_path = isinstance(world.backend, OpenThenVerify)
        assert (directory.descriptor is None) == by_path
        if directory.descriptor is not None:
            assert os.path.samestat(os.fstat(directory.descriptor), own)


@pytest.mark.proves("A016")
def test_roots_that_are_kept_for_many_sandboxes_outlive_them(world: World) -> None:
    handles = Handles()
    root = Root("in", str(world.root))
    for _ in range(2):
        with Sandbox([root], handles=handles, backend=world.backend) as sandbox:
            assert len(sandbox.list("in", "*").entries) == 1
    shutil.rmtree(world.root)
    world.root.symlink_to("outside")
    with Sandbox([root], handles=handles, backend=world.backend) as sandbox:
        with pytest.raises(SandboxError, match=r"^in: its folder was deleted or replaced"):
            sandbox.read_text("in", "file.txt")
        handles.close()
        with pytest.raises(SandboxError, match=r"^in: a link took the place"):
            sandbox.read_text("in", "file.txt")


@pytest.mark.proves("A016")
def test_a_root_that_was_deleted_says_so(world: World) -> None:
    with world.sandbox() as sandbox:
        sandbox.list("in")
        shutil.rmtree(world.root)
        for operation in OPERATIONS.values():
            with pytest.raises(SandboxError, match=r"^in: its folder was deleted or replaced"):
                operation(sandbox, "file.txt")


@pytest.mark.proves("A016")
@pytest.mark.parametrize("mode", ["ro", "rw", "out"])
def test_a_root_that_became_a_link_since_load_is_refused(world: World, mode: str) -> None:
    shutil.rmtree(world.root)
    world.root.symlink_to("outside")
    for path in (world.root, world.root / "made"):
        with (
            world.sandbox(mode=mode, path=str(path)) as sandbox,
            pytest.raises(SandboxError, match=r"^in: a link took"),
        ):
            sandbox.list("in")
    assert not (world.outside / "made").exists()


@pytest.mark.proves("A017")
def test_another_file_system_below_the_root_belongs_to_it(world: World) -> None:
    shared = Path("/dev/shm")
    if not shared.is_dir() or os.stat(shared).st_dev == os.stat("/dev").st_dev:
        pytest.skip("no file system is mounted below /dev")
    name = f"llm-do-test-{os.getpid()}.txt"
    (shared / name).write_text("mounted")
    try:
        with Sandbox([Root("in", "/dev")], backend=world.backend) as sandbox:
            assert sandbox.read_text("in", f"shm/{name}").text == "mounted"
    finally:
        (shared / name).unlink()


@pytest.mark.proves("SANDBOX-LOADER")
def test_a_directory_of_the_host_may_be_reached_through_links(world: World) -> None:
    (world.root.parent / "project").symlink_to("root")
    with Directory.open(world.root.parent / "project", backend=world.backend) as project:
        assert project.read_whole("sub/file.txt", 100) == b"INSIDE"
        with project.open_directory("sub") as folder:
            assert folder.read("deep/file.txt", 3) == (b"INS", False)
            with pytest.raises(SandboxError, match=r"`\.\.` is not allowed"):
                folder.read("../file.txt", 3)
