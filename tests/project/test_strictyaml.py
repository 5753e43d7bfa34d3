"""YAML without surprises: what is read, what is refused, and where the error points."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
import yaml

from llm_do_mcp.errors import ProjectError
from llm_do_mcp.project import strictyaml


@pytest.fixture(autouse=True, params=["C parser", "Python parser"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both of PyYAML's parsers: which one there is depends on the platform."""
    chosen = yaml.SafeLoader if request.param == "Python parser" else strictyaml.PARSER
    monkeypatch.setattr(strictyaml, "PARSER", chosen)


def read(text: str) -> dict[str, Any]:
    return strictyaml.load(text, path="x.yaml").data


def refusal(text: str) -> str:
    with pytest.raises(ProjectError) as caught:
        read(text)
    message = str(caught.value)
    assert message.startswith("x.yaml:") and "\n" not in message
    return message


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{chr(ord(name) - 1)}'] * 9)}]\n" for name in "bcdefgh"
)


@pytest.mark.proves("A032")
def test_an_alias_bomb_is_refused_at_its_first_anchor() -> None:
    started = time.perf_counter()
    assert "anchors and aliases" in refusal(BOMB)
    assert time.perf_counter() - started < 0.05


@pytest.mark.proves("A033")
def test_a_list_that_holds_itself_is_refused() -> None:
    assert refusal("a: &x [*x]").startswith("x.yaml:1:4: anchors and aliases are not supported; write the value out")


@pytest.mark.proves("A034")
@pytest.mark.parametrize("depth", [100, 500, 5_000])
@pytest.mark.parametrize("opening", ["[", "{a: "])
def test_deep_nesting_is_refused(depth: int, opening: str) -> None:
    assert "nest" in refusal("a: " + opening * depth)


@pytest.mark.proves("A035")
def test_a_key_given_twice_names_both_lines() -> None:
    message = refusal("approval_required: true\nx: 1\napproval_required: false")
    assert message == "x.yaml:3:1: key 'approval_required' was already given on line 1"
    assert "already given on line 2" in refusal("a:\n  b: 1\n  b: 2")


@pytest.mark.proves("A036")
def test_numbers_that_nothing_can_hold_are_refused_with_their_place() -> None:
    assert refusal("a: 1\nn: " + "9" * 5_000).startswith("x.yaml:2:4: number of 5000 digits")
    assert refusal("n: 1e400").startswith("x.yaml:1:4: number 1e400 is too large")


@pytest.mark.proves("A036")
def test_a_date_that_does_not_exist_is_the_text_that_was_written() -> None:
    assert read("a: 2026-13-45\nb: 0000-00-00") == {"a": "2026-13-45", "b": "0000-00-00"}


@pytest.mark.proves("A037")
def test_what_older_yaml_guesses_at_is_the_text_that_was_written() -> None:
    text = "on: no\na: 12:30:45\nb: 0644\nc: 2026-11-27\nd: .inf\ne: .nan\nf: 0x1F\ng: 1_000"
    data = read(text)
    expected = ["no", "12:30:45", "0644", "2026-11-27", ".inf", ".nan", "0x1F", "1_000"]
    assert list(data.values()) == expected and "on" in data


@pytest.mark.proves("A037")
def test_what_json_has_too_keeps_its_type() -> None:
    data = read("a: 1.10\nb: -3\nc: true\nd: FALSE\ne: ~\nf:\ng: '1'\nh: 1e3\ni: \"true\"")
    assert json.dumps(list(data.values())) == '[1.1, -3, true, false, null, null, "1", 1000.0, "true"]'


@pytest.mark.proves("A038")
@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("a: !!python/object/apply:os.system [ls]", "1:4", "tags such as"),
        ("a: 1\nkey: !secret x", "2:6", "quote a text that starts with !"),
        ("a: !!binary aGk=", "1:4", "tags"),
        ("a: !!set {x}", "1:4", "tags"),
        ("<<: [1]", "1:1", "merge keys"),
        ("? [a]\n: b", "1:3", "a key must be text"),
        ("a: *b", "1:4", "anchors and aliases"),
    ],
)
def test_tags_merge_keys_and_keys_that_are_no_text_are_refused(text: str, place: str, says: str) -> None:
    message = refusal(text)
    assert message.startswith(f"x.yaml:{place}: ") and says in message


@pytest.mark.proves("A039")
@pytest.mark.parametrize(
    ("text", "place", "hint"),
    [
        ("a:\n\t- b", "2:1", "not with tabs"),
        ("x: {{ y }}", "1:5", "quotes"),
        ("description: a: b", "1:15", "quotes"),
        ("x: %x", "1:4", "quotes"),
        ("x: @x", "1:4", "quotes"),
        ("x: `x`", "1:4", "quotes"),
        ("x: *", "1:5", "quotes"),
        ("a: 1\nx: 'y\nz: 1", "2:4", "close the quote"),
    ],
)
def test_what_is_no_yaml_is_refused_with_its_place_and_a_hint(text: str, place: str, hint: str) -> None:
    message = refusal(text)
    assert message.startswith(f"x.yaml:{place}: ") and hint in message


@pytest.mark.proves("A041")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("- a", "found a list"),
        ("just text", "found a single value"),
        ("1: x", "key '1' must be text; put it in quotes"),
        ("null: x", "key 'null' must be text"),
        ("true: x", "key 'true' must be text"),
        ("a: 1\n---\nb: 2", "x.yaml:2:1: "),
        ("a: 1\n...\nb", "x.yaml:3:1: "),
        ("%YAML 1.1\n---\na: 1", "directives"),
    ],
)
def test_a_document_is_one_mapping_with_text_keys(text: str, says: str) -> None:
    assert says in refusal(text)


@pytest.mark.proves("A041")
@pytest.mark.parametrize("text", ["", "# nothing\n", "\n\n", "---\n"])
def test_an_empty_document_is_an_empty_mapping(text: str) -> None:
    assert read(text) == {}


@pytest.mark.proves("A041")
def test_characters_that_cannot_be_shown_are_refused_with_their_place() -> None:
    assert refusal("a: 1\r\nb: x\x1b[31m").startswith("x.yaml:2:5: the character U+001B")
    for code in (0x85, 0x2028, 0x2029):  # line ends to the parser, and to no editor
        message = f"x.yaml:2:4: the character U+{code:04X} is not allowed here"
        assert refusal(f"a: 1\nb: {chr(code) * 3}\nc: d: e") == message
    assert read("a: '\u2027 \u202a \xa0'\nb: \"\\u2028\"") == {"a": "\u2027 \u202a \xa0", "b": "\u2028"}
    assert refusal('a: "\\ud800"').startswith("x.yaml:1:")


@pytest.mark.proves("A042")
def test_too_much_yaml_is_refused() -> None:
    assert "characters of YAML" in refusal_of_size("a: " + "x" * 300_000)
    assert "more than 20,000 values" in refusal("a: [" + "1," * 30_000 + "]")


def refusal_of_size(text: str) -> str:
    with pytest.raises(ProjectError) as caught:
        read(text)
    return str(caught.value)


@pytest.mark.proves("PROJECT-POSITIONS")
def test_every_key_and_value_has_its_place() -> None:
    document = strictyaml.load("a: 1\nb:\n  c: [x, {d: e}]\nf: |\n  text\n", path="x.yaml", first_line=2)
    assert document.keys[("b", "c")] == strictyaml.Place(4, 3)
    assert document.values[("b", "c", 1, "d")] == strictyaml.Place(4, 14)
    assert document.values[("f",)] == strictyaml.Place(6, 1), "a block's text starts on the next line"
    assert document.place(("b", "nothing", 7)) == strictyaml.Place(4, 3), "the nearest thing around it"
