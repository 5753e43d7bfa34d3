"""`matches` is the number of lines that this machine's own GNU grep prints, command by command."""

from __future__ import annotations

import os
import random
import shlex
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.te.searching import GUARDS, search, write

TREE = {
    "main.py": "import os\nimport sys\n\n\ndef main(argv):\n    path = os.path.join('a')  # TODO\n    return path\n",
    "src/engine.py": "class Engine:\n    def run(self):\n        return self.run\n\n    def Run(self):\n        pass\n",
    "src/util.js": "function run(a, b) {\n  return a+b;\n}\nconst x = run(1,2); run(3);\n// TODO run\n",
    "src/deep/a b.c": "int main(void)\n{\n\treturn 0;\n}\n",
    "docs/readme.md": "# Read me\n\nRun `main.py`. It costs $5 (or 10%).\nfoo.bar fooXbar a|b a+b\n",
    "tests/test_engine.py": "from src.engine import Engine\n\n\ndef test_run():\n    assert Engine().run\n",
    "data/words.txt": "alpha\nbeta\nALPHA beta\n\nüber Über\nalpha alpha alpha\nno newline at the end",
    "data/numbers.csv": "id,value\n1,10\n2,20\n3,x\n",
    "wanted.pat": "alpha\nimport\n",
}
COMMANDS = """
grep -rn run .
grep -r run src tests
grep -rni RUN .
grep -inr 'run' src/
grep -rw run .
grep -rnw -i run src
grep -rx 'import os' .
grep -rv run src/util.js
grep -rvi alpha data/words.txt
grep -rl run .
grep -rlw Engine .
grep -rL run .
grep -rL -m0 run .
grep -rov run .
grep -rovc run src
grep -rc run src
grep -rc -v run src
grep -ro run .
grep -rno 'alpha' data
grep -rnoi '[a-z]*r[a-z]*' docs
grep -rh run .
grep -rHn run main.py
grep -rE 'def|class' .
grep -rE '^(def|class) ' .
grep -rE 'run\\(|main\\(' .
grep -r 'run\\|main' .
grep -r 'a+b' .
grep -rE 'a\\+b' .
grep -rF 'a+b' .
grep -rF 'foo.bar' .
grep -r 'foo.bar' .
grep -rF '$5 (or 10%)' .
grep -rP '(?<=def )\\w+' .
grep -roP '\\bdef \\K\\w+' .
grep -rP '\\d+,\\d+$' data
grep -re run -e main .
grep -rnE -e 'x$' -e '^1' data
grep -rf wanted.pat .
grep -rnF -f wanted.pat data main.py
grep -rA1 def .
grep -rn -B 2 return src
grep -rnC1 TODO .
grep -r -2 TODO main.py
grep -m1 -r run src
grep -rm 2 a data/words.txt
grep -rnm1 -o run src
grep -rn --include='*.py' run .
grep -rn --include=*.py --include=*.js run .
grep -rn run . --exclude='*.py'
grep -rn run . --exclude-dir=tests --exclude-dir src
grep -rn --include '*.py' --exclude 'test_*' run .
grep -rn -- -x .
grep -rn run src -s
grep -rnsH 'int main' 'src/deep/a b.c'
grep -rn '^$' .
grep -rc '' .
grep -rn '\\<run\\>' .
grep -rn '\\brun\\b' .
grep -rni 'über' data
grep -rn '[[:upper:]]' data
grep -rnE '[0-9]{2,}' data
grep -rn '[0-9]\\{2\\}' data
grep -rE '(al)pha \\1' data
grep -rE '{,2}' src
grep -rE '^{2}d' .
grep -rE '{1a' .
grep -rE 'zzz|{3}' src
grep -r 'no newline' data
grep -rnEo '[[:alpha:]]+' data/words.txt
grep --recursive --line-number --ignore-case --word-regexp run .
grep --count --recursive run src
grep -rn --max-count=1 --regexp=run src
grep -rnE 'run|' src/engine.py
grep -rno 'a*' data/words.txt
grep -rwo 'alpha' data
grep -rvc '' data
grep -rx '' .
grep -roE 'a|al|alpha' data
grep -roE '|run' src
grep -ro '$' src
grep -rw '' data
grep -roF -e r -e run src
grep -rn run src/util.js --include='*.py'
grep -rn run src/util.js src/engine.py --exclude='*.py'
grep -rn run src/util.js --exclude='s*'
grep -rn run src tests --exclude-dir=tests
grep -rn run ./src --exclude-dir=src
grep -rn run src/ --exclude-dir=src
grep -rn run . --exclude-dir='.*'
grep -rn run src/deep/../engine.py --include='src*'
grep -rn run . --exclude='*.js' --include='test*'
grep -rn run . --exclude='*.py' --include='test*'
grep -rl run . --exclude='*.py' --include='test*'
grep -rn run . --include='*.py' --exclude='test*' --include='main*'
""".strip().splitlines()

GREP = shutil.which("grep")


def _is_gnu() -> bool:
    if GREP is None:
        return False
    return b"GNU grep" in subprocess.run([GREP, "--version"], capture_output=True, check=False).stdout


def _printed_by_grep(words: list[str], folder: Path) -> int:
    """The lines that grep prints, but for those around a match: with `-c`, what the counts add up to."""
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "GREP_COLORS": ""}
    printed = subprocess.run(
        [str(GREP), "--null", *words[1:]], cwd=folder, capture_output=True, check=False, env=environment
    ).stdout
    flags = [word for word in words[1:] if word.startswith("-")]
    if any("c" in flag for flag in flags if flag[1:2] != "-") or "--count" in flags:
        return sum(int(line.rpartition(b"\0")[2]) for line in printed.splitlines())
    if any("l" in flag.lower() for flag in flags if flag[1:2] != "-" and "l" in flag.lower()):
        return printed.count(b"\0")
    if not any(letter in flag for flag in flags for letter in "ABC23" if flag[1:2] != "-"):
        return len(printed.splitlines())
    hits = (line.partition(b"\0")[2] or line for line in printed.splitlines())
    return sum(1 for hit in hits if hit.lstrip(b"0123456789")[:1] == b":")


@pytest.mark.proves("TE-GREP")
@pytest.mark.skipif(not _is_gnu(), reason="there is no GNU grep")
@pytest.mark.parametrize("command", COMMANDS)
def test_matches_are_the_lines_that_grep_prints(tmp_path: Path, command: str) -> None:
    write(tmp_path, TREE)
    words = shlex.split(command)
    asked = [*words, "-n"] if any(flag in command for flag in ("A1", "B 2", "C1", "-2")) else words
    answer = search(["te", *words], tmp_path, guard="none")
    assert answer.meta["matches"] == _printed_by_grep(asked, tmp_path)


@pytest.mark.proves("TE-SELECTION")
@pytest.mark.skipif(not _is_gnu(), reason="there is no GNU grep")
def test_files_are_chosen_as_grep_chooses_them(tmp_path: Path) -> None:
    write(tmp_path, TREE)
    drawn = random.Random(5)
    globs = ["*.py", "*.js", "s*", "test*", "engine.*", "e*y", "*"]
    for _ in range(60):
        kinds = drawn.choices(["--include", "--exclude", "--exclude-dir"], (5, 5, 2), k=drawn.randint(1, 4))
        options = [f"{kind}={drawn.choice(globs if kind[-1] == 'e' else ['src', 'tests', 'd*'])}" for kind in kinds]
        paths = drawn.sample([".", "src", "./tests", "src/engine.py", "src/util.js", "main.py"], drawn.randint(1, 2))
        words = ["grep", "-rn", *options, "run", *paths]
        answer = search(words, tmp_path, guard="none")
        assert answer.meta["matches"] == _printed_by_grep(words, tmp_path), words


@pytest.mark.proves("TE-PATTERNS")
@pytest.mark.skipif(not _is_gnu(), reason="there is no GNU grep")
@pytest.mark.parametrize(
    "words",
    [
        ["-E", "x|xx"],
        ["-E", "get|getattr|attr"],
        ["-E", "|foo"],
        ["-E", "(x|xx)(t|ttr)?"],
        ["-E", r"\bget|\bgetattr"],
        ["-E", r"[a-g]|g.t|\w\w\w"],
        ["get\\|getattr"],
        ["-e", "get", "-e", "getattr"],
        ["-F", "-e", "get", "-e", "getattr"],
        ["-i", "-E", "GET|GETATTR"],
        ["-w", "-E", "a|ab"],
        ["$"],
        ["-E", "|get"],
        ["-E", "z*|foo"],
        ["-E", "ab*|abc"],
        ["-E", ".|f(o|oo)"],
        ["-E", "-e", ".", "-e", "foo|get(attr)?"],
        ["-E", "-e", "[a-z]", "-e", "foo+|z"],
        ["-E", "(a|ab)(c|bcd)?"],
        ["-E", "(x|xx|tt)+(r| x)"],
        ["-E", "(^|x|xt)(t|$)"],
        ["-E", r"\<(g|ge|a|at).*\>|x\b"],
        ["-E", "(x|xx){1,3}t?"],
        ["-w", "-E", "x.*|a|get ?|ab? a"],
        ["-x", "-E", "x|x+t+|xxttr( |x)*t"],
        ["-i", "-E", "G|GE[T-Z]*|É+|é"],
        ["-i", "-E", "İ|İ+b*"],
        ["-m1", "-E", "x|x+ "],
        ["a\\|ab*\\|é*"],
    ],
)
def test_the_longest_of_several_alternatives_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    write(tmp_path, {"a.txt": "xx getattr attr foo\nab a get\nxxttr xt\nabcd abbbc ééÉ\nİ i İb\n\n"})
    printed = _printed(tmp_path, words)
    for program in ("", "/nowhere/rg"):
        monkeypatch.setenv("TE_RG", program)
        for guard in GUARDS:
            hits = search(["grep", "-o", *words, "a.txt"], tmp_path, guard=guard).hits
            assert [_told(hit) for hit in hits] == printed


@pytest.mark.proves("TE-PATTERNS")
@pytest.mark.parametrize("flags", ["-w", "-wF", "-wi", "-wE", "-wo", "-wv"])
def test_a_word_beside_a_byte_that_is_not_utf_8_is_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: str
) -> None:
    lines = [b"\xabfoo\xbb x", b"foo", "éfoo".encode(), b"foo_1", b"x foo\xff foo", b"a-foo foo. Foo", b"bar_2 \xff"]
    write(tmp_path, {"a.txt": b"\n".join([*lines, b""])})
    words = [flags, "-e", "foo", "-e", "bar_2"]
    printed = subprocess.run([str(GREP), "-an", *words, "a.txt"], cwd=tmp_path, capture_output=True, check=False).stdout
    for program in ("", "/nowhere/rg"):
        monkeypatch.setenv("TE_RG", program)
        hits = search(["grep", *words, "a.txt"], tmp_path).hits
        assert [int(hit.split(":")[1]) for hit in hits] == [int(line.split(b":")[0]) for line in printed.splitlines()]


@pytest.mark.proves("TE-PATTERNS")
@pytest.mark.parametrize(
    "words",
    [
        *(["$"], ["x*$"], [r"\>"], ["-E", "z|$"], ["-E", "(c?b?)*"], ["-w", "c*"], ["-v", "-e", "$"]),
        *(["-P", "$"], ["-P", "x*$"], ["-P", "\\z|b"], ["-iP", "(?x) C? | B"], ["-P", "z*|b"]),
    ],
)
def test_an_empty_match_at_the_end_of_a_file_is_not_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    write(tmp_path, {"a.txt": "a\nabc"})
    printed = _printed(tmp_path, words)
    for program in ("", "/nowhere/rg"):
        monkeypatch.setenv("TE_RG", program)
        answer = search(["grep", "-o", *words, "a.txt"], tmp_path)
        assert [_told(hit) for hit in answer.hits] == printed
        assert answer.meta["matches"] == len(printed)


def _printed(folder: Path, words: list[str]) -> list[tuple[str, str]]:
    """What grep's `-o` prints of `a.txt`."""
    command = [str(GREP), "-o", "-n", *words, "a.txt"]
    printed = subprocess.run(command, cwd=folder, capture_output=True, check=False, text=True).stdout
    return list(map(_told, printed.splitlines()))


def _told(hit: str) -> tuple[str, str]:
    """The number of a line and its text, without the spaces around it, which answers leave out."""
    number, _, text = hit.removeprefix("a.txt:").partition(":")
    return number, text.strip()


NOT_UTF_8 = {"a.txt": b"x \xff\xfe y\nq\n\xc3\xa9\xff\xff\n", "b.txt": "x y\n", "of.pat": b"\xff\ny$\n"}


@pytest.mark.proves("TE-PATTERNS", "TE-BUILT-IN", "TE-GREP")
@pytest.mark.skipif(not _is_gnu(), reason="there is no GNU grep")
@pytest.mark.usefixtures("either_search")
@pytest.mark.parametrize("guard", GUARDS)
def test_a_pattern_may_hold_bytes_that_are_no_text(tmp_path: Path, guard: str) -> None:
    write(tmp_path, NOT_UTF_8)
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    words = [
        "\xff",
        "-e \xff -e q",
        "-E \xff|q",
        "-E \xff|[yq]",
        "-E \xff{2}",
        "-i \xff\xfe",
        "-F \xff",
        "-F -e \xff -e q",
    ]
    words += ["-x \xff", "-v \xff", "-E (q|\xff)+$", "-S \xff", "-f of.pat", "-F -f of.pat", "\\(x.\\)\xff"]
    # What is half of a character is found in it.
    words += ["\xa9", "-F \xc3", "-v \xa9", "-E q|\xc3", "-E (\xa9|\xa9\xff)+\xff", "-E y|.q|\xc3+", "\xc3\xa9\xff"]
    for flags in ("-c", "-o"):
        for word in words:
            given = [flags, *os.fsdecode(word.encode("latin-1")).split()]
            theirs = [word for word in given if word != "-S"]
            grep = [str(GREP), "-a", *theirs, "a.txt", "b.txt"]
            printed = subprocess.run(grep, cwd=tmp_path, capture_output=True, check=False, env=environment).stdout
            lines = printed.decode("utf-8", "replace").splitlines()
            answer = search(["grep", "-h", *given, "a.txt", "b.txt"], tmp_path, guard=guard)
            if flags == "-c":
                assert answer.hits == [line for line in lines if not line.endswith(":0")], word
            else:
                shown = [line.partition(":")[2] for line in lines]
                assert [hit.partition(": ")[2].strip() for hit in answer.hits] == [text.strip() for text in shown], word


@pytest.mark.proves("TE-PATTERNS", "TE-BUILT-IN", "TE-FLAGS")
@pytest.mark.usefixtures("either_search")
@pytest.mark.parametrize(
    ("words", "error"),
    [
        *(("-P \xff", "invalid_pattern"), ("-w \xff", "invalid_pattern"), ("[\xff]", "invalid_pattern")),
        *(("-E (q)\\1|\xff", "invalid_pattern"), ("q -g *\xff", "usage"), ("q --include *\xff", "usage")),
    ],
)
def test_where_only_text_is_read_other_bytes_are_refused(tmp_path: Path, words: str, error: str) -> None:
    write(tmp_path, NOT_UTF_8)
    answer = search(["grep", *os.fsdecode(words.encode("latin-1")).split()], tmp_path)
    assert answer.meta["error"] == error
    assert "not UTF-8" in answer.notes[-1]


@pytest.mark.proves("TE-PATTERNS", "TE-BUILT-IN")
@pytest.mark.usefixtures("either_search")
@pytest.mark.parametrize(
    ("pattern", "hits"),
    [
        ("a\\W*|ab+", ["1: AB", "1: abb", "2: Ab"]),
        ("ab+\\w?|b", ["1: ABW", "1: abb", "2: AbW"]),
        ("[[:upper:]]|ab*", ["1: AB", "1: W", "1: abb", "2: Ab", "2: W"]),
        ("A\\W*|Ab+", ["1: A", "2: Ab"]),
        ("a\\\\W*|B+", ["1: B"]),
    ],
)
def test_the_longest_is_found_in_whatever_case_smart_case_leaves(tmp_path: Path, pattern: str, hits: list[str]) -> None:
    write(tmp_path, {"a.txt": "ABW! abb\nAbW\n"})
    assert search(["grep", "-S", "-oE", pattern, "a.txt"], tmp_path).hits == [f"a.txt:{hit}" for hit in hits]


@pytest.mark.proves("TE-LONG-LINES", "TE-BUILT-IN")
@pytest.mark.usefixtures("either_search")
def test_the_longest_is_cut_as_any_line_is(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "語" * 700 + "x\n"})
    first, longest = (search(["grep", "-oE", pattern], tmp_path) for pattern in ("語+x", "(語|語語)+x|語x+"))
    assert longest.hits == first.hits and longest.meta == first.meta
    assert first.hits[0].startswith("a.txt:1: " + "語" * 299)


@pytest.mark.proves("TE-PATTERNS", "A107", "TE-STOP")
def test_no_choice_of_alternatives_takes_forever_or_all_memory(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "a" * 300_000 + "c\n", "b.txt": "found\n"})
    began = time.monotonic()
    assert search(["grep", "-oE", "(a|aa)+b|c"], tmp_path, seconds=1).meta["error"] == "timeout"
    assert time.monotonic() - began < 10
    whole = search(["grep", "-oE", "(a|aa)+c|c", "a.txt"], tmp_path)
    assert whole.meta["matches"] == 1 and whole.meta["cut_lines"] == 1, "a long one is cut as ripgrep cuts it"
    for large in ("(f|fo){9000}|found", "(" * 5_000 + "f|fo" + ")" * 5_000 + "und"):
        assert search(["grep", "-oE", large, "b.txt"], tmp_path).meta.get("error") in (None, "invalid_pattern")


@pytest.mark.proves("TE-GREP", "TE-BUILT-IN")
@pytest.mark.skipif(not _is_gnu(), reason="there is no GNU grep")
@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.usefixtures("either_search")
@pytest.mark.parametrize("words", ["-m1 -A2", "-m1 -C9", "-m2 -B1", "-m2 -A1", "-m3 -C1", "-v -m1 -A4", "-m9 -C1"])
def test_behind_the_last_hit_that_is_wanted_there_are_only_lines_around_it(
    tmp_path: Path, words: str, guard: str
) -> None:
    write(tmp_path, {"a.txt": "foo 1\nfoo 2\nbar 3\nfoo 4\nfoo 5\nbar 6\nbar 7\nfoo 8\n", "b\n1:x": "bar\nfoo\nfoo"})
    printed = subprocess.run(
        [str(GREP), "-n", *words.split(), "foo", "a.txt"], cwd=tmp_path, capture_output=True, check=False, text=True
    ).stdout.splitlines()
    answer = search(["grep", "-h", *words.split(), "foo", "a.txt"], tmp_path, guard=guard)
    assert [hit.replace(" ", "", 1) for hit in answer.hits] == printed
    assert answer.meta["matches"] == sum(line[1:2] == ":" for line in printed)
    everywhere = search(["grep", *words.split(), "foo"], tmp_path, guard=guard)
    first = 1 if "-v" in words else min(2, int(words[words.index("-m") + 2]))
    assert everywhere.meta["matches"] == answer.meta["matches"] + first


@pytest.mark.proves("TE-BINARY", "TE-BUILT-IN")
@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.usefixtures("either_search")
def test_lines_around_a_hit_hide_no_binary_file(tmp_path: Path, guard: str) -> None:
    write(tmp_path, {"e.bin": b"y\nfoo\0\n", "late.bin": b"y\nfoo\n" + b"y\n" * 90_000 + b"foo\0\n"})
    write(tmp_path, {"a.txt": "y\nfoo\n"})
    write(tmp_path, {"no.bin": b"y\n\0\n", ".llm-doignore": "unlisted.bin\n", "unlisted.bin": b"y\nfoo\0\n"})
    for flags in ("", "-A2", "-B2", "-C2", "-m1 -C2"):
        for path, binary in (("", 1 if "-m1" in flags else 2), ("e.bin", 1)):
            answer = search(f"te grep {flags} foo {path}", tmp_path, guard=guard)
            found = int(not path) + (not path and "-m1" in flags)
            assert (answer.meta["matches"], answer.meta["binary"], answer.code) == (found, binary, 0), flags


@pytest.mark.proves("TE-BINARY", "TE-BUILT-IN")
@pytest.mark.skipif(not _is_gnu(), reason="there is no GNU grep")
@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.usefixtures("either_search")
@pytest.mark.parametrize(
    "words", ["a", "''", "'[ab]'", "-v x", "-o a", "-x ''", "-B1 a", "-A1 a", "-w a", "-oE 'a|aa*'"]
)
def test_a_file_that_is_binary_behind_its_first_bytes_is_binary(tmp_path: Path, words: str, guard: str) -> None:
    tree = write(
        tmp_path / "tree", {"a.dat": b"a\nx\0y\n", "b.dat": b"\n\na" + b"\n" * 900 + b"\0", "c.dat": b"\n\n\n\0"}
    )
    write(tree, {"d.txt": "a\nb\n", "e.txt": "a\n".encode("utf-16") if guard != "verify" else "a\n"})
    for most in ("-m1", "-m2", "-m3", "-m4"):
        given = [most, *shlex.split(words)]
        printed = subprocess.run([str(GREP), "-r", *given, "."], cwd=tree, capture_output=True, check=False)
        answer = search(["grep", *given], tree, guard=guard)
        assert answer.meta.get("binary", 0) == printed.stderr.count(b"binary file matches") - (
            b"e.txt" in printed.stderr
        )
        assert not any(".dat" in hit for hit in answer.hits)
    write(tree, {f"more/{number}.txt": "a\nb\n\n" for number in range(30)})
    kept = {"guard": guard, "session": "s", "folder": str(tmp_path / "kept")}
    first = search(["grep", "-m1", *shlex.split(words)], tree, budget=500, **kept)
    rest = search(["--handle", first.meta["handle"]], tree, **kept)
    served = [hit for hit in (*first.hits, *rest.hits) if hit != "--"]
    assert len(set(served)) == len(served) and not any(".dat" in hit for hit in served)


@pytest.mark.proves("TE-COMMAND")
@pytest.mark.skipif(not _is_gnu(), reason="there is no GNU grep")
@pytest.mark.parametrize(
    "words",
    [
        *("-L run src", "-L nope src", "-L run main.py", "-L def main.py", "-Lv '' src", "-L -m 0 run src"),
        "-m0 run src",
        *("-ov run src", "-ov '' src", "-ov '\\' src", "-ovc run src", "-ovl run src", "-ovL run src"),
    ],
)
def test_the_exit_code_is_that_of_grep_also_where_no_line_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    write(tmp_path, TREE)
    theirs = subprocess.run([str(GREP), "-r", *shlex.split(words)], cwd=tmp_path, capture_output=True, check=False)
    for program in ("", "/nowhere/rg"):
        monkeypatch.setenv("TE_RG", program)
        assert search(["grep", "-r", *shlex.split(words)], tmp_path, guard="none").code == theirs.returncode
