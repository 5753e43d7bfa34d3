"""JSON Schemas: whether one is fit to be published, and made so. Where they come from is `schema_files`' matter.

The root of a published schema is an object, as the protocol demands. Only the form is checked here, keyword by keyword,
which needs no validator library when a project is loaded; values are checked by the runtime.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from llm_do_mcp.project import linear
from llm_do_mcp.project.checked import quoted
from llm_do_mcp.project.strictyaml import MAX_DEPTH, KeyPath

Schema = dict[str, Any]

NAMED_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
LISTED_SCHEMAS = ("allOf", "anyOf", "oneOf", "prefixItems")
SINGLE_SCHEMAS = (
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
)
TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
SAME_VALUE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas")
"""What holds for a value itself, and not for something in it."""
DYNAMIC = ("$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$anchor")
ROOT = "#"
"""The reference that leads to the whole schema."""
MAX_ENUM = 1_000
"""Values of an `enum`: each model and client is sent all of them, in every call."""
MAX_CHARACTERS = 200_000
"""Of a published schema as JSON."""
_TEXTS = ("$ref", "$id", "$schema", "title", "description", "format", "pattern")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_RANGES = (
    ("minimum", "maximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
    ("exclusiveMinimum", "exclusiveMaximum"),
)


@dataclass(frozen=True)
class SchemaProblem:
    """Something in a schema that cannot be published, and where in it."""

    message: str
    location: KeyPath


def extended(schema: Mapping[str, Any], properties: Mapping[str, Any], required: Sequence[str] = ()) -> Schema:
    """The schema with further properties at its root, and with no other change in what it accepts.

    What refers to the root means the value without them, so the root as it was then becomes a definition.

    Args:
        schema: One that is published.
        properties: Name → schema, of names that its root does not have.
        required: Those of them that have to be given.
    """
    whole = dict(schema)
    if ROOT in _refs(whole):
        definitions = whole.get("$defs", {})
        name = "root"
        while name in definitions:
            name += "_"

        def led_there(inner: Schema, location: KeyPath) -> Schema:
            return {**inner, "$ref": f"#/$defs/{name}"} if inner.get("$ref") == ROOT else inner

        whole = changed(whole, led_there)
        root = {keyword: value for keyword, value in whole.items() if keyword != "$defs"}
        whole["$defs"] = {**whole.get("$defs", {}), name: root}
    whole["properties"] = {**whole.get("properties", {}), **properties}
    if required:
        whole["required"] = [*whole.get("required", ()), *required]
    return whole


def published(schema: Schema) -> Schema:
    """The schema with an object at its root, as the protocol demands.

    Raises:
        ValueError: It describes something else; says what to write instead.
    """
    seen: set[str] = set()
    while isinstance(ref := schema.get("$ref"), str):
        target = at(schema, ref)
        if not isinstance(target, dict) or ref in seen:
            raise ValueError(f"the root's $ref {quoted(ref)} leads to no schema")
        seen.add(ref)
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        if doubled := sorted(rest.keys() & target.keys() - {"title", "description"}):
            raise ValueError(f"the root has a $ref and {doubled[0]!r} beside it; write the schema out")
        schema = {**rest, **target}
    if "type" not in schema and "properties" in schema:
        schema = {"type": "object", **schema}
    if schema.get("type") != "object":
        found = quoted(schema["type"]) if "type" in schema else "something else"
        raise ValueError(f"the root must have type 'object', not {found}; put the value into a property")
    _check_whole(schema)
    return {**schema, "properties": schema.get("properties", {})}


def checked(schema: Schema) -> Schema:
    """A schema that Python code describes, without the defaults that do not fit it.

    A default says what is used where nothing is given, and Python takes any (`x: bool = 1`). In a schema that somebody
    writes, one that does not fit is a mistake.

    Raises:
        ValueError: What makes it unusable.
    """
    for problem in problems(schema, defaults=False):
        raise ValueError(f"{problem.message} (at {'/'.join(map(str, problem.location)) or 'the root'})")
    _check_whole(schema)
    without: Schema = changed(schema, _without_odd_default)
    return without


def _check_whole(schema: Schema) -> None:
    """What is wrong with a schema whose keywords are all in order.

    Raises:
        ValueError: What it is.
    """
    if (size := len(json.dumps(schema))) > MAX_CHARACTERS:
        raise ValueError(f"the schema has {size:,} characters; at most {MAX_CHARACTERS:,} are published")
    for ref in _refs(schema):
        if at(schema, ref) is None:
            raise ValueError(f"$ref {quoted(ref)} leads to nothing in the schema")
    if (endless := _endless(schema)) is not None:
        raise ValueError(f"$ref {quoted(endless)} leads back to itself without a property or item between")
    used = {keyword for inner in _every(schema) for keyword in inner}
    if {"patternProperties", "unevaluatedProperties"} <= used:
        raise ValueError("patternProperties and unevaluatedProperties together; write additionalProperties instead")


def problems(schema: Any, location: KeyPath = (), *, defaults: bool = True) -> Iterator[SchemaProblem]:
    """What is wrong with the form of a schema of draft 2020-12.

    Args:
        schema: The schema.
        location: Where it lies.
        defaults: Whether a default that does not fit is wrong.
    """
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        yield SchemaProblem("a schema is a mapping of keywords", location)
        return
    if len(location) > MAX_DEPTH:
        yield SchemaProblem(f"nested deeper than {MAX_DEPTH}", location)
        return
    wrong = set()
    for keyword, value in schema.items():
        here = (*location, keyword)
        if complaint := _complaint(keyword, value):
            yield SchemaProblem(f"{keyword}: {complaint}", here)
            wrong.add(keyword)
    for keyword, message in _contradictions(schema):
        if defaults or keyword != "default":
            yield SchemaProblem(message, (*location, keyword))
    for below, place in _below({keyword: schema[keyword] for keyword in schema if keyword not in wrong}, location):
        yield from problems(below, place, defaults=defaults)


def _complaint(keyword: str, value: Any) -> str | None:
    """What is wrong with the value of a keyword, schemas inside it aside."""
    if keyword == "type":
        types = value if isinstance(value, list) and value else [value]
        wrong = next((entry for entry in types if entry not in TYPES), None)
        return f"{quoted(wrong)} is no type; known: {', '.join(TYPES)}" if wrong is not None or not value else None
    if keyword == "required":
        good = isinstance(value, list) and all(isinstance(entry, str) for entry in value)
        return None if good else "must be a list of property names"
    if keyword == "enum":
        if isinstance(value, list) and len(value) > MAX_ENUM:
            return f"has {len(value):,} values; at most {MAX_ENUM:,} are published"
        return None if isinstance(value, list) and value else "must be a list of the allowed values"
    if keyword in DYNAMIC:
        return "is not supported; write $ref: '#/$defs/name'"
    if keyword in _TEXTS:
        if not isinstance(value, str):
            return "must be text"
        return _pattern_complaint(value) if keyword == "pattern" else None
    if keyword in _COUNTS:
        good = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        return None if good else "must be a whole number, 0 or more"
    if keyword in _NUMBERS:
        if not _is_number(value):
            return "must be a number (draft 2020-12)"
        return "must be more than 0" if keyword == "multipleOf" and value <= 0 else None
    if keyword in NAMED_SCHEMAS:
        if not isinstance(value, dict):
            return "must be a mapping of names to schemas"
        return next(filter(None, map(_pattern_complaint, value)), None) if keyword == "patternProperties" else None
    if keyword == "items" and isinstance(value, list):
        return "must be one schema, for all items; write prefixItems for a list of them (draft 2020-12)"
    if keyword in LISTED_SCHEMAS and not (isinstance(value, list) and value):
        return "must be a list of schemas"
    return None


def _pattern_complaint(pattern: str) -> str | None:
    """Why a pattern cannot be used. Only those can that are matched in linear time, so that none ever hangs."""
    try:
        linear.compiled(pattern)
    except ValueError as error:
        return f"{quoted(pattern)} is no regular expression that can be used: {error}"
    return None


def _contradictions(schema: Schema) -> Iterator[tuple[str, str]]:
    """Keywords that nothing can satisfy together, and a default that does not fit those beside it."""
    for least, most in _RANGES:
        if _is_number(schema.get(least)) and _is_number(schema.get(most)) and schema[least] > schema[most]:
            yield least, f"{least}: {schema[least]} is more than {most}, {schema[most]}; nothing fits both"
    if "default" in schema and (wrong := _default_complaint(schema, schema["default"])) is not None:
        yield "default", f"default: {wrong}"


def _without_odd_default(schema: Schema, location: KeyPath) -> Schema:
    if "default" in schema and _default_complaint(schema, schema["default"]) is not None:
        return {keyword: value for keyword, value in schema.items() if keyword != "default"}
    return schema


def _default_complaint(schema: Schema, value: Any) -> str | None:
    """Why a value does not fit the keywords that stand beside it, as far as these are plain."""
    given = schema.get("type")
    types: list[str] = given if isinstance(given, list) else [given] if isinstance(given, str) else []
    if types and all(kind in TYPES for kind in types) and not any(_is_a(value, kind) for kind in types):
        return f"{quoted(value)} is not of type {' or '.join(types)}"
    if isinstance(enum := schema.get("enum"), list) and value not in enum:
        return f"{quoted(value)} is not among the values of enum"
    sizes = (("Length", str), ("Items", list), ("Properties", dict))
    if isinstance(value, str) and not _matches(schema.get("pattern"), value):
        return f"{quoted(value)} does not match the pattern"
    measured = [(f"min{what}", f"max{what}", len(value)) for what, kind in sizes if isinstance(value, kind)]
    if _is_number(value):
        measured.append(("minimum", "maximum", value))
    for least, most, size in measured:
        if (_is_number(schema.get(least)) and size < schema[least]) or (
            _is_number(schema.get(most)) and size > schema[most]
        ):
            return f"{quoted(value)} is not between {least} and {most}"
    return None


def _matches(pattern: Any, value: str) -> bool:
    return not isinstance(pattern, str) or _pattern_complaint(pattern) is not None or linear.compiled(pattern)(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_a(value: Any, kind: str) -> bool:
    match kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return _is_number(value) and value == value // 1
        case "number":
            return _is_number(value)
        case "string":
            return isinstance(value, str)
        case "array":
            return isinstance(value, list)
        case _:
            return isinstance(value, dict)


def _endless(schema: Schema) -> str | None:
    """A reference that leads back to itself without going into the value: checking any value would not end."""
    leads_to = {ref: set(_same_value_refs(at(schema, ref))) for ref in _refs(schema)}
    for start in leads_to:
        seen: set[str] = set()
        waiting = [*leads_to[start]]
        while waiting:
            ref = waiting.pop()
            if ref == start:
                return start
            if ref not in seen:
                seen.add(ref)
                waiting += leads_to.get(ref, ())
    return None


def _same_value_refs(schema: Any) -> Iterator[str]:
    """The references by which a schema describes the very value that it describes itself."""
    if isinstance(schema, dict):
        if isinstance(ref := schema.get("$ref"), str):
            yield ref
        for below, place in _below(schema):
            if place[0] in SAME_VALUE:
                yield from _same_value_refs(below)


def _refs(schema: Schema) -> set[str]:
    """Every reference in a schema."""
    return {inner["$ref"] for inner in _every(schema) if isinstance(inner.get("$ref"), str)}


def _every(schema: Any) -> Iterator[Schema]:
    """A schema and all schemas in it."""
    if isinstance(schema, dict):
        yield schema
        for below, _ in _below(schema):
            yield from _every(below)


def _below(schema: Mapping[str, Any], location: KeyPath = ()) -> Iterator[tuple[Any, KeyPath]]:
    """The schemas directly inside a schema. Values (`enum`, `default`, `const`) only look like schemas."""
    for keyword in NAMED_SCHEMAS:
        if isinstance(named := schema.get(keyword), dict):
            yield from ((inner, (*location, keyword, name)) for name, inner in named.items())
    for keyword in LISTED_SCHEMAS:
        if isinstance(listed := schema.get(keyword), list):
            yield from ((inner, (*location, keyword, index)) for index, inner in enumerate(listed))
    for keyword in SINGLE_SCHEMAS:
        if keyword in schema:
            yield schema[keyword], (*location, keyword)


def changed(schema: Any, change: Callable[[Schema, KeyPath], Schema], location: KeyPath = ()) -> Any:
    """A copy of a schema, in which it and each schema in it is what `change` makes of it, the innermost first."""
    if not isinstance(schema, dict):
        return schema
    copy = dict(schema)
    for keyword in NAMED_SCHEMAS:
        if isinstance(named := copy.get(keyword), dict):
            copy[keyword] = {k: changed(inner, change, (*location, keyword, k)) for k, inner in named.items()}
    for keyword in LISTED_SCHEMAS:
        if isinstance(listed := copy.get(keyword), list):
            copy[keyword] = [changed(inner, change, (*location, keyword, i)) for i, inner in enumerate(listed)]
    for keyword in SINGLE_SCHEMAS:
        if keyword in copy:
            copy[keyword] = changed(copy[keyword], change, (*location, keyword))
    return change(copy, location)


def at(schema: Mapping[str, Any], ref: str) -> Any:
    """What a reference inside a document (`#/$defs/x`) leads to, or None."""
    if not ref.startswith("#"):
        return None
    found: Any = schema
    for part in filter(None, unquote(ref[1:]).split("/")):
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and key.isdecimal() and int(key) < len(found):
            found = found[int(key)]
        else:
            found = found.get(key) if isinstance(found, dict) else None
    return found
