"""What the tool host tells about a project's tool modules, as both sides hold it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class ToolFunction:
    """A function that can be called as a tool.

    Attributes:
        name: As it is called.
        description: Its docstring, without the section that describes the parameters.
        input_schema: JSON Schema, always an object whose properties are the parameters.
        output_schema: JSON Schema of the result, None where its type is not declared.
        risk: As declared, None where undeclared.
        idempotent: As declared.
        takes_context: Whether its first parameter receives a `ToolContext`.
        place: Where it is defined, as `file:line`.
    """

    name: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    risk: str | None
    idempotent: bool
    takes_context: bool
    place: str


@dataclass(frozen=True)
class BrokenFunction:
    """A function that was meant as a tool and cannot be one.

    Attributes:
        name: As it would be called.
        reason: One line that starts with `file:line:` and says what is allowed instead.
    """

    name: str
    reason: str


@dataclass(frozen=True)
class ToolModule:
    """A file (or package) of the project that holds tools.

    Attributes:
        path: As it was asked for: relative to the project, or `my_project.tools:register`.
        functions: What can be called, sorted by name.
        broken: What cannot, sorted by name. The other functions of the module are not touched by it.
        error: Why the module could not be loaded at all, one line that starts with the path; None where it was.
        code_hash: Digest of this file and of all project files that it imports, at once or later, as they were when
            loaded, and of `tools.python` and `tools.env`. Empty where not even the file could be read.
    """

    path: str
    functions: tuple[ToolFunction, ...] = ()
    broken: tuple[BrokenFunction, ...] = ()
    error: str | None = None
    code_hash: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ToolModule:
        return cls(
            path=data["path"],
            functions=tuple(ToolFunction(**function) for function in data["functions"]),
            broken=tuple(BrokenFunction(**function) for function in data["broken"]),
            error=data["error"],
            code_hash=data["code_hash"],
        )


@dataclass(frozen=True)
class SchemaModule:
    """A module whose classes describe what workers take and give.

    Attributes:
        path: As it was asked for.
        schemas: JSON Schemas of its classes, by their names.
        broken: Why a class that was meant to have a schema has none, by its name.
        error: Why the module could not be loaded at all, one line that starts with the path; None where it was.
        files: SHA-256 of all the project's files whose code was executed, by their paths.
    """

    path: str
    schemas: dict[str, dict[str, Any]] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    error: str | None = None
    files: dict[str, str] = field(default_factory=dict)
