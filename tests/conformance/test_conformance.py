"""The suite of the protocol's own project passes; `make conformance` prints what it says."""

from __future__ import annotations

import pytest

from tests.conformance.__main__ import EXPECTED, REVISIONS, judge, judged
from tests.javascript import unavailable

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=str(unavailable()))


@pytest.mark.proves("CONFORMANCE")
@pytest.mark.parametrize("revision", REVISIONS)
def test_what_a_revision_requires_passes(revision: str) -> None:
    with judged() as url:
        verdict = judge(revision, url)
    assert not verdict.wrong
    assert verdict.required["FAILURE"] == 0 and verdict.required["SUCCESS"] > 60, verdict.line(revision)


@pytest.mark.proves("CONFORMANCE")
def test_what_may_fail_is_a_short_list_with_reasons() -> None:
    assert len(EXPECTED["required"]) <= 1 and len(EXPECTED["besides"]) <= 4
    assert all(len(reason) > 40 for listed in EXPECTED.values() for reason in listed.values())
