"""What a model can be sent. Claude takes everything; of any other model only what is safe is assumed.

Local servers that speak the Messages API accept a request and then ignore parts of it: a document block that is
dropped silently gives an answer about nothing. So what is not known to work is off until a project switches it on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase

from llm_do_mcp.errors import ModelError


@dataclass(frozen=True)
class Capabilities:
    """What may be sent.

    Args:
        documents: PDF as document blocks; without, their text is sent.
        images: Images as image blocks.
        structured_output: The output schema as a grammar, instead of words in the instructions.
        strict_tools: Tools that hold the model to their schema.
        parallel_tools: Several calls in one reply; without, the model is told to make one at a time.
        caching: Marks for the prompt cache.
    """

    documents: bool = False
    images: bool = True
    structured_output: bool = False
    strict_tools: bool = False
    parallel_tools: bool = True
    caching: bool = False


def capabilities_of(model: str, overrides: Mapping[str, Mapping[str, bool]] | None = None) -> Capabilities:
    """The capabilities of a model.

    Args:
        model: Its name without the provider, `claude-haiku-4-5`.
        overrides: The manifest's `model_capabilities`: a name or glob → flags; later ones win.

    Raises:
        ModelError: A flag that does not exist.
    """
    known = {field.name for field in fields(Capabilities)}
    can = Capabilities(**dict.fromkeys(known, True)) if model.startswith("claude-") else Capabilities()
    for pattern, flags in (overrides or {}).items():
        if unknown := sorted(set(flags) - known):
            raise ModelError(
                f"model_capabilities.{pattern}: no flag {unknown[0]!r}; allowed: {', '.join(sorted(known))}"
            )
        if fnmatchcase(model, pattern):
            can = replace(can, **flags)
    return can
