"""What a worker can have at most that another worker made: the project's defaults, and never more than its maker had.

Such a worker is instructions that a model wrote. It reads, searches and writes files where both the manifest and its
maker do; it has no Python, no shell, and calls nobody. Its instructions are taken as they are: what a person approved
is what its model is told, so they are no template.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from llm_do_mcp.project.effective import Worker
from llm_do_mcp.project.settings import Toolsets
from llm_do_mcp.sandbox.root import Root

_KEPT = ("filesystem", "te")
"""The toolsets that a worker can have which another worker made."""


@dataclass(frozen=True)
class Bounds:
    """What the maker had, as it is recorded with what it made.

    Args:
        maker: Its id.
        roots: Its folders.
        toolsets: Those of its toolsets that can be handed on.
        network_enabled: Whether it could use the network.
        compatible_models: Its own, or None for any model.
    """

    maker: str
    roots: tuple[Root, ...]
    toolsets: tuple[str, ...]
    network_enabled: bool
    compatible_models: tuple[str, ...] | None

    @classmethod
    def of(cls, maker: Worker) -> Bounds:
        toolsets = tuple(name for name in _KEPT if getattr(maker.toolsets, name) is not None)
        return cls(maker.id, maker.roots, toolsets, maker.network_enabled, maker.compatible_models)

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "roots": [root.to_json() for root in self.roots]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Bounds:
        models = data["compatible_models"]
        return cls(
            maker=data["maker"],
            roots=tuple(map(Root.from_json, data["roots"])),
            toolsets=tuple(data["toolsets"]),
            network_enabled=data["network_enabled"],
            compatible_models=None if models is None else tuple(models),
        )


def within(bounds: Bounds, worker: Worker) -> Worker:
    """A worker with the project's defaults, held to its bounds."""
    kept = {name: getattr(worker.toolsets, name) for name in bounds.toolsets}
    return replace(
        worker,
        made_by=bounds.maker,
        instructions=replace(worker.instructions, verbatim=True),
        toolsets=Toolsets().model_copy(update=kept),
        tools=(),
        allow_workers=None,
        lock_worker=None,
        roots=tuple(_roots(worker.roots, bounds.roots)),
        network_enabled=worker.network_enabled and bounds.network_enabled,
        compatible_models=bounds.compatible_models,
        tool_modules=(),
        own_tool_modules=(),
        imported_tool_modules=(),
    )


def _roots(given: tuple[Root, ...], most: tuple[Root, ...]) -> Iterator[Root]:
    """The folders that are in both, each as the stricter of the two has it."""
    theirs = {(root.alias, root.path): root for root in most}
    for root in given:
        other = theirs.get((root.alias, root.path))
        if other is None or {root.mode, other.mode} == {"ro", "out"}:  # nothing is in both of these
            continue
        suffixes = root.suffixes if other.suffixes is None else other.suffixes
        if root.suffixes is not None and other.suffixes is not None:
            suffixes = tuple(suffix for suffix in root.suffixes if suffix in other.suffixes)
        yield replace(
            root,
            mode=other.mode if root.mode == "rw" else root.mode,
            suffixes=suffixes,
            max_file_bytes=min(root.max_file_bytes, other.max_file_bytes),
            read_approval=root.read_approval or other.read_approval,
            protected=tuple(dict.fromkeys((*root.protected, *other.protected))),
            hidden=tuple(dict.fromkeys((*root.hidden, *other.hidden))),
        )
