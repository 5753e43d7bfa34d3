"""What a person is shown before deciding is what it seems."""

from __future__ import annotations

import pytest

from llm_do_mcp.runtime.display import arguments, cut, escape


@pytest.mark.proves("A078", "A020")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, with ümlaut", "plain text, with ümlaut"),
        ("a\x1b[31mred", "a\\x1b[31mred"),
        ("a\nApprove: yes", "a\\nApprove: yes"),
        ("evil\u202etxt.exe", "evil\\u202etxt.exe"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("line\u2028separator", "line\\u2028separator"),
        ("bad \udcff name", "bad \\udcff name"),
    ],
)
def test_characters_that_mislead_are_written_out(text: str, shown: str) -> None:
    assert escape(text) == shown


@pytest.mark.proves("A078")
def test_a_diff_keeps_its_lines_and_nothing_else() -> None:
    assert escape("+ a\tb\n- \x07", lines=True) == "+ a\tb\n- \\x07"


@pytest.mark.proves("A078")
def test_what_is_cut_says_how_much_is_missing() -> None:
    assert cut("abcdef", 4) == "abcd… (2 more characters)"
    assert arguments({"path": "x" * 10_000}, 100).endswith("more characters)")
