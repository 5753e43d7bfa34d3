"""Short ways to ask a model in tests."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from llm_do_mcp.models.anthropic import AnthropicModel
from llm_do_mcp.models.turn import Model, Reply, Request
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


async def reply_of(model: Model, asked: Request, *, deadline: float | None = None) -> Reply:
    """What a model replies; within a minute, where no deadline is given."""
    return await model.reply(asked, deadline=anyio.current_time() + 60 if deadline is None else deadline)


async def ask(asked: Request, *, model: str = MODEL, deadline: float | None = None, **options: Any) -> Reply:
    """One turn with a model of its own."""
    opened = AnthropicModel(model, **options)
    try:
        return await reply_of(opened, asked, deadline=deadline)
    finally:
        await opened.aclose()
