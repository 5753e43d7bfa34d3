"""Which models a name in the manifest is about: a name or glob, with or without the provider."""

from __future__ import annotations

from fnmatch import fnmatchcase

PROVIDER = "anthropic:"


def covers(name: str, model: str) -> bool:
    """Whether a name or glob, as under `prices` and `model_capabilities`, is about a model.

    Args:
        name: As written, `claude-*` or `anthropic:claude-*`.
        model: The model's full name, `anthropic:claude-haiku-4-5`.
    """
    return fnmatchcase(model, name) or fnmatchcase(model.removeprefix(PROVIDER), name)
