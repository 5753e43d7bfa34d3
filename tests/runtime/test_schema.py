"""The one line that says what does not fit a schema."""

from __future__ import annotations

from typing import Any

import pytest

from llm_do_mcp.runtime.schema import problem

TEXT = {"type": "string"}
PERSON = {
    "type": "object",
    "properties": {"name": TEXT, "nickname": TEXT, "years": {"type": "integer", "minimum": 0}},
    "required": ["name", "years"],
    "additionalProperties": False,
}
OLD = {"name": "Ada", "years": 36}

MISFITS: dict[str, tuple[dict[str, Any], Any, str]] = {
    "required": (PERSON, {"name": "Ada"}, "years is missing"),
    "all of them": (PERSON, {}, "name, years are missing"),
    "below": ({"properties": {"people": {"items": PERSON}}}, {"people": [{"name": ""}]}, "people[0]: years is missing"),
    "unknown": (PERSON, {**OLD, "nikname": "x"}, "unknown field 'nikname'; did you mean 'nickname'?"),
    "unlike any": (PERSON, {**OLD, "zzz": "x"}, "unknown field 'zzz'; known: name, nickname, years"),
    "type": (PERSON, {**OLD, "years": "36"}, 'years: must be an integer, not "36"'),
    "the whole": (PERSON, None, "must be an object, not null"),
    "several types": ({"type": ["string", "null"]}, True, "must be a string or null, not true"),
    "enum": ({"enum": ["pear", "plum", None]}, "fig", 'must be one of "pear", "plum", null, not "fig"'),
    "const": ({"const": 1}, 2, "must be 1, not 2"),
    "minimum": (PERSON, {**OLD, "years": -1}, "years: must be at least 0, not -1"),
    "maximum": ({"maximum": 5}, 10**99, "must be at most 5, not a number of 100 digits"),
    "exclusive": ({"exclusiveMinimum": 0}, 0, "must be more than 0, not 0"),
    "step": ({"multipleOf": 5}, 7, "must be a multiple of 5, not 7"),
    "pattern": ({"pattern": "^a+$"}, "b", 'must be a string that matches ^a+$, not "b"'),
    "length": ({"minLength": 1}, "", 'must be a string of at least 1 character, not ""'),
    "too long": (
        {"maxLength": 9},
        "x" * 100,
        "must be a string of at most 9 characters, not a string of 100 characters",
    ),
    "items": ({"maxItems": 2}, [1, 2, 3], "must be an array of at most 2 items, not [1, 2, 3]"),
    "any of": ({"anyOf": [TEXT, {"type": "null"}]}, 5, "must be a string or null, not 5"),
    "one of objects": (
        {"oneOf": [{"type": "object", "required": ["id"]}, {"type": "object", "required": ["name"]}]},
        {},
        "must be an object with id or an object with name, not {}",
    ),
    "more than one": (
        {"oneOf": [TEXT, {"minLength": 1}]},
        "x",
        '"x" fits more than one of what is allowed, and must fit one',
    ),
    "words of the library": ({"uniqueItems": True}, [1, 1], "[1, 1] has non-unique elements"),
    "not all at length": ({"not": TEXT}, "x" * 999, "a string of 999 characters should not be valid under"),
    "unreadable": ({"properties": {"a": TEXT}}, {"a": ["\x1b[31m"]}, 'a: must be a string, not ["\\u001b[31m"]'),
}


@pytest.mark.proves("SCHEMA-SAYS")
@pytest.mark.parametrize(("schema", "value", "said"), MISFITS.values(), ids=MISFITS)
def test_a_misfit_is_one_short_line_with_the_field_and_what_is_allowed(
    schema: dict[str, Any], value: Any, said: str
) -> None:
    line = problem(schema, value)
    assert line is not None and line.startswith(said) and len(line) < 300
    assert line == said or "should not be valid" in said


@pytest.mark.proves("SCHEMA-SAYS")
def test_of_a_long_value_nothing_is_shown() -> None:
    secret = "sk-" + "s" * 300
    for schema in (
        {"type": "integer"},
        {"enum": ["a"]},
        {"not": {}},
        {"anyOf": [{"type": "null"}, {"type": "number"}]},
    ):
        for value in (secret, [secret], {"key": secret}):
            assert "sk-s" not in str(problem(schema, value))


@pytest.mark.proves("SCHEMA-SAYS")
def test_what_fits_is_no_problem() -> None:
    assert problem(PERSON, OLD) is None
