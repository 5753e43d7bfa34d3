"""What a tool may return: plain JSON, or what has one obvious JSON form. Anything else is an error, never a guess.

A result that JSON cannot carry is found here, by name and place, and not somewhere on its way to a client: NaN becomes
`null` there, and a lone surrogate cannot be written.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import pathlib
import re
import uuid
from typing import Any

from llm_do_mcp.toolhost import durations

MAX_BYTES = 5_000_000
"""Of a result as JSON. Larger things belong in a file."""

MAX_DEPTH = 100
_MAX_INTEGER = 2**63 - 1
_SURROGATE = re.compile("[\ud800-\udfff]")


class Unreturnable(ValueError):
    """A result that JSON cannot carry. The text says what, where in the result, and what to return instead."""


def checked_result(value: Any) -> Any:
    """A tool's result as plain JSON values.

    Raises:
        Unreturnable: It holds something without a JSON form, or is too large or too deep.
    """
    plain = _plain(value, "result", 0)
    size = len(json.dumps(plain))
    if size > MAX_BYTES:
        raise Unreturnable(f"returned {size:,} bytes of JSON; at most {MAX_BYTES:,} are carried: write it to a file")
    return plain


def clean_text(text: str) -> str:
    r"""Text with every lone surrogate written out: an undecodable byte as `\xff`, others as `\ud800`."""
    return text if text.isascii() else _SURROGATE.sub(_written_out, text)


def clean(value: Any) -> Any:
    """A JSON value whose texts, keys included, have no lone surrogates; the same object where there are none."""
    if isinstance(value, str):
        return clean_text(value)
    if _is_clean(value):
        return value
    if isinstance(value, dict):
        return {clean(key): clean(item) for key, item in value.items()}
    return [clean(item) for item in value]


def _is_clean(value: Any) -> bool:
    # A loop for each object or array, since every answer goes through this.
    for item in (*value, *value.values()) if isinstance(value, dict) else value if isinstance(value, list) else ():
        if isinstance(item, str):
            if not item.isascii() and _SURROGATE.search(item) is not None:
                return False
        elif not _is_clean(item):
            return False
    return True


def _written_out(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"


def _plain(value: Any, where: str, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise Unreturnable(f"returned something nested deeper than {MAX_DEPTH} levels, or that contains itself")
    if isinstance(value, enum.Enum):
        return _plain(value.value, where, depth)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clean_text(str(value))
    if isinstance(value, int):
        if abs(value) > _MAX_INTEGER:
            raise Unreturnable(f"{where} is an integer beyond 64 bits; return it as text")
        return int(value)
    if isinstance(value, float):
        if value - value != 0:
            raise Unreturnable(f"{where} is {float(value)}, which JSON does not have; return None or text")
        return float(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item, f"{where}[{n}]", depth + 1) for n, item in enumerate(value)]
    if isinstance(value, (set, frozenset)):  # in an order of their own, that a result is the same each time
        return sorted((_plain(item, f"{where}{{…}}", depth + 1) for item in value), key=json.dumps)
    if isinstance(value, dict):
        return _plain_object(value, where, depth)
    if isinstance(value, datetime.timedelta):
        return durations.text_of(value)
    if isinstance(value, decimal.Decimal):
        if not value.is_finite():
            raise Unreturnable(f"{where} is {value}, which JSON does not have; return None or text")
        return str(value)
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, pathlib.PurePath):
        return clean_text(str(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return _plain_object(fields, where, depth)
    if callable(getattr(type(value), "model_dump", None)):  # a pydantic model; pydantic need not be there
        return _plain(value.model_dump(mode="json", by_alias=True), where, depth + 1)
    raise Unreturnable(f"{where} is of type {type(value).__name__}, which has no JSON form; {_advice(value)}")


def _plain_object(value: dict[Any, Any], where: str, depth: int) -> dict[str, Any]:
    plain = {}
    for key, item in value.items():
        key = key.value if isinstance(key, enum.Enum) else key
        if not isinstance(key, str):
            raise Unreturnable(f"{where} has a key of type {type(key).__name__}; keys are text")
        key = clean_text(key)
        plain[key] = _plain(item, f"{where}.{key[:40]}", depth + 1)
    return plain


def _advice(value: Any) -> str:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "decode it, or write it to a file"
    if hasattr(value, "__next__"):
        return "return a list"
    return "return text, numbers, lists, dicts or dataclasses"
