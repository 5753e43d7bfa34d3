"""From a model's name to the model: `anthropic:<model>`, `scripted:<file>`, `replay:<run>`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from llm_do_mcp.errors import ModelError

if TYPE_CHECKING:
    from llm_do_mcp.models.replay import Records
    from llm_do_mcp.models.turn import Model
    from llm_do_mcp.toolhost.client import ToolHost


def open_model(
    name: str,
    *,
    project_root: str,
    toolhost: ToolHost,
    records: Records,
    base_url: str | None = None,
    capabilities: Mapping[str, Mapping[str, bool]] | None = None,
) -> Model:
    """Open a model. Nothing is imported, read or connected before its first turn.

    Args:
        name: `anthropic:<model>`, `scripted:<file>` (relative to the project), or `replay:<run>`.
        project_root: The project's folder.
        toolhost: Where a script's Python runs.
        records: Gives the records of a run that is replayed.
        base_url: The manifest's `base_url`: a server that speaks the Messages API.
        capabilities: The manifest's `model_capabilities`.

    Raises:
        ModelError: A name of another form.
    """
    provider, rest = _parts(name)
    if provider == "anthropic":
        from llm_do_mcp.models.anthropic import AnthropicModel

        return AnthropicModel(rest, base_url=base_url, capabilities=capabilities)
    if provider == "scripted":
        from llm_do_mcp.models.scripted import ScriptedModel

        return ScriptedModel(rest, project_root=project_root, toolhost=toolhost)
    from llm_do_mcp.models.replay import ReplayModel

    return ReplayModel(rest, records)


def check_names(worker: str, names: Sequence[str]) -> None:
    """See that a worker has models, and that their names are of a known form.

    Raises:
        ModelError: It has none, or one with a name of another form.
    """
    if not names:
        raise ModelError(
            f"worker {worker} has no model; set `model` in its file or in the manifest, "
            "LLM_DO_MODEL in the environment, or --model"
        )
    for name in names:
        _parts(name)


def _parts(name: str) -> tuple[str, str]:
    provider, _, rest = name.partition(":")
    if provider not in ("anthropic", "scripted", "replay") or not rest:
        raise ModelError(
            f"model {name!r} cannot be opened; allowed: anthropic:<model>, such as anthropic:claude-haiku-4-5, "
            "scripted:<file>, or replay:<run>"
        )
    return provider, rest
