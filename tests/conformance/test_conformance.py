"""The suite of the protocol's own project passes; `make conformance` prints what it says."""

from __future__ import annotations

import pytest
import yaml

from tests.conformance.__main__ import EXPECTED, REVISIONS, judge, judged
from tests.javascript import unavailable

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=str(unavailable()))


@pytest.mark.proves("CONFORMANCE")
@pytest.mark.parametrize("revision", REVISIONS)
def test_what_a_revision_requires_passes(revision: str) -> None:
    with judged() as url:
        verdict = judge(revision, url)
    assert verdict.code == 0, verdict.wrong
    assert verdict.passed["FAILURE"] == 0 and verdict.passed["SUCCESS"] > 60, verdict.line(revision)


@pytest.mark.proves("CONFORMANCE")
def test_what_may_fail_is_a_short_list_with_reasons() -> None:
    text = EXPECTED.read_text()
    expected = yaml.safe_load(text)["server"]
    assert len(expected) <= 3
    for scenario in expected:
        before = text.partition(f"  - {scenario}")[0].splitlines()
        assert before[-1].startswith("  # "), f"{scenario} has no reason"
