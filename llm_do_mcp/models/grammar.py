"""JSON Schemas as grammars: the subset that constrained decoding takes.

The API compiles a schema into a grammar and cannot express all of JSON Schema. A schema that only loses
constraints on the way (ranges, patterns) is still worth sending: the result is validated again by us. One that
would come to mean something else (a free-form mapping would become an empty object) is not sent as a grammar.

The limits are the API's, for all grammars of one request together:
https://platform.claude.com/docs/en/build-with-claude/structured-outputs#schema-complexity-limits
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

MOST_STRICT_TOOLS = 20
MOST_OPTIONAL = 24
MOST_UNIONS = 16

_SCALARS = {"string", "integer", "number", "boolean", "null"}
_DEFS = "#/$defs/"


def grammars(
    output_schema: Mapping[str, Any] | None, tool_schemas: Sequence[Mapping[str, Any] | None]
) -> tuple[dict[str, Any] | None, list[dict[str, Any] | None]]:
    """The grammars of one request, as many as its limits allow: the output's first, then the tools' in order.

    Args:
        output_schema: What the final text has to fit, or None.
        tool_schemas: What each tool's input has to fit; None for a tool that is not to be strict.

    Returns:
        For each the grammar, or None where there is none.
    """
    optional = unions = tools = 0
    taken: list[dict[str, Any] | None] = []
    for position, schema in enumerate([output_schema, *tool_schemas]):
        found = grammar(schema) if schema is not None else None
        if found is not None:
            more_optional, more_unions = _weight(found)
            fits = optional + more_optional <= MOST_OPTIONAL and unions + more_unions <= MOST_UNIONS
            if fits and (position == 0 or tools < MOST_STRICT_TOOLS):
                optional, unions, tools = optional + more_optional, unions + more_unions, tools + (position > 0)
            else:
                found = None
        taken.append(found)
    return taken[0], taken[1:]


def grammar(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """One schema as a grammar, or None where the grammar would mean something else."""
    bare = {key: value for key, value in schema.items() if key not in ("$schema", "$id")}
    if not _expressible(bare, bare.get("$defs") or {}, ()):
        return None
    from anthropic import transform_schema  # heavy: only a turn that goes to the API pays for it

    return transform_schema(bare)


def _expressible(schema: Any, defs: Mapping[str, Any], path: tuple[str, ...]) -> bool:
    """Whether the grammar of `schema` accepts what the schema accepts, or at least enough of it."""
    if not isinstance(schema, Mapping):
        return False  # `true` and `false` are schemas too, but no grammars
    if (ref := schema.get("$ref")) is not None:
        name = str(ref).removeprefix(_DEFS)
        recursive = name in path
        return (
            str(ref).startswith(_DEFS)
            and name in defs
            and not recursive
            and _expressible(defs[name], defs, (*path, name))
        )
    variants = schema.get("anyOf", schema.get("oneOf"))
    if variants is not None:
        return "properties" not in schema and all(_expressible(variant, defs, path) for variant in variants)
    if "const" in schema or "enum" in schema:
        return all(value is None or isinstance(value, str | int | float) for value in schema.get("enum", ()))
    kind = schema.get("type")
    if not isinstance(kind, str) or "allOf" in schema or "patternProperties" in schema or "prefixItems" in schema:
        return False
    if kind == "object":
        properties = schema.get("properties")
        return (
            isinstance(properties, Mapping)
            and schema.get("additionalProperties", False) is False
            and set(schema.get("required", ())) <= set(properties)
            and all(_expressible(value, defs, path) for value in properties.values())
        )
    return _expressible(schema.get("items"), defs, path) if kind == "array" else kind in _SCALARS


def _weight(grammar: Mapping[str, Any]) -> tuple[int, int]:
    """How many optional properties and how many unions a grammar has."""
    properties = grammar.get("properties", {})
    variants = grammar.get("anyOf", [])
    optional = len(properties) - len(grammar.get("required", []))
    unions = 1 if variants else 0
    inner = [*properties.values(), *variants, *grammar.get("$defs", {}).values()]
    if "items" in grammar:
        inner.append(grammar["items"])
    for part in inner:
        more_optional, more_unions = _weight(part)
        optional, unions = optional + more_optional, unions + more_unions
    return optional, unions
