"""JSON Schemas: files, references between them, and what is published."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from llm_do_mcp.errors import ProjectError
from tests.project.conftest import Make, problems, worker

ITEM = {
    "$id": "https://x.test/item",
    "type": "object",
    "properties": {"n": {"$ref": "#/$defs/n"}},
    "$defs": {"n": {"type": "integer"}},
}
REPORT = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "items": {"type": "array", "items": {"$ref": "parts/item.json"}},
        "first": {"$ref": "parts/item.json#/$defs/n"},
        "whole": {"$ref": "#"},
        "$ref": {"type": "string"},
        "type": {"enum": [{"$ref": "not/a/reference.json"}]},
    },
    "required": ["items"],
}


def schema_of(make: Make, files: dict[str, Any], keys: str = "output_schema_ref: schemas/report.json") -> Any:
    written = {name: content if isinstance(content, str) else json.dumps(content) for name, content in files.items()}
    return make({"main.worker": worker(keys), **written}).worker("main").output_schema


@pytest.mark.proves("PROJECT-SCHEMA-FILES", "A067")
def test_a_schema_file_takes_in_what_it_refers_to(make: Make) -> None:
    schema = schema_of(make, {"schemas/report.json": REPORT, "schemas/parts/item.json": ITEM})
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    assert validator.is_valid({"items": [{"n": 1}], "first": 2, "whole": {"items": []}})
    for wrong in ({"items": [{"n": "x"}]}, {"items": [], "first": "x"}, {"items": [], "whole": {}}, {}):
        assert not validator.is_valid(wrong)
    assert "$id" not in json.dumps(schema) and "draft-07" not in json.dumps(schema)
    assert schema["properties"]["type"] == REPORT["properties"]["type"], "values are no references"  # type: ignore[index]


@pytest.mark.proves("PROJECT-SCHEMA-FILES")
def test_files_that_refer_to_each_other_are_taken_in_once(make: Make) -> None:
    a = {"type": "object", "properties": {"b": {"$ref": "b.json"}, "name": {"type": "string"}}}
    b = {"type": "object", "properties": {"a": {"$ref": "a.json"}, "b": {"$ref": "#"}}}
    schema = schema_of(make, {"schemas/a.json": a, "schemas/b.json": b}, "output_schema_ref: schemas/a.json")
    validator = Draft202012Validator(schema)
    assert list(schema["$defs"]) == ["schemas_b"]
    assert validator.is_valid({"b": {"a": {"b": {"b": {}}}}}) and not validator.is_valid(
        {"b": {"b": {"a": {"name": 1}}}}
    )


@pytest.mark.proves("PROJECT-SCHEMA-FILES")
def test_a_schema_is_looked_for_in_the_workers_folder_and_then_in_the_root(make: Make) -> None:
    keys = worker("output_schema_ref: schemas/s.json")
    files = {"workers/a/worker.worker": keys, "workers/b/worker.worker": keys, "workers/c.worker": keys}
    near = json.dumps({"type": "object", "title": "near"})
    root = json.dumps({"type": "object", "title": "root"})
    project = make({**files, "workers/a/schemas/s.json": near, "schemas/s.json": root})
    titles = {name: project.worker(name).output_schema for name in "abc"}
    assert {name: schema and schema["title"] for name, schema in titles.items()} == {
        "a": "near",
        "b": "root",
        "c": "root",
    }


@pytest.mark.proves("A067")
@pytest.mark.parametrize(
    ("given", "published"),
    [
        ({"properties": {"a": {}}}, {"type": "object", "properties": {"a": {}}}),
        (
            {"$ref": "#/$defs/x", "$defs": {"x": {"type": "object", "title": "X"}}},
            {"type": "object", "title": "X", "$defs": {"x": {"type": "object", "title": "X"}}, "properties": {}},
        ),
        (
            {"type": "object", "properties": {"a": {"type": "array"}}},
            {"type": "object", "properties": {"a": {"type": "array", "items": {}}}},
        ),
    ],
)
def test_a_published_schema_has_an_object_at_its_root(make: Make, given: Any, published: Any) -> None:
    assert schema_of(make, {"schemas/report.json": given}) == published


@pytest.mark.proves("A067", "PROJECT-SCHEMA-FILES")
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"type": "array"}, "schemas/report.json: the root must have type 'object', not 'array'; put the value into"),
        ({"anyOf": [{"type": "object"}]}, "the root must have type 'object'"),
        ([1], "a schema is a mapping of keywords"),
        ({"$ref": "#/$defs/none"}, "$ref '#/$defs/none': it leads to no schema (at $ref)"),
        ({"$ref": "#"}, "leads to no schema"),
        ({"type": "object", "properties": {"a": {"$ref": "http://x.test/a"}}}, "only files of the project"),
        ({"type": "object", "properties": {"a": {"$ref": "../../x.json"}}}, "has '..'"),
        ({"type": "object", "properties": {"a": {"$ref": "none.json"}}}, "schemas/none.json: no such file"),
        ({"type": "object", "properties": {"a": {"$ref": "#name"}}}, "anchors are not supported"),
        ({"type": "strin"}, "type: 'strin' is no type; known: array, boolean"),
        ({"type": "object", "required": True}, "required: must be a list of property names"),
        ({"type": "object", "properties": ["a"]}, "properties: must be a mapping of names to schemas"),
        (
            {"properties": {"a": {"items": [{"type": "string"}]}}},
            "items: must be one schema, for all items; write prefixItems for a list of them (draft 2020-12) (at prop",
        ),
        ({"type": "object", "properties": {"a": "string"}}, "a schema is a mapping of keywords (at properties/a)"),
        ({"type": "object", "properties": {"a": {"minimum": 1, "exclusiveMinimum": True}}}, "must be a number (draft"),
        (
            {"type": "object", "properties": {"a": {"pattern": "("}}},
            "pattern: '(' is no regular expression that can be used",
        ),
        ({"type": "object", "properties": {"a": {"enum": []}}}, "enum: must be a list of the allowed values"),
        ({"allOf": [{"$ref": "#"}], "type": "object"}, "$ref '#' leads back to itself without a property or item"),
        (
            {
                "type": "object",
                "properties": {"a": {"$ref": "#/$defs/a"}},
                "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}},
            },
            "leads back to itself without a property or item between",
        ),
        ({"type": "object", "properties": {"a": {"$dynamicRef": "#a"}}}, "$dynamicRef: is not supported; write $ref"),
        ({"type": "object", "title": "x" * 200_000}, "the schema has 200,0"),
        ('{"type": "object",}', "schemas/report.json:1:"),
        ('{"type": "object", "type": "object"}', "schemas/report.json: key 'type' is given twice"),
        ('{"type": "object", "default": NaN}', "schemas/report.json: NaN is not JSON"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_schema_that_cannot_be_published_says_why(make: Make, given: Any, says: str) -> None:
    with pytest.raises(ProjectError) as caught:
        schema_of(make, {"schemas/report.json": given})
    assert says in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.proves("A068")
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"pattern": "(?=a)b"}, "'(?=a)b' is no regular expression that can be used: look-around"),
        ({"pattern": r"(a)\1"}, "backreferences are not supported"),
        ({"pattern": "(a{1000}){1000}"}, "Compiled regex exceeds size limit"),
        ({"pattern": "a" * 5_001}, "longer than 5,000 characters"),
        ({"patternProperties": {"(?!x)": {}}}, "look-around"),
        ({"multipleOf": 0}, "multipleOf: must be more than 0"),
        ({"enum": list(range(100_000))}, "enum: has 100,000 values; at most 1,000 are published"),
        ({"minimum": 3, "maximum": 2.5}, "minimum: 3 is more than maximum, 2.5; nothing fits both"),
        ({"minLength": 3, "maxLength": 2}, "minLength: 3 is more than maxLength"),
        ({"type": "integer", "default": "3"}, "default: '3' is not of type integer"),
        ({"type": ["integer", "null"], "default": 1.5}, "default: '1.5' is not of type integer or null"),
        ({"type": "boolean", "default": 1}, "default: '1' is not of type boolean"),
        ({"enum": ["a"], "default": "b"}, "default: 'b' is not among the values of enum"),
        ({"minimum": 3, "default": 2}, "default: '2' is not between minimum and maximum"),
        ({"maxLength": 3, "default": "four"}, "default: 'four' is not between minLength and maxLength"),
        ({"minItems": 1, "default": []}, "default: '[]' is not between minItems and maxItems"),
        ({"pattern": "^a", "default": "b"}, "default: 'b' does not match the pattern"),
    ],
)
def test_what_no_value_fits_or_a_value_could_hang_is_no_schema(make: Make, given: Any, says: str) -> None:
    with pytest.raises(ProjectError) as caught:
        schema_of(make, {"schemas/report.json": {"type": "object", "properties": {"a": given}}})
    assert says in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.proves("A068")
def test_what_is_only_unusual_is_published(make: Make) -> None:
    properties = {
        "price": {"type": "number", "multipleOf": 0.1, "minimum": 1, "maximum": 1, "default": 1.0},
        "name": {"type": ["string", "null"], "pattern": "(a+)+$", "default": None},
        "kind": {"enum": ["a", 1, None], "default": 1},
        "whole": {"type": "integer", "default": 3.0},
        "list": {"type": "array", "items": {"type": "string"}, "default": []},
    }
    schema = schema_of(make, {"schemas/report.json": {"type": "object", "properties": properties}})
    assert schema["properties"] == properties


@pytest.mark.proves("A067")
def test_unevaluated_and_pattern_properties_exclude_each_other(make: Make) -> None:
    inner = {"allOf": [{"patternProperties": {"^a": {}}}], "unevaluatedProperties": False}
    with pytest.raises(ProjectError, match="patternProperties and unevaluatedProperties together; write additional"):
        schema_of(make, {"schemas/report.json": {"type": "object", "properties": {"a": inner}}})


@pytest.mark.proves("PROJECT-SCHEMA-FILES")
@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("schemas/none.json", "no schema file 'schemas/none.json' (looked for schemas/none.json)"),
        ("../x.json", "has '..'"),
        ("/etc/x.json", "is not relative to the project"),
        ("data/x.json", "data/x.json: schemas are not loaded from here, where a worker may write"),
    ],
)
def test_a_reference_to_a_schema_that_cannot_be_used_is_refused(make: Make, reference: str, says: str) -> None:
    with pytest.raises(ProjectError) as caught:
        schema_of(make, {"data/x.json": {"type": "object"}}, f"output_schema_ref: {reference}")
    assert says in str(caught.value)


@pytest.mark.proves("A067", "PROJECT-POSITIONS")
def test_an_inline_schema_is_checked_at_its_place(make: Make) -> None:
    keys = """
        output_schema:
          type: object
          properties:
            a: {type: strin}
            b: {required: true}
    """
    with pytest.raises(ProjectError) as caught:
        schema_of(make, {}, keys)
    assert [line.split(" ")[0] for line in problems(caught.value)] == ["main.worker:5:15:", "main.worker:6:19:"]
    with pytest.raises(ProjectError, match=r"main\.worker:2:16: output_schema: the root must have type 'object'"):
        schema_of(make, {}, "output_schema: {type: string}")


@pytest.mark.proves("PROJECT-SCHEMA-FILES")
def test_a_reference_in_a_worker_is_looked_for_as_a_schema_file_is(make: Make) -> None:
    inline = worker("output_schema: {type: object, properties: {a: {$ref: schemas/s.json}}}")
    files = {"workers/a/worker.worker": inline, "workers/b.worker": inline}
    near, root = json.dumps({"title": "near"}), json.dumps({"title": "root"})
    project = make({**files, "workers/a/schemas/s.json": near, "schemas/s.json": root})
    taken_in = {name: (project.worker(name).output_schema or {})["$defs"] for name in "ab"}
    assert taken_in == {"a": {"workers_a_schemas_s": {"title": "near"}}, "b": {"schemas_s": {"title": "root"}}}


@pytest.mark.proves("PROJECT-SCHEMA-FILES", "PROJECT-POSITIONS")
@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("none.json", "$ref 'none.json': no schema file 'none.json' (looked for workers/none.json, none.json)"),
        ("../x.json", "$ref '../x.json': '../x.json' has '..'"),
        ("http://x.test/a", "$ref 'http://x.test/a': only files of the project can be referred to"),
        ("'#/$defs/none'", "$ref '#/$defs/none': it leads to no schema"),
        ("s.json#/no", "$ref 's.json#/no': it leads to no schema"),
    ],
)
def test_a_reference_in_a_worker_that_leads_nowhere_has_its_place(make: Make, reference: str, says: str) -> None:
    keys = f"""
        output_schema:
          type: object
          properties:
            a: {{$ref: {reference}}}
    """
    project = make({"workers/w.worker": worker(keys), "s.json": "{}"})
    with pytest.raises(ProjectError) as caught:
        project.worker("w")
    assert str(caught.value).startswith(f"workers/w.worker:5:15: output_schema: {says}")


@pytest.mark.proves("A067", "PROJECT-PARAMS")
@pytest.mark.parametrize("reference", ["input_schema: {input}", "schema_in_ref: tree.json"])
def test_what_a_schema_says_of_itself_is_said_without_the_parameters(make: Make, reference: str) -> None:
    tree = {
        "type": "object",
        "properties": {"v": {"type": "integer"}, "next": {"$ref": "#"}, "root": {"$ref": "#/$defs/root"}},
        "required": ["v"],
        "additionalProperties": False,
        "$defs": {"root": {"enum": [{"$ref": "#"}]}},
    }
    keys = reference.replace("{input}", json.dumps(tree)) + "\nparams: {tone: }"
    schema = make({"main.worker": worker(keys), "tree.json": json.dumps(tree)}).worker("main").tool_schema
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    assert validator.is_valid({"v": 1, "tone": "x", "next": {"v": 2, "next": {"v": 3}}, "root": {"$ref": "#"}})
    for wrong in (
        {"v": 1},
        {"v": 1, "tone": "x", "next": {"v": 2, "tone": "x"}},
        {"v": 1, "tone": "x", "next": {"v": 2, "next": {}}},
        {"v": 1, "tone": "x", "root": {"v": 1}},
    ):
        assert not validator.is_valid(wrong), wrong


@pytest.mark.proves("PROJECT-PARAMS")
def test_parameters_are_properties_of_the_call(make: Make) -> None:
    params = "params: {tone: friendly, count: 3, topic: }"
    plain = make({"main.worker": worker(params)}).worker("main")
    assert plain.tool_schema["properties"] == {
        "input": {"type": "string"},
        "tone": {"type": "string", "default": "friendly"},
        "count": {"type": "integer", "default": 3},
        "topic": {},
    }
    assert plain.tool_schema["required"] == ["input", "topic"]
    schema = "input_schema: {type: object, properties: {deck: {type: string}}, required: [deck]}"
    typed = make({"main.worker": worker(f"{schema}\n{params}")}).worker("main")
    assert list(typed.tool_schema["properties"]) == ["deck", "tone", "count", "topic"]
    assert typed.tool_schema["required"] == ["deck", "topic"]
    assert typed.input_schema is not None and list(typed.input_schema["properties"]) == ["deck"]


@pytest.mark.proves("PROJECT-PARAMS")
@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ("input_schema: {properties: {a: {}}}\nparams: {a: 1}", "main.worker:3:13: parameter 'a' is also a property"),
        ("input_schema: {properties: {input: {}}}", "main.worker:2:15: a property called 'input' would hide"),
    ],
)
def test_two_variables_of_one_name_are_an_error(make: Make, keys: str, says: str) -> None:
    with pytest.raises(ProjectError) as caught:
        make({"main.worker": worker(keys)}).worker("main")
    assert str(caught.value).startswith(says)
