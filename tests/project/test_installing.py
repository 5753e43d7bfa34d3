"""Installing libraries: as a whole or not at all, whoever is killed or does the same at the same time."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from llm_do_mcp.errors import InvalidFile, InvalidReference, LibraryNotFound, ProjectError, UsageError
from llm_do_mcp.project import contents, place
from llm_do_mcp.project.installing import folders, install, record_of, remove
from tests.cli.commands import LLM_DO, PATIENCE_S, environment
from tests.project.conftest import problems, worker, write

posix = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")


def library(root: Path, version: str, **files: str) -> str:
    """A library's folder; all its files say which version they are of."""
    names = ("workers/a.worker", "workers/b.worker", "templates/deep/t.jinja", "tools.py")
    content = {name: worker("", version) if name.endswith(".worker") else f"# {version}\n" for name in names}
    write(root, {"lib.yaml": f"name: utils\nversion: '{version}'\n"} | content | files)
    return str(root)


def content(root: Path) -> str:
    return contents.content_hash(contents.digests(str(root)))


@pytest.fixture
def old(tmp_path: Path) -> str:
    return library(tmp_path / "old", "1")


@pytest.fixture
def new(tmp_path: Path) -> str:
    return library(tmp_path / "new", "2", **{"workers/c.worker": worker("", "2")})


@pytest.fixture
def libs(tmp_path: Path) -> Path:
    return tmp_path / "home" / "libs"


@pytest.mark.proves("LIB-INSTALL")
def test_a_library_is_copied_and_its_origin_recorded(old: str, libs: Path) -> None:
    write(Path(old), {".git/config": "x", "tools/__pycache__/x.pyc": "x", ".llm-do/runs.sqlite3": "x"})
    (Path(old) / "tools.py").chmod(0o755)
    done = install(old, str(libs))
    assert (done.folder, done.library.version, done.files, done.replaced) == ("utils", "1", 5, None)
    assert content(libs / "utils") == content(Path(old))
    record = record_of(str(libs / "utils"))
    assert record == done.record and (record.source, record.commit) == (os.path.realpath(old), None)
    assert record.content == content(Path(old))
    assert sorted(os.listdir(libs)) == [".lock", "utils"]
    assert sorted(os.listdir(libs / "utils")) == [".llm-do", "lib.yaml", "templates", "tools.py", "workers"]
    assert os.listdir(libs / "utils" / ".llm-do") == ["installed.json"]
    if os.name == "posix":
        assert os.access(libs / "utils" / "tools.py", os.X_OK) and not os.access(libs / "utils" / "lib.yaml", os.X_OK)


@pytest.mark.proves("LIB-INSTALL")
def test_a_project_can_be_installed_as_a_library(tmp_path: Path, libs: Path) -> None:
    write(tmp_path / "p", {"project.yaml": "name: mine\nexports: [a]\n", "workers/a.worker": worker()})
    assert install(str(tmp_path / "p"), str(libs)).folder == "mine"


@pytest.mark.proves("LIB-INSTALL")
def test_another_version_replaces_it_or_stands_beside_it(old: str, new: str, libs: Path) -> None:
    install(old, str(libs))
    assert install(new, str(libs)).replaced == "1"
    assert content(libs / "utils") == content(Path(new))
    assert install(old, str(libs), versioned=True).folder == "utils@1"
    assert folders(str(libs)) == ("utils", "utils@1")
    assert content(libs / "utils") == content(Path(new))


@pytest.mark.proves("LIB-INSTALL-CHECKED")
def test_everything_that_is_wrong_is_said_at_once_and_nothing_is_changed(old: str, new: str, libs: Path) -> None:
    install(old, str(libs))
    before = content(libs / "utils")
    write(Path(new), {"lib.yaml": "name: utils\nexport: [a]\nversion: [2]\n"})
    if os.name == "posix":
        (Path(new) / "bad").symlink_to("/etc/passwd")
        os.mkfifo(Path(new) / "fifo")
    with pytest.raises(InvalidFile) as caught:
        install(new, str(libs))
    said = problems(caught.value)
    assert "lib.yaml:2:1: unknown key 'export'; did you mean 'exports'?" in said
    assert any(line.startswith("lib.yaml:3:10: version: ") for line in said)
    if os.name == "posix":
        assert said[-2:] == [
            "bad: a link that leads outside; a library is complete in itself",
            "fifo: not a regular file",
        ]
    assert content(libs / "utils") == before and sorted(os.listdir(libs)) == [".lock", "utils"]


@pytest.mark.proves("LIB-INSTALL-CHECKED")
@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"workers/a.worker": "x"}, "no lib.yaml and no project.yaml in "),
        ({"lib.yaml": "version: '1'"}, "lib.yaml:1:1: a library needs a 'name'"),
        ({"lib.yaml": "name: ../x"}, "lib.yaml:1:7: name '../x' "),
        ({"lib.yaml": "name: Utils"}, "lib.yaml:1:7: name 'Utils' "),
        ({"lib.yaml": "name: a", "project.yaml": "name: a"}, "both say what the library is"),
        ({"lib.yaml": "name: a\nexports: [nothing]"}, "lib.yaml:2:11: "),
        ({"lib.yaml": "name: a\ndependencies: [b, ../c]"}, "lib.yaml:2:19: '../c' is not a library; "),
        ({"lib.yaml": "name: a\nversion: ../x"}, "'a@../x' is not a library; "),
    ],
)
def test_what_is_no_library_is_not_installed(tmp_path: Path, libs: Path, files: dict[str, str], words: str) -> None:
    write(tmp_path / "source", files)
    with pytest.raises(ProjectError) as caught:
        install(str(tmp_path / "source"), str(libs), versioned=True)
    assert words in str(caught.value) and "\n" not in str(caught.value) and place.PRIVATE not in str(caught.value)
    assert os.listdir(libs) == [".lock"]


@pytest.mark.proves("LIB-INSTALL-CHECKED")
@pytest.mark.parametrize("needs", ["", "dependencies: [gone]\n"])
def test_a_library_whose_exported_workers_cannot_be_loaded_replaces_nothing(
    old: str, new: str, libs: Path, needs: str
) -> None:
    install(old, str(libs))
    before = content(libs / "utils")
    broken = {"workers/b.worker": worker("modle: x"), "workers/own.worker": worker("modle: x")}
    write(Path(new), {**broken, "lib.yaml": f"name: utils\nexports: [a, b, c]\n{needs}"})
    write(Path(new), {"workers/c.worker": worker("output_schema_ref: schemas.py:Report\nlimits: {max_turns: 0}")})
    (Path(new) / "schemas.py").write_text("raise SystemExit")
    with pytest.raises(InvalidFile) as caught:
        install(new, str(libs))
    first, second = problems(caught.value)
    assert first == (
        "workers/b.worker:2:1: unknown key 'modle'; did you mean 'model'?; --force installs the library all the same"
    )
    assert second.startswith("workers/c.worker:3:21: limits.max_turns: ")
    assert content(libs / "utils") == before and sorted(os.listdir(libs)) == [".lock", "utils"]
    assert install(new, str(libs), force=True).replaced == "1"


@pytest.mark.proves("LIB-INSTALL-CHECKED")
def test_what_cannot_be_a_source_is_refused_before_anything_is_made(tmp_path: Path, old: str, libs: Path) -> None:
    with pytest.raises(UsageError, match=r"^there is no folder '.*'; name a library's folder, or git\+https://"):
        install(str(tmp_path / "nothing"), str(libs))
    with pytest.raises(UsageError, match="holds the folder of libraries itself"):
        install(str(tmp_path), str(libs))
    assert not libs.exists()
    write(Path(old), {"lib.yaml": "name: utils\n"})
    with pytest.raises(UsageError, match=r"utils has no version; give it one in lib\.yaml"):
        install(old, str(libs), versioned=True)


@pytest.mark.proves("LIB-INSTALL-KEEPS")
def test_what_was_changed_by_hand_is_not_lost(old: str, new: str, libs: Path) -> None:
    install(old, str(libs))
    (libs / "utils" / "tools.py").write_text("# mine\n")
    with pytest.raises(
        UsageError, match=r"^utils is there and was changed since it was installed; --force replaces it$"
    ):
        install(new, str(libs))
    assert (libs / "utils" / "tools.py").read_text() == "# mine\n"
    install(new, str(libs), force=True)
    shutil.rmtree(libs / "utils" / ".llm-do")
    with pytest.raises(UsageError, match=r"^utils is there and was not installed by this command; --force"):
        install(old, str(libs))
    install(new, str(libs))  # the same again: nothing can be lost
    assert record_of(str(libs / "utils")) is not None


@posix
@pytest.mark.proves("LIB-INSTALL-KEEPS", "LIB-REMOVE")
def test_a_link_that_a_person_made_is_not_replaced_and_only_the_link_is_removed(old: str, libs: Path) -> None:
    libs.mkdir(parents=True)
    (libs / "utils").symlink_to(old)
    with pytest.raises(UsageError, match="utils is a link to another folder; `llm-do lib remove utils` removes"):
        install(old, str(libs), force=True)
    remove("utils", str(libs))
    assert folders(str(libs)) == () and (Path(old) / "lib.yaml").exists()


@pytest.mark.proves("LIB-REMOVE")
def test_a_library_is_removed_by_its_name(old: str, libs: Path) -> None:
    install(old, str(libs))
    install(old, str(libs), versioned=True)
    remove("utils@1", str(libs))
    assert folders(str(libs)) == ("utils",)
    with pytest.raises(LibraryNotFound, match=r"^there is no library utils@1 in .*; there is utils$"):
        remove("utils@1", str(libs))
    remove("utils", str(libs))
    assert sorted(os.listdir(libs)) == [".lock"]
    with pytest.raises(LibraryNotFound, match=r"there is nothing$"):
        remove("utils", str(libs / "no" / "such"))
    assert not (libs / "no").exists()


@pytest.mark.proves("LIB-REMOVE", "A054")
@pytest.mark.parametrize(
    "name",
    ["..", ".", "", "/", "../old", "a/b", "a\\b", "@", "@1", "a@", "a@../b", "a@b@c", ".lock", "Utils", "a" * 200],
)
def test_what_is_no_name_of_a_library_removes_nothing(old: str, libs: Path, name: str) -> None:
    install(old, str(libs))
    with pytest.raises(InvalidReference):
        remove(name, str(libs))
    assert (Path(old) / "lib.yaml").exists() and folders(str(libs)) == ("utils",)


def killed_at_each_step(old: str, new: str, libs: Path, how: str) -> list[dict[str, object]]:
    script = Path(__file__).with_name("killed_installs.py")
    command = [sys.executable, str(script), old, new, str(libs), how]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@posix
@pytest.mark.proves("LIB-INSTALL-KILLED")
@pytest.mark.skipif(sys.platform not in ("linux", "darwin"), reason="folders cannot be exchanged here")
def test_an_install_that_is_killed_anywhere_leaves_the_old_library_or_the_new_one(
    old: str, new: str, libs: Path
) -> None:
    found = killed_at_each_step(old, new, libs, "exchange")
    before, after = content(Path(old)), content(Path(new))
    states = [one["found"] for one in found]
    change = states.index(after)
    assert states == [before] * change + [after] * (len(states) - change)
    assert change > 20 and len(states) - change > 10, "the kills were not at each step"
    assert [one["after"] for one in found] == states, "the next change leaves it so"
    assert {one["left"] for one in found} == {0, 1} and all(one["names"] == [".lock", "utils"] for one in found)
    assert [one["killed"] for one in found] == [True] * (len(found) - 1) + [False]


@posix
@pytest.mark.proves("LIB-INSTALL-KILLED")
def test_without_an_exchange_the_next_change_puts_the_old_library_back(old: str, new: str, libs: Path) -> None:
    found = killed_at_each_step(old, new, libs, "steps")
    before, after = content(Path(old)), content(Path(new))
    assert {one["found"] for one in found} == {before, None, after}
    assert sum(one["found"] is None for one in found) == 1, "the window is one step"
    for one in found:
        assert one["after"] == (one["found"] or before) and one["names"] == [".lock", "utils"]


@posix
@pytest.mark.torture
@pytest.mark.proves("LIB-INSTALL-KILLED")
def test_the_command_may_be_killed_at_any_time(
    old: str, new: str, libs: Path, torture_scaled: Callable[[int, int], int]
) -> None:
    """As above, by the clock: also in the middle of a write, and at the exchange itself."""
    install(old, str(libs))
    whole = {content(Path(old)), content(Path(new))}
    chance = random.Random(4)
    ends = set()
    for number in range(torture_scaled(4, 200)):
        source = (old, new)[number % 2]
        command = [*LLM_DO, "lib", "install", source, "--to", str(libs)]
        with subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL) as process:
            try:
                process.wait(chance.uniform(0.0, 0.6))
            except subprocess.TimeoutExpired:
                process.kill()
        ends.add(process.returncode)
        assert content(libs / "utils") in whole
    assert -9 in ends


@pytest.mark.proves("LIB-INSTALL-TOGETHER")
def test_installs_at_the_same_time_leave_one_of_them_and_readers_always_find_it(
    old: str, new: str, libs: Path, torture_scaled: Callable[[int, int], int]
) -> None:
    install(old, str(libs))
    waited: list[str] = []
    failed: list[BaseException] = []

    def again_and_again(source: str) -> None:
        try:
            for _ in range(torture_scaled(15, 300)):
                install(source, str(libs), waits=lambda: waited.append(source))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=again_and_again, args=(source,)) for source in (old, new)]
    for thread in threads:
        thread.start()
    if sys.platform in ("linux", "darwin"):
        while any(thread.is_alive() for thread in threads):
            assert (libs / "utils" / "lib.yaml").read_text().startswith("name: utils")
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not failed and waited, "they did not meet"
    assert content(libs / "utils") in (content(Path(old)), content(Path(new)))
    assert sorted(os.listdir(libs)) == [".lock", "utils"]


@pytest.mark.proves("LIB-INSTALL-KILLED")
@pytest.mark.parametrize("stuck", [False, True])
def test_an_install_that_fails_at_its_last_step_loses_nothing(
    old: str, new: str, libs: Path, monkeypatch: pytest.MonkeyPatch, stuck: bool
) -> None:
    """As on a system that cannot exchange folders, and that cannot rename; nor back again, where it is stuck."""

    def fail(source: str, target: str) -> None:
        if Path(source).name == "library" or (stuck and place.ASIDE in source):
            raise PermissionError(13, "in use", target)
        rename(source, target)

    install(old, str(libs))
    rename = os.rename
    with monkeypatch.context() as patched:
        patched.setattr(place, "exchange", lambda first, second: False)
        patched.setattr(os, "rename", fail)
        with pytest.raises(PermissionError):
            install(new, str(libs))
        assert (libs / "utils").exists() is not stuck
    with place.changing(str(libs), lambda: None):
        assert content(libs / "utils") == content(Path(old))
    assert sorted(os.listdir(libs)) == [".lock", "utils"]


@pytest.mark.proves("LIB-INSTALL")
def test_a_record_that_nobody_can_have_written_is_none(tmp_path: Path) -> None:
    for text in ("", "[]", "{}", '{"source": 1, "commit": null, "content": "", "installed": ""}'):
        write(tmp_path, {".llm-do/installed.json": text})
        assert record_of(str(tmp_path)) is None
