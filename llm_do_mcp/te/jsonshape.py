"""The shape of JSON: which keys and types, how many items. Read token by token, so a part of a text is enough."""

from __future__ import annotations

import re

from llm_do_mcp.te.text import shown_text

MOST_KEYS = 30
SHOWN_DEPTH = 4
DEEPEST = 64
"""Levels that are read; what lies deeper is only held to have as many ends as beginnings."""
_TOKENS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]|[^\s{}\[\],:"]+|"', re.DOTALL)
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\Z")
_WORDS = {b"true": "bool", b"false": "bool", b"null": "null"}


class _Shape:
    """What was seen in one place: the types, the keys of objects, the items of lists."""

    __slots__ = ("items", "keys", "least", "most", "types")

    def __init__(self) -> None:
        self.types: dict[str, None] = {}
        self.keys: dict[bytes, _Shape] = {}
        self.items: _Shape | None = None
        self.least: int | None = None
        self.most = 0

    def told(self, depth: int = 0) -> str:
        return "|".join(self._told(kind, depth) for kind in self.types) or "nothing"

    def _told(self, kind: str, depth: int) -> str:
        if kind == "object":
            if depth == SHOWN_DEPTH:
                return "{…}"
            named = [f"{shown_text(key[1:-1], 40)} {shape.told(depth + 1)}" for key, shape in self.keys.items()]
            return "{" + ", ".join([*named[:MOST_KEYS], *(["…"] if len(named) > MOST_KEYS else [])]) + "}"
        if kind == "array":
            inner = self.items.told(depth + 1) if self.items is not None and depth < SHOWN_DEPTH else ""
            number = f"{self.most:,}" if self.least in (None, self.most) else f"{self.least:,}-{self.most:,}"
            return f"[{number} x {inner}]" if inner else "[]" if not self.most else "[…]"
        return kind


class _Open:
    """An object or a list that is being read."""

    __slots__ = ("count", "is_object", "key", "shape")

    def __init__(self, shape: _Shape, *, is_object: bool) -> None:
        self.shape = shape
        self.is_object = is_object
        self.key = b""
        self.count = 0


class _Reader:
    """Takes tokens, as long as they are JSON."""

    def __init__(self) -> None:
        self.root = _Shape()
        self._stack: list[_Open] = []
        self._too_deep = 0
        self._expected = "value"
        """`value` or `key`, with `first` before it where the end may come instead; `:`; `,` or the end; or nothing."""

    @property
    def is_whole(self) -> bool:
        return not self._expected and not self._too_deep

    def takes(self, token: bytes) -> bool:
        """Read a token; whether it may stand here."""
        start = token[:1]
        if self._too_deep:
            self._too_deep += (start in b"{[") - (start in b"}]")
        elif start in b",:":
            return self._takes_mark(token)
        elif start in b"}]":
            return self._takes_end(is_object=start == b"}")
        elif self._expected.endswith("key"):
            self._stack[-1].key = token
            self._expected = ":"
            return start == b'"' and len(token) > 1
        elif self._expected.endswith("value"):
            return self._takes_value(token)
        else:
            return False
        return True

    def end(self) -> None:
        """Nothing more comes: what is still open counts as far as it goes."""
        for opened in self._stack:
            opened.shape.most = max(opened.shape.most, opened.count)

    def _takes_mark(self, mark: bytes) -> bool:
        if self._expected != mark.decode() or not self._stack:
            return False
        self._expected = "value" if mark == b":" or not self._stack[-1].is_object else "key"
        return True

    def _takes_end(self, *, is_object: bool) -> bool:
        if not self._stack or self._stack[-1].is_object != is_object or self._expected not in _ENDS:
            return False
        ended = self._stack.pop()
        if not is_object:
            shape = ended.shape
            shape.most = max(shape.most, ended.count)
            shape.least = ended.count if shape.least is None else min(shape.least, ended.count)
        self._expected = "," if self._stack else ""
        return True

    def _takes_value(self, token: bytes) -> bool:
        start = token[:1]
        shape = self._place()
        if start in b"{[":
            is_object = start == b"{"
            shape.types["object" if is_object else "array"] = None
            if len(self._stack) < DEEPEST:
                self._stack.append(_Open(shape, is_object=is_object))
                self._expected = "first key" if is_object else "first value"
            else:
                self._too_deep, self._expected = 1, ","
            return True
        kind = "string" if start == b'"' and len(token) > 1 else _WORDS.get(token)
        kind = kind or ("number" if _NUMBER.match(token) else None)
        if kind is None:
            return False
        shape.types[kind] = None
        self._expected = "," if self._stack else ""
        return True

    def _place(self) -> _Shape:
        """Where the value that comes now belongs."""
        if not self._stack:
            return self.root
        inner = self._stack[-1]
        inner.count += 1
        if not inner.is_object:
            inner.shape.items = inner.shape.items or _Shape()
            return inner.shape.items
        if inner.key not in inner.shape.keys and len(inner.shape.keys) > MOST_KEYS:
            return _Shape()
        return inner.shape.keys.setdefault(inner.key, _Shape())


_ENDS = (",", "first key", "first value")


def shape_of(text: bytes, *, goes_on: bool) -> tuple[str, int | None]:
    """The shape, such as `[1,200 x {id number, name string, tags [0-3 x string]}]`.

    Args:
        text: What is taken for JSON.
        goes_on: Whether this is only the beginning of it.

    Returns:
        The shape, as far as the text is JSON, and the offset from which on it is none: its length where an end is
        missing, None where nothing is wrong.
    """
    reader = _Reader()
    fault: int | None = None
    for match in _TOKENS.finditer(text):
        is_last = match.end() == len(text) or match[0] == b'"'  # a quote alone opens what has no end
        if goes_on and is_last:
            break
        if not reader.takes(match[0]):
            fault = match.start()
            break
    else:
        fault = None if goes_on or reader.is_whole else len(text)
    reader.end()
    return reader.root.told(), fault
