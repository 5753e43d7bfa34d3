"""Both protocol eras, and servers whose wire is in the test's hands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.serving.clients import ERAS, Gate, Wire
from tests.serving.web import Serve, Service


class Open(Protocol):
    def __call__(self, *arguments: Any, **options: Any) -> Wire: ...


@pytest.fixture(params=ERAS)
def mode(request: pytest.FixtureRequest) -> str:
    """Each era in turn, as the SDK's client names it."""
    return str(request.param)


@pytest.fixture
def open_wire() -> Iterator[Open]:
    """`open_wire(command, mode)` starts a server and shakes hands; it is killed when the test has ended."""
    wires: list[Wire] = []

    def start(*arguments: Any, **options: Any) -> Wire:
        wire = Wire(*arguments, **options)
        wires.append(wire)
        wire.open()
        return wire

    yield start
    for wire in wires:
        wire.close()


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    """A shop in `tmp_path` whose worker waits in a tool."""
    made = Gate(tmp_path)
    yield made
    made.close()


@pytest.fixture
def serve() -> Iterator[Serve]:
    """`serve(root, *options)` starts a server over HTTP; it is killed when the test has ended."""
    services: list[Service] = []

    def start(*arguments: Any, **options: Any) -> Service:
        services.append(Service(*arguments, **options))
        return services[-1]

    yield start
    for service in services:
        service.close()
