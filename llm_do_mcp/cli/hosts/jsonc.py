"""JSON as people keep it in configuration files, with comments and trailing commas, changed in one place.

What is not changed stays as it is, to the byte: comments, order, indentation, line ends. So the text is not read into
data and written again; it is read for where its members are, and the new one is put between them. What is plain JSON in
it, which is nearly all of a large file, is left to Python's own reader, which is far faster.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NoReturn

MAX_DEPTH = 200
MAX_TRIES = 20
"""So many values may be no plain JSON, before none is taken for it any more: each of them is begun twice."""

_SPACE = re.compile(r"(?:[ \t\r\n]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_SCALAR = re.compile(r"true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a name is here twice")
    return made


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_constant)


class NotJson(Exception):
    """A text that cannot be read, with the place."""

    def __init__(self, text: str, at: int, message: str) -> None:
        line = text.count("\n", 0, at) + 1
        super().__init__(f"{line}:{at - text.rfind(chr(10), 0, at)}: {message}")


@dataclass
class _Member:
    starts: int
    value: _Value


@dataclass
class _Value:
    """A value in the text, from `starts` to `ends`.

    Args:
        data: As Python has it.
        members: Of an object, by their names, in the text's order; None for anything else, and for what is plain JSON.
        comma: Whether a comma follows the last member.
    """

    starts: int
    ends: int = 0
    data: Any = None
    members: dict[str, _Member] | None = None
    comma: bool = False


def read(text: str) -> Any:
    """The data of a text; that of one in which there is nothing is `{}`.

    Raises:
        NotJson: It is not JSON, or an object has a name twice.
    """
    return {} if _is_blank(text) else _Reader(text).whole().data


def put(text: str, path: Sequence[str], value: Any) -> str:
    """A text with a value at a path of names; objects on the way are made where they are missing.

    Args:
        text: JSON whose root is an object, or nothing but comments.
        path: At least one name.
        value: Plain data.

    Returns:
        The text; just as it was where that has the value there already.

    Raises:
        NotJson: The text is not JSON, or something on the way is no object.
    """
    if _is_blank(text):
        above = text.rstrip()
        text = f"{above}\n{{}}\n" if above else "{}\n"
    whole = _Reader(text).whole(path)
    changed = _changed(text, whole, path, value)
    wanted = merged(whole.data, path, value)
    if wanted == whole.data:
        return text
    assert read(changed) == wanted, "the other entries have to stay as they are"
    return changed


def _changed(text: str, at: _Value, path: Sequence[str], value: Any) -> str:
    for depth, name in enumerate(path):
        if at.members is None:
            place = ".".join(path[:depth]) or "the whole"
            raise NotJson(text, at.starts, f"{place} is no object, so there is no place for {'.'.join(path[depth:])}")
        if name not in at.members:
            for inner in reversed(path[depth + 1 :]):
                value = {inner: value}
            return _insert(text, at, name, value)
        at = at.members[name].value
    indent = _indent_of_line(text, at.starts)
    return text[: at.starts] + _render(text, value, indent) + text[at.ends :]


def merged(data: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    """The data that `put` leads to."""
    first, *rest = path
    return {**data, first: merged(data.get(first, {}), rest, value) if rest else value}


def _is_blank(text: str) -> bool:
    """Whether there is nothing in a text, or only comments."""
    return _behind_space(text, 0) == len(text)


def _behind_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def _insert(text: str, into: _Value, name: str, value: Any) -> str:
    """A new member behind the last one, and behind the comments there."""
    assert into.members is not None
    there = list(into.members.values())
    outer = _indent_of_line(text, into.starts)
    inner = outer + _unit(text)
    if there and (own := _own_line_indent(text, there[0].starts)) is not None:
        inner = own
    end = "\r\n" if "\r\n" in text else "\n"
    ends = there[-1].value.ends if there else into.starts + 1
    comma = "," if there and not into.comma else ""
    between = text[ends : into.ends - 1].rstrip()
    member = f"{json.dumps(name, ensure_ascii=False)}: {_render(text, value, inner)}"
    return f"{text[:ends]}{comma}{between}{end}{inner}{member}{end}{outer}{text[into.ends - 1 :]}"


def _render(text: str, value: Any, indent: str) -> str:
    dumped = json.dumps(value, ensure_ascii=False, indent=_unit(text))
    lines = dumped.encode(errors="backslashreplace").decode().split("\n")  # half a pair of surrogates stays escaped
    return (("\r\n" if "\r\n" in text else "\n") + indent).join(lines)


def _unit(text: str) -> str:
    """What the text is indented with."""
    found = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return found[1] if found else "  "


def _own_line_indent(text: str, at: int) -> str | None:
    """What stands before a place in its line, where that is only blanks."""
    before = text[text.rfind("\n", 0, at) + 1 : at]
    return before if not before.strip() and "\n" in text[:at] else None


def _indent_of_line(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]


def _is_shallow(data: Any, depth: int) -> bool:
    """Whether what lies at this depth is nested no deeper than it may be."""
    level = [data]
    while level and depth <= MAX_DEPTH:
        nested = [one.values() if type(one) is dict else one for one in level if one and type(one) in (dict, list)]
        level = list(chain.from_iterable(nested))
        depth += 1
    return not level


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tries = MAX_TRIES

    def whole(self, path: Sequence[str] = ()) -> _Value:
        """The value of the text; of the objects on a path of names with where their members are."""
        value = self._value(self._skip(0), 0, path)
        if (rest := self._skip(value.ends)) < len(self._text):
            raise self._wrong(rest, "something follows the end")
        return value

    def _wrong(self, at: int, message: str) -> NotJson:
        return NotJson(self._text, at, message)

    def _skip(self, at: int) -> int:
        return _behind_space(self._text, at)

    def _is(self, at: int, character: str) -> bool:
        return self._text[at : at + 1] == character

    def _value(self, at: int, depth: int, path: Sequence[str] = ()) -> _Value:
        if depth > MAX_DEPTH:
            raise self._wrong(at, "nested too deeply")
        if not path and self._tries and (plain := self._plain(at, depth)):
            return plain
        if self._is(at, "{"):
            return self._object(at, depth, path)
        if self._is(at, "["):
            return self._array(at, depth)
        if self._is(at, '"'):
            data, ends = self._string(at)
            return _Value(at, ends, data)
        if (scalar := _SCALAR.match(self._text, at)) is None:
            raise self._wrong(at, "a value is expected here")
        try:
            return _Value(at, scalar.end(), json.loads(scalar[0]))
        except ValueError:
            raise self._wrong(at, "this number has too many digits") from None

    def _plain(self, at: int, depth: int) -> _Value | None:
        """What is JSON by the letter; None where it is not, or is wrong, which is found out step by step."""
        try:
            data, ends = _DECODER.raw_decode(self._text, at)
        except (ValueError, RecursionError):
            pass
        else:
            if _is_shallow(data, depth):
                return _Value(at, ends, data)
        self._tries -= 1
        return None

    def _string(self, at: int) -> tuple[str, int]:
        try:
            text, ends = _DECODER.raw_decode(self._text, at)
        except ValueError as error:
            raise self._wrong(at, f"this text is not closed, or holds what it may not ({error})") from None
        return str(text), ends

    def _object(self, at: int, depth: int, path: Sequence[str]) -> _Value:
        made = _Value(at, members={}, data={})
        assert made.members is not None
        place = self._skip(at + 1)
        while not self._is(place, "}"):
            if made.members and not made.comma:
                raise self._wrong(place, "`,` or `}` is expected here")
            if not self._is(place, '"'):
                raise self._wrong(place, 'a name in `"` or `}` is expected here')
            name, ends = self._string(place)
            if name in made.members:
                raise self._wrong(place, f"the name {name!r} is here twice")
            colon = self._skip(ends)
            if not self._is(colon, ":"):
                raise self._wrong(colon, "`:` is expected here")
            below = path[1:] if path and name == path[0] else ()
            value = self._value(self._skip(colon + 1), depth + 1, below)
            made.members[name], made.data[name] = _Member(place, value), value.data
            place = self._skip(value.ends)
            made.comma = self._is(place, ",")
            place = self._skip(place + 1) if made.comma else place
        made.ends = place + 1
        return made

    def _array(self, at: int, depth: int) -> _Value:
        made = _Value(at, data=[])
        place, comma = self._skip(at + 1), True
        while not self._is(place, "]"):
            if not comma:
                raise self._wrong(place, "`,` or `]` is expected here")
            value = self._value(place, depth + 1)
            made.data.append(value.data)
            place = self._skip(value.ends)
            comma = self._is(place, ",")
            place = self._skip(place + 1) if comma else place
        made.ends = place + 1
        return made
