"""From a model's name to the model: `anthropic:<model>`, `scripted:<file>`, `replay:<run>`, `sampling`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from llm_do_mcp.errors import ModelError
from llm_do_mcp.models.sampling import SAMPLING, Sample, SamplingModel

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
    sample: Sample,
    base_url: str | None = None,
    capabilities: Mapping[str, Mapping[str, Any]] | None = None,
) -> Model:
    """Open a model. Nothing is imported, read or connected before its first turn.

    Args:
        name: `anthropic:<model>`, `scripted:<file>` (relative to the project), `replay:<run>`, or
            `sampling` (`sampling:<hint>`).
        project_root: The project's folder.
        toolhost: Where a script's Python runs.
        records: Gives the records of a run that is replayed.
        sample: Puts a turn to the client of the run that opens it.
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
    if provider == SAMPLING:
        return SamplingModel(name, sample)
    from llm_do_mcp.models.replay import ReplayModel

    return ReplayModel(rest, records)


def check_names(worker: str, names: Sequence[str]) -> None:
    """See that a worker has models, and that their names are of a known form.

    Raises:
        ModelError: It has none, or one with a name of another form.
    """
    if not names:
        raise ModelError(
            f"worker {worker} has no model; name one in its file, the manifest, LLM_DO_MODEL or --model: "
            "anthropic:claude-haiku-4-5 with ANTHROPIC_API_KEY, anthropic:<name> of a local server at "
            "ANTHROPIC_BASE_URL, or sampling, which an MCP client lends"
        )
    check_forms(names)


def check_forms(names: Sequence[str]) -> None:
    """See that names of models are of a known form.

    Raises:
        ModelError: One is not.
    """
    for name in names:
        _parts(name)


def _parts(name: str) -> tuple[str, str]:
    provider, _, rest = name.partition(":")
    if name == SAMPLING:
        return provider, rest
    if provider not in ("anthropic", "scripted", "replay", SAMPLING) or not rest.strip() or not rest.isprintable():
        raise ModelError(
            f"model {name!r} cannot be opened; allowed: anthropic:<model>, such as anthropic:claude-haiku-4-5, "
            "scripted:<file>, replay:<run>, or sampling (the client's model)"
        )
    return provider, rest
