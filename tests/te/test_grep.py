"""`te grep` as a model uses it: what it finds, how it counts, what its flags mean."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from llm_do_mcp.te import ripgrep
from tests.te.searching import GUARDS, search, write

TREE = {
    "a.py": "def connect():\n    return 1\n",
    "src/b.py": "from a import connect\nconnect()\nCONNECT = 2\n",
    "src/c.txt": "disconnected\nno match here\n",
    "tests/test_b.py": "import b\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write(tmp_path / "tree", TREE)


@pytest.mark.proves("TE-LINES")
@pytest.mark.parametrize("guard", GUARDS)
def test_one_hit_a_line(tree: Path, guard: str) -> None:
    answer = search("te grep -rn connect", tree, guard=guard)
    assert answer.hits == [
        "a.py:1: def connect():",
        "src/b.py:2: connect()",
        "src/c.txt:1: disconnected",
        "src/b.py:1: from a import connect",
    ]
    assert answer.meta == {"v": 1, "cmd": "grep", "matches": 4, "files": 3}
    assert answer.code == 0


@pytest.mark.proves("TE-LINES")
def test_no_match_is_no_error(tree: Path) -> None:
    answer = search("grep nowhere", tree)
    assert (answer.meta["matches"], answer.hits, answer.code) == (0, [], 1)
    assert "error" not in answer.meta


@pytest.mark.proves("TE-ALIASES")
@pytest.mark.parametrize("guard", GUARDS)
def test_the_working_folder_is_the_virtual_folder_of_aliases(tree: Path, tmp_path: Path, guard: str) -> None:
    notes = write(tmp_path / "elsewhere", {"today.md": "connect the dots\n", "old/x.md": "connect\n"})
    roots = {"code": tree, "notes": notes}
    everywhere = search("te grep -l connect", roots, guard=guard)
    assert everywhere.hits == ["code/a.py", "code/src/b.py", "code/src/c.txt", "notes/old/x.md", "notes/today.md"]
    assert search("te grep connect notes", roots, guard=guard).hits == [
        "notes/old/x.md:1: connect",
        "notes/today.md:1: connect the dots",
    ]
    assert search("te grep -h connect ./code/src/c.txt notes/old/", roots, guard=guard).hits == [
        "1: disconnected",
        "1: connect",
    ]
    for command, found in (
        ("te grep -l connect -g 'notes/*.md'", ["notes/today.md"]),
        ("te grep -l connect code -g 'code/src/**'", ["code/src/b.py", "code/src/c.txt"]),
        ("te grep -l connect -g 'src/*.py'", ["code/src/b.py"]),
        ("te grep -l connect -g '!code/**'", ["notes/old/x.md", "notes/today.md"]),
        ("te grep -l connect --exclude-dir=code", ["notes/old/x.md", "notes/today.md"]),
        ("te grep -l connect --exclude-dir old --include='*.md'", ["notes/today.md"]),
    ):
        assert search(command, roots, guard=guard).hits == found, command
    missing = search("te grep connect other", roots, guard=guard)
    assert missing.meta == {"v": 1, "cmd": "grep", "error": "path_not_found"}
    assert missing.notes == ["[TE] no such file or folder: other; the folders here are code notes"]


@pytest.mark.proves("TE-FLAGS")
@pytest.mark.parametrize(
    ("flags", "hits"),
    [
        (
            "-i connect src/b.py",
            ["src/b.py:3: CONNECT = 2", "src/b.py:2: connect()", "src/b.py:1: from a import connect"],
        ),
        ("-w connect src", ["src/b.py:2: connect()", "src/b.py:1: from a import connect"]),
        ("-x 'import b'", ["tests/test_b.py:1: import b"]),
        ("-v connect src", ["src/b.py:3: CONNECT = 2", "src/c.txt:2: no match here"]),
        ("-rnil CONNECT src", ["src/b.py", "src/c.txt"]),
        ("-L connect", ["tests/test_b.py"]),
        ("-c connect", ["src/b.py:2", "a.py:1", "src/c.txt:1"]),
        ("-o 'conn[a-z]*ed'", ["src/c.txt:1: connected"]),
        ("-oh CONN", ["3: CONN"]),
        ("-E 'def|import b$'", ["a.py:1: def connect():", "tests/test_b.py:1: import b"]),
        ("'def\\|import b$'", ["a.py:1: def connect():", "tests/test_b.py:1: import b"]),
        ("-F 'connect()' src", ["src/b.py:2: connect()"]),
        ("-P '(?<=dis)connect'", ["src/c.txt:1: disconnected"]),
        ("'\\(n\\)\\1' src/c.txt", ["src/c.txt:1: disconnected"]),
        ("-e def -e CONN", ["a.py:1: def connect():", "src/b.py:3: CONNECT = 2"]),
        ("-m1 connect src/b.py", ["src/b.py:1: from a import connect"]),
        ("-m 0 connect", []),
        ("connect --include=*.txt", ["src/c.txt:1: disconnected"]),
        ("connect --exclude '*.py'", ["src/c.txt:1: disconnected"]),
        ("connect --exclude-dir=src", ["a.py:1: def connect():"]),
        ("connect -tpy -g '!src/**'", ["a.py:1: def connect():"]),
        ("--type-not=py connect", ["src/c.txt:1: disconnected"]),
        ("-- connect src/c.txt", ["src/c.txt:1: disconnected"]),
        ("connect -s --color=always src/c.txt", ["src/c.txt:1: disconnected"]),
        ("-A1 def", ["a.py:1: def connect():", "a.py-2-     return 1"]),
        ("-B 1 '^connect'", ["src/b.py-1- from a import connect", "src/b.py:2: connect()"]),
        ("-1 return", ["a.py-1- def connect():", "a.py:2:     return 1"]),
    ],
)
@pytest.mark.parametrize("guard", ["kernel", "verify"])
def test_flags_mean_what_they_mean_to_grep(tree: Path, flags: str, hits: list[str], guard: str) -> None:
    answer = search(f"te grep {flags}", tree, guard=guard)
    assert answer.hits == hits
    assert answer.code == (0 if hits else 1)


@pytest.mark.proves("TE-FLAGS")
def test_patterns_come_from_files_too(tree: Path) -> None:
    write(tree, {"wanted.txt": "def\nimport b\n", "none.txt": ""})
    assert search("te grep -l -f wanted.txt --include=*.py", tree).hits == ["a.py", "tests/test_b.py"]
    assert search("te grep -f none.txt", tree).meta["matches"] == 0
    assert search("te grep -c -v -f none.txt src/c.txt", tree).hits == ["src/c.txt:2"]
    assert search("te grep -f src", tree).meta["error"] == "not_a_file"


@pytest.mark.proves("TE-FLAGS")
def test_groups_of_context_are_parted(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "x\n1\n2\n3\n4-x: 5:\n"})
    answer = search("te grep -C1 x", tmp_path)
    assert answer.hits == ["a.txt:1: x", "a.txt-2- 1", "--", "a.txt-4- 3", "a.txt:5: 4-x: 5:"]
    assert answer.meta["matches"] == 2


@pytest.mark.proves("TE-FLAGS")
@pytest.mark.parametrize(
    ("command", "error", "named"),
    [
        ("te grep -z x", "unsupported_option", "-z"),
        ("te grep --search-zip x", "unsupported_option", "--search-zip"),
        ("te grep --pre=/bin/sh x", "unsupported_option", "--pre"),
        ("te grep --pre /bin/sh x", "unsupported_option", "--pre"),
        ("te grep --hostname-bin=/bin/sh x", "unsupported_option", "--hostname-bin"),
        ("te grep --frobnicate x", "unsupported_option", "--frobnicate"),
        ("te grep -rnk x", "unsupported_option", "-k"),
        ("te grep --count=3 x", "unsupported_option", "--count"),
        ("te grep -m x", "usage", "-m"),
        ("te grep x -A", "usage", "-A"),
        ("te grep", "usage", "PATTERN"),
        ("te grep -t nope x", "unknown_type", "nope"),
        ("te grep -g '[' x", "invalid_glob", "["),
        ("te grep 'x", "usage", "quote"),
        ("te grep x | head", "usage", "|"),
        ("te grep x > out", "usage", ">"),
        ("te grep $(id)", "usage", "$"),
        ("te frob x", "unknown_command", "frob"),
        ("", "unknown_command", "grep"),
    ],
)
def test_what_is_not_supported_is_named_and_never_a_pattern(tree: Path, command: str, error: str, named: str) -> None:
    answer = search(command, tree)
    assert answer.meta["error"] == error
    assert "matches" not in answer.meta
    assert len(answer.notes) == 1
    assert named in answer.notes[0]
    assert answer.code == 2


@pytest.mark.proves("TE-FLAGS")
def test_a_quoted_pattern_may_hold_what_a_shell_would_act_on(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "a|b > $(c) `d`; \"e\" \\f 'g'\n"})
    assert search("te grep 'a|b > $(c) `d`;'", tmp_path).meta["matches"] == 1
    assert search('te grep -F "\\"e\\" \\\\f"', tmp_path).meta["matches"] == 1
    assert search("te grep \\'g\\'", tmp_path).meta["matches"] == 1


@pytest.mark.proves("TE-PATHS")
@pytest.mark.parametrize("guard", GUARDS)
def test_a_missing_path_is_told_and_the_others_are_searched(tree: Path, guard: str) -> None:
    answer = search("te grep connect nope a.py", tree, guard=guard)
    assert answer.meta == {"v": 1, "cmd": "grep", "matches": 1, "files": 1, "error": "path_not_found"}
    assert answer.notes == ["[TE] no such file or folder: nope"]
    assert answer.hits == ["a.py:1: def connect():"]
    assert answer.code == 2
    assert search("te grep connect nope", tree, guard=guard).meta == {"v": 1, "cmd": "grep", "error": "path_not_found"}


@pytest.mark.proves("TE-PATHS")
@pytest.mark.parametrize("command", ["grep connect", "find", "cat"])
def test_a_folder_that_is_left_out_is_told_with_the_reason(tree: Path, command: str) -> None:
    for path in ("secret", "secret/a.txt"):
        answer = search(f"te {command} {path}", {"code": tree}, left_out={"secret": "mode: out"})
        assert answer.meta == {"v": 1, "cmd": command.split()[0], "error": "not_readable"}
        assert answer.notes == [f"[TE] {path} is not searched: mode: out"]
    other = search(f"te {command} code/a.py secret", {"code": tree}, left_out={"secret": "mode: out"})
    assert (other.meta["error"], len(other.hits) > 0) == ("not_readable", True)


@pytest.mark.proves("TE-PATHS", "A001", "A002")
@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("path", ["../x", "..", "src/../../x", "src/./../..", "/etc/passwd", "//etc/passwd"])
def test_a_path_that_leaves_is_refused_before_anything_is_opened(tree: Path, path: str, guard: str) -> None:
    write(tree.parent, {"x": "connect\n"})
    for roots in (tree, {"code": tree}):
        given = path if roots is tree or not path.startswith("src") else f"code/../{path.removeprefix('src/')}"
        answer = search(["grep", "connect", given], roots, guard=guard)
        assert answer.meta == {"v": 1, "cmd": "grep", "error": "outside"}
        assert answer.notes == [f"[TE] {given} is outside what may be searched"]


@pytest.mark.proves("TE-PATHS", "A003", "A004")
@pytest.mark.parametrize(
    "path", ["", "a\0b", "n" * 300, "d/" * 3000, "~/x", "$HOME", "a.py/x", "\uff0e\uff0e/x", "\ud800"]
)
def test_a_path_that_nothing_can_have_is_just_missing(tree: Path, path: str) -> None:
    answer = search(["grep", "connect", path], tree)
    assert answer.meta == {"v": 1, "cmd": "grep", "error": "path_not_found"}
    assert len(answer.notes) == 1
    assert len(answer.text) < 400


@pytest.mark.proves("TE-PATHS")
def test_spellings_of_a_path_are_one_path(tree: Path) -> None:
    for path in ("src/c.txt", "./src//c.txt", "src/./c.txt", "tests/../src/c.txt"):
        assert search(["grep", "connect", path], tree).hits == ["src/c.txt:1: disconnected"]
    assert search(["grep", "connect", str(tree / "src/c.txt")], tree, guard="none").hits == [
        "src/c.txt:1: disconnected"
    ]


@pytest.mark.proves("TE-HIDDEN")
@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize(
    "flags", ["", "--hidden", "-uu", "--hidden --no-ignore", "-g '*' --hidden", "-g '.llm-do/**' -uu"]
)
def test_the_state_folder_is_never_found(tmp_path: Path, flags: str, guard: str) -> None:
    write(tmp_path, {".llm-do/runs.db": "secret\n", "sub/.LLM-DO/x": "secret\n", "shown.txt": "secret\n"})
    assert "llm-do" not in search(f"te grep secret {flags}", tmp_path, guard=guard).text.lower()
    for path in (".llm-do", ".llm-do/runs.db", "sub/.LLM-DO/x", ".llm-do./runs.db", ".llm\u200b-do/runs.db"):
        assert search(["grep", "secret", path], tmp_path, guard=guard).meta["error"] == "path_not_found"


@pytest.mark.proves("TE-HIDDEN")
def test_hidden_and_ignored_files_are_searched_on_demand(tmp_path: Path) -> None:
    write(tmp_path, {".gitignore": "*.log\n", "x.log": "needle\n", ".env": "needle\n", "a.txt": "needle\n"})
    assert search("te grep -l needle", tmp_path).hits == ["a.txt"]
    assert search("te grep -l needle --hidden", tmp_path).hits == [".env", "a.txt"]
    assert search("te grep -l needle --no-ignore", tmp_path).hits == ["a.txt", "x.log"]
    assert search("te grep -l needle -u", tmp_path).hits == ["a.txt", "x.log"]
    assert search("te grep -l needle -uu", tmp_path).hits == [".env", "a.txt", "x.log"]


@pytest.mark.proves("TE-HIDDEN")
def test_what_lies_outside_a_root_does_not_decide_what_is_found_in_it(tmp_path: Path) -> None:
    write(tmp_path, {".gitignore": "out/\n*.txt\n", ".git/HEAD": "ref: x\n", "out/a.txt": "needle\n"})
    assert search("te grep -l needle", {"out": tmp_path / "out"}).hits == ["out/a.txt"]


REPOSITORIES = {
    "dotfiles above a repository": {".gitignore": "*\n", ".git/HEAD": "", "here/.git/HEAD": "", "here/a.txt": ""},
    "a part of one": {
        ".gitignore": "*\n",
        "r/.git/HEAD": "",
        "r/.gitignore": "b.txt\n",
        "r/here/a.txt": "",
        "r/here/b.txt": "",
    },
    "a submodule": {
        "here/.git/HEAD": "",
        "here/.gitignore": "*.txt\n",
        "here/m/.git": "gitdir: x\n",
        "here/m/a.txt": "",
    },
    "no repository": {
        ".gitignore": "b.txt\n",
        "here/a.txt": "",
        "here/b.txt": "",
        "here/m/.gitignore": "c.txt\n",
        "here/m/c.txt": "",
    },
    "excluded above": {"r/.git/info/exclude": "b.txt\n", "r/here/n/b.txt": "", "r/here/a.txt": ""},
    "not by git": {
        ".ignore": "b.txt\n",
        "here/.git/HEAD": "",
        "here/b.txt": "",
        "here/n/.git": "x",
        "here/n/b.txt": "",
        "here/a.txt": "",
    },
}
FOUND = {"a submodule": ["m/a.txt"]}


@pytest.mark.proves("TE-HIDDEN", "TE-WORKSPACE", "TE-BUILT-IN")
@pytest.mark.usefixtures("either_search")
@pytest.mark.parametrize("layout", REPOSITORIES)
def test_ignore_files_hold_as_far_as_those_who_read_them_say(tmp_path: Path, layout: str) -> None:
    write(tmp_path / "above", {path: text or "needle\n" for path, text in REPOSITORIES[layout].items()})
    (here,) = (tmp_path / "above").rglob("here")
    assert search("te grep -l needle", here, guard="none").hits == FOUND.get(layout, ["a.txt"])
    assert search("te find . -name '*.txt'", here, guard="none").hits == FOUND.get(layout, ["a.txt"])
    if layout != "no repository" and not os.environ["TE_RG"]:
        plain = [ripgrep.find(), "--no-config", "--no-ignore-global", "--files"]
        seen = subprocess.run(plain, cwd=here, capture_output=True, text=True, check=True).stdout.split()
        assert seen == FOUND.get(layout, ["a.txt"])


@pytest.mark.proves("TE-HIDDEN", "TE-WORKSPACE")
@pytest.mark.usefixtures("either_search")
@pytest.mark.parametrize("guard", GUARDS)
def test_what_git_ignores_for_a_user_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, guard: str) -> None:
    """Everybody's answer is the same, and that of `te find`."""
    write(tmp_path, {"home/git/ignore": "*.txt\n", "in/a.txt": "needle\n"})
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    assert search("te grep -l needle", tmp_path / "in", guard=guard).hits == ["a.txt"]
    assert search("te find . -type f", tmp_path / "in", guard=guard).hits == ["a.txt"]


@pytest.mark.proves("TE-HIDDEN")
def test_only_allowed_suffixes_are_found(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "needle\n", "b.MD": "needle\n", "c.key": "needle\n"})
    for command in ("te grep -c needle", "te grep -c needle docs -g '*'", "te grep needle docs/c.key docs/a.md -c"):
        answer = search(command, {"docs": tmp_path}, suffixes={"docs": (".md",)})
        assert not any("c.key" in hit for hit in answer.hits)
        assert answer.meta["matches"] == len(answer.hits) > 0


@pytest.mark.proves("TE-NOTHING-SEARCHED")
@pytest.mark.parametrize("guard", GUARDS)
def test_nothing_searched_is_told_apart_from_no_match(tmp_path: Path, guard: str) -> None:
    write(tmp_path, {"full/.gitignore": "*\n", "full/a.txt": "needle\n", "some/a.txt": "other\n"})
    (tmp_path / "empty").mkdir()
    for command in ("te grep needle full", "te grep needle empty", "te grep needle -g 'nope*'"):
        answer = search(command, tmp_path, guard=guard)
        assert (answer.meta["matches"], answer.meta["error"]) == (0, "nothing_searched"), command
        assert answer.notes == [
            "[TE] no file was searched: all are hidden, ignored or excluded (see --hidden, --no-ignore)"
        ]
    assert "error" not in search("te grep needle some", tmp_path, guard=guard).meta
    aliases = search("te grep needle --exclude-dir=some", {"some": tmp_path / "some"}, guard=guard)
    assert aliases.meta["error"] == "nothing_searched"
    for where in ("", " ."):  # a folder without an alias is excluded by none; the last glob decides
        again = search(f"te grep -l other -g '!*' -g '?.txt'{where}", tmp_path / "some", guard=guard)
        assert again.hits == ["a.txt"]


@pytest.mark.proves("TE-EXACT")
@pytest.mark.parametrize("guard", GUARDS)
def test_totals_are_exact_beyond_the_cap_of_a_file(tmp_path: Path, guard: str) -> None:
    write(tmp_path, {"big.log": "needle needle\n" * 50_001, "b\nig.log": "needle\n" * 20_000, "small.log": "needle\n"})
    for command, total in (
        ("te grep needle", 50_001 + 20_000 + 1),
        ("te grep -o needle", 2 * 50_001 + 20_000 + 1),
        ("te grep -A1 needle", 50_001 + 20_000 + 1),
        ("te grep -m 30000 needle", 30_000 + 20_000 + 1),
        ("te grep -m 7 needle", 7 + 7 + 1),
        ("te grep -c needle", 50_001 + 20_000 + 1),
    ):
        answer = search(command, tmp_path, guard=guard, budget=1_000)
        assert answer.meta["matches"] == total, command
        assert answer.meta["files"] == 3


@pytest.mark.proves("TE-EXACT")
def test_totals_are_exact_wherever_the_output_is_cut_into_pieces(tmp_path: Path) -> None:
    """Many files and long lines, so that pieces end in names, between files and in lines."""
    files = {f"d{n % 7}/n\n{n}.txt": f"needle {'x' * (n % 900)}\nother\n" * (n % 40) for n in range(2_000)}
    write(tmp_path, files)
    lines = sum(content.count("needle") for content in files.values())
    found = sum("needle" in content for content in files.values())
    for command in ("te grep needle", "te grep -o needle", "te grep -B1 needle", "te grep -c needle"):
        answer = search(command, tmp_path)
        assert (answer.meta["matches"], answer.meta["files"]) == (lines, found), command


@pytest.mark.proves("TE-EXACT")
def test_empty_matches_are_not_occurrences(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "bar\nfoo\n", "b.txt": "bar\n"})
    answer = search("te grep -o 'o*'", tmp_path)
    assert answer.hits == ["a.txt:2: oo"]
    assert (answer.meta["matches"], answer.meta["files"]) == (1, 1)
    write(tmp_path, {"long.txt": "bar\n" * 30_000 + "foo\n", "many.txt": "foo\n" * 30_000})
    kept = {"session": "s", "folder": str(tmp_path / "kept"), "guard": "none", "budget": 1_000}
    assert search("te grep -o 'o*' many.txt", tmp_path, **kept).meta["matches"] == 30_000
    late = search("te grep -o 'o*' long.txt", tmp_path, **kept)
    assert late.meta["matches"] == 1, "ripgrep's first lines have no occurrence"
    assert search(f"--handle {late.meta['handle']}", tmp_path, **kept).hits == ["long.txt:30001: oo"]


@pytest.mark.proves("TE-FAIR")
def test_one_file_does_not_eat_the_budget(tmp_path: Path) -> None:
    write(tmp_path, {"a.log": "needle\n" * 5_000, "b.txt": "needle\n", "c.txt": "needle\n" * 3})
    answer = search("te grep needle", tmp_path, budget=2_000)
    assert "b.txt:1: needle" in answer.hits
    assert "c.txt:3: needle" in answer.hits
    assert len(answer.text) > 1_700, "and what is left of it is used"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such a way to wait")
@pytest.mark.proves("TE-GIVES-WAY")
@pytest.mark.parametrize("cancelled", [False, True])
def test_who_reads_gives_way_while_ripgrep_searches(
    tree: Path, monkeypatch: pytest.MonkeyPatch, cancelled: bool
) -> None:
    seen = []

    def pieces(search: ripgrep.Search) -> object:
        seen.extend((os.sched_getscheduler(0), os.sched_getscheduler(search._program.pid)))
        return read(search)

    read = ripgrep.Search.pieces
    monkeypatch.setattr(ripgrep.Search, "pieces", pieces)
    before = os.sched_getscheduler(0)
    assert search("grep connect", tree, guard="none", cancelled=lambda: cancelled).code == 2 * cancelled
    assert seen[:2] == [os.SCHED_BATCH] * 2 and os.sched_getscheduler(0) == before == os.SCHED_OTHER


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such a way to wait")
@pytest.mark.proves("TE-GIVES-WAY")
@pytest.mark.parametrize("refused", ["sched_getscheduler", "sched_setscheduler"])
def test_where_nobody_may_give_way_it_is_searched_all_the_same(
    tree: Path, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(os, refused, refuse)
    assert search("te grep connect", tree).meta["matches"] == 4
