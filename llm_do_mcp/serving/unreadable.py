"""Answers to requests that cannot be read.

The SDK passes over a line that is no JSON, or no request, and whoever sent it would wait for ever. So its id
is looked for, however the rest looks: cut off, too deep, with a number that is too long or with half a character.
"""

from __future__ import annotations

import json
import re
from typing import Any

from mcp.types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError

LOOKED_AT = 1 << 20
"""Characters of a line that is no JSON in which its id is looked for."""

# A text may be cut off. What is taken is never given back: a line of quotes would be looked through once for each.
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[][{}:,]|[^][{}:,"\s]++', re.DOTALL)
_WHOLE_NUMBER = re.compile(r"-?\d{1,100}")


def answer_to(error: Exception) -> JSONRPCError | None:
    """The answer to a message that is no valid request; None where it has no id to answer to.

    Args:
        error: What reading it raised.
    """
    inputs = [part["input"] for part in error.errors(include_url=False)] if isinstance(error, ValidationError) else []
    request = next((value for value in inputs if isinstance(value, dict) and "method" in value), None)
    code, message = INVALID_REQUEST, "not a request of JSON-RPC 2.0"
    if request is None:
        code, message = PARSE_ERROR, "not JSON that can be read: cut off, too deep, a number too long, half a character"
        request = _members(inputs[0]) if inputs and isinstance(inputs[0], str) else {}
    identifier = request.get("id") if "method" in request else None
    if isinstance(identifier, bool) or not isinstance(identifier, int | str):
        return None
    return JSONRPCError(jsonrpc="2.0", id=identifier, error=ErrorData(code=code, message=message))


def _members(line: str) -> dict[str, Any]:
    """The texts and whole numbers of an object, as far as it goes; nothing of what is in it is looked into."""
    found: dict[str, Any] = {}
    depth, name, token = 0, "", ""
    for match in _TOKEN.finditer(line, 0, LOOKED_AT):
        before, token = token, match[0]
        if token in "{[":
            depth += 1
        elif token in "}]":
            depth -= 1
        elif depth == 1 and token == ":":
            name = before
        elif depth == 1 and before == ":":
            found[name.strip('"')] = _value(token)
    return found


def _value(token: str) -> str | int | None:
    if _WHOLE_NUMBER.fullmatch(token):
        return int(token)
    try:
        text = json.loads(token)
    except ValueError:
        return None
    return text if isinstance(text, str) else None
