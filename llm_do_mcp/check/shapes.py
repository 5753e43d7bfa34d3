"""JSON Schemas in one line, as a person would write a type."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from llm_do_mcp.project.classes import UNSEEN
from llm_do_mcp.runtime.function import Declaration

_DEPTH = 3
_MOST_CHOICES = 6


def shape(schema: Mapping[str, Any] | None) -> str:
    """A schema: `{title: string, tags?: [string], score: integer}`; what is optional has a `?`.

    Args:
        schema: The schema; None for text.
    """
    if schema is None:
        return "text"
    if schema is UNSEEN:
        return "a class that was not looked at (--import-tools)"
    return _type(schema, schema, 0)


def signature(declaration: Declaration) -> str:
    """A function as it is called: `fetch(url: string, count?: integer) -> [string]`."""
    schema = declaration.input_schema
    arguments = ", ".join(_fields(schema, schema, 0))
    output = declaration.output_schema
    if output is not None and set(output.get("properties", {})) == {"result"}:
        output = output["properties"]["result"] | {"$defs": output.get("$defs", {})}
    result = f" -> {_type(output, output, 0)}" if output is not None else ""
    return f"{declaration.shown}({arguments}){result}"


def _fields(schema: Mapping[str, Any], whole: Mapping[str, Any], depth: int) -> list[str]:
    required = schema.get("required", ())
    return [
        f"{name}{'' if name in required else '?'}: {_type(field, whole, depth + 1)}"
        for name, field in schema.get("properties", {}).items()
    ]


def _type(schema: Any, whole: Mapping[str, Any], depth: int) -> str:
    if not isinstance(schema, Mapping) or depth > _DEPTH:
        return "…" if isinstance(schema, Mapping) else "any"
    if (reference := schema.get("$ref")) is not None:
        name = str(reference).rpartition("/")[2]
        found = whole.get("$defs", {}).get(name)
        return _type(found, whole, depth) if found is not None and depth < 1 else name
    for key in ("enum", "const"):
        if key in schema:
            choices = schema[key] if key == "enum" else [schema[key]]
            shown = [json.dumps(choice, ensure_ascii=False) for choice in choices[:_MOST_CHOICES]]
            return " | ".join([*shown, *(["…"] if len(choices) > _MOST_CHOICES else [])])
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " | ".join(dict.fromkeys(_type(one, whole, depth) for one in schema[key]))
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return " | ".join(map(str, kind))
    if kind == "array":
        return f"[{_type(schema.get('items', {}), whole, depth + 1)}]"
    if kind == "object" and schema.get("properties"):
        return f"{{{', '.join(_fields(schema, whole, depth))}}}"
    return str(kind)
