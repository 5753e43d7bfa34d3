"""One state of the project's code for as long as somebody needs it, and processes that end when nobody does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from llm_do_mcp.errors import FunctionFailed, ToolHostDied
from tests.toolhost.conftest import Serve, is_gone_within, write

pytestmark = pytest.mark.anyio


def code(version: str) -> dict[str, str]:
    """A module that is used at once, one that is imported later, and what both import."""
    return {
        "helper.py": f"VERSION = {version!r}",
        "tools.py": "import os\nfrom . import helper\ndef used() -> str: return helper.VERSION\n"
        "def pid() -> int: return os.getpid()\ndef dies() -> None: os._exit(3)",
        "toolsets/later.py": f"__all__ = ['later']\nimport helper\ndef later(): return {version!r} + helper.VERSION",
    }


MODULES = ("tools.py", "toolsets/later.py")


@pytest.mark.proves("TOOLHOST-SNAPSHOT")
@pytest.mark.parametrize("edit", ["edited", "removed"])
async def test_a_snapshot_keeps_the_code_also_of_what_it_has_not_imported_yet(
    serve: Serve, tmp_path: Path, edit: str
) -> None:
    host = serve(code("old"))
    with host.snapshot() as snapshot:
        await snapshot.keep(MODULES)
        assert await snapshot.call("tools.py", "used", {}) == "old"
        write(tmp_path, code("new"))
        if edit == "removed":
            (tmp_path / "toolsets/later.py").unlink()
        (tools,) = await host.describe(["tools.py"])
        assert await host.call("tools.py", "used", {}) == "new"
        assert await snapshot.call("toolsets/later.py", "later", {}) == "oldold"
        kept = {module.path: module for module in await snapshot.describe(MODULES)}
        assert [function.name for function in kept["toolsets/later.py"].functions] == ["later"]
        assert kept["tools.py"].code_hash != tools.code_hash
        assert await snapshot.call("tools.py", "used", {}, code_hash=kept["tools.py"].code_hash) == "old"


@pytest.mark.proves("TOOLHOST-SNAPSHOT")
@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="watches processes by pidfd, which is Linux's")
async def test_snapshots_share_a_process_which_ends_with_the_last_after_an_edit(serve: Serve, tmp_path: Path) -> None:
    host = serve(code("old"))
    with host.snapshot() as first:
        await first.keep(MODULES)
        pid = await first.call("tools.py", "pid", {})
        with host.snapshot() as second:
            assert await second.call("tools.py", "pid", {}) == pid
            write(tmp_path, code("new"))
            with host.snapshot() as third:
                await third.keep(MODULES)
                assert await third.call("tools.py", "pid", {}) != pid
                assert await third.call("toolsets/later.py", "later", {}) == "newnew"
        assert await first.call("tools.py", "pid", {}) == pid
    assert is_gone_within(pid, 5)


@pytest.mark.proves("TOOLHOST-SNAPSHOT", "TOOLHOST-DIED")
async def test_a_snapshot_whose_process_died_goes_on_but_never_with_other_code(serve: Serve, tmp_path: Path) -> None:
    with serve(code("old")).snapshot() as snapshot:
        await snapshot.keep(MODULES)
        (tools,) = await snapshot.describe(["tools.py"])
        with pytest.raises(ToolHostDied):
            await snapshot.call("tools.py", "dies", {})
        assert await snapshot.call("tools.py", "used", {}, code_hash=tools.code_hash) == "old"
        with pytest.raises(ToolHostDied):
            await snapshot.call("tools.py", "dies", {})
        write(tmp_path, code("new"))
        with pytest.raises(FunctionFailed, match=r"tools\.py: its code is not the one that this call was meant for"):
            await snapshot.call("tools.py", "used", {}, code_hash=tools.code_hash)


@pytest.mark.proves("TOOLHOST-SNAPSHOT", "TOOLHOST-LAZY")
async def test_a_snapshot_of_nothing_starts_nothing_and_one_that_cannot_start_says_so_when_needed(serve: Serve) -> None:
    with serve({"tools.py": ""}, python="no-such-python").snapshot() as snapshot:
        await snapshot.keep(())
        await snapshot.keep(["tools.py"])
        (module,) = await snapshot.describe(["tools.py"])
    assert module.error is not None and "no interpreter 'no-such-python'" in module.error
