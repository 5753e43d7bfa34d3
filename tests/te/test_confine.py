"""Nothing outside the roots is shown: links, exchanged folders, replaced roots; with Landlock and without."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from llm_do_mcp.te import confine
from tests.sandbox import swap
from tests.te.searching import GUARDS, search, write

POSIX = pytest.mark.skipif(os.name != "posix", reason="made of POSIX links and handles")
CONFINED = ("kernel", "verify")


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """`root` with a text in `root/d`, and links to `outside`, where the same names hold a secret."""
    write(tmp_path / "root", {f"d/{number}/f.txt": "needle inside\n" for number in range(20)})
    write(tmp_path / "outside", {f"{number}/f.txt": "needle SECRET\n" for number in range(20)})
    write(tmp_path / "outside", {"secret.txt": "needle SECRET\n"})
    (tmp_path / "root/link").symlink_to(tmp_path / "outside")
    (tmp_path / "root/file").symlink_to("../outside/secret.txt")
    (tmp_path / "root/inner").symlink_to("d")
    return tmp_path


@POSIX
@pytest.mark.proves("TE-CONFINED", "A007")
@pytest.mark.usefixtures("either_search")
@pytest.mark.parametrize("guard", CONFINED)
def test_links_lead_nowhere(world: Path, guard: str) -> None:
    for flags in ("-r", "-R", "-R --hidden --no-ignore", "-c -R", "-l -R"):
        answer = search(f"te grep {flags} needle", {"in": world / "root"}, guard=guard)
        assert "SECRET" not in answer.text
        assert "in/link" not in answer.text
        assert answer.meta["files"] == 20
    for path in ("in/link", "in/link/secret.txt", "in/file", "in/link/../secret.txt", "in/inner/0/f.txt"):
        answer = search(["grep", "needle", path], {"in": world / "root"}, guard=guard)
        assert answer.meta["error"] in ("outside", "path_not_found")
        assert str(world) not in answer.text
    assert search("te grep -f in/file", {"in": world / "root"}, guard=guard).meta["error"] in (
        "outside",
        "not_a_file",
    )


@POSIX
@pytest.mark.proves("TE-CONFINED", "TE-HIDDEN")
@pytest.mark.usefixtures("either_search")
@pytest.mark.parametrize("guard", GUARDS)
def test_no_link_shows_what_is_never_found(tmp_path: Path, guard: str) -> None:
    only = [".txt"] if guard != "none" else None
    write(tmp_path, {".llm-do/z.txt": "needle\n", "x.py": "needle\n", "a/b.txt": "needle\n", "kept/c.txt": "needle\n"})
    write(tmp_path, {".llm-doignore": "kept/\n"})
    for link, target in {"ll": ".llm-do", "l.txt": "x.py" if only else ".llm-do/z.txt", "in/l": "../kept"}.items():
        (tmp_path / link).parent.mkdir(exist_ok=True)
        (tmp_path / link).symlink_to(target)
    options = {"guard": guard, "suffixes": {"d": only} if only else {}}
    roots = {"d": tmp_path} if only else tmp_path
    for flags in ("-R", "-R --no-ignore", "-lR --hidden", "-cR -uu"):
        hits = search(f"te grep {flags} needle", roots, **options).hits
        assert {hit.removeprefix("d/").partition(":")[0] for hit in hits} - {"x.py"} == {"a/b.txt"}, flags
    alias = "d/" if only else ""
    for path in ("ll", "ll/z.txt", "l.txt"):
        for command in ("grep needle", "grep -f", "cat", "find -H", "find . -newer"):
            answer = search([*f"te {command}".split(), alias + path], roots, **options)
            refused = ("path_not_found",) if not only else ("path_not_found", "outside")
            assert answer.meta["error"] in refused, (command, path)
    if not only:
        assert search("te grep -R needle in/l", roots, **options).hits == ["in/l/c.txt:1: needle"], "it is named"


@pytest.mark.proves("TE-HIDDEN")
@pytest.mark.usefixtures("either_search")
@pytest.mark.parametrize("guard", CONFINED)
def test_a_suffix_that_is_not_allowed_is_as_good_as_not_there(tmp_path: Path, guard: str) -> None:
    write(tmp_path, {"x.py": "SECRET\n", "a.txt": "SECRET\n"})
    for command in ("grep SECRET", "grep -f", "grep -of", "cat", "find", "find . -newer"):
        told = [
            search(f"te {command} d/{name}", {"d": tmp_path}, guard=guard, suffixes={"d": [".txt"]})
            for name in ("x.py", "y.py")
        ]
        assert told[0].text.replace("x.py", "y.py") == told[1].text, command
        assert told[0].meta["error"] == "path_not_found"


@POSIX
@pytest.mark.proves("TE-CONFINED", "A015")
@pytest.mark.parametrize("guard", CONFINED)
def test_magic_links_lead_nowhere(world: Path, guard: str) -> None:
    (world / "root/magic").symlink_to(f"/proc/self/root{world}/outside/secret.txt")
    (world / "root/cwd").symlink_to("/proc/self/cwd/../outside")
    assert "SECRET" not in search("te grep -R needle", {"in": world / "root"}, guard=guard).text
    for path in ("in/magic", "in/cwd"):
        assert search(["grep", "needle", path], {"in": world / "root"}, guard=guard).meta["error"] == "outside"


@contextmanager
def _exchanging(first: Path, second: Path) -> Iterator[None]:
    attacker = subprocess.Popen(
        [sys.executable, swap.__file__, str(first), str(second)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert attacker.stdout is not None
    try:
        if attacker.stdout.readline() != b"started\n":
            pytest.skip("this system cannot exchange two names")
        yield
    finally:
        attacker.terminate()
        attacker.communicate()


@POSIX
@pytest.mark.proves("A012")
@pytest.mark.torture
@pytest.mark.parametrize("alone", [True, False], ids=["one root", "two roots"])
@pytest.mark.parametrize("guard", CONFINED)
def test_no_foreign_line_while_folders_are_exchanged(world: Path, guard: str, alone: bool, torture_scaled) -> None:  # type: ignore[no-untyped-def]
    """The same attack first succeeds on a search that nothing confines, so that it is known to be one."""
    roots = {"in": world / "root"} if alone else {"in": world / "root", "other": write(world / "other", {"a.txt": "x"})}
    with _exchanging(world / "root/d", world / "root/link"):
        assert any("SECRET" in search("te grep needle", roots, guard="none").text for _ in range(500))
        seen_inside = 0
        until = time.monotonic() + torture_scaled(1.5, 30)
        while time.monotonic() < until:
            answer = search("te grep needle", roots, guard=guard)
            assert "SECRET" not in answer.text
            seen_inside += "inside" in answer.text
        assert seen_inside, "the search does find what is inside meanwhile"


@POSIX
@pytest.mark.proves("A012")
@pytest.mark.parametrize("guard", CONFINED)
def test_no_foreign_line_while_a_named_path_is_exchanged(world: Path, guard: str, torture_scaled) -> None:  # type: ignore[no-untyped-def]
    write(world / "root", {"leaf": "needle inside\n"})
    with _exchanging(world / "root/leaf", world / "root/file"):
        until = time.monotonic() + torture_scaled(1, 30)
        while time.monotonic() < until:
            for command in ("te grep needle in/leaf", "te grep -f in/leaf in", "te grep -A1 -o needle in/leaf"):
                assert "SECRET" not in search(command, {"in": world / "root"}, guard=guard).text


@POSIX
@pytest.mark.proves("A016")
@pytest.mark.parametrize("guard", CONFINED)
def test_a_root_held_by_handle_stays_the_folder_it_was(world: Path, guard: str) -> None:
    handle = os.open(world / "root", os.O_RDONLY | os.O_DIRECTORY)
    try:
        (world / "root").rename(world / "moved")
        (world / "root").symlink_to(world / "outside")
        if not os.path.isdir("/proc/self/fd"):
            pytest.skip("ripgrep cannot be given a handle here")
        answer = search("te grep needle", {"in": handle}, guard=guard)
        assert "SECRET" not in answer.text
        assert answer.meta["files"] == 20
    finally:
        os.close(handle)


@pytest.mark.proves("TE-CONFINED")
@pytest.mark.skipif(not confine.available(), reason="this kernel has no Landlock")
def test_only_ripgrep_is_confined(world: Path) -> None:
    for _ in range(3):
        assert search("te grep needle", {"in": world / "root"}).meta["files"] == 20
    assert (world / "outside/secret.txt").read_text() == "needle SECRET\n"
    (world / "outside/new.txt").write_text("x")
    assert subprocess.run([sys.executable, "-c", "print(open('/etc/hostname') and 1)"], check=False).returncode == 0


@pytest.mark.proves("TE-CONFINED")
def test_the_first_search_of_a_process_is_like_all_others(world: Path) -> None:
    """A restricted thread cannot read the standard library: whatever is imported late must be imported elsewhere."""
    program = "import sys\nfrom llm_do_mcp.te import run\nprint(run('te grep needle', roots={'in': sys.argv[1]}))"
    ran = subprocess.run(
        [sys.executable, "-c", program, str(world / "root")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(confine.__file__).parents[2])},
    )
    assert '"matches":20,"files":20' in ran.stdout, ran.stderr
    assert "SECRET" not in ran.stdout


@pytest.mark.proves("TE-CONFINED")
@pytest.mark.skipif(not confine.available(), reason="this kernel has no Landlock")
def test_a_restricted_thread_reads_only_its_folders(world: Path) -> None:
    """The restriction itself, in a process of its own."""
    program = (
        "import os, sys\n"
        "from llm_do_mcp.te import confine\n"
        "inside, outside = sys.argv[1:]\n"
        "handle = os.open(inside, os.O_RDONLY)\n"
        "confine.restrict([handle], sys.executable)\n"
        "print(open(inside + '/d/0/f.txt').read().strip())\n"
        "denied = [(outside + '/secret.txt', 'r'), (inside + '/link/secret.txt', 'r'), (inside + '/new', 'w')]\n"
        "for path, mode in denied:\n"
        "    try:\n"
        "        open(path, mode)\n"
        "    except PermissionError:\n"
        "        print('denied')\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, str(world / "root"), str(world / "outside")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(confine.__file__).parents[2])},
    )
    assert ran.stdout.split("\n") == ["needle inside", "denied", "denied", "denied", ""], ran.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="there each thread may have its own working folder")
@pytest.mark.proves("TE-CONFINED")
def test_the_working_folder_of_a_confined_search_is_its_own(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(world)
    entered: list[str] = []

    def enter() -> None:
        confine.enter(str(world / "root"))
        entered.append(os.getcwd())

    with ThreadPoolExecutor(1) as thread:
        thread.submit(enter).result()
    assert os.getcwd() == str(world)
    with ThreadPoolExecutor(8) as threads:
        answers = threads.map(lambda n: search("te grep needle", world / "root/d" / str(n)), range(20))
        assert [answer.hits for answer in answers] == [["f.txt:1: needle inside"]] * 20
    assert os.getcwd() == str(world)
    if entered == [str(world)]:
        pytest.skip("this system lets no thread have a working folder of its own")
    assert entered == [str(world / "root")]
