"""Patterns: the lines that grep selects are the lines that `te grep` selects."""

from __future__ import annotations

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
