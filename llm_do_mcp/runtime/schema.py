"""Values against JSON Schemas, with one line for what does not fit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from llm_do_mcp.runtime.display import cut, escape


def problem(schema: Mapping[str, Any], value: Any) -> str | None:
    """What does not fit, naming the field and what is allowed there, or None where all fits.

    Args:
        schema: JSON Schema, draft 2020-12.
        value: Any JSON value.
    """
    errors = list(_validator(schema).iter_errors(value))
    if not errors:
        return None
    from jsonschema.exceptions import best_match

    error = best_match(errors)
    where = error.json_path.removeprefix("$").removeprefix(".") or "the input as a whole"
    return cut(escape(f"{where}: {error.message}"), 500)


_recent: dict[int, tuple[Mapping[str, Any], Any]] = {}
"""Validators of the schemas that were asked for last, by identity; a schema that is kept here keeps its identity."""
RECENT = 512


def _validator(schema: Mapping[str, Any]) -> Any:
    known = _recent.get(id(schema))
    if known is None:
        if len(_recent) >= RECENT:
            _recent.pop(next(iter(_recent)))
        known = _recent[id(schema)] = (schema, _compiled(json.dumps(schema, sort_keys=True)))
    return known[1]


@lru_cache(maxsize=RECENT)
def _compiled(schema: str) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(json.loads(schema))
