"""Assertions in Python."""

from __future__ import annotations

from typing import Any


def only_the_second(result: dict[str, Any]) -> None:
    """Only the first question was searched, and trial 1 says nothing of it."""
    report = result["files"]["reports/report.md"]
    assert "trial-2.md" in report and "trial-1.md" not in report, report
