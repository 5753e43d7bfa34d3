"""Where there is no ripgrep: the built-in search gives the same answers, and is stopped as ripgrep is."""

from __future__ import annotations

import os
import shlex
import subprocess
import threading
import time
from pathlib import Path

import pytest

from llm_do_mcp.te import run
from llm_do_mcp.te.filetypes import TYPES
from llm_do_mcp.te.ripgrep import find
from tests.te import test_against_grep, test_pattern
from tests.te.searching import GUARDS, Answer, search, write

POSIX = pytest.mark.skipif(os.name != "posix", reason="such files are not to be had on Windows")


@pytest.fixture
def no_ripgrep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TE_RG", "/nowhere/rg")


def _both(command: str | list[str], roots: Path, monkeypatch: pytest.MonkeyPatch, guard: str) -> tuple[Answer, Answer]:
    theirs = search(command, roots, guard=guard)
    monkeypatch.setenv("TE_RG", "/nowhere/rg")
    ours = search(command, roots, guard=guard)
    assert ours.notes[0].startswith("[TE] searched by the slower built-in search: ")
    assert len(ours.notes) == len(theirs.notes) + 1, "one line says so"
    return theirs, ours


MORE = """
grep -rn needle
grep -l needle -g '*.{txt,md}'
grep -l needle --hidden
grep -l needle --no-ignore
grep -l needle -uu
grep -rn needle -g '!d/**'
grep -l needle -g 'd/*'
grep -l needle -g '# d'
grep -l needle -g 'd/**' -g '!*.md '
grep -l needle --iglob '*.TXT'
grep -l needle -t py -t md
grep -l needle -T py
grep -S needle
grep -S Needle
grep needle bin.dat a.txt
grep -c needle bin.dat late.bin a.txt
grep needle late.bin
grep -o needle nope a.txt
grep needle utf16.txt
grep -rnw 'needle' long.txt
grep -o 'e*' a.txt
grep needle empty
grep -x needle bin.dat
grep -x needle .
grep -lv needle .
grep -cv needle .
grep -v '' .
grep -L needle .
grep -m1 needle .
grep 'needle \\W' latin.txt
grep 'needle .' latin.txt
grep 'needle \\S' latin.txt
grep 'needle [^x]' latin.txt
grep -i 'İ' odd.txt
grep -io 'i' odd.txt
grep -io '[a-z]*' odd.txt
grep -iF 'İ' odd.txt
grep -iP 'İ|x' odd.txt
grep -io 'İ b' odd.txt
grep -So '[[:upper:]]i' odd.txt
grep -So '[[:upper:]]' odd.txt
grep -So 'I\\|\\Wi' odd.txt
grep -SoP '\\Wi' odd.txt
grep -SoF '\\Wi' odd.txt
grep -o '[[:punct:]]*' odd.txt
grep -oE '[^[:punct:][:space:]]+' odd.txt
grep -i '\\<*n' odd.txt
grep -v '\\B' data/words.txt
grep -c '^.?n' marked.txt
grep -cE '^.?n' marked.txt
grep -n '^need' marked.txt
grep -o '.' marked.txt
""".strip().splitlines()


@pytest.mark.proves("TE-BUILT-IN")
@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize(
    "command",
    [*test_against_grep.COMMANDS, *MORE],
)
def test_the_answer_is_that_of_ripgrep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, guard: str
) -> None:
    write(tmp_path, test_against_grep.TREE)
    write(
        tmp_path,
        {"a.txt": "needle\nNeedle e needle\n", "d/b.md": "needle\n", "d/e/c.py": "needle\n", ".env": "needle\n"},
    )
    write(
        tmp_path,
        {".gitignore": "*.log\n", "x.log": "needle\n", "bin.dat": b"\0needle\n", "latin.txt": b"needle \xe9\n"},
    )
    write(tmp_path, {"late.bin": b"needle\n" * 20_000 + b"\0needle", "utf16.txt": "needle ü\n".encode("utf-16")})
    write(tmp_path, {"long.txt": "needle " + "x" * 3_000 + "\n", "empty/.gitignore": "*\n", "empty/y": "needle\n"})
    write(tmp_path, {"marked.txt": b"\xef\xbb\xbfneedle\n\xef\xbb\xbfneedle\n"})
    write(tmp_path, {"odd.txt": "İ bin\ni I\n¡hola! «a» \u2013 €5 “x” 😀 `~\u200b\u00a0,\n"})
    theirs, ours = _both(shlex.split(command), tmp_path, monkeypatch, guard)
    assert (ours.meta, ours.hits, ours.code) == (theirs.meta, theirs.hits, theirs.code)


@pytest.mark.proves("TE-BUILT-IN", "TE-PATTERNS")
@pytest.mark.parametrize(
    ("syntax", "pattern", "lines"),
    [(syntax, pattern, lines) for syntax, table in test_pattern.SELECTED.items() for pattern, lines in table.items()],
)
def test_patterns_mean_the_same(tmp_path: Path, no_ripgrep: None, syntax: str, pattern: str, lines: list[str]) -> None:
    write(tmp_path, {"a.txt": test_pattern.LINES})
    flags = ["-E"] if syntax == "extended" else []
    found = search(["grep", *flags, "-e", pattern, "a.txt"], tmp_path, guard="none")
    assert [hit.split(": ", 1)[1] for hit in found.hits] == lines


@pytest.mark.proves("TE-BUILT-IN")
@pytest.mark.parametrize(
    "pattern",
    [
        *("[[:digit:]]", "[^[:digit:][:space:]]+", "[[:^alpha:]_]", "[[:upper:]-]+", "[]x]", "[^]x]+", "[\\]\\[]"),
        *("\\Qa.b\\E", "x\\Q+*\\E", "\\h\\d", "[\\h\\d]+", "\\H+", "\\d\\K|x", "foo\\Kbar", "a\\.\\Kb", "\\N+"),
        *("o{,}|x{,}y", "o{ 1 , 2 }b", "^.{, 3}o", "x{ , }y|o{2 }"),
        *("(?i)FOO|bar", "(?<n>o)\\k<n>", "(?<n>o)\\g{1}", "(o)\\g1", "\\x{62}a", "(?>o+)b", "o++b", "(?<=\\d)\\D"),
    ],
)
def test_patterns_of_perl_mean_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str) -> None:
    write(tmp_path, {"a.txt": "foobar 12\na.b axb\nx+*y ]x[ A-B\n\té\u00a07 _o\n12x 3y\nx{,}y x{ , }y oo{2 }\n"})
    for flag in ("-P", "-oP"):
        theirs, ours = _both(["grep", flag, pattern], tmp_path, monkeypatch, "none")
        assert (ours.meta, ours.hits) == (theirs.meta, theirs.hits)
        assert "error" not in theirs.meta and theirs.hits
        monkeypatch.delenv("TE_RG")


@pytest.mark.proves("TE-BUILT-IN", "TE-ALIASES")
@pytest.mark.parametrize("guard", GUARDS)
def test_several_roots_are_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, guard: str) -> None:
    roots = {
        "in": write(tmp_path / "in", {"a.txt": "needle\n"}),
        "out": write(tmp_path / "out", {"b/c.md": "needle\n"}),
    }
    for command in (
        "te grep needle",
        "te grep needle out",
        "te grep -c needle out/b/c.md in",
        "te grep needle -g 'out/**'",
    ):
        monkeypatch.delenv("TE_RG", raising=False)
        theirs = search(command, roots, guard=guard)
        monkeypatch.setenv("TE_RG", "/nowhere/rg")
        assert search(command, roots, guard=guard).hits == theirs.hits, command


@pytest.mark.proves("TE-BUILT-IN", "A107")
def test_a_pattern_that_takes_forever_is_ended(tmp_path: Path, no_ripgrep: None) -> None:
    write(tmp_path, {"a.txt": "found aaaa\n", "b.txt": "a" * 50 + "!\n"})
    began = time.monotonic()
    answer = search(["grep", "-E", "(a|aa)+$"], tmp_path, seconds=1)
    assert time.monotonic() - began < 10
    assert answer.meta["error"] == "timeout"
    assert answer.hits == ["a.txt:1: found aaaa"], "what was found until then is told"


@pytest.mark.proves("TE-BUILT-IN", "TE-STOP")
def test_a_cancelled_search_ends(tmp_path: Path, no_ripgrep: None) -> None:
    write(tmp_path, {"b.txt": "a" * 50 + "!\n"})
    asked = threading.Event()

    def cancelled() -> bool:
        asked.set()
        return True

    assert '"error":"cancelled"' in run(
        ["grep", "-E", "(a|aa)+$"], roots={".": str(tmp_path)}, cancelled=cancelled, seconds=60
    )
    assert asked.is_set()


@pytest.mark.proves("TE-BUILT-IN", "TE-ERRORS", "A108")
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["-E", "(a"], "invalid_pattern"),
        (["-P", "(a"], "invalid_pattern"),
        (["-P", "[[=x=]]"], "invalid_pattern"),
        (["\\(n\\)\\2"], "invalid_pattern"),
        (["-P", "[:alpha:]"], "invalid_pattern"),
        (["-P", "[[:nope:]]"], "invalid_pattern"),
        (["-P", "[a"], "invalid_pattern"),
        (["-P", "(a)\\1\\Kb"], "invalid_pattern"),
        (["[a"], "invalid_pattern"),
        (["-E", "(" * 50_000], "invalid_pattern"),
        (["x", "-t", "nope"], "unknown_type"),
        (["x", "-g", "{" * 500], "invalid_glob"),
        (["x", "-g", "{a,b}" * 20], "invalid_glob"),
        (["x", "-g", "**/" * 300 + "*"], None),
    ],
)
def test_what_cannot_be_searched_for_is_named(
    tmp_path: Path, no_ripgrep: None, arguments: list[str], error: str | None
) -> None:
    write(tmp_path, {"a.txt": "x\n"})
    answer = search(["grep", *arguments], tmp_path, seconds=20)
    assert answer.meta.get("error") == error
    assert "Traceback" not in answer.text


@pytest.mark.proves("TE-BUILT-IN")
def test_types_of_files_are_those_of_ripgrep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = subprocess.run([find(), "--type-list"], capture_output=True, check=True, text=True).stdout
    known = {name: globs.split(", ") for name, _, globs in (line.partition(": ") for line in printed.splitlines())}
    known["all"] = [glob for globs in known.values() for glob in globs]
    for name, globs in TYPES.items():
        assert set(globs) <= set(known[name]), name
    names = ("a.ts", "b.tsx", "c.hs", "Dockerfile", "d.h", "e.c", "f.adoc", "none", ".bashrc", ".h/.bashrc", "d/.env")
    write(tmp_path, {**dict.fromkeys(names, "needle\n"), "d/.gitignore": ".env\n"})
    single = ("-t typescript", "-t docker -t hs", "-T h", "-t c -T docker", "-t sh", "-T sh")
    # Of several that a file has, the last one decides.
    several = ("-T h -t h", "-t hs -t h -T h", "-T h -t c", "-t c -T h", "-t sh -t c")
    everything = ("-t all", "-T all", "-t all -T c", "-T all -t c", "-T c -t all")
    for types in (*single, *several, *everything):
        theirs, ours = _both(f"te grep {types} needle", tmp_path, monkeypatch, "none")
        assert sorted(ours.hits) == sorted(theirs.hits) != []
        assert "protobuf" in search("te grep -t nope needle", tmp_path).notes[-1], "those that there are"
        monkeypatch.delenv("TE_RG")


@POSIX
@pytest.mark.proves("TE-BUILT-IN", "TE-SPECIAL-FILES")
@pytest.mark.parametrize("flags", ["-R", "-Rl", "-RL", "-R --include=*.py", "-R -g !l1", "-R -uu", "-R -g d1/"])
def test_links_are_followed_where_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: str
) -> None:
    write(tmp_path, {"d1/a.py": "needle\n", "x/b.txt": "needle\n", ".h/c.py": "needle\n", ".gitignore": "l5/\nl6\n"})
    links = {"l1": "d1", "l2.txt": "d1/a.py", "x/l3": "../d1", "l4": "nope", "d1/up": "..", "x/self": ".", "l5": "d1"}
    for link, target in {**links, "l6": "d1/a.py", "l7": ".h", "d1/l8": "../x", "x/fifo": "../pipe"}.items():
        (tmp_path / link).symlink_to(target)
    os.mkfifo(tmp_path / "pipe")
    for where in ("", "d1", "x l1"):
        theirs, ours = _both(f"te grep {flags} needle {where}", tmp_path, monkeypatch, "none")
        assert (ours.meta, sorted(ours.hits)) == (theirs.meta, sorted(theirs.hits)), where
        monkeypatch.delenv("TE_RG")


@POSIX
@pytest.mark.proves("TE-BUILT-IN", "TE-CONFINED", "TE-SPECIAL-FILES")
@pytest.mark.parametrize("guard", GUARDS)
def test_links_and_special_files_lead_nowhere(tmp_path: Path, no_ripgrep: None, guard: str) -> None:
    write(tmp_path, {"in/a.txt": "needle\n", "secret.txt": "needle\n", "out/x.txt": "needle\n"})
    (tmp_path / "in/link.txt").symlink_to("../secret.txt")
    (tmp_path / "in/folder").symlink_to(tmp_path / "out")
    (tmp_path / "in/loop").symlink_to(".")
    os.mkfifo(tmp_path / "in/pipe")
    for flag in ("-r", "-R", "-uu"):
        answer = search(f"te grep {flag} needle", tmp_path / "in", guard=guard, seconds=10)
        assert answer.hits == ["a.txt:1: needle"]
