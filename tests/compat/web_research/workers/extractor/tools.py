"""The page fetcher of the tests: the web is a folder."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

PAGES = Path(__file__).parents[2] / "pages"


def fetch_page(url: str, max_chars: int = 6000) -> str:
    """The text of a page.

    Args:
        url: Its address.
        max_chars: How much of it at most.
    """
    parts = urlsplit(url)
    return (PAGES / f"{parts.hostname}.txt").read_text(encoding="utf-8")[:max_chars]
