"""Regular expressions that are matched in linear time: the `pattern` of a schema never hangs a server.

Python's own engine tries alternatives one after the other: thirty characters against `(a+)+$` take minutes, and while
they do, no other thread runs. So the engine is the one that comes with pydantic, Rust's `regex`, which has no
expression that explodes. What it cannot have is refused when a project is loaded: look-around, back references, and
repetitions that multiply to something huge.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from pydantic_core import SchemaError, SchemaValidator, core_schema

MAX_PATTERN = 5_000


@lru_cache(maxsize=512)
def compiled(pattern: str) -> Callable[[str], bool]:
    """Whether a text has a match of the pattern anywhere in it, as JSON Schema means it.

    Raises:
        ValueError: The pattern cannot be used; says why.
    """
    if len(pattern) > MAX_PATTERN:
        raise ValueError(f"longer than {MAX_PATTERN:,} characters")
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, strict=True)).isinstance_python
    except SchemaError as error:
        raise ValueError(_reason(str(error))) from None


def _reason(text: str) -> str:
    """The line of the engine's message that says what is wrong."""
    last = text.strip().splitlines()[-1]
    return last.strip().removeprefix("SchemaError: ").removeprefix("error: ").rstrip(".")
