"""What an argument of a prompt may be, as the schema of its worker's input tells: hosts hand each over as a text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from llm_do_mcp.errors import InvalidInput
from llm_do_mcp.models.turn import json_value
from llm_do_mcp.project.schema import at
from llm_do_mcp.runtime.display import cut, escape

TEXT = "string"
_KINDS: Mapping[type, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: TEXT,
    list: "array",
    dict: "object",
    type(None): "null",
}
_SAME_VALUE = ("anyOf", "oneOf", "allOf")
"""Keywords below which lie schemas of the very same value."""


def kinds(field: Any, whole: Mapping[str, Any]) -> tuple[str, ...]:
    """The types that a field's value may be of; none where it may be anything.

    Args:
        field: Its schema.
        whole: The schema that it is part of, for references.
    """
    found: dict[str, None] = {}
    for branch in _branches(field, whole):
        values, named = _named(branch), branch.get("type", ())
        types = [_KINDS[type(value)] for value in values] or ([named] if isinstance(named, str) else named)
        if not types:
            return ()
        found |= dict.fromkeys(types)
    return tuple(found)


def offered(field: Any, whole: Mapping[str, Any]) -> list[str]:
    """The values that a field's schema names, as texts that `value` takes; none where it leaves them open."""
    found: list[Any] = []
    for branch in _branches(field, whole):
        found += _named(branch) or ([True, False] if branch.get("type") == "boolean" else [])
    return [one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in found]


def fits(field: Any, whole: Mapping[str, Any], value: Any) -> bool:
    """Whether a value fits a field by itself."""
    from llm_do_mcp.runtime.schema import problem

    return not isinstance(field, dict) or problem({"$defs": whole.get("$defs", {}), **field}, value) is None


def value(field: Any, whole: Mapping[str, Any], text: str, place: str) -> Any:
    """What a text means: itself where that fits the field, else what it is as JSON.

    Args:
        field: The field's schema.
        whole: The schema that it is part of, for references.
        text: What was given.
        place: What messages call the field.

    Returns:
        The value; whether it fits is for the whole schema to say.

    Raises:
        InvalidInput: It is neither a text nor JSON.
    """
    if fits(field, whole, text):
        return text
    try:
        return parsed(field, whole, text)
    except ValueError:
        types = kinds(field, whole)
        if TEXT in types or not types:
            return text
        shown = cut(escape(text), 80)
        raise InvalidInput(f"{place} must be JSON of type {' or '.join(types)}, not {shown}") from None


def parsed(field: Any, whole: Mapping[str, Any], text: str) -> Any:
    """What a text is as JSON; itself where that does not fit the field, and a text may.

    Raises:
        ValueError: It is no JSON.
    """
    try:
        found = json_value(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return text if TEXT in kinds(field, whole) and not fits(field, whole, found) else found


def _named(schema: Mapping[str, Any]) -> list[Any]:
    """The values that a schema itself names."""
    return list(schema["enum"]) if "enum" in schema else [schema["const"]] if "const" in schema else []


def _branches(schema: Any, whole: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The schemas that tell what a value is: this one, or those that it refers to or chooses from."""
    if not isinstance(schema, dict):
        yield {}
    elif isinstance(ref := schema.get("$ref"), str):
        yield from _branches(at(whole, ref), whole)
    elif "type" in schema or _named(schema) or not any(schema.get(keyword) for keyword in _SAME_VALUE):
        yield schema
    else:
        for keyword in _SAME_VALUE:
            for one in schema.get(keyword, ()):
                yield from _branches(one, whole)
