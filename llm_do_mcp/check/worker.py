"""What there is to say about one worker: all that it amounts to, the manifest merged in."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from llm_do_mcp.project.classes import UNSEEN
from llm_do_mcp.runtime.function import Declaration
from llm_do_mcp.sandbox.names import in_project, is_below
from llm_do_mcp.toolsets.overview import Standing

if TYPE_CHECKING:
    from llm_do_mcp.project.effective import Worker
    from llm_do_mcp.project.load import Project
    from llm_do_mcp.sandbox.root import Root
    from llm_do_mcp.toolsets.workbench import Workbench

TOOLSETS = ("filesystem", "delegation", "shell", "te", "custom")


@dataclass(frozen=True)
class Folder:
    """A folder of a worker's sandbox.

    Args:
        alias, mode: As it is known to the worker.
        place: As the manifest would name it: `./input` inside the project, else absolute.
        inside: Whether it lies in the project.
        exists: Whether it is there yet.
        suffixes: The only suffixes that can be used, or None.
    """

    alias: str
    mode: str
    place: str
    inside: bool
    exists: bool
    suffixes: tuple[str, ...] | None

    @classmethod
    def of(cls, root: Root, project: str) -> Folder:
        """A root, as seen from the project's folder."""
        place, inside = in_project(root.path, project), is_below(root.path, project)
        return cls(root.alias, root.mode, place, inside, os.path.isdir(root.path), root.suffixes)


@dataclass(frozen=True)
class Described:
    """A worker.

    Args:
        worker: The worker, as it is called.
        published: The name of its tool for MCP clients, or None.
        is_entry: Whether it stands for the project.
        reached: Whether anything can reach it; None where that cannot be said.
        folders: Its sandbox.
        calls: Ids of the workers that it may call and that are there.
        functions: What its model is given, as far as it was looked at.
        answers: What of that runs, asks, or is refused.
        unseen: Tool modules that it gets functions from, and that were not looked at.
    """

    worker: Worker
    published: str | None
    is_entry: bool
    reached: bool | None
    folders: tuple[Folder, ...]
    calls: tuple[str, ...]
    functions: tuple[Declaration, ...] = field(repr=False)
    answers: tuple[Standing, ...]
    unseen: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """As `llm-do check --json` has it."""
        worker = self.worker
        return {
            "id": worker.id,
            "path": worker.path,
            "library": worker.library,
            "description": worker.description,
            "entry": self.is_entry,
            "published": self.published,
            "reached": self.reached,
            "locked": worker.locked,
            "model": list(worker.model),
            "compatible_models": None if worker.compatible_models is None else list(worker.compatible_models),
            "params": dict(worker.params),
            "input_schema": _schema(worker.input_schema),
            "output_schema": _schema(worker.output_schema),
            "sandbox": [vars(folder) for folder in self.folders],
            "network_enabled": worker.network_enabled,
            "toolsets": list(self.toolsets),
            "calls": list(self.calls),
            "imports": list(worker.imports),
            "functions": [_function(declaration) for declaration in self.functions],
            "functions_unseen_in": list(self.unseen),
            "policy": [answer.to_json() for answer in self.answers],
            "server_side_tools": [tool.model_dump(exclude_none=True) for tool in worker.server_side_tools],
            "attachment_policy": worker.attachment_policy.model_dump(),
            "limits": worker.limits.model_dump(exclude_none=True),
        }

    @property
    def toolsets(self) -> tuple[str, ...]:
        """The names of its toolsets."""
        return tuple(name for name in TOOLSETS if getattr(self.worker.toolsets, name) is not None)


def describe(
    bench: Workbench,
    worker: Worker,
    functions: Sequence[Declaration],
    answers: Sequence[Standing],
    unseen: Sequence[str],
    *,
    reached: bool | None,
) -> Described:
    """Put together what there is to say about a worker."""
    project = bench.project
    return Described(
        worker=worker,
        published=_published(project, worker),
        is_entry=worker.id == project.entry,
        reached=reached,
        folders=tuple(Folder.of(root, project.root) for root in worker.roots),
        calls=tuple(callee.id for callee in bench.callees_of(worker)),
        functions=tuple(functions),
        answers=tuple(answers),
        unseen=tuple(unseen),
    )


def _published(project: Project, worker: Worker) -> str | None:
    return next((name for name, identifier in project.exports.items() if identifier == worker.id), None)


def _schema(schema: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return None if schema is UNSEEN else schema


def _function(declaration: Declaration) -> dict[str, Any]:
    return {
        "function": declaration.name,
        "name": declaration.shown,
        "risk": declaration.risk,
        "description": declaration.description,
        "input_schema": declaration.input_schema,
        "output_schema": declaration.output_schema,
        "module": declaration.options.get("module"),
    }
