"""No test of `te` depends on who runs it, or leaves anything in the folder of this user's own sessions."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def nobody_s_session(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path_factory.mktemp("kept")))
    for name in ("TE_AGENT_ID", "TE_SESSION_ID"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(params=["", "/nowhere/rg"], ids=["ripgrep", "built-in"])
def either_search(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same test with ripgrep, and with the search that is used where there is none: what `TE_RG` is."""
    program: str = request.param
    monkeypatch.setenv("TE_RG", program)
    return program
