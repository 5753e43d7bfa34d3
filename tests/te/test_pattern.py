"""Patterns: the lines that grep selects are the lines that `te grep` selects."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.te.searching import search, write

LINES = """\
foo
foobar
a+b
a|b
aab
(x)
a{2}
aa
*star
^caret
x^y
price$
a$b
back\\slash
[br]acket
foo_bar foo-bar
été
ABC
12:30

abab
a]b
~&
1d
"""

SELECTED = {
    "basic": {
        "a+b": ["a+b"],
        "a\\+b": ["aab", "abab"],
        "a|b": ["a|b"],
        "^foo\\|x)": ["foo", "foobar", "(x)", "foo_bar foo-bar"],
        "(x)": ["(x)"],
        "a{2}": ["a{2}"],
        "a\\{2\\}": ["aab", "aa"],
        "*star": ["*star"],
        "^*": ["*star"],
        "\\(*star\\)": ["*star"],
        "x^y": ["x^y"],
        "^^": ["^caret"],
        "e$$": ["price$"],
        "a$b": ["a$b"],
        "\\<bar": ["foo_bar foo-bar"],
        "oo\\>": ["foo", "foo_bar foo-bar"],
        "[[:digit:]]:": ["12:30"],
        "[]]b": ["a]b"],
        "[a\\]s": ["back\\slash"],
        "[\\]s": ["back\\slash"],
        "[&~]\\{2\\}": ["~&"],
        "\\(ab\\)\\1": ["abab"],
        "^é[[:alpha:]]é$": ["été"],
        "^$": [""],
        "\\d": ["a{2}", "12:30", "1d"],
    },
    "extended": {
        "a+b": ["aab", "abab"],
        "^(foo|x)$": ["foo"],
        "a{2}": ["aab", "aa"],
        "a{,1}b{2,}": [],
        "a\\{2": ["a{2}"],
        "a+?b": ["foobar", "a+b", "a|b", "aab", "a$b", "back\\slash", "[br]acket", "foo_bar foo-bar", "abab", "a]b"],
        "(ab)\\1": ["abab"],
        "^[^][:alnum:] ]+$": ["~&"],
        "x)": ["(x)"],
        "^(a|b)*$": ["aab", "aa", "", "abab"],
    },
}
"""Made with GNU grep 3.8, but for `\\d`, which it leaves undefined."""


@pytest.mark.proves("TE-PATTERNS")
@pytest.mark.parametrize(
    ("syntax", "pattern", "lines"),
    [(syntax, pattern, lines) for syntax, table in SELECTED.items() for pattern, lines in table.items()],
)
def test_the_lines_that_grep_selects(tmp_path: Path, syntax: str, pattern: str, lines: list[str]) -> None:
    write(tmp_path, {"a.txt": LINES})
    flags = ["-E"] if syntax == "extended" else []
    found = search(["grep", *flags, "-e", pattern, "a.txt"], tmp_path, guard="none")
    assert [hit.split(": ", 1)[1] for hit in found.hits] == lines


OF_ITS_OWN = [
    ["-E", "-e", "(z)", "-e", "(a)\\1"],
    ["-E", "(z)\n(a)\\1"],
    ["-f", "patterns"],
    ["-E", "-e", "(a)(b)\\2", "-e", "(((((((((x)))))))))", "-e", "(b)\\1", "-e", "(a)(b)\\1"],
    ["-E", "((b)(c)|(a))\\4"],
    ["-E", "((a)|(b)(c))\\2"],
    ["-E", "(((((((((a)))))))))(b)\\1"],
    ["-E", "-w", "-e", "(q)", "-e", "(ab)\\1*"],
    ["-E", "-x", "-e", "(q)", "-e", "(ab)\\1*"],
    ["-E", "-v", "-e", "(q)", "-e", "(b)\\1"],
    ["-E", "-i", "-e", "(Q)", "-e", "(A)\\1"],
    ["-E", "-e", "(q)", "-e", "(x)(.)\\21"],
]


@pytest.mark.proves("TE-PATTERNS", "TE-BUILT-IN")
@pytest.mark.usefixtures("either_search")
@pytest.mark.skipif(shutil.which("grep") is None, reason="compared with grep")
@pytest.mark.parametrize("words", OF_ITS_OWN, ids=" ".join)
def test_a_back_reference_counts_the_groups_of_its_own_pattern(tmp_path: Path, words: list[str]) -> None:
    """However many patterns there are, and in whatever order their alternatives are tried."""
    write(tmp_path, {"t.txt": "aab\nxbb\nabab\naba\nbca\nab\nxyy1\nAa\n", "patterns": "z\\(.\\)\n\\(a\\)\\1\n"})
    grep = subprocess.run(["grep", *words, "t.txt"], cwd=tmp_path, capture_output=True, text=True, check=False)
    found = search(["grep", *words, "t.txt"], tmp_path, guard="none")
    assert [hit.split(": ", 1)[1] for hit in found.hits] == grep.stdout.splitlines() != []


@pytest.mark.proves("TE-PATTERNS")
@pytest.mark.usefixtures("either_search")
@pytest.mark.parametrize("pattern", ["(z)\n\\1", "((a)\\1)", "(a)\\2"])
def test_a_back_reference_to_no_group_before_it_is_an_error(tmp_path: Path, pattern: str) -> None:
    write(tmp_path, {"t.txt": "aab\n"})
    answer = search(["grep", "-E", pattern, "t.txt"], tmp_path, guard="none")
    assert answer.meta["error"] == "invalid_pattern" and "has not been closed" in answer.notes[0]
