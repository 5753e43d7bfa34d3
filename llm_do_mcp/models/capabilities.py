"""What a model can be sent. Claude takes everything; of any other model only what is safe is assumed.

Local servers that speak the Messages API accept a request and then ignore parts of it: a document block that is
dropped silently gives an answer about nothing. So what is not known to work is off until a project switches it on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from llm_do_mcp.models.naming import PROVIDER, covers


@dataclass(frozen=True)
class Capabilities:
    """What may be sent.

    Args:
        documents: PDF as document blocks; without, their text is sent.
        images: Images as image blocks.
        structured_output: The output schema as a grammar, instead of words in the instructions.
        strict_tools: Tools that hold the model to their schema.
        parallel_tools: Several calls in one reply; without, the model is told to make one at a time.
        server_side_tools: Tools that its provider runs.
        caching: Marks for the prompt cache.
        max_output_tokens: The most tokens that a reply may be asked to have.
    """

    documents: bool = False
    images: bool = True
    structured_output: bool = False
    strict_tools: bool = False
    parallel_tools: bool = True
    server_side_tools: bool = False
    caching: bool = False
    max_output_tokens: int = 8192


_CLAUDE = Capabilities(
    documents=True,
    images=True,
    structured_output=True,
    strict_tools=True,
    parallel_tools=True,
    server_side_tools=True,
    caching=True,
    max_output_tokens=32_000,  # what the oldest that are served take; those of `prices.yaml` take twice that, or more
)


def capabilities_of(model: str, overrides: Mapping[str, Mapping[str, Any]] | None = None) -> Capabilities:
    """The capabilities of a model.

    Args:
        model: Its name without the provider, `claude-haiku-4-5`.
        overrides: The manifest's `model_capabilities`: a name or glob → flags; later ones win.
    """
    can = _CLAUDE if model.startswith("claude-") else Capabilities()
    for pattern, flags in (overrides or {}).items():
        if covers(pattern, PROVIDER + model):
            can = replace(can, **flags)
    return can


def to_switch_on(flag: str) -> str:
    """What a person does so that a model is sent what it is not known to take."""
    return f"set {flag}: true for it under model_capabilities in project.yaml"
