"""What all tests share: the anyio backend, the torture switch, and the record of what each test proves."""

from __future__ import annotations

import pytest

ITEMS = pytest.StashKey[list[pytest.Item]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--torture", action="store_true", help="run the long forms: races of 30 s, hundreds of kills")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "proves(*ids): the requirement ids (tests/requirements.py) that a test proves")
    config.addinivalue_line("markers", "torture: has a long form, run in full by `make torture`")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    config.stash[ITEMS] = list(items)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def torture_scaled(request: pytest.FixtureRequest):  # type: ignore[no-untyped-def]
    """`torture_scaled(short, long)` gives the long value under `--torture`, else the short one."""
    full = request.config.getoption("--torture")
    return lambda short, long: long if full else short
