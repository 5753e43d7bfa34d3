"""The shape of JSON: which keys and types, how many items. Read token by token, so a part of a text is enough."""

from __future__ import annotations

import re

from llm_do_mcp.te.text import shown_text

MOST_KEYS = 30
SHOWN_DEPTH = 4
DEEPEST = 64
_TOKENS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_TYPES = {b"t": "bool", b"f": "bool", b"n": "null", b'"': "string"}


class _Shape:
    """What was seen in one place: the types, the keys of objects, the items of lists."""

    __slots__ = ("items", "keys", "most", "types")

    def __init__(self) -> None:
        self.types: dict[str, None] = {}
        self.keys: dict[bytes, _Shape] = {}
        self.items: _Shape | None = None
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
            return f"[{self.most:,} x {inner}]" if inner else "[]" if not self.most else "[…]"
        return kind


class _Open:
    """An object or a list that is being read."""

    __slots__ = ("count", "is_object", "key", "shape")

    def __init__(self, shape: _Shape, *, is_object: bool) -> None:
        self.shape = shape
        self.is_object = is_object
        self.key: bytes | None = None
        self.count = 0


def shape_of(text: bytes) -> str:
    """The shape, such as `[1,200 x {id number, name string, tags [3 x string]}]`. Text that is no JSON gives some."""
    root = _Shape()
    stack: list[_Open] = []
    too_deep = 0
    for match in _TOKENS.finditer(text):
        token = match[0]
        start = token[:1]
        if too_deep:
            too_deep += (start in b"{[") - (start in b"}]")
        elif start in (b"}", b"]"):
            if stack:
                _close(stack)
        elif start in (b",", b":"):
            continue
        elif stack and stack[-1].is_object and stack[-1].key is None:
            stack[-1].key = token
        else:
            shape = _place(stack, root)
            if start in (b"{", b"["):
                is_object = start == b"{"
                shape.types["object" if is_object else "array"] = None
                if len(stack) < DEEPEST:
                    stack.append(_Open(shape, is_object=is_object))
                else:
                    too_deep = 1
            else:
                shape.types[_TYPES.get(start, "number")] = None
    while stack:
        _close(stack)
    return root.told()


def _place(stack: list[_Open], root: _Shape) -> _Shape:
    """Where the value that comes now belongs."""
    if not stack:
        return root
    inner = stack[-1]
    inner.count += 1
    if not inner.is_object:
        inner.shape.items = inner.shape.items or _Shape()
        return inner.shape.items
    key, inner.key = inner.key or b'""', None
    if key not in inner.shape.keys and len(inner.shape.keys) > MOST_KEYS:
        return _Shape()
    return inner.shape.keys.setdefault(key, _Shape())


def _close(stack: list[_Open]) -> None:
    ended = stack.pop()
    if not ended.is_object:
        ended.shape.most = max(ended.shape.most, ended.count)
