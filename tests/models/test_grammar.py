"""Which schemas go as grammars, and how many of them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from llm_do_mcp.models.capabilities import Capabilities, capabilities_of
from llm_do_mcp.models.grammar import MOST_OPTIONAL, MOST_STRICT_TOOLS, MOST_UNIONS, grammar, grammars
from llm_do_mcp.project.manifest import ModelCapabilities


def an_object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


TEXT = {"type": "string"}
DRAFT = "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize(
    "schema",
    [
        an_object(),
        an_object(a=TEXT, b={"enum": ["x", 1, None]}, c={"const": 2}),
        an_object(a={"type": "array", "items": an_object(b={"type": "number", "maximum": 5})}),
        an_object(a={"anyOf": [TEXT, {"type": "null"}]}, b={"oneOf": [TEXT, {"type": "integer"}]}),
        {"$schema": DRAFT, **an_object(a={"$ref": "#/$defs/A"}), "$defs": {"A": TEXT}},
        an_object(properties=an_object(anyOf=TEXT)),
    ],
)
@pytest.mark.proves("MODEL-SCHEMAS")
def test_a_grammar_closes_every_object(schema: dict[str, Any]) -> None:
    found = grammar(schema)
    assert found is not None
    assert found["additionalProperties"] is False
    assert found["required"] == schema["required"]
    assert "$schema" not in str(found)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "additionalProperties": True, "properties": {"a": TEXT}},
        {"type": "object", "properties": {"a": TEXT}, "required": ["a", "b"]},
        {"type": "object", "properties": {"a": TEXT}, "patternProperties": {"^x": TEXT}},
        {"type": "object", "properties": {"a": TEXT}, "anyOf": [an_object(b=TEXT)]},
        an_object(a={}),
        an_object(a=True),
        an_object(a={"type": ["string", "null"]}),
        an_object(a={"type": "array"}),
        an_object(a={"type": "array", "prefixItems": [TEXT], "items": TEXT}),
        an_object(a={"enum": [{"x": 1}]}),
        an_object(a={"$ref": "#/$defs/Missing"}),
        an_object(a={"$ref": "other.json"}),
        {"allOf": [an_object(a=TEXT), an_object(b=TEXT)]},
        {**an_object(a={"$ref": "#/$defs/Tree"}), "$defs": {"Tree": an_object(next={"$ref": "#/$defs/Tree"})}},
    ],
)
@pytest.mark.proves("MODEL-SCHEMAS")
def test_a_schema_that_would_mean_something_else_is_no_grammar(schema: dict[str, Any]) -> None:
    assert grammar(schema) is None


@pytest.mark.proves("MODEL-SCHEMAS")
def test_the_limits_of_one_request_are_kept() -> None:
    small = an_object(a=TEXT)
    output, tools = grammars(small, [small] * (MOST_STRICT_TOOLS + 2))
    assert output is not None
    assert [tool is not None for tool in tools] == [True] * MOST_STRICT_TOOLS + [False] * 2

    optional = {"type": "object", "properties": {f"p{n}": TEXT for n in range(MOST_OPTIONAL)}}
    output, tools = grammars(optional, [small, optional])
    assert (output is None, tools[0] is None, tools[1] is None) == (False, False, True)

    nested = an_object(rows={"type": "array", "items": {"type": "object", "properties": {"a": TEXT, "b": TEXT}}})
    output, tools = grammars(None, [nested] * (MOST_OPTIONAL // 2 + 1))
    assert [tool is not None for tool in tools] == [True] * (MOST_OPTIONAL // 2) + [False]

    union = an_object(a={"anyOf": [TEXT, {"type": "null"}]})
    output, tools = grammars(union, [union] * MOST_UNIONS)
    assert [tool is not None for tool in tools] == [True] * (MOST_UNIONS - 1) + [False]


@pytest.mark.proves("MODEL-CAPABILITIES")
def test_capabilities_are_safe_and_can_be_switched() -> None:
    assert capabilities_of("claude-haiku-4-5") == Capabilities(*[True] * 7, max_output_tokens=32_000)
    assert not capabilities_of("gemma3").documents
    assert not capabilities_of("gemma3").structured_output
    switched = capabilities_of(
        "gemma3:4b", {"gemma*": {"documents": True, "images": False}, "gemma3:4b": {"images": True}}
    )
    assert (switched.documents, switched.images, switched.strict_tools) == (True, True, False)
    assert capabilities_of("gemma3", {"anthropic:gemma*": {"documents": True}}).documents, "as `prices` may write it"


@pytest.mark.proves("MODEL-CAPABILITIES")
def test_a_manifest_can_switch_what_there_is_and_nothing_else() -> None:
    assert set(ModelCapabilities.model_fields) == {field.name for field in fields(Capabilities)}
