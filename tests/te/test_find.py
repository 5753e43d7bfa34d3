"""`te find` as a model uses it: what it finds, in which order, and what it refuses."""

from __future__ import annotations

import os
import random
import shlex
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from llm_do_mcp.te.ignore import IGNORE_FILES
from tests.te.searching import GUARDS, search, write

POSIX = pytest.mark.skipif(os.name != "posix", reason="such files are not to be had on Windows")
TREE = {
    "config.py": "x = 1\n",
    "README.md": "# Read me\n",
    "src/app/config.yaml": "a: 1\n",
    "src/app/main.py": "pass\n" * 300,
    "src/app/old_config_test.py": "",
    "src/lib/util.py": "pass\n",
    "src/lib/deep/er/config.py": "",
    "docs/Config.md": "text\n",
    "empty/.keep": "",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write(tmp_path / "tree", TREE)


EXPRESSIONS = """
.
. -name '*.py'
. -type f -name '*.py'
. -type d
src docs -iname '*config*'
src -type f -not -name '*.py'
. ! -name '*.py' -type f
. -name '*.py' -o -name '*.md'
. -type f \\( -name '*.md' -o -name '*.yaml' \\)
. -type f -a -name 'config.*'
. -path '*/app/*'
. -path './src/*' -name '*.py'
. -not -path './src/*' -type f
. -wholename './docs/*'
./src -maxdepth 1 -path './src/*'
./src -path './src'
. -path '.'
. -maxdepth 1
. -mindepth 2 -maxdepth 3 -type f
src -maxdepth 0
. -empty
. -type f -empty
. -size +1k
. -size -2k -type f
. -type f -size 0
. -type f -size 6c
. -mtime -1 -type f
. -mtime +1
. -mmin -10 -type f
. -mmin -1 -type f
. -mmin 1 -type f
. -mmin +1 -type f
. -mmin -4320 -type f
. -mmin -4321 -type f
. -mmin +4320 -type f
. -mmin 4321 -type f
. -mmin 4320 -type f
. -mtime -3 -type f
. -mtime 3 -type f
. -mindepth 1 -name '.*' -prune -o -type f -print
. -mindepth 2 -name src -prune -o -type f -print
. -mindepth 2 -name app -prune -o -name '*.py'
. -newer old -type f
. -name app -prune -o -name '*.py' -print
. -path ./src/lib -prune -o -type f -print
. -name '[cC]onfig*'
. -name '?onfig.py'
. -name 'config\\.py'
. -type f,d -name '*.nothing'
. -name '*.py' -print
src/app/main.py
src -name 'src'
. -type l
. -iname 'CONFIG.*' -type f
. -false -o -name docs
""".strip().splitlines()


@POSIX
@pytest.mark.proves("TE-FIND")
@pytest.mark.skipif(shutil.which("find") is None, reason="there is no find")
@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_what_find_finds_is_found(tree: Path, expression: str, guard: str) -> None:
    (tree / "src/link").symlink_to("app")
    write(tree, {"old": "x"})
    os.utime(tree / "old", (time.time() - 3 * 86_400 - 20,) * 2)  # 3 days, and of minutes the 4,321st
    (tree / "empty/.keep").unlink()
    words = shlex.split(expression)
    theirs = subprocess.run(["find", *words], cwd=tree, capture_output=True, check=True, text=True).stdout.splitlines()
    answer = search(["find", *words], tree, guard=guard)
    assert sorted(answer.hits) == sorted(path.removeprefix("./") for path in theirs)
    assert answer.meta == {"v": 1, "cmd": "find", "matches": len(theirs)}
    assert answer.code == (0 if theirs else 1)


@pytest.mark.proves("TE-FIND-RANK")
def test_what_is_called_just_that_comes_first_then_what_lies_least_deep(tree: Path) -> None:
    assert search("te find -iname '*config*' -type f", tree).hits == [
        "config.py",
        "docs/Config.md",
        "src/app/config.yaml",
        "src/lib/deep/er/config.py",
        "src/app/old_config_test.py",
    ]
    assert search("te find . -name '*.py'", tree).hits == [
        "config.py",
        "src/app/main.py",
        "src/app/old_config_test.py",
        "src/lib/util.py",
        "src/lib/deep/er/config.py",
    ]


@pytest.mark.proves("TE-FIND")
@pytest.mark.parametrize("guard", GUARDS)
def test_the_working_folder_of_find_is_the_virtual_folder_of_aliases(tree: Path, tmp_path: Path, guard: str) -> None:
    notes = write(tmp_path / "elsewhere", {"a.md": "", "old/b.md": ""})
    roots = {"code": tree, "notes": notes}
    for command, found in (
        ("te find . -name '*.md'", ["code/README.md", "notes/a.md", "code/docs/Config.md", "notes/old/b.md"]),
        ("te find notes -type f", ["notes/a.md", "notes/old/b.md"]),
        ("te find . -maxdepth 1 -type d", ["code/", "notes/"]),
        ("te find -path 'notes/old/*'", ["notes/old/b.md"]),
        ("te find notes/old -name b.md", ["notes/old/b.md"]),
    ):
        assert search(command, roots, guard=guard).hits == found, command
    only = search("te find . -name '*.m*'", {"docs": notes}, guard=guard, suffixes={"docs": (".txt",)})
    assert only.hits == []


@pytest.mark.proves("TE-FIND", "TE-HIDDEN")
@pytest.mark.parametrize("guard", GUARDS)
def test_hidden_and_ignored_entries_are_found_on_demand(tmp_path: Path, guard: str) -> None:
    write(tmp_path, {".gitignore": "*.log\nbuild/\n!keep.log\n/top.txt\n", ".env": "", ".github/ci.yml": ""})
    write(
        tmp_path,
        {"a.log": "", "keep.log": "", "build/x.txt": "", "d/top.txt": "", "top.txt": "", "d/.gitignore": "z*\n"},
    )
    write(tmp_path, {"d/zoo": "", "zoo": "", ".llm-do/runs.db": "", "d/.LLM-DO/x": ""})
    usual = ["keep.log", "zoo", "d/top.txt"]
    assert search("te find . -type f", tmp_path, guard=guard).hits == usual
    everything = search("te find . -type f --hidden --no-ignore", tmp_path, guard=guard, budget=50_000)
    assert len(everything.hits) == 11
    assert "llm-do" not in everything.text.lower()
    assert search("te find . -name '.env*'", tmp_path, guard=guard).hits == [".env"]
    assert search("te find . -path '*/.github/*'", tmp_path, guard=guard).hits == [".github/ci.yml"]
    none = search("te find . -name 'a.log'", tmp_path, guard=guard)
    assert none.notes == ["[TE] what is hidden or ignored was left out (see --hidden, --no-ignore)"]
    assert search("te find .llm-do", tmp_path, guard=guard).meta["error"] == "path_not_found"


PATTERNS = """\
a
b/
/a
*.py
!a.py
x-?.log
x-[12]*
a/b
**/tmp
a/**
**/b/*.py
/*/ab
!ab
tmp/
#a
\\!x
*
!*/
a*b
*.{py,log}
x-{1,2}.*
!{a,b}.py
{a
[[:alpha:]].py
[[:digit:]a]b
a\\*a"""


@pytest.mark.proves("TE-FIND", "TE-HIDDEN")
def test_what_find_leaves_out_is_what_grep_leaves_out(tmp_path: Path) -> None:
    """Ignore files by the thousand forms, drawn by a seed: ripgrep's reading of them and ours are the same."""
    drawn = random.Random(5)
    names = ["a", "b", "ab", "a.py", "b.py", "x-1.log", "x-2.log", "tmp", "a].py"]
    lines = PATTERNS.splitlines()
    for number in range(90):
        root = tmp_path / str(number)
        for folder in ("", "a/", "b/", "a/b/", "tmp/a/"):
            write(
                root, {f"{folder}{name}.txt" if name in ("a", "b", "tmp") else folder + name: "x\n" for name in names}
            )
        write(root, {".gitignore": "\n".join(drawn.sample(lines, 3))})
        for folder in ("", "a/", "a/b/") if number % 3 == 0 else ():
            write(root, {f"{folder}{drawn.choice(IGNORE_FILES)}": "\n".join(drawn.sample(lines, 2))})
        rg = search("te grep -l x", root, guard="none", budget=100_000)
        ours = search("te find . -type f", root, guard="none", budget=100_000)
        assert sorted(ours.hits) == sorted(rg.hits), (root / ".gitignore").read_text()


@pytest.mark.proves("TE-FIND", "TE-HIDDEN", "TE-BUILT-IN")
@pytest.mark.usefixtures("either_search")
@pytest.mark.parametrize("here", [".", "sub"])
@pytest.mark.parametrize("heavier", range(4))
@pytest.mark.parametrize("lighter", range(4))
def test_the_kind_of_an_ignore_file_outweighs_how_near_it_is(
    tmp_path: Path, heavier: int, lighter: int, here: str
) -> None:
    """Of one kind, the nearest decides."""
    names = [".rgignore", ".ignore", ".gitignore", ".git/info/exclude"]
    above, below = names[heavier], names[lighter]
    write(tmp_path, {above: "*.log\n!gen.py\n", f"sub/{below}": "!a.log\ngen.py\n"})
    write(tmp_path, dict.fromkeys(("sub/a.log", "sub/gen.py"), "x\n"))
    ends_git = here == "sub" and (heavier, lighter) == (2, 3)  # the top of a repository that it runs in
    wins = heavier < lighter and not ends_git
    for command in ("te grep -l x", "te find . -type f"):
        found = search(command, tmp_path / here, guard="none").hits
        assert [hit.removeprefix("sub/") for hit in found] == (["gen.py"] if wins else ["a.log"]), command


@pytest.mark.proves("TE-FIND", "TE-HIDDEN", "TE-BUILT-IN")
@pytest.mark.usefixtures("either_search")
@pytest.mark.parametrize("name", [".gitignore", ".ignore", ".rgignore", ".git/info/exclude"])
@pytest.mark.parametrize(
    "text",
    [
        b"a.txt\n\xe9*.txt\nb.txt\n",
        b"a.txt\n\n# caf\xe9\nb.txt\n*.txt",
        b"\xef\xbb\xbfa.txt\n\xef\xbb\xbfb.txt\n",
    ],
)
def test_an_ignore_file_says_nothing_from_a_line_on_that_is_no_text(tmp_path: Path, name: str, text: bytes) -> None:
    """And a mark before its first line belongs to none."""
    write(tmp_path, {name: text, "a.txt": "x\n", "b.txt": "x\n"})
    for command in ("te grep -l x", "te find . -name '*.txt'"):
        assert search(command, tmp_path, guard="none").hits == ["b.txt"]


@pytest.mark.proves("TE-FIND-REFUSED")
@pytest.mark.parametrize(
    ("command", "error", "named"),
    [
        ("te find . -exec rm {} +", "unsupported_option", "-exec"),
        ("te find . -name x -delete", "unsupported_option", "-delete"),
        ("te find . -execdir ls", "unsupported_option", "-execdir"),
        ("te find . -ok rm", "unsupported_option", "-ok"),
        ("te find . -fprint out", "unsupported_option", "-fprint"),
        ("te find . -printf %p", "unsupported_option", "-printf"),
        ("te find -L . -name x", "unsupported_option", "-L"),
        ("te find . -frobnicate", "unsupported_option", "-frobnicate"),
        ("te find . -name", "usage", "-name"),
        ("te find . -size big", "usage", "-size"),
        ("te find . -type x", "usage", "f, d, l, p, s, b or c"),
        ("te find . -maxdepth -1", "usage", "-maxdepth"),
        ("te find . -mtime x", "usage", "-mtime"),
        ("te find . -newer nope", "path_not_found", "nope"),
        ("te find . \\( -name x", "usage", "bracket"),
        ("te find . -name x \\)", "usage", ")"),
        ("te find . -o -name x", "usage", "-o"),
        ("te find . -name x -o", "usage", "test"),
        ("te find . -not", "usage", "-not"),
        ("te find . -name x stray", "unsupported_option", "stray"),
        ("te find nope", "path_not_found", "nope"),
        ("te find ../x", "outside", "../x"),
        ("te find /etc", "outside", "/etc"),
        ("te find . " + "\\( " * 60 + "-name x" + " \\)" * 60, "too_long", "brackets"),
        ("te find . -name " + "x" * 2_000, "too_long", "1,000"),
    ],
)
def test_what_find_does_not_do_is_named(tree: Path, command: str, error: str, named: str) -> None:
    before = sorted(tree.rglob("*"))
    answer = search(command, tree)
    assert answer.meta == {"v": 1, "cmd": "find", "error": error}
    assert len(answer.notes) == 1
    assert named in answer.notes[0]
    assert sorted(tree.rglob("*")) == before, "nothing was changed"


@pytest.mark.proves("TE-FIND", "TE-BUDGET")
def test_what_find_leaves_out_of_an_answer_adds_up(tmp_path: Path) -> None:
    write(tmp_path, {f"d{number % 7}/file{number}.txt": "" for number in range(900)})
    whole = search("te find . -type f", tmp_path, budget=100_000)
    assert len(whole.hits) == whole.meta["matches"] == 900
    for budget in (250, 400, 1_000, 5_000):
        cut = search("te find . -type f", tmp_path, budget=budget)
        assert len(cut.text) <= budget
        told = [int(word.strip(",")) for word in cut.breadcrumb.split() if word.strip(",").isdecimal()]
        assert len(cut.hits) + told[0] == cut.meta["matches"] == 900
        assert sum(told[1:]) in (told[0], 0)
        assert cut.meta["truncated"] is True


@POSIX
@pytest.mark.proves("TE-FIND", "A020", "A019")
@pytest.mark.parametrize("guard", GUARDS)
def test_odd_names_are_found_and_lead_back(tmp_path: Path, guard: str) -> None:
    names = [b"new\nline", b"esc\x1b[31m", b"# TE: x", b"[TE] y", b"-rf", b"\xff", b" lead", b"back\\slash"]
    for name in names:
        Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), name))).write_text("x")
    answer = search("te find . -type f", tmp_path, guard=guard)
    assert len(answer.hits) == len(names)
    assert answer.text.replace("\n", "").isprintable()
    for hit in answer.hits:
        assert search(["find", "./" + hit if hit.startswith("-") else hit], tmp_path, guard=guard).hits == [hit]
        assert search(["cat", "--", hit], tmp_path, guard=guard).hits == ["x"]


@POSIX
@pytest.mark.proves("TE-FIND", "TE-SPECIAL-FILES", "TE-CONFINED")
@pytest.mark.parametrize("guard", GUARDS)
def test_links_are_told_and_lead_nowhere(tmp_path: Path, guard: str) -> None:
    write(tmp_path, {"in/a/b.txt": "x", "out/secret.txt": "x"})
    (tmp_path / "in/a/loop").symlink_to(tmp_path / "in")
    (tmp_path / "in/away").symlink_to(tmp_path / "out")
    (tmp_path / "in/dead").symlink_to("nowhere")
    os.mkfifo(tmp_path / "in/pipe")
    assert search("te find .", tmp_path / "in", guard=guard, seconds=10).hits == [
        ".",
        "a",
        "away",
        "dead",
        "pipe",
        "a/b.txt",
        "a/loop",
    ]
    assert search("te find . -type l", tmp_path / "in", guard=guard).hits == ["away", "dead", "a/loop"]
    assert search("te find . -type p", tmp_path / "in", guard=guard).hits == ["pipe"]
    assert search("te find . -type p,l -name '*d*'", tmp_path / "in", guard=guard).hits == ["dead"]
    assert search("te find . -type s,b,c", tmp_path / "in", guard=guard).hits == []


@POSIX
@pytest.mark.proves("TE-SPECIAL-FILES")
def test_an_ignore_file_above_that_is_a_pipe_holds_nobody_up(tmp_path: Path) -> None:
    write(tmp_path, {"in/a.txt": "x", ".ignore": "b.txt\n", "in/b.txt": "x"})
    os.mkfifo(tmp_path / ".gitignore")
    assert search("te find . -type f", tmp_path / "in", guard="none").hits == ["a.txt"]


@POSIX
@pytest.mark.proves("TE-FIND", "TE-SPECIAL-FILES", "TE-CONFINED")
@pytest.mark.parametrize("guard", GUARDS)
def test_what_is_named_is_found_itself_of_whatever_kind(tmp_path: Path, guard: str) -> None:
    write(tmp_path, {"in/a/b.txt": "x", "out/secret.txt": "x"})
    (tmp_path / "in/inner").symlink_to("a")
    (tmp_path / "in/away").symlink_to(tmp_path / "out")
    (tmp_path / "in/dead").symlink_to("nowhere")
    os.mkfifo(tmp_path / "in/pipe")
    named = ["inner", "away", "dead", "pipe"]
    answer = search(["find", *named], tmp_path / "in", guard=guard)
    assert sorted(answer.hits) == sorted(named) and "error" not in answer.meta
    assert search(["find", *named, "-type", "l", "-size", "-9"], tmp_path / "in", guard=guard).meta["matches"] == 3
    for through in (["away/"], ["-H", "away"], ["away/secret.txt"]):
        assert search(["find", *through], tmp_path / "in", guard=guard).meta["error"] == "outside"
    if guard == "none":
        assert search("te find inner/", tmp_path / "in", guard=guard).meta["matches"] == 2
        assert search("te find -H inner", tmp_path / "in", guard=guard).meta["matches"] == 2


@pytest.mark.proves("TE-FIND")
def test_a_path_may_be_asked_for_as_it_is_shown(tree: Path) -> None:
    """Unlike find, for which `.` makes every path start with `./`: answers show none of these."""
    assert search("te find . -path 'src/lib/*.py'", tree).hits == ["src/lib/util.py", "src/lib/deep/er/config.py"]


@pytest.mark.proves("A028", "TE-FIND")
def test_a_deep_tree_and_a_full_folder_are_found_whole(tmp_path: Path, torture_scaled) -> None:  # type: ignore[no-untyped-def]
    files = torture_scaled(3_000, 100_000)
    write(tmp_path, {"/".join(["d"] * 200) + "/deep.txt": ""})
    (tmp_path / "full").mkdir()
    for number in range(files):
        (tmp_path / f"full/{number:06}").touch()
    answer = search("te find . -type f", tmp_path, seconds=60)
    assert answer.meta["matches"] == files + 1
    assert search("te find . -name deep.txt", tmp_path).meta["matches"] == 1


@pytest.mark.proves("A107", "A108")
@pytest.mark.parametrize(
    "glob", ["*a" * 100 + "b", "**" * 200 + "b", "[a-z]*" * 80 + "!", "*" + "?" * 100 + "*" * 50 + "b"]
)
def test_no_glob_takes_long(tmp_path: Path, glob: str) -> None:
    write(tmp_path, {"a" * 200: "", ".gitignore": "\n".join(["**/a/" * 40 + "b", "*a" * 60 + "b/**/x", glob])})
    write(tmp_path, {"/".join(["a"] * 60) + "/a": ""})
    began = time.monotonic()
    assert search(["find", ".", "-name", glob], tmp_path).meta["matches"] == 0
    assert search(["find", ".", "-path", glob], tmp_path).meta["matches"] == 0
    assert time.monotonic() - began < 5


@pytest.mark.proves("TE-STOP", "TE-FIND")
def test_a_find_that_takes_too_long_tells_what_it_found(tmp_path: Path) -> None:
    write(tmp_path, {f"d{number}/f": "" for number in range(1_100)})
    late = search("te find .", tmp_path, seconds=0.0)
    assert late.meta["error"] == "timeout"
    assert 0 < late.meta["matches"] < 2_201
    assert search("te find .", tmp_path, cancelled=lambda: True).meta["error"] == "cancelled"
