"""Values against schemas: what fits, the one line that says what does not, and that no value takes long."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from llm_do_mcp.runtime.schema import problem

TEXT = {"type": "string"}
PATTERN = {"type": "string", "pattern": "^(a+)+$"}
PERSON = {
    "type": "object",
    "properties": {"name": TEXT, "nickname": TEXT, "years": {"type": "integer", "minimum": 0}},
    "required": ["name", "years"],
    "additionalProperties": False,
}
ONE = {"properties": {"kind": {"const": "one"}, "a": {"$ref": "#/properties/u"}}, "required": ["kind", "a"]}
TWO = {"properties": {"kind": {"const": "two"}, "b": {"type": "integer"}}, "required": ["kind", "b"]}
UNION = {"properties": {"u": {"oneOf": [ONE, TWO]}}}
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
    "endless": (
        {},
        {"a": [1, {"b": json.loads("-1e999")}]},
        "a[1].b: must be a finite number, as all are that JSON has",
    ),
    "endless by itself": ({"type": "number"}, json.loads("1e999"), "must be a finite number, as all are that JSON has"),
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
    "a branch by its tag": (UNION, {"u": {"kind": "two", "a": 1}}, "u: b is missing"),
    "a branch in a branch": (UNION, {"u": {"kind": "one", "a": {"kind": "two"}}}, "u.a: b is missing"),
    "a branch of another tag": (UNION, {"u": {"kind": "six"}}, 'u.kind: must be one of "one", "two", not "six"'),
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


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


@pytest.mark.proves("A068")
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (of(a=PATTERN), {"a": "a" * 28 + "!"}),
        (of(a={"pattern": "a+$"}), {"a": "a" * 50_000 + "!"}),
        ({"patternProperties": {"^(a+)+$": {"type": "integer"}}}, {"a" * 28 + "!": "x"}),
        ({"patternProperties": {"^(a|aa)+$": {}}, "additionalProperties": False}, {"a" * 34 + "!": "x"}),
        ({"propertyNames": {"pattern": "^(a|a)*$"}}, {"a" * 28 + "!": "x"}),
    ],
)
def test_a_value_that_makes_a_pattern_explode_elsewhere_is_checked_at_once(schema: Any, value: Any) -> None:
    problem(schema, {})  # imports what checks
    before = time.process_time()
    problem(schema, value)
    assert time.process_time() - before < 0.2, "Python's own engine takes seconds"


@pytest.mark.proves("A068")
def test_patterns_mean_what_they_say() -> None:
    assert problem(of(a=PATTERN), {"a": "aaa"}) is None
    assert problem(of(a=PATTERN), {"a": "aab"}) == 'a: must be a string that matches ^(a+)+$, not "aab"'
    assert problem({"pattern": "b"}, "abc") is None, "a match anywhere counts"
    assert problem({"pattern": "b"}, 3) is None, "what is no text has no pattern"
    named = {"patternProperties": {"^x_": {"type": "integer"}}, "properties": {"a": {}}, "additionalProperties": False}
    assert problem(named, {"x_1": 1, "a": "text"}) is None
    assert problem(named, {"x_1": "1"}) == 'x_1: must be an integer, not "1"'
    assert problem(named, {"y": 1}) == "unknown field 'y'; known: a"
    assert problem({"additionalProperties": {"type": "integer"}}, {"y": "1"}) == 'y: must be an integer, not "1"'


@pytest.mark.proves("A068")
def test_a_pattern_that_cannot_be_used_lets_nothing_pass() -> None:
    assert problem({"pattern": "(?=a)"}, "a") == 'must be a string that matches (?=a), not "a"'


@pytest.mark.proves("A068")
@pytest.mark.parametrize(
    ("step", "value", "fits"),
    [
        (0.1, 0.3, True),
        (0.1, 0.35, False),
        (0.01, 19.99, True),
        (0.1, 1e308, True),
        (0.1, float("inf"), False),
        (0.1, float("nan"), False),
        (0.1, 10**400, True),
        (7, 10**400, False),
        (2, 4.0, True),
        (0.1, "0.35", True),
        (2, True, True),
    ],
)
def test_multiples_are_counted_in_decimals(step: float, value: Any, fits: bool) -> None:
    assert (problem({"multipleOf": step}, value) is None) is fits


@pytest.mark.proves("A067")
def test_a_schema_that_refers_elsewhere_is_never_fetched_and_a_deep_value_is_refused() -> None:
    assert problem({"$ref": "http://127.0.0.1:9/x"}, 1) == (
        "the schema refers to http://127.0.0.1:9/x, which is not in it"
    )
    value: Any = {}
    for _ in range(900):
        value = {"a": value}
    tree = {"properties": {"a": {"$ref": "#"}}}
    assert problem(tree, value) == "the value is nested too deeply to be checked"
    assert problem(tree, {"a": {"a": {}}}) is None


_PLAIN_FIELDS: tuple[dict[str, Any], ...] = (
    *({"type": kind} for kind in ("string", "integer", "boolean", "number", "null", "object")),
    {"type": "integer", "minimum": 1, "maximum": 3},
    {"type": "integer", "multipleOf": 2},
    {"type": ["string", "integer"]},
    {"type": "string", "maxLength": 2, "description": "short"},
    {"minimum": 2},
)
_VALUES = (0, 1, 3, 4, True, 1.0, 2.5, "", "text", None, {}, [])


@pytest.mark.proves("SCHEMA-PLAIN")
def test_plain_schemas_are_judged_as_the_library_judges_them() -> None:
    from llm_do_mcp.runtime.validator import Validator

    for field in _PLAIN_FIELDS:
        for extra in ({}, {"required": ["a"]}, {"additionalProperties": False}, {"minProperties": 2}):
            schema = {"type": "object", "properties": {"a": field}, **extra}
            for value in (*({"a": value} for value in _VALUES), {}, {"b": 1}, None, []):
                assert (problem(schema, value) is None) == Validator(schema).is_valid(value), (schema, value)
