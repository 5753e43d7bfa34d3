"""`libs.lock`: a library that is not as it was is refused, where it is read."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from llm_do_mcp.errors import LibraryChanged, ProjectError
from llm_do_mcp.project import contents, libslock
from llm_do_mcp.project.files import ProjectFiles
from llm_do_mcp.project.libslock import Difference, LibsLock
from tests.project.conftest import problems, write

LIBRARY = {
    "lib.yaml": "name: utils\nversion: '2.1'\n",
    "workers/a.worker": "a",
    "templates/ö x.jinja": "t",
    "tools.py": "def f(): ...\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "utils", LIBRARY)
    return tmp_path / "utils"


def locked(root: Path) -> ProjectFiles:
    """The library's files, as a project reads them that was locked when this was called."""
    lock = libslock.lock_of([("utils", "2.1", str(root))])
    return ProjectFiles(str(root), libslock.parse(lock.text()).library("utils"))


@pytest.mark.proves("LIBS-LOCK-FORM")
def test_the_lock_reads_as_it_was_written(root: Path, tmp_path: Path) -> None:
    lock = libslock.lock_of([("utils", "2.1", str(root)), ("other", None, str(root))])
    libslock.write(str(tmp_path), lock)
    assert libslock.read(ProjectFiles(str(tmp_path))) == lock
    text = (tmp_path / "libs.lock").read_text(encoding="utf-8")
    assert text.index("  other:") < text.index("  utils:") and '    version: "2.1"\n' in text
    assert f"    content: {contents.content_hash(contents.digests(str(root)))}\n" in text
    assert libslock.parse(LibsLock({}).text()) == LibsLock({})
    (tmp_path / "libs.lock").unlink()
    assert libslock.read(ProjectFiles(str(tmp_path))) is None


@pytest.mark.proves("LIBS-LOCK-FORM")
@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="no sha256sum here")
def test_sha256sum_agrees_with_the_lock(root: Path) -> None:
    lines = contents.listing(contents.digests(str(root)))
    done = subprocess.run(["sha256sum", "--check", "--strict"], input=lines, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.count(": OK") == len(LIBRARY), done.stderr


@pytest.mark.proves("LIBS-LOCK-FORM")
def test_a_lock_of_thousands_of_files_is_read(tmp_path: Path) -> None:
    files = {f"workers/group{number % 7}/worker-{number:05}.worker": "0" * 64 for number in range(5_000)}
    lock = LibsLock({"utils": libslock.LockedLibrary("utils", None, files)})
    libslock.write(str(tmp_path), lock)
    assert libslock.read(ProjectFiles(str(tmp_path))) == lock
    more = {f"{path}{'x' * 200}": digest for path, digest in files.items()}
    with pytest.raises(ProjectError, match=r"^libs.lock: 1,\d{3},\d{3} bytes would be too many"):
        libslock.write(str(tmp_path), LibsLock({"utils": libslock.LockedLibrary("utils", None, more)}))
    assert libslock.read(ProjectFiles(str(tmp_path))) == lock


@pytest.mark.proves("LIBS-LOCK-REFUSES", "LIBS-LOCK-LAZY")
def test_a_changed_file_is_refused_when_it_is_read_and_no_other_is(root: Path) -> None:
    files = locked(root)
    write(root, {"workers/a.worker": "b", "new.md": "n"})
    (root / "tools.py").unlink()
    assert files.read_bytes("lib.yaml") == LIBRARY["lib.yaml"].encode()
    assert files.kind("workers/a.worker") == "file" and files.kind("nowhere") is None
    with pytest.raises(LibraryChanged) as caught:
        files.read_bytes("workers/a.worker")
    assert str(caught.value) == (
        "library utils: workers/a.worker has changed since libs.lock was written; "
        "look at it, and accept it with `llm-do lib lock`"
    )
    with pytest.raises(LibraryChanged, match=r"^library utils: new.md is not in libs.lock; look at it"):
        files.read_bytes("new.md")


@pytest.mark.proves("LIBS-LOCK-REFUSES")
def test_a_file_that_came_or_went_is_refused_where_it_is_looked_for(root: Path) -> None:
    """A file that shadows another, or no longer does, changes what a name means without changing a file."""
    files = locked(root)
    write(root, {"workers/a/worker.worker": "b"})
    shutil.rmtree(root / "templates")
    (root / "tools.py").unlink()
    with pytest.raises(LibraryChanged, match=r"workers/a/worker\.worker is not in libs.lock"):
        files.kind("workers/a/worker.worker")
    for path in ("tools.py", "./tools.py"):
        with pytest.raises(LibraryChanged, match=r"tools\.py is in libs.lock, and is no file any more"):
            files.kind(path)
    with pytest.raises(LibraryChanged, match=r"templates is in libs.lock, and is gone"):
        files.kind("templates")
    (root / "tools.py").mkdir()
    with pytest.raises(LibraryChanged, match="is no file any more"):
        files.kind("tools.py")


@pytest.mark.proves("LIBS-LOCK-WHOLE")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tools.py": "def f(): return 1\n"}, "tools.py: changed"),
        ({"json.py": ""}, "json.py: added"),
        ({"tools.py": None}, "tools.py: removed"),
        ({"workers/a/x.so": "", "tools.py": None}, r"tools.py \(and 1 more\): removed"),
        ({"workers/a.worker": "is none of Python's"}, "workers/a.worker: changed"),
    ],
)
def test_a_library_is_checked_as_a_whole(root: Path, change: dict[str, str | None], words: str) -> None:
    files = locked(root)
    write(root, {"tools/__pycache__/tools.pyc": "is never imported"})
    files.check_whole()
    for path, text in change.items():
        if text is None:
            (root / path).unlink()
        else:
            write(root, {path: text})
    for _ in range(2):
        with pytest.raises(LibraryChanged, match=f"^library utils: {words} since libs.lock was written; look at it"):
            files.check_whole()
    write(root, LIBRARY)
    for path in {*change} - {*LIBRARY}:
        (root / path).unlink()
    files.check_whole()


@pytest.mark.proves("LIBS-LOCK-WHOLE")
@pytest.mark.skipif(sys.platform == "win32", reason="opening is watched by an audit hook of paths")
def test_a_whole_library_is_read_once_until_something_in_it_changes(root: Path) -> None:
    program = f"""
import sys, time
from llm_do_mcp.project import libslock
from llm_do_mcp.project.files import ProjectFiles
root = {str(root)!r}
lock = libslock.lock_of([("utils", "2.1", root)])
files = ProjectFiles(root, lock.library("utils"))
opened = []
sys.addaudithook(lambda event, given: opened.append(given[0]) if event == "open" else None)
while True:  # until nothing is so new that it might change again with the same stamp
    opened.clear()
    files.check_whole()
    if not opened:
        break
print("read no more")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "read no more\n", done.stderr


@pytest.mark.proves("LIBS-LOCK-REFUSES", "LIBS-LOCK-WHOLE")
def test_a_locked_library_of_which_the_folder_has_gone_is_refused_in_one_line(root: Path) -> None:
    files = locked(root)
    shutil.rmtree(root)
    with pytest.raises(LibraryChanged) as caught:
        files.check_whole()
    assert str(caught.value) == (
        "library utils: its folder cannot be opened: no such file or folder; "
        "look at it, and accept it with `llm-do lib lock`"
    )


@pytest.mark.proves("LIB-LEFTOVERS")
@pytest.mark.parametrize("folder", ["node_modules", "__pycache__"])
def test_a_worker_where_caches_lie_is_no_part_of_a_library_and_cannot_be_accepted(root: Path, folder: str) -> None:
    files = locked(root)
    write(root, {f"workers/{folder}/w.worker": "w"})
    with pytest.raises(LibraryChanged) as caught:
        files.kind(f"workers/{folder}/w.worker")
    assert str(caught.value) == (
        f"library utils: workers/{folder}/w.worker: what is in {folder} is no part of a library; move it"
    )


@pytest.mark.proves("LIBS-LOCK-REFUSES")
def test_a_library_that_is_not_in_the_lock_is_refused() -> None:
    with pytest.raises(LibraryChanged, match=r"^library utils is not in libs.lock; look at it, and accept it with"):
        LibsLock({}).library("utils")


@pytest.mark.proves("LIBS-LOCK-FORM")
def test_what_differs_is_told_in_the_order_of_the_paths() -> None:
    before, now = {"a": "1", "b": "1", "d": "1"}, {"b": "2", "c": "1", "d": "1"}
    found = list(libslock.differences(before, now))
    assert found == [Difference("removed", "a"), Difference("changed", "b"), Difference("added", "c")]


@pytest.mark.proves("LIBS-LOCK-BROKEN")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("version: 1", "version: 2"), "libs.lock:3:10: version: must be 1"),
        (
            ("a.worker", "b.worker"),
            r"libs.lock:\d+:14: the hash is not that of the files; write it with `llm-do lib lock`",
        ),
        (("  lib.yaml", " lib.yaml"), "the hash is not that of the files"),
        (("content: ", "content: x"), "libraries.utils.content: "),
        (("    files: |", "    file: |"), "key 'files' is missing"),
        (("libraries:", "libs:"), "key 'libraries' is missing"),
    ],
)
def test_a_lock_that_nobody_can_have_written_is_an_error(root: Path, change: tuple[str, str], words: str) -> None:
    text = libslock.lock_of([("utils", "2.1", str(root))]).text()
    assert change[0] in text
    with pytest.raises(ProjectError, match=words):
        libslock.parse(text.replace(*change))


@pytest.mark.proves("LIBS-LOCK-BROKEN", "PROJECT-ALL-PROBLEMS")
def test_each_thing_that_is_wrong_with_a_lock_is_told_once() -> None:
    with pytest.raises(ProjectError) as caught:
        libslock.parse("versoin: 1\n")
    assert problems(caught.value) == [
        "libs.lock:1:1: key 'version' is missing",
        "libs.lock:1:1: key 'libraries' is missing",
        "libs.lock:1:1: unknown key 'versoin'; did you mean 'version'?",
    ]


@pytest.mark.proves("LIBS-LOCK-BROKEN")
def test_what_cannot_be_locked_names_the_library(root: Path) -> None:
    (root / "ba\nd").touch()
    with pytest.raises(ProjectError, match=r"^library utils cannot be locked: ba\\nd: a name with"):
        libslock.lock_of([("utils", None, str(root))])
