"""The validator of JSON Schema 2020-12, with what would hang or mislead in it replaced.

- Patterns are matched in linear time (`project/linear.py`); jsonschema's own use Python's engine, which can be made to
  run for ever by a value.
- `multipleOf: 0.1` counts in decimals, as it is written; in binary fractions 0.3 is no multiple of 0.1.

What is wrong is put into words by `schema`, which knows the keyword. Imported when the first value is checked:
jsonschema is not needed to load a project or to list its tools.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend

from llm_do_mcp.project import linear

Errors = Iterator[ValidationError]


def _matches(pattern: str, text: str) -> bool:
    """Whether a text matches. A pattern that cannot be used matches nothing: what it guards is refused."""
    try:
        return linear.compiled(pattern)(text)
    except ValueError:
        return False


def _pattern(validator: Any, pattern: str, value: Any, schema: Mapping[str, Any]) -> Errors:
    if isinstance(value, str) and not _matches(pattern, value):
        yield ValidationError(f"does not match {pattern}")


def _pattern_properties(validator: Any, patterns: Mapping[str, Any], value: Any, schema: Mapping[str, Any]) -> Errors:
    if isinstance(value, dict):
        for pattern, inner in patterns.items():
            for name in value:
                if _matches(pattern, name):
                    yield from validator.descend(value[name], inner, path=name, schema_path=pattern)


def unknown(schema: Mapping[str, Any], value: Mapping[str, Any]) -> list[str]:
    """The fields of an object that its schema names neither by `properties` nor by `patternProperties`."""
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    return [name for name in value if name not in known and not any(_matches(pattern, name) for pattern in patterns)]


def _additional_properties(validator: Any, additional: Any, value: Any, schema: Mapping[str, Any]) -> Errors:
    extra = unknown(schema, value) if isinstance(value, dict) else []
    if additional is False and extra:
        yield ValidationError("unknown fields")
        return
    for name in extra:
        yield from validator.descend(value[name], additional, path=name)


def _multiple_of(validator: Any, step: float, value: Any, schema: Mapping[str, Any]) -> Errors:
    if validator.is_type(value, "number") and (_exact(value) is None or _exact(value) % _exact(step) != 0):
        yield ValidationError(f"is not a multiple of {step}")


def _exact(number: Any) -> Any:
    """A number as it is written, or None for one that is not finite."""
    if isinstance(number, float):
        return Fraction(repr(number)) if math.isfinite(number) else None
    return Fraction(number)


Validator: Any = extend(  # type: ignore[no-untyped-call]  # jsonschema has no types
    Draft202012Validator,
    {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "multipleOf": _multiple_of,
    },
)
