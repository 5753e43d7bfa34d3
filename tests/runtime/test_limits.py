"""Limits hold a run and all below it."""

from __future__ import annotations

import pytest

from llm_do_mcp.errors import LimitReached, Refused
from llm_do_mcp.runtime.limits import Limits, Meter


@pytest.mark.proves("LIMIT-TREE")
def test_what_a_sub_worker_spends_is_spent_by_its_parents_too() -> None:
    root = Meter("main", Limits(max_turns=3))
    child = Meter("helper", Limits(max_turns=100), root)
    child.charge(turns=2)
    child.check("max_turns")
    child.charge(turns=1)
    with pytest.raises(LimitReached, match=r"worker main stopped: its limit max_turns of 3 was reached") as met:
        child.check("max_turns")
    assert met.value.meter is root


@pytest.mark.proves("LIMIT-DEPTH", "A053")
def test_the_sixth_worker_below_one_another_is_one_too_many() -> None:
    chain = ("a", "b", "c", "d", "e")
    meter = None
    for name in chain:
        meter = Meter(name, Limits(), meter)
    assert meter is not None and meter.parent is not None
    meter.parent.check_depth("e", chain[:4])
    with pytest.raises(Refused, match=r"limit max_depth of 5 of worker a \(a > b > c > d > e > f\)"):
        meter.check_depth("f", chain)
