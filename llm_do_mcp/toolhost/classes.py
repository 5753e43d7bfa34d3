"""Classes as schemas: what the pydantic models, dataclasses and TypedDicts of a module describe.

All classes of a module are described at once: whoever asks for one will ask for its neighbours, and importing the
module is what takes the time.
"""

from __future__ import annotations

import types
import typing
from dataclasses import dataclass, is_dataclass

from llm_do_mcp.toolhost.signatures import Schema, Unsupported, is_pydantic_model, schema_of


@dataclass(frozen=True)
class ClassSchemas:
    """Schemas by the names of their classes, and why others have none."""

    schemas: dict[str, Schema]
    broken: dict[str, str]


def class_schemas(module: types.ModuleType) -> ClassSchemas:
    """The schemas of a module's classes, those it imports from elsewhere included."""
    found = ClassSchemas({}, {})
    for name, value in vars(module).items():
        if name.startswith("_") or not isinstance(value, type) or value.__module__.partition(".")[0] == "pydantic":
            continue
        try:
            if not (is_pydantic_model(value) or is_dataclass(value) or typing.is_typeddict(value)):
                raise Unsupported("it is no pydantic model, dataclass or TypedDict")
            found.schemas[name] = schema_of(value)
        except Unsupported as error:
            found.broken[name] = " ".join(str(error).split())
    return found
