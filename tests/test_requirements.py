"""Binds the requirements manifest to the tests, in both directions."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.conftest import ITEMS
from tests.requirements import REQUIREMENTS


@pytest.mark.proves("TESTS-BOUND")
def test_every_promise_has_a_test_and_every_test_a_promise(request: pytest.FixtureRequest) -> None:
    config = request.config
    if config.args != config.getini("testpaths") or config.option.keyword or config.option.markexpr:
        pytest.skip("only a whole run can tell whether every promise is proved")
    proved: Counter[str] = Counter()
    unbound = []
    for item in config.stash[ITEMS]:
        ids = [identifier for mark in item.iter_markers("proves") for identifier in mark.args]
        proved.update(ids)
        if not ids:
            unbound.append(item.nodeid)
    assert not unbound, "tests that prove no promise"
    assert set(proved) - set(REQUIREMENTS) == set(), "tests name ids that are not in tests/requirements.py"
    assert set(REQUIREMENTS) - set(proved) == set(), "promises without a test"
