"""One thing that was found in a project, and where."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from llm_do_mcp.errors import ProjectError

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Finding:
    """A finding.

    Args:
        severity: `error`: something cannot be used. `warning`: it is odd. `note`: it is meant, and should be known.
        message: What it is, and what can be written instead.
        path: The file, relative to the project or as `utils:workers/x.worker`; None where it is about no file.
        line, column: Where in the file, counted from 1.
    """

    severity: Severity
    message: str
    path: str | None = None
    line: int | None = None
    column: int | None = None

    @classmethod
    def of(cls, error: ProjectError, severity: Severity = "error") -> Finding:
        """A single problem as a finding."""
        return cls(severity, error.message, error.path, error.line, error.column)

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.path, self.line, self.column) if part is not None)
        return f"{place}: {self.message}" if place else self.message

    def to_json(self) -> dict[str, Any]:
        """As `llm-do check --json` has it."""
        return asdict(self)

    @property
    def order(self) -> tuple[Any, ...]:
        """Findings are told in this order: file by file, each from its beginning."""
        return (self.path or "", self.line or 0, self.column or 0, self.message)
