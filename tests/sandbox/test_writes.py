"""Writes: whole or not at all, in place or refused, and what may never be written."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import itertools
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from llm_do_mcp.errors import FileMissing, Outdated, SandboxError
from llm_do_mcp.sandbox import names
from llm_do_mcp.sandbox.files import NOTHING, Handles, Sandbox
from llm_do_mcp.sandbox.opener import Directory
from llm_do_mcp.sandbox.root import Root
from tests.sandbox.conftest import World

if sys.platform != "win32":
    import fcntl
    import resource

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="about POSIX permissions, locks or signals")


@pytest.mark.proves("SANDBOX-WRITE")
def test_a_write_creates_folders_and_tells_what_it_did(world: World) -> None:
    with world.sandbox() as sandbox:
        assert sandbox.present("in", "a/b/new.md").state == NOTHING
        written = sandbox.write_text("in", "a/b/new.md", "é\n")
        assert written.created is True
        assert (written.path, written.bytes) == ("a/b/new.md", 3)
        assert written.sha256 == hashlib.sha256("é\n".encode()).hexdigest()
        assert sandbox.present("in", "a/b/new.md").text == "é\n"
        assert sandbox.write_text("in", "a/b/new.md", "").created is False
    assert (world.root / "a" / "b" / "new.md").read_bytes() == b""


@pytest.mark.proves("SANDBOX-WRITE")
def test_a_write_over_something_else_than_was_looked_at_changes_nothing(world: World) -> None:
    file = world.root / "file.txt"
    with world.sandbox() as sandbox:
        looked_at = sandbox.present("in", "file.txt").state
        file.write_text("edited")
        for state in (looked_at, NOTHING):
            with pytest.raises(Outdated, match=r"^in/file.txt has changed"):
                sandbox.write_text("in", "file.txt", "new", over=state)
        assert file.read_text() == "edited"
        sandbox.write_text("in", "file.txt", "edited", over=looked_at)  # replaces the file by itself
        sandbox.write_text("in", "file.txt", "new", over=sandbox.present("in", "file.txt").state)
        file.unlink()
        with pytest.raises(Outdated):
            sandbox.write_text("in", "file.txt", "newer", over=looked_at)
        sandbox.write_text("in", "file.txt", "newer", over=NOTHING)
    assert file.read_text() == "newer"


@pytest.mark.proves("SANDBOX-WRITE")
def test_a_file_too_large_to_be_read_is_told_apart_all_the_same(world: World) -> None:
    file = world.root / "file.txt"
    with world.sandbox(max_file_bytes=4) as sandbox:
        looked_at = sandbox.present("in", "file.txt").state
        file.write_text("INSIDE, and more")
        with pytest.raises(Outdated):
            sandbox.write_text("in", "file.txt", "new", over=looked_at)


@pytest.mark.proves("SANDBOX-MODES")
def test_read_only_is_never_written(world: World) -> None:
    with world.sandbox(mode="ro") as sandbox:
        for write in (
            lambda: sandbox.write_text("in", "file.txt", "x"),
            lambda: sandbox.write_text("in", "new/new.txt", "x"),
            lambda: sandbox.present("in", "file.txt"),
        ):
            with pytest.raises(SandboxError, match=r"the sandbox is read-only"):
                write()
    assert not (world.root / "new").exists()
    assert (world.root / "file.txt").read_text() == "INSIDE"


@pytest.mark.proves("SANDBOX-MODES")
def test_writable_roots_are_created_and_read_only_ones_are_not(world: World) -> None:
    for mode in ("rw", "out"):
        with world.sandbox(mode=mode, path=str(world.root / "made" / mode / "here")) as sandbox:
            assert sandbox.list("in").entries == ()
            sandbox.write_text("in", "x.txt", mode)
        assert (world.root / "made" / mode / "here" / "x.txt").read_text() == mode
    with (
        world.sandbox(mode="ro", path=str(world.root / "missing")) as sandbox,
        pytest.raises(FileMissing, match=r"^in: "),
    ):
        sandbox.list("in")
    with (
        world.sandbox(path=str(world.root / "file.txt")) as sandbox,
        pytest.raises(SandboxError, match=r"^in: not a f"),
    ):
        sandbox.list("in")
    assert not (world.root / "missing").exists()


@pytest.mark.proves("SANDBOX-MODES")
def test_out_shows_only_what_this_run_wrote(world: World) -> None:
    written: set[tuple[str, str]] = set()
    root = Root("in", str(world.root), "out")
    with Sandbox([root], written, backend=world.backend) as sandbox:
        assert sandbox.list("in").entries == ()
        for read in (lambda: sandbox.read_text("in", "file.txt"), lambda: sandbox.read_bytes("in", "file.txt", 9)):
            with pytest.raises(FileMissing, match=r"^in/file.txt: not written by this run"):
                read()
        assert sandbox.present("in", "file.txt").text == "INSIDE", "a person sees what would be replaced"
        sandbox.write_text("in", "./sub//new.txt", "mine")
    assert written == {("in", "sub/new.txt")}
    with Sandbox([root], written, backend=world.backend) as resumed:
        assert [entry.path for entry in resumed.list("in").entries] == ["sub/new.txt"]
        assert resumed.read_text("in", "sub/new.txt").text == "mine"


@pytest.mark.proves("SANDBOX-SUFFIXES")
def test_suffixes_hold_for_every_operation(world: World) -> None:
    (world.root / "Report.MD").write_text("report")
    (world.root / "report.md.exe").write_text("program")
    with world.sandbox(suffixes=(".md", ".TXT")) as sandbox:
        listed = [entry.path for entry in sandbox.list("in", "*").entries]
        assert listed == ["Report.MD", "file.txt"]
        assert sandbox.read_text("in", "Report.MD").text == "report"
        sandbox.write_text("in", "new.Md", "x")
        for path in ("report.md.exe", "new.py", "md", "new.md/x"):
            for refuse in (
                lambda path=path: sandbox.read_text("in", path),
                lambda path=path: sandbox.read_bytes("in", path, 9),
                lambda path=path: sandbox.write_text("in", path, "x"),
            ):
                with pytest.raises(SandboxError, match=r"suffix not allowed; allowed are \.md, \.TXT$"):
                    refuse()


@pytest.mark.proves("SANDBOX-PROTECTED")
@pytest.mark.parametrize(
    "path",
    [
        *(".git", ".git/config", "sub/.git/hooks/pre-commit", ".GIT/config", ".g\u200cit/config", ".git./x"),
        *("approvals.lock", "sub/libs.lock", "Approvals.LOCK"),
        *("workers", "workers/x.worker", "WORKERS/x/tools.py", "./workers//x"),
        *("sub/deep/any.worker", "tools.py", "Tools.PY"),
    ],
)
def test_what_the_project_is_read_from_cannot_be_written(world: World, path: str) -> None:
    protected = ("workers", "**/*.worker", "tools.py")
    with world.sandbox(protected=protected) as sandbox:
        for write in (sandbox.present, lambda *place: sandbox.write_text(*place, "x")):
            with pytest.raises(SandboxError, match=r"protected"):
                write("in", path)
        sandbox.write_text("in", "sub/tools.py", "allowed: only the root's own is protected here")
    assert sorted(os.listdir(world.root)) == ["file.txt", "sub"]


@pytest.mark.proves("SANDBOX-PROTECTED")
def test_a_link_does_not_lead_to_what_is_protected(world: World) -> None:
    (world.root / "workers").mkdir()
    (world.root / "notes").symlink_to("workers")
    with world.sandbox(protected=("workers",)) as sandbox, pytest.raises(SandboxError, match=r"a link on the way"):
        sandbox.write_text("in", "notes/x.worker", "x")
    assert os.listdir(world.root / "workers") == []


@pytest.mark.proves("SANDBOX-HIDDEN")
def test_the_state_folder_does_not_exist_for_callers(world: World) -> None:
    for folder in (world.root, world.root / "sub"):
        (folder / ".llm-do").mkdir()
        (folder / ".llm-do" / "runs.txt").write_text("journal")
    (world.root / "journal").symlink_to(".llm-do/runs.txt")
    (world.root / "state").symlink_to("sub/.llm-do")
    with world.sandbox() as sandbox:
        shown = [".llm-do/runs.txt", ".LLM-DO/runs.txt", "sub/.llm-do/runs.txt", "journal", "state/runs.txt"]
        for path in [*shown, ".llm-do/none.txt"]:
            with pytest.raises(FileMissing, match=r"no such file or folder$"):
                sandbox.read_text("in", path)
        with pytest.raises(SandboxError):
            sandbox.write_text("in", ".llm-do/runs.txt", "x")
        with pytest.raises(FileMissing):
            sandbox.list("in", under=".llm-do")
        listed = [entry.path for entry in sandbox.list("in").entries]
        assert listed == ["file.txt", "sub/deep/file.txt", "sub/file.txt"]


@pytest.mark.proves("SANDBOX-PERMISSIONS")
@posix_only
def test_a_file_keeps_its_permissions_and_a_read_only_one_its_content(held_world: World) -> None:
    with held_world.sandbox() as sandbox:
        for mode in (0o600, 0o640, 0o755):
            (held_world.root / "file.txt").chmod(mode)
            sandbox.write_text("in", "file.txt", "x")
            assert (held_world.root / "file.txt").stat().st_mode & 0o777 == mode
        (held_world.root / "file.txt").chmod(0o444)
        with pytest.raises(SandboxError, match=r"^in/file.txt: the file is read-only$"):
            sandbox.write_text("in", "file.txt", "y")
        umask = os.umask(0o027)
        try:
            sandbox.write_text("in", "new.txt", "x")
        finally:
            os.umask(umask)
        assert (held_world.root / "new.txt").stat().st_mode & 0o777 == 0o640


@pytest.mark.proves("SANDBOX-FAILED-WRITE")
@posix_only
def test_a_write_that_the_disk_does_not_take_changes_nothing(world: World) -> None:
    before = sorted(os.listdir(world.root))
    with world.sandbox() as sandbox:
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
        try:
            with pytest.raises(SandboxError, match=r"^in/file.txt: File too large$"):
                sandbox.write_text("in", "file.txt", "x" * 200_000)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (world.root / "file.txt").read_text() == "INSIDE"
    assert sorted(os.listdir(world.root)) == before


@pytest.mark.proves("SANDBOX-WHOLE-VERSIONS")
def test_readers_and_writers_at_once_see_whole_versions(world: World) -> None:
    versions = [letter * 50_000 for letter in "abcd"]
    with world.sandbox() as sandbox:
        sandbox.write_text("in", "shared.txt", versions[0])
        done = threading.Event()

        def write(version: str) -> None:
            while not done.is_set():
                sandbox.write_text("in", "shared.txt", version)

        writers = [threading.Thread(target=write, args=(version,)) for version in versions]
        for writer in writers:
            writer.start()
        try:
            for _ in range(200):
                assert sandbox.read_text("in", "shared.txt").text in versions
        finally:
            done.set()
            for writer in writers:
                writer.join()
    assert not any(map(names.is_leftover, os.listdir(world.root)))


ENDLESS_WRITER = """
import itertools, sys
from llm_do_mcp.sandbox.files import Sandbox
from llm_do_mcp.sandbox.root import Root
sandbox = Sandbox([Root("in", sys.argv[1], "rw")])
for number in itertools.count():
    sandbox.write_text("in", f"a/{number % 3}.txt", "0123456789"[number % 10] * 100_000)
    print(flush=True)
"""


@pytest.mark.proves("A103")
@pytest.mark.torture
@posix_only
def test_kill_in_the_middle_of_writes_tears_no_file(tmp_path: Path, torture_scaled) -> None:  # type: ignore[no-untyped-def]
    pick = random.Random(11)
    whole = {digit * 100_000 for digit in "0123456789"}
    for _ in range(torture_scaled(10, 500)):
        writer = subprocess.Popen([sys.executable, "-c", ENDLESS_WRITER, str(tmp_path)], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        for _ in range(pick.randint(1, 12)):
            writer.stdout.readline()
        for _ in itertools.repeat(None, pick.randint(0, 20_000)):
            pass  # so that the kill does not always come at the same point of a write
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        for path in (tmp_path / "a").glob("*.txt"):
            assert path.read_text() in whole
    with Sandbox([Root("in", str(tmp_path), "rw")]) as sandbox:
        assert len(sandbox.list("in").entries) <= 3, "what is left over is not listed"
    with contextlib.closing(Handles(tidy=True)) as handles:
        handles.of(Root("in", str(tmp_path), "rw"))
    assert all(path.suffix == ".txt" for path in (tmp_path / "a").iterdir())


@pytest.mark.proves("A103")
@posix_only
def test_leftovers_of_the_dead_are_removed_and_those_of_the_living_stay(held_world: World) -> None:
    dead, living = held_world.root / "sub" / names.new_leftover(), held_world.root / names.new_leftover()
    dead.write_text("half")
    handles = Handles(tidy=True)
    with contextlib.closing(handles), held_world.sandbox(handles=handles) as sandbox, living.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # as every writer does
        sandbox.list("in")
        assert (dead.exists(), living.exists()) == (False, True)
        with pytest.raises(FileMissing):
            sandbox.read_text("in", living.name)
        assert all("tmp" not in entry.path for entry in sandbox.list("in").entries)


@pytest.mark.proves("A103")
def test_leftovers_are_removed_by_age_where_there_are_no_locks(world: World) -> None:
    old = world.root / names.new_leftover()
    for mode, kept in (("rw", False), ("out", False), ("ro", True)):
        old.write_text("half")
        os.utime(old, (0, 0))
        handles = Handles(tidy=True)
        with contextlib.closing(handles), world.sandbox(handles=handles, mode=mode) as sandbox:
            sandbox.list("in")
        assert old.exists() == kept, mode


@pytest.mark.proves("SANDBOX-CLOSE")
@posix_only
def test_closing_lets_go_of_every_descriptor(held_world: World) -> None:
    gc.collect()  # what other tests left open is closed now, and not meanwhile
    before = set(os.listdir("/dev/fd"))
    with held_world.sandbox() as sandbox:
        for path in ("file.txt", "sub/file.txt", "none", "../x", "sub"):
            for attempt in (
                lambda path=path: sandbox.read_text("in", path),
                lambda path=path: sandbox.write_text("in", f"{path}/new.txt", "x"),
                lambda path=path: sandbox.list("in", under=path),
            ):
                try:
                    attempt()
                except SandboxError:
                    continue
    assert len(os.listdir("/dev/fd")) == len(before)
    with Directory.open(held_world.root, backend=held_world.backend) as directory:
        fd = directory.open_file("file.txt")
    assert os.read(fd, 10) == b"INSIDE"
    os.close(fd)
    with pytest.raises(ValueError, match=r"already closed"):
        directory.stat("file.txt")


@pytest.mark.proves("SANDBOX-REMOVE")
def test_a_removal_takes_a_file_and_if_asked_the_folders_that_it_leaves_empty(world: World) -> None:
    (world.root / "sub" / "deep" / "more").mkdir()
    (world.root / "sub" / "deep" / "more" / "x").write_text("x")
    with Directory.open(world.root, backend=world.backend) as directory:
        directory.remove("sub/deep/more/x", emptied=True)
        assert (world.root / "sub" / "deep").exists() and not (world.root / "sub" / "deep" / "more").exists()
        directory.remove("sub/deep/file.txt")
        assert (world.root / "sub" / "deep").exists(), "only where it is asked for"
        directory.remove("sub/file.txt", emptied=True)
        directory.remove("file.txt", emptied=True)
        with pytest.raises(FileMissing):
            directory.remove("file.txt")
    assert [path.name for path in world.root.rglob("*")] == ["sub", "deep"]


@pytest.mark.proves("SANDBOX-REMOVE")
def test_a_removal_follows_no_link_and_leaves_what_is_no_file(world: World) -> None:
    before = world.around()
    (world.root / "out").symlink_to(world.outside)
    (world.root / "link").symlink_to(world.root / "file.txt")
    with Directory.open(world.root, backend=world.backend) as directory:
        for name in ("out/file.txt", "out", "link", "sub", "../file.txt", "."):
            with pytest.raises(SandboxError):
                directory.remove(name)
    assert world.around() == before and (world.root / "link").is_symlink() and (world.root / "file.txt").exists()
