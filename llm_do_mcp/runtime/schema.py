"""Values against JSON Schemas, with one line for what does not fit: which field, what is allowed, what it was.

A value is shown as it is where it is short, and told by its kind and size where it is not: part of it would help
nobody, and a secret that was cut in two could not be kept out of sight any more.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from llm_do_mcp.runtime.display import counted, cut, escape
from llm_do_mcp.runtime.recent import Recent

SHOWN = 60
"""Characters of the longest value that is shown as it is."""
UNKNOWN = 200
"""Characters of the library's own words, for keywords that have none of ours."""


def problem(schema: Mapping[str, Any], value: Any) -> str | None:
    """What does not fit, naming the field and what is allowed there, or None where all fits.

    Args:
        schema: JSON Schema, draft 2020-12.
        value: Any JSON value.
    """
    if _fits_plainly(schema, value):
        return None
    from referencing.exceptions import Unresolvable

    try:
        errors = list(_validators.of(schema).iter_errors(value))
        endless = next(_endless(value), None)
    except RecursionError:
        return "the value is nested too deeply to be checked"
    except Unresolvable as nowhere:
        return f"the schema refers to {cut(escape(str(nowhere.ref)), 200)}, which is not in it"
    if not errors:
        return None if endless is None else _line(endless, "must be a finite number, as all are that JSON has")
    from jsonschema.exceptions import best_match

    error = best_match(_meant(errors))
    return _line(error.json_path.removeprefix("$").removeprefix("."), _explained(error))


def _line(where: str, wrong: str) -> str:
    return cut(escape(f"{where}: {wrong}" if where else wrong), 500)


def _endless(value: Any, where: str = "") -> Iterator[str]:
    """The places of numbers without an end: `1e999` is read as one."""
    if isinstance(value, float) and not math.isfinite(value):
        yield where
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _endless(item, f"{where}.{name}" if where else name)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _endless(item, f"{where}[{number}]")


_OF_A_CALL = {"type", "properties", "required", "additionalProperties", "title", "description"}
_OF_A_FIELD = {"type", "minimum", "maximum", "default", "title", "description"}
_TYPES = {"string": str, "integer": int, "boolean": bool}


def _fits_plainly(schema: Mapping[str, Any], value: Any) -> bool:
    """Whether a value certainly fits: told of the plainest schemas, an object of texts, numbers and flags.

    Each call has its arguments checked twice, as what was asked for and as what is done, and most are of that kind.
    The library takes thirty times as long for them as this does.
    """
    if schema.get("type") != "object" or type(value) is not dict or not _OF_A_CALL.issuperset(schema):
        return False
    fields = schema.get("properties", {})
    return value.keys() >= set(schema.get("required", ())) and all(
        name in fields and _is_plainly(fields[name], item) for name, item in value.items()
    )


def _is_plainly(schema: Any, value: Any) -> bool:
    return (
        isinstance(schema, dict)
        and isinstance(kind := schema.get("type"), str)
        and type(value) is _TYPES.get(kind)
        and _OF_A_FIELD.issuperset(schema)
        and (kind != "integer" or schema.get("minimum", value) <= value <= schema.get("maximum", value))
    )


def _meant(errors: Iterable[Any]) -> Iterator[Any]:
    """The errors, and instead of one of a union those of the branch that the value says it is of: `{"kind": "b", …}`.

    A branch is meant where the value fits all constants of its fields, and no other branch's. Where it fits none for
    the same field, that field is what is wrong.
    """
    for error in errors:
        branches: dict[int, list[Any]] = {}
        for inner in error.context or () if error.validator in ("anyOf", "oneOf") else ():
            branches.setdefault(inner.relative_schema_path[0], []).append(inner)
        meant = [inside for inside in branches.values() if not any(map(_is_of_tag, inside))]
        tags = [next(filter(_is_of_tag, inside), None) for inside in branches.values()]
        if len(meant) == 1 < len(branches):
            yield from _meant(meant[0])
        elif len({tag and tag.relative_path[0] for tag in tags}) == 1 < len(branches) and tags[0] is not None:
            wrong = type(error).create_from(tags[0])
            values = [tag.validator_value if tag.validator == "enum" else [tag.validator_value] for tag in tags if tag]
            wrong.validator, wrong.validator_value = "enum", [value for some in values for value in some]
            yield wrong
        else:
            yield error


def _is_of_tag(error: Any) -> bool:
    """Whether a value that has another constant in one of its fields is why a branch does not fit."""
    return error.validator in ("const", "enum") and len(error.relative_path) == 1


def _explained(error: Any) -> str:
    """What is wrong at the place of an error, a `jsonschema.ValidationError` (typed as if it might hold nothing)."""
    keyword, given, rule = error.validator, error.instance, error.validator_value
    if keyword == "required":
        missing = [name for name in rule if name not in given]
        return f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
    if keyword == "additionalProperties":
        from llm_do_mcp.project.checked import nearest, quoted
        from llm_do_mcp.runtime.validator import unknown

        name = unknown(error.schema, given)[0]
        return f"unknown field {quoted(name)}; {nearest(name, error.schema.get('properties', {}))}"
    if keyword in ("anyOf", "oneOf"):
        if not error.context:
            return f"{_shown(given)} fits more than one of what is allowed, and must fit one"
        branches = dict.fromkeys(_allowed(branch) for branch in rule)
        if all(branches):
            return f"must be {' or '.join(branches)}, not {_shown(given)}"
    elif allowed := _allowed({keyword: rule}):
        return f"must be {allowed}, not {_shown(given)}"
    return cut(error.message.replace(repr(given), _shown(given)), UNKNOWN)


_KINDS = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "a boolean",
    "null": "null",
    "array": "an array",
    "object": "an object",
}

_WORDS: dict[str, Callable[[Any], str]] = {
    "const": lambda value: _shown(value),
    "enum": lambda values: f"{'one of ' if len(values) > 1 else ''}{', '.join(map(_shown, values))}",
    "required": lambda names: f"an object with {', '.join(names)}",
    "type": lambda kinds: " or ".join(_KINDS[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds)),
    "minimum": lambda least: f"at least {least}",
    "maximum": lambda most: f"at most {most}",
    "exclusiveMinimum": lambda least: f"more than {least}",
    "exclusiveMaximum": lambda most: f"less than {most}",
    "multipleOf": lambda step: f"a multiple of {step}",
    "pattern": lambda pattern: f"a string that matches {pattern}",
    "minLength": lambda least: f"a string of at least {counted(least, 'character')}",
    "maxLength": lambda most: f"a string of at most {counted(most, 'character')}",
    "minItems": lambda least: f"an array of at least {counted(least, 'item')}",
    "maxItems": lambda most: f"an array of at most {counted(most, 'item')}",
}
"""What a keyword allows, to follow "must be"; of a schema with several, the first of these says the most."""


def _allowed(schema: Any) -> str:
    """What a schema allows, as far as one of its keywords tells; "" where none does."""
    rules = schema if isinstance(schema, dict) else {}
    return next((words(rules[keyword]) for keyword, words in _WORDS.items() if keyword in rules), "")


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= SHOWN:
        return text
    if isinstance(value, str):
        return f"a string of {counted(len(value), 'character')}"
    if isinstance(value, list):
        return f"an array of {counted(len(value), 'item')}"
    return (
        f"an object of {counted(len(value), 'field')}" if isinstance(value, dict) else f"a number of {len(text)} digits"
    )


RECENT = 512


@lru_cache(maxsize=RECENT)
def _compiled(schema: str) -> Any:
    from referencing import Registry

    from llm_do_mcp.runtime.validator import Validator

    return Validator(json.loads(schema), registry=Registry())


_validators: Recent[Any] = Recent(lambda schema: _compiled(json.dumps(schema, sort_keys=True)), RECENT)
