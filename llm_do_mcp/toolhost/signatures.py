"""What a function's annotations promise: JSON Schema for its parameters and result, and how JSON becomes arguments.

Every type is one `Shape`: its schema, and a reader that checks a JSON value and makes the Python value of it. Both come
from the same place, so what a schema accepts is what the function gets.
"""

from __future__ import annotations

import collections.abc
import copy
import dataclasses
import datetime
import decimal
import enum
import inspect
import json
import pathlib
import re
import sys
import types
import typing
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from llm_do_mcp.toolhost import durations
from llm_do_mcp.toolhost.authoring import ToolContext

Schema = dict[str, Any]

SUPPORTED = (
    "str, int, float, bool, None, Any, list[…], tuple[…], set[…], dict[str, …], unions, Literal, Enum, dataclasses, "
    "TypedDict, date, time, datetime, timedelta, Decimal, UUID, Path and pydantic models"
)


class Unsupported(Exception):
    """A signature that cannot be offered as a tool. The text says what is allowed instead."""


class Mismatch(ValueError):
    """A JSON value that is not what a parameter needs. The text says where and what is expected."""


@dataclass(frozen=True)
class Shape:
    """A type: its JSON Schema, and what turns a JSON value into its Python value (`Mismatch` if it does not fit)."""

    schema: Schema
    read: Callable[[Any], Any]


@dataclass(frozen=True)
class Signature:
    """How a function is called from JSON.

    Attributes:
        input_schema: An object with the parameters as properties.
        output_schema: None where the result's type is not declared.
        takes_context: Whether the first parameter receives the `ToolContext`.
        shapes: By parameter.
        defaults: Of the parameters that may be left out.
    """

    input_schema: Schema
    output_schema: Schema | None
    takes_context: bool
    shapes: Mapping[str, Shape]
    defaults: Mapping[str, Any]

    def read(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The keyword arguments for JSON arguments.

        Raises:
            Mismatch: One is unknown, missing, or of the wrong type.
        """
        for name in arguments:
            if name not in self.shapes:
                raise Mismatch(f"there is no parameter `{name}`; it has {_listed(self.shapes)}")
        values: dict[str, Any] = {}
        for name, shape in self.shapes.items():
            if name in arguments:
                values[name] = _at(f"`{name}`", shape, arguments[name])
            elif name not in self.defaults:
                raise Mismatch(f"the parameter `{name}` is missing")
            elif isinstance(self.defaults[name], (list, dict, set)):
                # A function that changes its default must not hand the change on to the next call.
                values[name] = copy.deepcopy(self.defaults[name])
        return values


def signature_of(function: Callable[..., Any], descriptions: Mapping[str, str]) -> Signature:
    """The signature of a tool function.

    Args:
        function: A Python function.
        descriptions: Of the parameters, as its docstring has them.

    Raises:
        Unsupported: It cannot be called by name with JSON values.
    """
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise Unsupported("it yields; a tool returns its result, for example as a list")
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except Exception as error:
        raise Unsupported(f"its annotations cannot be resolved ({error}); import what they name") from error
    parameters = list(inspect.signature(function).parameters.values())
    takes_context = bool(parameters) and hints.get(parameters[0].name) is ToolContext
    shapes: dict[str, Shape] = {}
    defaults: dict[str, Any] = {}
    properties: dict[str, Schema] = {}
    builder = _Builder("validation")
    for parameter in parameters[takes_context:]:
        name = parameter.name
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise Unsupported(f"`{parameter}` takes any number of arguments; name each parameter")
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise Unsupported(f"`{name}` is positional-only; arguments are passed by name, so remove the `/`")
        if name not in hints:
            raise Unsupported(f"`{name}` has no type; annotate it with {SUPPORTED}")
        try:
            shapes[name] = builder.given(hints[name], parameter.default)
        except Unsupported as error:
            raise Unsupported(f"`{name}`: {error}") from error
        properties[name] = dict(shapes[name].schema)
        if descriptions.get(name):
            properties[name].setdefault("description", descriptions[name])
        if parameter.default is not parameter.empty:
            defaults[name] = parameter.default
            if _is_json(parameter.default):
                properties[name].setdefault("default", parameter.default)
    required = [name for name in shapes if name not in defaults]
    return Signature(
        input_schema=builder.rooted(_object(properties, required)),
        output_schema=_output_schema(hints.get("return", Any)),
        takes_context=takes_context,
        shapes=shapes,
        defaults=defaults,
    )


def schema_of(annotation: Any) -> Schema:
    """The JSON Schema of the values that a type describes.

    Raises:
        Unsupported: JSON cannot carry them.
    """
    builder = _Builder("validation")
    return builder.rooted(builder.shape(annotation).schema)


def _output_schema(annotation: Any) -> Schema | None:
    if annotation in (Any, object, None, types.NoneType):
        return None
    builder = _Builder("serialization")
    try:
        return builder.rooted(builder.shape(annotation).schema)
    except Unsupported as error:
        raise Unsupported(f"its result: {error}") from error


class _Builder:
    """Makes the shapes of one function, whose schemas share one set of definitions."""

    def __init__(self, mode: typing.Literal["validation", "serialization"]) -> None:
        self._mode = mode
        self._definitions: dict[str, Schema] = {}
        self._open: list[type] = []

    def rooted(self, schema: Schema) -> Schema:
        """The schema with the definitions that it refers to."""
        return {**schema, "$defs": self._definitions} if self._definitions else schema

    def given(self, annotation: Any, default: Any) -> Shape:
        """The shape of what has a default: `x: str = None` takes None as well, as it did before types were checked.

        Raises Unsupported as `shape`.
        """
        shape = self.shape(annotation)
        if default is not None:
            return shape
        try:
            shape.read(None)
        except Exception:  # a validator of the project's may raise anything
            return self._union([shape, _NULL])
        return shape

    def shape(self, annotation: Any) -> Shape:
        """The shape of a type. Raises Unsupported where JSON cannot carry it."""
        origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is typing.Annotated:  # first, since its notes need not be hashable
            return self._annotated(annotation, *arguments)
        if annotation in (Any, object):
            return Shape({}, _same)
        if annotation in _SCALARS:
            return _SCALARS[annotation]
        if annotation is ToolContext:
            raise Unsupported("a ToolContext is given to the first parameter only")
        if origin in (typing.Union, types.UnionType):
            return self._union([self.shape(member) for member in arguments])
        if origin is typing.Literal:
            return _choice(arguments, arguments)
        if annotation in _ARRAYS or origin in _ARRAYS:
            return self._array(self.shape(arguments[0] if arguments else Any))
        if annotation in _SETS or origin in _SETS:
            return self._set(annotation if origin is None else origin, self.shape(arguments[0] if arguments else Any))
        if annotation is tuple or origin is tuple:
            return self._tuple(annotation, arguments)
        if annotation in _BYTES:
            raise Unsupported(f"{_display(annotation)} cannot be given as JSON; take text, or a Path to a file")
        if annotation in _OBJECTS or origin in _OBJECTS:
            if arguments and arguments[0] is not str:
                raise Unsupported("the keys of a dict are str")
            return self._mapping(self.shape(arguments[1] if arguments else Any))
        if isinstance(annotation, typing.NewType):
            return self.shape(annotation.__supertype__)
        if hasattr(annotation, "__value__"):  # `type X = …` of Python 3.12
            return self.shape(annotation.__value__)
        if isinstance(annotation, type) and origin is None:
            return self._of_class(annotation)
        raise Unsupported(f"{_display(annotation)} cannot be given as JSON; use {SUPPORTED}")

    def _of_class(self, cls: type) -> Shape:
        if issubclass(cls, enum.Enum):
            members = list(cls)
            return _choice([member.value for member in members], members)
        if is_pydantic_model(cls):
            return self._pydantic(cls)
        if not (typing.is_typeddict(cls) or dataclasses.is_dataclass(cls)):
            raise Unsupported(f"{cls.__name__} cannot be given as JSON; use {SUPPORTED}")
        if cls in self._open:
            raise Unsupported(f"{cls.__name__} contains itself; a pydantic model may do that")
        self._open.append(cls)
        try:
            return self._record(cls)
        finally:
            self._open.pop()

    def _record(self, cls: type) -> Shape:
        """A dataclass or a TypedDict: an object with named fields."""
        try:
            hints = typing.get_type_hints(cls, include_extras=True)
        except Exception as error:
            raise Unsupported(f"the annotations of {cls.__name__} cannot be resolved ({error})") from error
        make: Callable[..., Any]
        if dataclasses.is_dataclass(cls):
            fields = [field for field in dataclasses.fields(cls) if field.init]
            required = {
                field.name
                for field in fields
                if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
            }
            defaults = {field.name: field.default for field in fields if field.default is not dataclasses.MISSING}
            hints = {field.name: hints[field.name] for field in fields}
            make = cls
        else:
            required, defaults, make = set(getattr(cls, "__required_keys__", hints)), {}, dict
        shapes = {}
        for name, hint in hints.items():
            if typing.get_origin(hint) in (typing.Required, typing.NotRequired):
                # Under `from __future__ import annotations` the class itself does not know of these.
                (required.add if typing.get_origin(hint) is typing.Required else required.discard)(name)
                hint = typing.get_args(hint)[0]
            try:
                shapes[name] = self.given(hint, defaults.get(name, dataclasses.MISSING))
            except Unsupported as error:
                raise Unsupported(f"{cls.__name__}.{name}: {error}") from error
        properties = {name: dict(shape.schema) for name, shape in shapes.items()}
        for name, default in defaults.items():
            if _is_json(default):
                properties[name].setdefault("default", default)

        def read(value: Any) -> Any:
            if not isinstance(value, dict):
                raise Mismatch(f"expected an object with {_listed(shapes)}")
            for name in value:
                if name not in shapes:
                    raise Mismatch(f"has no field `{name}`; it has {_listed(shapes)}")
            for name in sorted(required - set(value)):
                raise Mismatch(f"the field `{name}` is missing")
            return make(**{name: _at(f"`{name}`", shapes[name], item) for name, item in value.items()})

        return Shape(_object(properties, [name for name in properties if name in required]), read)

    def _annotated(self, annotation: Any, inner: Any, *notes: Any) -> Shape:
        """`Annotated[T, "text"]` describes. Constraints are pydantic's to read: none is dropped silently."""
        text = next((note for note in notes if isinstance(note, str)), None)
        if any(not isinstance(note, str) for note in notes):
            if "pydantic" not in sys.modules:
                raise Unsupported(f"{_display(annotation)}: constraints need pydantic, which is not imported here")
            shape = self._pydantic(annotation)
        else:
            shape = self.shape(inner)
        return Shape({**shape.schema, "description": text}, shape.read) if text else shape

    def _union(self, members: list[Shape]) -> Shape:
        def read(value: Any) -> Any:
            refusals = []
            for member in members:
                try:
                    return member.read(value)
                except Mismatch as error:
                    refusals.append(str(error))
            raise Mismatch(", or ".join(dict.fromkeys(refusals)))

        return Shape({"anyOf": [member.schema for member in members]}, read)

    def _array(self, item: Shape) -> Shape:
        def read(value: Any) -> Any:
            if not isinstance(value, list):
                raise Mismatch("expected an array")
            return [_at(f"[{n}]", item, element) for n, element in enumerate(value)]

        return Shape({"type": "array", "items": item.schema}, read)

    def _set(self, kind: Any, item: Shape) -> Shape:
        array = self._array(item)
        make = set if kind in (set, collections.abc.MutableSet) else frozenset

        def read(value: Any) -> Any:
            elements = array.read(value)
            try:
                made = make(elements)
            except TypeError:
                raise Mismatch("expected an array of plain values, which a set can have") from None
            if len(made) < len(elements):
                raise Mismatch("expected an array without repetitions")
            return made

        return Shape({**array.schema, "uniqueItems": True}, read)

    def _tuple(self, annotation: Any, members: tuple[Any, ...]) -> Shape:
        if annotation is tuple or members[1:] == (Ellipsis,):
            array = self._array(self.shape(members[0] if members else Any))
            return Shape(array.schema, lambda value: tuple(array.read(value)))
        shapes = [self.shape(member) for member in members]
        count = len(shapes)

        def read(value: Any) -> Any:
            if not isinstance(value, list) or len(value) != count:
                raise Mismatch(f"expected an array of {count}")
            return tuple(_at(f"[{n}]", shape, each) for n, (shape, each) in enumerate(zip(shapes, value, strict=True)))

        items: Schema = {"prefixItems": [shape.schema for shape in shapes]} if shapes else {}
        return Shape({"type": "array", **items, "minItems": count, "maxItems": count}, read)

    def _mapping(self, item: Shape) -> Shape:
        def read(value: Any) -> Any:
            if not isinstance(value, dict):
                raise Mismatch("expected an object")
            return {key: _at(f"`{key}`", item, element) for key, element in value.items()}

        return Shape({"type": "object", "additionalProperties": item.schema}, read)

    def _pydantic(self, annotation: Any) -> Shape:
        """Whatever pydantic describes and reads. It is the project's own pydantic, which the project has imported."""
        pydantic = sys.modules["pydantic"]
        try:
            adapter = pydantic.TypeAdapter(annotation)
            schema = adapter.json_schema(mode=self._mode)
            json.dumps(schema, allow_nan=False)  # what a model adds to its schema may be anything
        except Exception as error:
            raise Unsupported(f"{_display(annotation)}: pydantic cannot describe it ({error})") from error
        for name, definition in schema.pop("$defs", {}).items():
            if self._definitions.setdefault(name, definition) != definition:
                raise Unsupported(f"two different models are called {name}; rename one")

        def read(value: Any) -> Any:
            try:
                return adapter.validate_python(value)
            except pydantic.ValidationError as error:
                first = error.errors()[0]
                where = "".join(f"`{part}` " for part in first["loc"])
                raise Mismatch(f"{where}{first['msg']}") from error

        return Shape(schema, read)


def _scalar(schema: Schema, expected: str, accepts: Callable[[Any], bool], make: Callable[[Any], Any]) -> Shape:
    def read(value: Any) -> Any:
        if accepts(value):
            try:
                return make(value)
            except ValueError:  # a date that does not exist
                pass
        raise Mismatch(f"expected {expected}")

    return Shape(schema, read)


def _same(value: Any) -> Any:
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_decimal(value: Any) -> bool:
    return _is_number(value) or (isinstance(value, str) and re.search(_DECIMAL, value) is not None)


def _is_integer(value: Any) -> bool:
    return _is_number(value) and bool(value == value // 1)  # JSON Schema counts 3.0 as an integer


_DECIMAL = r"^[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?$"
_NULL = _scalar({"type": "null"}, "null", lambda value: value is None, _same)
_SCALARS: dict[Any, Shape] = {
    None: _NULL,
    types.NoneType: _NULL,
    str: _scalar({"type": "string"}, "a string", _is_text, _same),
    bool: _scalar({"type": "boolean"}, "true or false", lambda value: isinstance(value, bool), _same),
    int: _scalar({"type": "integer"}, "an integer", _is_integer, int),
    float: _scalar({"type": "number"}, "a number", _is_number, float),
    datetime.datetime: _scalar(
        {"type": "string", "format": "date-time"}, "a date and time", _is_text, datetime.datetime.fromisoformat
    ),
    datetime.date: _scalar({"type": "string", "format": "date"}, "a date", _is_text, datetime.date.fromisoformat),
    datetime.time: _scalar({"type": "string", "format": "time"}, "a time", _is_text, datetime.time.fromisoformat),
    datetime.timedelta: _scalar(
        {"type": "string", "format": "duration", "pattern": durations.PATTERN},
        "a duration such as PT1H30M",
        _is_text,
        durations.parse,
    ),
    decimal.Decimal: _scalar(
        {"anyOf": [{"type": "number"}, {"type": "string", "pattern": _DECIMAL}]},
        "a number, or one as text",
        _is_decimal,
        lambda value: decimal.Decimal(str(value)),
    ),
    uuid.UUID: _scalar({"type": "string", "format": "uuid"}, "a UUID", _is_text, uuid.UUID),
    pathlib.Path: _scalar({"type": "string"}, "a path", _is_text, pathlib.Path),
}
_ARRAYS = (list, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection)
_SETS = (set, frozenset, collections.abc.Set, collections.abc.MutableSet)
_BYTES = (bytes, bytearray, memoryview)
_OBJECTS = (dict, collections.abc.Mapping)


def _choice(values: Iterable[Any], members: Iterable[Any]) -> Shape:
    """One of some fixed JSON values, each of which stands for a Python value."""
    pairs = list(zip(values, members, strict=True))
    for value, _ in pairs:
        if not (value is None or isinstance(value, (str, int, bool))):
            raise Unsupported(f"{value!r} cannot be a choice; choices are strings, integers, booleans")

    def read(value: Any) -> Any:
        for known, member in pairs:
            if known == value and isinstance(known, bool) == isinstance(value, bool):
                return member
        raise Mismatch(f"expected one of {', '.join(repr(known) for known, _ in pairs)}")

    return Shape({"enum": [value for value, _ in pairs]}, read)


def _object(properties: dict[str, Schema], required: list[str]) -> Schema:
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


def _at(where: str, shape: Shape, value: Any) -> Any:
    try:
        return shape.read(value)
    except Mismatch as error:
        raise Mismatch(f"{where}: {error}") from None


def _is_json(value: Any) -> bool:
    """Whether a value is plain JSON as it stands."""
    if value is None or isinstance(value, (str, bool, int)):
        return not isinstance(value, enum.Enum)
    if isinstance(value, float):
        return value - value == 0
    if isinstance(value, list):
        return all(map(_is_json, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(item) for key, item in value.items())
    return False


def is_pydantic_model(cls: type) -> bool:
    """Whether it is a pydantic model. A project that has one has imported pydantic; we never do."""
    return "pydantic" in sys.modules and issubclass(cls, sys.modules["pydantic"].BaseModel)


def _display(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"
