"""What a person may be about to type: the values that a worker's argument can have, paths, and ids of runs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from mcp.types import Completion

MAX_VALUES = 100
"""What the protocol allows."""


def completed(values: Iterable[str], begun: str) -> Completion:
    """The values that begin with what was typed, whatever the case."""
    fitting = [value for value in dict.fromkeys(values) if value.casefold().startswith(begun.casefold())]
    more = len(fitting) > MAX_VALUES
    return Completion(values=fitting[:MAX_VALUES], total=len(fitting), has_more=more)


def of_schema(field: Any) -> list[str]:
    """The values that a schema names, as a prompt's argument takes them; none where it leaves them open."""
    if not isinstance(field, Mapping):
        return []
    if "enum" in field:
        return [_typed(value) for value in field["enum"]]
    if "const" in field:
        return [_typed(field["const"])]
    if field.get("type") == "boolean":
        return ["true", "false"]
    return [value for key in ("anyOf", "oneOf") for one in field.get(key, ()) for value in of_schema(one)]


def _typed(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
