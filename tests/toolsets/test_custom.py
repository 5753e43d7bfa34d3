"""Which functions of the project's Python a worker is given, and what becomes of modules that do not load."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from llm_do_mcp.errors import ProjectError, ToolModuleError
from llm_do_mcp.project.hosting import PythonOptions
from llm_do_mcp.project.load import load_project
from llm_do_mcp.toolsets.workbench import Workbench
from tests.project.conftest import worker, write

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def bench(root: Path, files: Mapping[str, str], python: PythonOptions | None = None) -> AsyncIterator[Workbench]:
    write(root, {"main.worker": worker(), **files})
    made = Workbench(load_project(root, python=python or PythonOptions()))
    try:
        yield made
    finally:
        await made.aclose()


async def given(made: Workbench, name: str) -> dict[str, str]:
    """The functions of a worker, and the modules that they come from."""
    declared = await made.declarations(made.project.worker(name))
    return {function.shown: function.options["module"] for function in declared if function.toolset == "custom"}


async def refusal(made: Workbench, name: str) -> str:
    with pytest.raises((ToolModuleError, ProjectError)) as caught:
        await made.declarations(made.project.worker(name))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def function(*names: str) -> str:
    return "\n".join(f"def {name}() -> str:\n    return __name__\n" for name in names)


def listed(*names: str) -> str:
    return f"{function(*names)}\n__all__ = {list(names)}\n"


@pytest.mark.proves("CUSTOM-GIVEN")
async def test_a_worker_sees_what_it_names_imports_or_has_in_its_folder(tmp_path: Path) -> None:
    files = {
        "tools.py": function("root"),
        "toolsets/a.py": listed("one", "two"),
        "workers/own/worker.worker": worker(),
        "workers/own/tools.py": function("mine"),
        "workers/none.worker": worker(),
        "workers/named.worker": worker("toolsets: {custom: {one: , root: }}"),
        "workers/short.worker": worker("tools: [two]"),
        "workers/all.worker": worker("toolsets: {custom: all}"),
        "workers/imports.worker": worker("imports: {tools: [toolsets/a.py]}"),
        "workers/gone.worker": worker("toolsets: {custom: [three]}"),
    }
    async with bench(tmp_path, files) as made:
        assert await given(made, "main") == {"root": "tools.py"}
        assert await given(made, "own") == {"mine": "workers/own/tools.py"}
        assert await given(made, "none") == {}
        assert await given(made, "named") == {"one": "toolsets/a.py", "root": "tools.py"}
        assert await given(made, "short") == {"two": "toolsets/a.py"}
        assert set(await given(made, "all")) == {"root", "one", "two"}
        assert set(await given(made, "imports")) == {"one", "two"}
        assert await refusal(made, "gone") == (
            "worker gone: there is no tool 'three' in tools.py, toolsets/a.py; there are: root, one, two"
        )


@pytest.mark.proves("CUSTOM-NEAREST", "A062")
async def test_the_nearest_function_of_a_name_wins_and_two_equally_near_are_an_error(tmp_path: Path) -> None:
    files = {
        "tools.py": function("f", "g"),
        "toolsets/a.py": listed("f", "h"),
        "toolsets/b.py": listed("i", "read_file"),
        "workers/near/worker.worker": worker("toolsets: {custom: [f, g]}\nimports: {tools: [toolsets/a.py]}"),
        "workers/near/tools.py": function("g"),
        "workers/far.worker": worker("toolsets: {custom: [f]}"),
        "workers/other.worker": worker("toolsets: {custom: [g, h, i]}"),
        "workers/all.worker": worker("toolsets: {custom: all}"),
        "workers/builtin.worker": worker(
            "toolsets: {custom: [read_file], filesystem: {}}\nsandbox: {paths: {a: 'ro:./a'}}"
        ),
        "workers/search.worker": worker(
            "toolsets: {custom: [web_search]}\nserver_side_tools: [{tool_type: web_search}]"
        ),
        "toolsets/c.py": listed("web_search"),
        "a/x.txt": "",
    }
    async with bench(tmp_path, files) as made:
        assert await given(made, "near") == {"f": "toolsets/a.py", "g": "workers/near/tools.py", "h": "toolsets/a.py"}
        assert await given(made, "other") == {"g": "tools.py", "h": "toolsets/a.py", "i": "toolsets/b.py"}
        doubled = "two functions are called 'f', in tools.py and toolsets/a.py; rename one"
        assert await refusal(made, "far") == f"worker far: {doubled}"
        assert await refusal(made, "all") == f"worker all: {doubled}"
        assert "two functions are called 'read_file': files.read and custom.read_file" in await refusal(made, "builtin")
        both = "two tools are called 'web_search': custom.web_search, and the one of server_side_tools; rename the"
        assert both in await refusal(made, "search")


@pytest.mark.proves("A057", "CUSTOM-BROKEN-MODULE")
@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("x = 1\nraise RuntimeError('no')", "toolsets/bad.py:2: RuntimeError: no"),
        ("import sys\nsys.exit(1)", "toolsets/bad.py:2: SystemExit: 1"),
        ("import os\nos._exit(7)", "toolsets/bad.py: the tool host ended while it was imported (exit status 7)"),
        ("import ctypes\nctypes.string_at(0)", "toolsets/bad.py: the tool host ended while it was imported (killed by"),
        ("import signal\nsignal.signal(2, print)", "toolsets/bad.py:2: ValueError: signal only works in main thread"),
        ("input()", "toolsets/bad.py:1: EOFError"),
    ],
)
async def test_a_module_that_does_not_load_takes_only_its_own_functions_away(
    tmp_path: Path, source: str, error: str
) -> None:
    files = {
        "tools.py": function("f", "g"),
        "toolsets/bad.py": source,
        "toolsets/good.py": listed("h"),
        "workers/good.worker": worker("toolsets: {custom: [f, h]}"),
        "workers/lost.worker": worker("toolsets: {custom: [lost]}"),
        "workers/all.worker": worker("toolsets: {custom: all}"),
        "workers/imports.worker": worker("imports: {tools: [toolsets/bad.py]}"),
        "workers/shadowed.worker": worker("toolsets: {custom: [g]}\nimports: {tools: [toolsets/bad.py]}"),
        "workers/own/worker.worker": worker(),
        "workers/own/tools.py": source,
    }
    async with bench(tmp_path, files) as made:
        for _ in range(2):
            assert await given(made, "good") == {"f": "tools.py", "h": "toolsets/good.py"}
            for name in ("lost", "all", "imports", "shadowed"):
                assert (await refusal(made, name)).startswith(f"worker {name}: {error}")
            assert "workers/own/tools.py" in await refusal(made, "own")


@pytest.mark.proves("CUSTOM-NO-FARTHER")
async def test_no_module_is_imported_that_lies_farther_than_all_that_a_worker_names(tmp_path: Path) -> None:
    marked = f"import pathlib\npathlib.Path('imported').touch()\n{listed('far')}"
    files = {
        "tools.py": function("near", "other"),
        "toolsets/far.py": marked,
        "workers/one/worker.worker": worker("toolsets: {custom: [mine]}"),
        "workers/one/tools.py": function("mine"),
        "main.worker": worker("toolsets: {custom: [near]}"),
        "workers/broken/worker.worker": worker("toolsets: {custom: [far]}"),
        "workers/broken/tools.py": "raise ValueError('no')",
        "workers/far/worker.worker": worker("toolsets: {custom: [mine, far]}"),
        "workers/far/tools.py": function("mine"),
    }
    async with bench(tmp_path, files) as made:
        assert await given(made, "main") == {"near": "tools.py"}
        assert await given(made, "one") == {"mine": "workers/one/tools.py"}
        assert "workers/broken/tools.py:1: ValueError: no" in await refusal(made, "broken")
        assert not (tmp_path / "imported").exists()
        assert await given(made, "far") == {"mine": "workers/far/tools.py", "far": "toolsets/far.py"}


@pytest.mark.proves("CUSTOM-BROKEN-FUNCTION")
@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (f"{listed('x')}def y(a): ...\n__all__ += ['y']", r":5: `y` cannot be a tool: `a` has no type"),
        ("def register(agent):\n    agent.tool('x')", r": `str` cannot be a tool: it is of type str"),
        (f"{listed('x')}def z(d: object = b'') -> bytes: ...\n__all__ += ['z']", r":5: `z` cannot be a tool: its res"),
    ],
)
async def test_a_function_that_cannot_be_a_tool_is_never_left_out_without_a_word(
    tmp_path: Path, module: str, reason: str
) -> None:
    files = {
        "toolsets/bad.py": module,
        "workers/imports.worker": worker("imports: {tools: [toolsets/bad.py]}"),
        "workers/all.worker": worker("toolsets: {custom: all}"),
        "workers/own/worker.worker": worker(),
        "workers/own/tools.py": module,
        "workers/named.worker": worker("tools: [x]"),
    }
    async with bench(tmp_path, files) as made:
        for name in ("imports", "all"):
            assert f"worker {name}: toolsets/bad.py{reason}" in await refusal(made, name)
        assert f"worker own: workers/own/tools.py{reason}" in await refusal(made, "own")
        if "agent" not in module:
            assert set(await given(made, "named")) == {"x"}


@pytest.mark.proves("CUSTOM-REGISTER")
async def test_a_module_that_somebody_names_as_a_tool_module_offers_something(tmp_path: Path) -> None:
    files = {
        "toolsets/helper.py": "def helper(x): return x\n",
        "toolsets/registers.py": "def register(agent): ...\n",
        "tools.py": "",
        "workers/imports.worker": worker("imports: {tools: [toolsets/helper.py]}"),
        "workers/registers.worker": worker("imports: {tools: [toolsets/registers.py]}"),
    }
    async with bench(tmp_path, files) as made:
        assert await given(made, "main") == {}, "nobody named the empty file"
        for name, module in (("imports", "helper"), ("registers", "registers")):
            assert await refusal(made, name) == (
                f"worker {name}: toolsets/{module}.py: tool module missing `register`: it offers no function; "
                "write register(agent), or mark functions with @tool, or list them in __all__"
            )
    manifest = {"project.yaml": "tools: {modules: [helper.py]}", "helper.py": "", "main.worker": worker("tools: [f]")}
    async with bench(tmp_path, manifest) as made:
        assert "helper.py: tool module missing `register`" in await refusal(made, "main")


@pytest.mark.proves("PROJECT-MODULE-IMPORTS")
@pytest.mark.parametrize("by_manifest", [True, False])
async def test_a_module_is_imported_by_its_name_in_python_where_that_is_allowed(
    tmp_path: Path, by_manifest: bool
) -> None:
    module = "my_project.tools:register"
    files = {
        "my_project/tools.py": f"{function('f')}\ndef register(agent):\n    agent.tool(f, risk='read')\n",
        "workers/imports.worker": worker(f"imports: {{tools: ['{module}']}}"),
    }
    if by_manifest:
        files["project.yaml"] = f"tools: {{allow_module_imports: true, modules: ['{module}']}}"
        files["workers/named.worker"] = worker("tools: [f]")
    async with bench(tmp_path, files, PythonOptions(module_imports=not by_manifest)) as made:
        assert await given(made, "imports") == {"f": module}
        if by_manifest:
            assert await given(made, "named") == {"f": module}


@pytest.mark.proves("PROJECT-NO-PYTHON")
async def test_without_python_who_names_functions_says_so_and_the_others_work(tmp_path: Path) -> None:
    marking = f"import pathlib\npathlib.Path('imported').touch()\n{function('f')}\n__all__ = ['f']\n"
    files = {
        "tools.py": marking,
        "toolsets/a.py": marking,
        "workers/named.worker": worker("toolsets: {custom: [f]}"),
        "workers/all.worker": worker("toolsets: {custom: all}"),
        "workers/imports.worker": worker("imports: {tools: [toolsets/a.py]}"),
    }
    async with bench(tmp_path, files, PythonOptions(imported=False)) as made:
        refused = "and the project's Python is not loaded (--no-import-tools)"
        assert await given(made, "main") == {}
        assert await refusal(made, "named") == f"worker named names f, {refused}"
        assert await refusal(made, "all") == f"worker all names all functions, {refused}"
        assert await refusal(made, "imports") == f"worker imports names toolsets/a.py, {refused}"
    assert not (tmp_path / "imported").exists()


@pytest.mark.proves("CUSTOM-DEFAULTS", "A060")
async def test_a_default_that_does_not_fit_its_type_disables_nothing(tmp_path: Path) -> None:
    source = """
    import datetime
    from pydantic import BaseModel

    class Note(BaseModel):
        text: str = None
        kind: int = "x"

    def greet(name: str = None, loud: bool = 1, times: int = 2.5) -> str:
        return f"{name} {loud} {times}"

    def wait(d: datetime.timedelta = datetime.timedelta(1)) -> str:
        return str(d)

    def note(n: Note) -> str:
        return str(n)
    """
    async with bench(tmp_path, {"tools.py": source}) as made:
        declared = {one.shown: one for one in await made.declarations(made.project.worker("main"))}
        assert set(declared) == {"greet", "wait", "note"}
        assert declared["greet"].input_schema["properties"] == {
            "name": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            "loud": {"type": "boolean"},
            "times": {"type": "integer"},
        }
        assert "default" not in str(declared["note"].input_schema)
        assert await made.host.call("tools.py", "greet", {}) == "None 1 2.5"
        assert await made.host.call("tools.py", "greet", {"name": None}) == "None 1 2.5"
        assert await made.host.call("tools.py", "wait", {"d": "PT5S"}) == "0:00:05"


@pytest.mark.proves("A068", "A060")
async def test_a_function_whose_schema_cannot_be_checked_is_no_tool(tmp_path: Path) -> None:
    source = """
    from typing import Annotated
    from pydantic import BaseModel, Field

    def good(v: Annotated[str, Field(pattern="^(a+)+$")]) -> str:
        return v

    def hangs(v: Annotated[str, Field(json_schema_extra={"pattern": "(a)(?=b)"})]) -> str:
        return v

    def fetches() -> Annotated[dict[str, str], Field(json_schema_extra={"$ref": "http://127.0.0.1:9/x"})]:
        return {}
    """
    files = {
        "tools.py": source,
        "workers/good.worker": worker("tools: [good]"),
        "workers/hangs.worker": worker("tools: [hangs]"),
        "workers/fetches.worker": worker("tools: [fetches]"),
    }
    async with bench(tmp_path, files) as made:
        assert set(await given(made, "good")) == {"good"}
        assert await refusal(made, "hangs") == (
            "worker hangs: tools.py:8: `hangs` cannot be a tool: its schema: pattern: '(a)(?=b)' is no regular "
            "expression that can be used: look-around, including look-ahead and look-behind, is not supported "
            "(at properties/v/pattern)"
        )
        assert "$ref 'http://127.0.0.1:9/x' leads to nothing in the schema" in await refusal(made, "fetches")
