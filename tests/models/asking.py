"""Short ways to ask a model in tests."""

from __future__ import annotations

from typing import Any

import pytest

from llm_do_mcp.models.anthropic import AnthropicModel
from llm_do_mcp.models.turn import Reply, Request
from tests.models.messages_server import MessagesServer

MODEL = "claude-haiku-4-5"
NAME = f"anthropic:{MODEL}"


def request(words: str = "Hello", **changes: Any) -> Request:
    asked: dict[str, Any] = {
        "worker": "reports/summarizer",
        "model": NAME,
        "system": "Be brief.",
        "messages": ({"role": "user", "content": [{"type": "text", "text": words}]},),
    }
    return Request(**{**asked, **changes})


def use(server: MessagesServer, monkeypatch: pytest.MonkeyPatch, *, key: str | None = "sk-test") -> None:
    """Make the server the one that the user's environment names."""
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    if key is not None:
        monkeypatch.setenv("ANTHROPIC_API_KEY", key)


async def ask(asked: Request, *, model: str = MODEL, deadline: float | None = None, **options: Any) -> Reply:
    """One turn with a model of its own."""
    opened = AnthropicModel(model, **options)
    try:
        return await opened.reply(asked, deadline=deadline)
    finally:
        await opened.aclose()
