"""Programs and projects for tests of commands. The programs lie on the PATH, outside of every project."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.toolsets.commands import PROGRAMS, Project, install


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of `PROGRAMS`, at the head of the PATH."""
    folder = install(tmp_path / "bin", PROGRAMS)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


@pytest.fixture
def project(tmp_path: Path, programs: Path) -> Project:
    """A project whose worker may run the programs without asking."""
    return Project(tmp_path / "project")


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Where commands have their own folders, of which none may be left."""
    import tempfile

    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)  # so that it is looked for again
    yield folder
    assert [*folder.iterdir()] == []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and sys.platform == "win32":
            item.add_marker(pytest.mark.skip(reason="its programs are scripts with a `#!` line"))
