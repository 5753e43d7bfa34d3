"""Modules that are named as Python names them: `my_project.tools:register`."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_do_mcp.errors import FunctionFailed
from llm_do_mcp.toolhost.client import ToolHost
from tests.toolhost.conftest import Serve, write

pytestmark = pytest.mark.anyio

REGISTER = """
from my_project.numbers import ONE

def add(a: int) -> int:
    return a + ONE

def helper(a: int) -> int:
    return a

def install(agent) -> None:
    agent.tool(add, risk="read")
"""
NUMBERS = "ONE = 1\n"
FILES = {"my_project/tools.py": REGISTER, "my_project/numbers.py": NUMBERS}


@pytest.mark.proves("TOOLHOST-NAMED-MODULES")
async def test_the_named_function_registers_and_nothing_else_is_offered(serve: Serve, tmp_path: Path) -> None:
    host = serve(FILES)
    (module,) = await host.describe(["my_project.tools:install"])
    assert module.error is None and [(tool.name, tool.risk) for tool in module.functions] == [("add", "read")]
    assert await host.call("my_project.tools:install", "add", {"a": 2}, code_hash=module.code_hash) == 3
    write(tmp_path, {"my_project/numbers.py": "ONE = 5\n"})
    (edited,) = await host.describe(["my_project.tools:install"])
    assert edited.code_hash != module.code_hash
    assert await host.call("my_project.tools:install", "add", {"a": 2}) == 7


@pytest.mark.proves("TOOLHOST-NAMED-MODULES")
async def test_a_module_of_the_interpreters_environment_registers_too(tmp_path: Path) -> None:
    site = tmp_path / "site"
    write(site, {"kit.py": "def ping() -> str:\n    return 'pong'\n\ndef register(agent):\n    agent.tool(ping)\n"})
    python = tmp_path / "project" / "python"
    write(tmp_path, {"project/python": f'#!/bin/sh\nPYTHONPATH="{site}" exec python3 "$@"\n'})
    python.chmod(0o755)
    host = ToolHost(tmp_path / "project", python="./python")
    try:
        (module,) = await host.describe(["kit:register"])
        assert module.error is None and module.code_hash
        assert await host.call("kit:register", "ping", {}, code_hash=module.code_hash) == "pong"
    finally:
        await host.aclose()


@pytest.mark.proves("TOOLHOST-NAMED-MODULES")
@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("my_project.tools:register", "my_project.tools:register: tool module missing `register`: it must define"),
        ("my_project.numbers:ONE", "my_project.numbers:ONE: tool module missing `ONE`"),
        ("my_project.none:register", "my_project.none:register: ModuleNotFoundError: No module"),
        ("nowhere:register", "nowhere:register: needs the package 'nowhere'"),
        ("broken:register", "broken.py:2: ZeroDivisionError: division by zero"),
        ("fails:register", "fails.py:2: ValueError: not today"),
    ],
)
async def test_a_named_module_that_cannot_be_used_is_one_line(serve: Serve, path: str, error: str) -> None:
    broken = {"broken.py": "x = 1\n1 / 0\n", "fails.py": "def register(agent):\n    raise ValueError('not today')\n"}
    host = serve({**FILES, **broken})
    (module,) = await host.describe([path])
    assert module.error is not None and module.error.startswith(error)


@pytest.mark.proves("TOOLHOST-REFUSED")
async def test_a_tool_host_that_is_refused_starts_nothing(serve: Serve, tmp_path: Path) -> None:
    marking = "import pathlib\npathlib.Path('imported').touch()\ndef f() -> None: ...\n"
    host = serve({"tools.py": marking}, refused="not today")
    (module,) = await host.describe(["tools.py"])
    assert module.error == "tools.py: not today"
    assert (await host.schemas("tools.py")).error == "tools.py: not today"
    with pytest.raises(FunctionFailed, match=r"^tools\.py: `f` cannot be run: not today$"):
        await host.call("tools.py", "f", {})
    assert not (tmp_path / "imported").exists()
