"""A docstring as descriptions: of the function, and of its parameters, in the three styles that people write.

Google (`Args:` and indented entries), NumPy (`Parameters` over a line of dashes) and reST (`:param name: …`).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

_GOOGLE = re.compile(r"(?:Args|Arguments|Parameters):")
_GOOGLE_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")
_NUMPY_ENTRY = re.compile(r"\*{0,2}(\w+(?:\s*,\s*\w+)*)\s*(?::.*)?$")
_REST_PARAMETER = re.compile(r":(?:param|parameter|arg|argument)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)")
_REST_TYPE = re.compile(r":type\s+\w+\s*:")


def split_docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """The description of a function without what describes its parameters, and that, by parameter."""
    lines = (inspect.getdoc(function) or "").splitlines()
    for number, line in enumerate(lines):
        if _GOOGLE.fullmatch(line):
            end = next((n for n in range(number + 1, len(lines)) if lines[n][:1].strip()), len(lines))
            return _without(lines, number, end), _google(lines[number + 1 : end])
        if line.strip() == "Parameters" and number + 1 < len(lines) and _is_rule(lines[number + 1]):
            end = next((n - 1 for n in range(number + 2, len(lines)) if _is_rule(lines[n])), len(lines))
            return _without(lines, number, end), _numpy(lines[number + 2 : end])
    return _rest(lines)


def _google(section: list[str]) -> dict[str, str]:
    section = [line for line in section if line.strip()]
    indent = min((len(line) - len(line.lstrip()) for line in section), default=0)
    described: dict[str, str] = {}
    name = None
    for line in section:
        if entry := _GOOGLE_ENTRY.match(line[indent:]):
            name, described[entry[1]] = entry[1], entry[2]
        elif name:
            described[name] = _joined(described[name], line)
    return described


def _numpy(section: list[str]) -> dict[str, str]:
    described: dict[str, str] = {}
    names: list[str] = []
    for line in section:
        if (entry := _NUMPY_ENTRY.match(line)) is not None:
            names = [name.strip() for name in entry[1].split(",")]
            described.update(dict.fromkeys(names, ""))
        elif line[:1].isspace():
            described.update({name: _joined(described[name], line) for name in names})
    return described


def _rest(lines: list[str]) -> tuple[str, dict[str, str]]:
    described: dict[str, str] = {}
    kept: list[str] = []
    name: str | None = None
    in_type = False
    for line in lines:
        if entry := _REST_PARAMETER.match(line):
            name, described[entry[1]], in_type = entry[1], entry[2], False
        elif _REST_TYPE.match(line):
            name, in_type = None, True
        elif line[:1].isspace() and name is not None:
            described[name] = _joined(described[name], line)
        elif not (line[:1].isspace() and in_type):
            name, in_type = None, False
            kept.append(line)
    return "\n".join(kept).strip(), described


def _is_rule(line: str) -> bool:
    return len(line.strip()) >= 3 and not line.strip().strip("-")


def _joined(text: str, line: str) -> str:
    return f"{text} {line.strip()}".strip()


def _without(lines: list[str], start: int, end: int) -> str:
    return "\n".join(lines[:start] + lines[end:]).strip()
