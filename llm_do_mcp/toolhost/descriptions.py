"""What the tool host tells about a project's tool modules, as both sides hold it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
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
    """

    name: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    risk: str | None
    idempotent: bool
    takes_context: bool


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
        path: Relative to the project, as it was asked for.
        functions: What can be called, sorted by name.
        broken: What cannot, sorted by name. The other functions of the module are not touched by it.
        error: Why the module could not be loaded at all, one line that starts with the path; None where it was.
        code_hash: Digest of this file and of all project files that it imports, as they were when loaded. Empty where
            not even the file could be read.
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
