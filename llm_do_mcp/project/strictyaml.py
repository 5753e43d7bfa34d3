"""YAML as configuration needs it: plain data with the position of every key, and no surprises.

PyYAML's own loaders let the last of two equal keys win, turn `no`, `12:30:45` and `2026-11-27` into things that are
not what was written, expand aliases without end, and raise half a dozen unrelated exceptions. So only PyYAML's
parser is used; the data are built here, in one pass over its events:

- mappings with text keys, sequences, and scalars of YAML 1.2's core schema that JSON has too (decimal numbers,
  `true`, `false`, `null`); whatever else is unquoted is text, also dates and `0644`;
- no aliases, anchors, tags, merge keys, directives or second documents;
- no control characters, nor U+0085, U+2028 and U+2029, which the parser alone takes for line ends: the lines that it
  names would not be those of an editor;
- limits on size, depth and number of nodes; numbers that a double or 18 digits cannot hold are refused;
- one error type, and the place of each key and value for whoever checks the data further.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from llm_do_mcp.errors import ProjectError

KeyPath = tuple[str | int, ...]
"""Where a value lies in the data: keys of mappings and indexes of sequences, from the top."""

MAX_CHARACTERS = 262_144
MAX_DEPTH = 64
MAX_NODES = 20_000

PARSER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_REFUSED = re.compile("[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LINE_END = re.compile("\r\n|\r|\n")
_INTEGER = re.compile(r"[-+]?[0-9]+\Z")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL", "~", ""), None),
}


@dataclass(frozen=True)
class Place:
    """A line and a column, both counted from 1."""

    line: int
    column: int


@dataclass(frozen=True)
class Document:
    """What a YAML text says, and where it says it.

    Args:
        path: The file, as a person would name it.
        data: The top-level mapping; empty for an empty text.
        keys: Where each key stands.
        values: Where each value starts; for a block scalar, the line of its first character.
    """

    path: str
    data: dict[str, Any]
    keys: dict[KeyPath, Place] = field(default_factory=dict)
    values: dict[KeyPath, Place] = field(default_factory=dict)

    def place(self, location: KeyPath, *, of_key: bool = False) -> Place:
        """The place of a value (or of its key), or of the nearest thing around it that is in the file."""
        if of_key and location in self.keys:
            return self.keys[location]
        while location and location not in self.values:
            location = location[:-1]
        return self.values.get(location, Place(1, 1))

    def error(self, message: str, location: KeyPath, *, of_key: bool = False) -> ProjectError:
        """An error that points at a value (or at its key)."""
        place = self.place(location, of_key=of_key)
        return ProjectError(message, path=self.path, line=place.line, column=place.column)


def load(text: str, *, path: str, first_line: int = 1, max_characters: int = MAX_CHARACTERS) -> Document:
    """Read one YAML document whose top level is a mapping.

    Args:
        text: The document.
        path: The file, as a person would name it.
        first_line: The line of the file on which `text` starts: 2 for front matter.
        max_characters: The most that is read. What a program writes may be longer than what people do.

    Raises:
        ProjectError: With the place, and what to write instead.
    """
    if len(text) > max_characters:
        raise ProjectError(f"more than {max_characters:,} characters of YAML", path=path)
    return _Builder(path, first_line).build(text)


class _Builder:
    """One pass over the events of one text."""

    def __init__(self, path: str, first_line: int) -> None:
        self.path, self.first_line = path, first_line
        self.keys: dict[KeyPath, Place] = {}
        self.values: dict[KeyPath, Place] = {}

    def build(self, text: str) -> Document:
        if found := _REFUSED.search(text):
            before = _LINE_END.split(text[: found.start()])
            message = f"the character U+{ord(found[0]):04X} is not allowed here"
            raise self._error(message, Place(len(before) - 1, len(before[-1])))
        try:
            events = self._events(text)
            data = self._document(events)
            for _ in events:
                pass  # what follows the mapping is read too: a second document is refused there
            return Document(self.path, data, self.keys, self.values)
        except yaml.MarkedYAMLError as error:
            unclosed = "end of stream" in str(error.problem)
            mark = (error.context_mark if unclosed else None) or error.problem_mark or error.context_mark
            raise self._error(_explain(error, text), Place(mark.line, mark.column) if mark else Place(0, 0)) from None
        except (yaml.YAMLError, RecursionError) as error:
            raise ProjectError(str(error).splitlines()[0], path=self.path) from None

    def _error(self, message: str, zero_based: Place) -> ProjectError:
        line, column = self.first_line + zero_based.line, 1 + zero_based.column
        return ProjectError(message, path=self.path, line=line, column=column)

    def _refuse(self, event: yaml.Event, message: str) -> ProjectError:
        return self._error(message, _start(event))

    def _events(self, text: str) -> Iterator[yaml.Event]:
        """The parser's events, without those that say nothing, and with what is not supported refused."""
        documents = 0
        for number, event in enumerate(yaml.parse(text, Loader=PARSER)):
            if number > MAX_NODES:
                raise self._refuse(event, f"more than {MAX_NODES:,} values")
            if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
                instead = "write the value out, or quote a text that starts with & or *"
                raise self._refuse(event, f"anchors and aliases are not supported; {instead}")
            if tag := getattr(event, "tag", None):
                raise self._refuse(event, f"tags such as {tag} are not supported; quote a text that starts with !")
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self._refuse(event, "a second document starts here; only one is allowed")
                if event.version or event.tags:
                    raise self._refuse(event, "directives are not supported; quote a value that starts with %")
            elif isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent, yaml.CollectionEndEvent)):
                yield event

    def _document(self, events: Iterator[yaml.Event]) -> dict[str, Any]:
        first = next(events, None)
        if first is None or (isinstance(first, yaml.ScalarEvent) and not first.value and not first.style):
            return {}
        if not isinstance(first, yaml.MappingStartEvent):
            kind = "a list" if isinstance(first, yaml.SequenceStartEvent) else "a single value"
            raise self._refuse(first, f"expected `key: value` lines, found {kind}")
        return self._mapping(events, ())

    def _value(self, event: yaml.Event, events: Iterator[yaml.Event], location: KeyPath) -> Any:
        start = _start(event)
        block = isinstance(event, yaml.ScalarEvent) and event.style in ("|", ">")
        self.values[location] = Place(self.first_line + start.line + block, 1 if block else start.column + 1)
        if isinstance(event, yaml.ScalarEvent):
            return self._text(event) if event.style else self._scalar(event)
        if len(location) >= MAX_DEPTH:
            raise self._refuse(event, f"nested deeper than {MAX_DEPTH}")
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(events, location)
        return self._sequence(events, location)

    def _mapping(self, events: Iterator[yaml.Event], location: KeyPath) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for event in events:
            if isinstance(event, yaml.CollectionEndEvent):
                break
            key = self._key(event)
            here = (*location, key)
            if key in mapping:
                raise self._refuse(event, f"key {key!r} was already given on line {self.keys[here].line}")
            start = _start(event)
            self.keys[here] = Place(self.first_line + start.line, start.column + 1)
            mapping[key] = self._value(next(events), events, here)
        return mapping

    def _sequence(self, events: Iterator[yaml.Event], location: KeyPath) -> list[Any]:
        sequence: list[Any] = []
        for event in events:
            if isinstance(event, yaml.CollectionEndEvent):
                break
            sequence.append(self._value(event, events, (*location, len(sequence))))
        return sequence

    def _key(self, event: yaml.Event) -> str:
        if not isinstance(event, yaml.ScalarEvent):
            raise self._refuse(event, "a key must be text; put a value that starts with { or [ in quotes")
        if not event.style:
            if event.value == "<<":
                raise self._refuse(event, "merge keys are not supported; write the keys out")
            if not isinstance(self._scalar(event), str):
                raise self._refuse(event, f"key {event.value!r} must be text; put it in quotes")
        return self._text(event)

    def _text(self, event: yaml.ScalarEvent) -> str:
        text: str = event.value
        if _SURROGATE.search(text):
            raise self._refuse(event, "\\ud800 to \\udfff are halves of characters; write the character itself")
        return text

    def _scalar(self, event: yaml.ScalarEvent) -> Any:
        """What an unquoted scalar means."""
        text: str = event.value
        if text in _WORDS:
            return _WORDS[text]
        if text[0] not in "+-.0123456789" or not _FLOAT.match(text) or _LEADING_ZERO.match(text):
            return text
        if _INTEGER.match(text):
            if len(text) > 18:
                raise self._refuse(event, f"number of {len(text)} digits is too long; put it in quotes to make it text")
            return int(text)
        number = float(text)
        if not math.isfinite(number):
            raise self._refuse(event, f"number {text[:40]} is too large; put it in quotes to make it text")
        return number


def _start(event: yaml.Event) -> Place:
    """Where an event starts, counted from 0 as the parser counts."""
    mark = event.start_mark
    return Place(mark.line, mark.column) if mark is not None else Place(0, 0)


def _explain(error: yaml.MarkedYAMLError, text: str) -> str:
    """The parser's complaint in one line, with what usually cures it."""
    problem = str(error.problem or error.context or "not valid YAML")
    mark = error.problem_mark
    if "end of stream" in problem and error.context:
        return f"{error.context}: {problem}; close the quote or bracket"
    if mark is not None:
        line = [*_LINE_END.split(text), ""][mark.line]
        if "\t" in line[: len(line) - len(line.lstrip())]:
            return f"{problem}; indent with spaces, not with tabs"
    if any(part in problem for part in ("mapping values are not", "cannot start any token", "expected alphabetic")):
        return f"{problem}; put the value in quotes"
    return problem
