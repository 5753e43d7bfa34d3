"""Assertions in Python, for what the other keys of a test cannot say."""

from __future__ import annotations

from typing import Any


def two_calls(result: dict[str, Any]) -> None:
    """The worker was called, and it called its function."""
    calls = result["account"]["calls"]
    assert calls == 3, f"{calls} calls: the entry worker, `geometry`, and `circle_area` were expected"
