"""Tools that break what all Python in a process stands on: they harm nobody else, and the culprit is named."""

from __future__ import annotations

import logging

import pytest

from llm_do_mcp.errors import ToolHostDied
from tests.toolhost.conftest import Serve

pytestmark = pytest.mark.anyio

HEALTHY = {
    "tools.py": "def pid() -> int:\n    import os\n    return os.getpid()",
    "toolsets/other.py": "import html.parser\n__all__ = ['well']\ndef well() -> str: return 'well'",
}


def spoiling(statement: str) -> dict[str, str]:
    return {**HEALTHY, "toolsets/bad.py": f"__all__ = ['spoil']\ndef spoil() -> str:\n    {statement}\n    return 'x'"}


@pytest.mark.proves("TOOLHOST-SPOILED")
@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("import sys; sys.excepthook = None", "`sys.excepthook` is None"),
        ("import threading; threading.excepthook = None", "`threading.excepthook` is None"),
        ("import sys; sys.modules.clear()", "`sys.modules` has no 'sys' any more"),
        ("import sys; del sys.modules['traceback']", "`sys.modules` has no 'traceback' any more"),
        ("import builtins; builtins.iter = None", "`builtins.iter` is no function any more"),
        ("import sys; sys.path.clear()", "`sys.path` has lost what imports need"),
        ("import sys; sys.meta_path.clear()", "`sys.meta_path` has lost what imports need"),
        ("import sys; sys.path_hooks.clear()", "`sys.path_hooks` has lost what imports need"),
        ("import sys; sys.setrecursionlimit(100)", "`sys.setrecursionlimit` lowered the limit to 100"),
    ],
)
async def test_after_a_tool_that_spoils_its_process_the_next_call_has_a_new_one(
    serve: Serve, caplog: pytest.LogCaptureFixture, statement: str, what: str
) -> None:
    host = serve(spoiling(statement))
    before = await host.call("tools.py", "pid", {})
    with caplog.at_level(logging.WARNING):
        assert await host.call("toolsets/bad.py", "spoil", {}) == "x"
    assert f"after toolsets/bad.py spoil: {what}; other calls go to a new tool host" in caplog.messages
    assert await host.call("tools.py", "pid", {}) != before
    assert await host.call("toolsets/other.py", "well", {}) == "well"


@pytest.mark.proves("TOOLHOST-SPOILED")
@pytest.mark.parametrize("statement", ["import builtins; builtins.len = None", "import json; json.dumps = None"])
async def test_a_process_that_cannot_even_tell_the_result_ends(serve: Serve, statement: str) -> None:
    host = serve(spoiling(statement))
    with pytest.raises(ToolHostDied, match="the tool host ended while `spoil` ran"):
        await host.call("toolsets/bad.py", "spoil", {})
    assert await host.call("toolsets/other.py", "well", {}) == "well"


@pytest.mark.proves("TOOLHOST-SPOILED", "A057")
async def test_an_import_that_spoils_the_process_is_told_from_the_healthy_ones_after_it(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    host = serve({**HEALTHY, "workers/x/tools.py": "import sys\nsys.excepthook = None\ndef f() -> None: pass"})
    with caplog.at_level(logging.WARNING):
        modules = await host.describe(["workers/x/tools.py", "tools.py", "toolsets/other.py"])
    assert [module.error for module in modules] == [
        "workers/x/tools.py: its import breaks what all code in the process stands on: `sys.excepthook` is None; "
        "it is tried again once its code has changed",
        None,
        None,
    ]
    assert "after workers/x/tools.py: `sys.excepthook` is None" in caplog.text


@pytest.mark.proves("TOOLHOST-SPOILED")
async def test_what_a_library_puts_in_place_of_a_function_of_pythons_spoils_nothing(serve: Serve) -> None:
    patch = "import builtins, sys; builtins._ = str; builtins.print = lambda *a: None; sys.excepthook = lambda *a: None"
    host = serve(spoiling(patch))
    before = await host.call("tools.py", "pid", {})
    assert await host.call("toolsets/bad.py", "spoil", {}) == "x"
    assert await host.call("tools.py", "pid", {}) == before
