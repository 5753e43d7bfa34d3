"""What a turn costs, as far as that is known: from the manifest's `prices`, else from `prices.yaml`.

A price that is not known is None and is told as such; nothing here estimates. The built-in prices are Anthropic's, so
they hold only for what goes to Anthropic's own address: a gateway or a local server has prices of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from pydantic import TypeAdapter

from llm_do_mcp.models import address
from llm_do_mcp.models.naming import PROVIDER, covers
from llm_do_mcp.models.sampling import is_sampling
from llm_do_mcp.models.turn import Usage
from llm_do_mcp.project import strictyaml
from llm_do_mcp.project.manifest import Price, Rates

_FILE = "prices.yaml"
_DATED = re.compile(r"-\d{8}\Z")
_PER = 1_000_000


def cost(model: str, usage: Usage, prices: Mapping[str, Price], base_url: str | None) -> float | None:
    """US dollars that a turn cost, or None where that is not known.

    Args:
        model: The model's full name, `anthropic:claude-haiku-4-5`.
        usage: What the turn took.
        prices: The manifest's: a name or glob, with or without the provider → price; later ones win.
        base_url: The manifest's.
    """
    price = price_of(model, prices, base_url)
    if price is None or (usage.web_searches and price.web_search is None):
        return None
    if is_sampling(model):  # a client does not tell how many tokens its model took
        return None if price.input or price.output else 0
    taken = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    long = price.long_prompt
    rates: Rates = long if long is not None and taken > long.above else price
    dollars = (
        usage.input_tokens * rates.input
        + usage.output_tokens * rates.output
        + usage.cache_read_tokens * (rates.input if rates.cache_read is None else rates.cache_read)
        + usage.cache_write_tokens * (rates.input if rates.cache_write is None else rates.cache_write)
    ) / _PER + usage.web_searches * (price.web_search or 0) / 1000
    return round(dollars, 9)


def price_of(model: str, prices: Mapping[str, Price], base_url: str | None) -> Price | None:
    """The price of a model, or None where it is not known. Arguments as for `cost`."""
    given = [price for name, price in prices.items() if covers(name, model)]
    if given:
        return given[-1]
    if not model.startswith(PROVIDER) or not address.is_public(base_url):
        return None
    name = model.removeprefix(PROVIDER)
    return _built_in().get(name) or _built_in().get(_DATED.sub("", name))


@cache
def _built_in() -> Mapping[str, Price]:
    text = (files(__package__) / _FILE).read_text(encoding="utf-8")
    return TypeAdapter(dict[str, Price]).validate_python(strictyaml.load(text, path=_FILE).data)
