"""Where the Messages API is asked for: the user's own address, or one that a project names.

Two things hang on the difference: the user's key goes only to the user's own address, and only Anthropic's own
address has the prices that Anthropic publishes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

PUBLIC = "https://api.anthropic.com"
VARIABLE = "ANTHROPIC_BASE_URL"
HEADERS = "ANTHROPIC_CUSTOM_HEADERS"


def own() -> str:
    """The address that the user's environment names, else Anthropic's."""
    return (os.environ.get(VARIABLE) or PUBLIC).rstrip("/")


def named_by(base_url: str | None) -> str:
    """Where the address that is asked is set, for people. Argument as for `is_foreign`."""
    return VARIABLE if base_url is None else "base_url in project.yaml"


def is_foreign(base_url: str | None) -> bool:
    """Whether an address is a project's and not the user's own.

    Args:
        base_url: As the project gives it; None where it gives none.
    """
    return base_url is not None and base_url.rstrip("/") != own()


def is_public(base_url: str | None) -> bool:
    """Whether what is asked for goes to Anthropic itself."""
    return (own() if base_url is None else base_url.rstrip("/")) == PUBLIC


def custom_headers(environment: Mapping[str, str]) -> dict[str, str]:
    """The headers that the user's environment adds to every request: `Name: value`, one a line. They may be keys."""
    lines = (line.partition(":") for line in environment.get(HEADERS, "").split("\n"))
    return {name.strip(): value.strip() for name, colon, value in lines if colon}
