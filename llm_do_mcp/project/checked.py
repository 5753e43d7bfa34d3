"""Data from a file, checked against a model: every problem with its place, in words that say what to write instead.

Pydantic finds the problems; here each is turned into a `ProjectError` that points at the line and column, and an
unknown key is answered with the nearest known one.
"""

from __future__ import annotations

import contextlib
import re
import types
import typing
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Strict, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from llm_do_mcp.errors import InvalidFile, NotLookedUp, ProjectError
from llm_do_mcp.project.strictyaml import Document, KeyPath

_NOT_FINITE = re.compile(r"[-+]?\.(inf|nan)", re.IGNORECASE)
"""How YAML writes what is no number in JSON; `strictyaml` leaves it as text."""

Text = Annotated[str, Strict()]
Flag = Annotated[bool, Strict()]
Count = Annotated[int, Strict(), Field(ge=1)]
Texts = tuple[Text, ...]


def _listed(value: Any) -> Any:
    """A text, or what YAML takes for a number or a truth value where a text was meant, as a list of one."""
    return [value] if isinstance(value, str | bool | int | float) else value


TextOrTexts = Annotated[Texts, BeforeValidator(_listed)]
"""A list of texts; a single text is a list of one."""

LIST, WORD = _FORMS = ("[list]", "[word]")


def _form(value: Any) -> str | None:
    return LIST if isinstance(value, list | tuple) else WORD if isinstance(value, str) else None


def list_or_word(otherwise: str) -> Discriminator:
    """Tells a list, tagged `LIST`, from a word, tagged `WORD`, so that what is wrong in the one is told as such.

    Args:
        otherwise: What is said of anything else.
    """
    return Discriminator(_form, custom_error_type="form", custom_error_message=otherwise)


class Checked(BaseModel):
    """Base of everything that is read from a file: frozen, and without a key that is not known."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, defer_build=True)


Model = TypeVar("Model", bound=Checked)


def keys_of(model: type[Checked]) -> dict[str, FieldInfo]:
    """The fields of a model, by the keys that a file has for them."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def check(model: type[Model], document: Document) -> Model:
    """The document as an instance of the model.

    Raises:
        InvalidFile: With every problem, in the order of the file.
    """
    made, problems, _ = check_partly(model, document)
    if problems:
        raise InvalidFile(problems)
    return made


def check_partly(model: type[Model], document: Document) -> tuple[Model, list[ProjectError], frozenset[str]]:
    """The document as an instance of the model, without what in it cannot be used.

    What cannot be used is left out as small as it can be: a key of a mapping, or a whole list, so that the places in
    it stay what they are.

    Returns:
        The instance, every problem in the order of the file, and the keys at its top that are not whole.

    Raises:
        InvalidFile: With every problem, where there can be no instance.
    """
    problems: list[ProjectError] = []
    left_out: set[KeyPath] = set()
    told: set[KeyPath] = set()
    while True:
        try:
            made = model.model_validate(_without(document.data, left_out))
        except ValidationError as error:
            found = error.errors(include_url=False)
            problems += [_problem(model, document, one) for one in found if _location(one) not in told]
            more = {_to_leave_out(document.data, one) for one in found} - left_out - {()}
            if not more:  # a key that must be there is not
                raise InvalidFile(in_order(problems)) from None
            left_out |= more
            told |= left_out | {*map(_location, found)}  # what is left out would be said to be missing
        else:
            return made, in_order(problems), frozenset(str(location[0]) for location in left_out)


def in_order(problems: Iterable[ProjectError]) -> list[ProjectError]:
    """Problems of one file as they stand in it."""
    return sorted(problems, key=lambda problem: (problem.line or 0, problem.column or 0))


def _location(details: ErrorDetails) -> KeyPath:
    return tuple(part for part in details["loc"] if part not in ("[key]", *_FORMS))


def _to_leave_out(data: Any, details: ErrorDetails) -> KeyPath:
    """The smallest part of the data that a problem is about, but no part of a list."""
    found: KeyPath = ()
    location = _location(details)
    for part in location[: -1 if details["type"] == "missing" else None]:
        if not isinstance(data, Mapping) or part not in data:
            break
        found, data = (*found, part), data[part]
    return found


def _without(data: Any, left_out: Collection[KeyPath], location: KeyPath = ()) -> Any:
    if not isinstance(data, Mapping) or not left_out:
        return data
    kept = (key for key in data if (*location, key) not in left_out)
    return {key: _without(data[key], left_out, (*location, key)) for key in kept}


@contextlib.contextmanager
def collecting(problems: list[ProjectError]) -> Iterator[None]:
    """What is raised inside is added to the problems, each on its own, and stops nothing yet."""
    try:
        yield
    except NotLookedUp:
        pass  # it follows from what is among them already
    except InvalidFile as error:
        problems += error.problems
    except ProjectError as error:
        problems.append(error)


def together(problems: Sequence[ProjectError]) -> ProjectError:
    """Several problems as one error; a single one as it is."""
    return problems[0] if len(problems) == 1 else InvalidFile(problems)


def nearest(word: str, known: typing.Iterable[str]) -> str:
    """A hint that names the nearest of some words, or all of them."""
    from difflib import get_close_matches

    names = sorted(known)
    if close := get_close_matches(word, names, 1):
        return f"did you mean {close[0]!r}?"
    return f"known: {', '.join(names)}" if names else "none are known here"


def quoted(value: object, most: int = 80) -> str:
    """A value as it can be shown in a one-line message: escaped, and cut."""
    text = value if isinstance(value, str) else str(value)
    return repr(text if len(text) <= most else text[:most] + "…")


def _problem(model: type[Checked], document: Document, details: ErrorDetails) -> ProjectError:
    location = _location(details)
    while location and isinstance(location[-1], int) and location not in document.values:
        location = location[:-1]  # a single value that stands for a list of one
    key = str(location[-1]) if location else ""
    if details["type"] == "extra_forbidden":
        message = f"unknown key {quoted(key)}; {_unknown(model, location)}"
        return document.error(message, location, of_key=True)
    if details["type"] == "missing":
        return document.error(f"key {quoted(key)} is missing", location[:-1])
    subject = f"{'.'.join(map(str, location))}: " if location else ""
    return document.error(subject + _message(details), location, of_key=details["loc"][-1:] == ("[key]",))


def _message(details: ErrorDetails) -> str:
    kind, value, context = details["type"], details["input"], details.get("ctx", {})
    match kind:
        case "string_type" if isinstance(value, bool | int | float):
            return "must be text; put it in quotes"
        case "string_type":
            return f"must be text, not {_kind(value)}"
        case "bool_type":
            return f"must be true or false, not {_kind(value)}"
        case "int_type" | "float_type" if isinstance(value, str) and _NOT_FINITE.fullmatch(value):
            return f"must be a finite number, not {value}"
        case "int_type":
            return f"must be a whole number, not {_kind(value)}"
        case "float_type":
            return f"must be a number, not {_kind(value)}"
        case "tuple_type":
            return f"must be a list, not {_kind(value)}"
        case "dict_type" | "model_type" | "model_attributes_type":
            return f"must be `key: value` lines, not {_kind(value)}"
        case "literal_error":
            expected = str(context["expected"]).replace("True", "true")
            return f"must be {expected}, not {quoted(value) if isinstance(value, str) else _kind(value)}"
        case "value_error":
            return str(context["error"])
        case _:
            return details["msg"][:1].lower() + details["msg"][1:]


def _kind(value: object) -> str:
    match value:
        case None:
            return "empty"
        case bool():
            return str(value).lower()
        case int() | float():
            return f"the number {value}"
        case str():
            return f"the text {quoted(value, 40)}"
        case list():
            return "a list"
        case _:
            return "`key: value` lines"


def _unknown(model: type[Checked], location: KeyPath) -> str:
    """What may be written instead of the unknown key at a location."""
    key = str(location[-1])
    found = _model_at(model, location[:-1])
    if found is None:
        return "remove it"
    refusals: Mapping[str, str] = getattr(found, "REFUSED", {})
    if key in refusals:
        return refusals[key]
    known = nearest(key, keys_of(found))
    instead: str | None = getattr(found, "INSTEAD", None)  # where keys are easily taken for names
    return f"{known}; {instead}" if instead else known


def _model_at(model: type[Checked], location: KeyPath) -> type[Checked] | None:
    """The model that is responsible for the mapping at a location."""
    annotation: Any = model
    for part in location:
        if isinstance(annotation, type) and issubclass(annotation, Checked):
            fields = keys_of(annotation)
            annotation = fields[str(part)].annotation if part in fields else None
        else:
            annotation = (typing.get_args(annotation) or (None,))[-1 if isinstance(part, str) else 0]
        annotation = _unwrapped(annotation)
    return annotation if isinstance(annotation, type) and issubclass(annotation, Checked) else None


def _unwrapped(annotation: Any) -> Any:
    """The annotation without `Annotated` and `None`."""
    while typing.get_origin(annotation) in (Annotated, typing.Union, types.UnionType):
        annotation = typing.get_args(annotation)[0]
    return annotation
