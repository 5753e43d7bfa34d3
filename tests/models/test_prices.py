"""What a turn costs, where that is known."""

from __future__ import annotations

import pytest

from llm_do_mcp.models.prices import cost
from llm_do_mcp.models.turn import Usage
from llm_do_mcp.project.manifest import LongPrompt, Price

MILLION = 1_000_000
HAIKU = "anthropic:claude-haiku-4-5"


@pytest.mark.parametrize(
    ("model", "usage", "dollars"),
    [
        (HAIKU, Usage(MILLION, MILLION), 6.0),
        (f"{HAIKU}-20251001", Usage(MILLION, MILLION), 6.0),
        (HAIKU, Usage(0, 0, MILLION, MILLION), 1.35),
        (HAIKU, Usage(web_searches=3), 0.03),
        ("anthropic:claude-opus-5-5", Usage(1000, 500, 10_000, 2000), 0.026),
        ("anthropic:claude-haiku-5-5", Usage(100_000, 1000), 0.0105),
        ("anthropic:claude-haiku-5-5", Usage(1, 1000, 100_000), 0.0075005),
    ],
    ids=["plain", "dated", "cached", "searched", "all", "short prompt", "long prompt"],
)
@pytest.mark.proves("PRICE-KNOWN")
def test_anthropics_models_cost_what_it_says_at_its_address(model: str, usage: Usage, dollars: float) -> None:
    assert cost(model, usage, {}, None) == pytest.approx(dollars)
    assert cost(model, usage, {}, "https://api.anthropic.com/") == pytest.approx(dollars)


@pytest.mark.proves("PRICE-KNOWN")
def test_the_projects_prices_come_first_and_of_them_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    free, dear = (
        Price(input=0, output=0),
        Price(input=100, output=200, long_prompt=LongPrompt(above=9, input=1, output=1)),
    )
    prices = {"gemma*": free, HAIKU: dear}
    assert cost("anthropic:gemma3", Usage(MILLION, MILLION), prices, None) == 0
    assert cost(HAIKU, Usage(4, 0, 2, 2), prices, None) == pytest.approx(800 / MILLION), "cached input as input"
    assert cost(HAIKU, Usage(5, 0, 5), prices, None) == pytest.approx(10 / MILLION)
    assert cost(HAIKU, Usage(9), {**prices, "claude-*": free}, None) == 0


@pytest.mark.proves("PRICE-UNKNOWN")
def test_what_is_not_known_is_not_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    used = Usage(10, 10)
    assert cost("anthropic:claude-haiku-9", used, {}, None) is None
    assert cost("anthropic:gemma3", used, {}, None) is None
    assert cost("sampling", Usage(), {}, None) is None
    assert cost("sampling", Usage(), {"sampling": Price(input=1, output=1)}, None) is None, "its tokens are not known"
    assert cost("sampling", Usage(), {"sampling": Price(input=0, output=0)}, None) == 0
    assert cost(HAIKU, used, {}, "https://gateway.example/v1") is None, "a gateway has prices of its own"
    assert cost(HAIKU, Usage(1, 1, web_searches=1), {HAIKU: Price(input=1, output=1)}, None) is None
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    assert cost(HAIKU, used, {}, None) is None
