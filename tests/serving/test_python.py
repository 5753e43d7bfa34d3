"""What a server does with a project's Python before anything is called: class schemas, and none where it is refused."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import anyio
import pytest

from llm_do_mcp.project.hosting import PythonOptions
from llm_do_mcp.project.load import load_project
from llm_do_mcp.serving.server import ProjectServer
from tests.project.conftest import worker, write
from tests.serving.clients import client_of, process, text

SCHEMAS = """
from pydantic import BaseModel, Field

class Deck(BaseModel):
    name: str = Field(pattern="^(a+)+$")
    pages: int = 1

class Verdict(BaseModel):
    verdict: str
"""
FILES = {
    "project.yaml": "name: shop\nmodel: scripted:model.yaml\ntools: {env: [LISTED]}\n",
    "main.worker": worker("schema_in_ref: schemas.py:Deck\noutput_schema_ref: schemas.py:Verdict"),
    "schemas.py": SCHEMAS,
    "model.yaml": 'workers: {main: [{text: \'{"verdict": "good"}\'}]}\n',
}


@pytest.mark.anyio
@pytest.mark.proves("PROJECT-CLASS-SCHEMAS", "A067", "A068")
async def test_class_schemas_are_published_and_hold_for_calls(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    async with process(tmp_path, "auto") as client:
        (tool,) = [tool for tool in (await client.list_tools(cache_mode="bypass")).tools if tool.name == "shop"]
        assert list(tool.input_schema["properties"]) == ["name", "pages", "extra_context"]
        assert tool.output_schema is not None and tool.output_schema["required"] == ["verdict"]
        before = time.monotonic()
        refused = await client.call_tool("shop", {"name": "a" * 50_000 + "!"})
        assert time.monotonic() - before < 5.0
        assert refused.is_error and "must be a string that matches ^(a+)+$" in text(refused)
        done = await client.call_tool("shop", {"name": "aaa"})
        assert done.structured_content == {"verdict": "good"}


@pytest.mark.anyio
@pytest.mark.proves("PROJECT-CLASS-SCHEMAS", "A057")
async def test_a_schema_module_that_does_not_load_disables_its_worker_alone_until_it_does(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "schemas.py": "x = 1\nraise RuntimeError('no')\n",
            "workers/typed.worker": worker("schema_in_ref: schemas.py:Deck"),
            "workers/plain.worker": worker(),
        },
    )
    async with process(tmp_path, "auto") as client:
        names = {tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools}
        assert "plain" in names and "typed" not in names
        told = str(client.instructions)
        assert "workers/typed.worker:2:16: no schema 'Deck': schemas.py:2: RuntimeError: no" in told
        write(tmp_path, {"schemas.py": f"import helper\n{SCHEMAS}", "helper.py": "1 / 0\n"})
        assert "typed" not in {tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools}
        write(tmp_path, {"helper.py": "N = 1\n"})
        assert "typed" in {tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools}


@pytest.mark.anyio
@pytest.mark.proves("PROJECT-CLASS-SCHEMAS")
@pytest.mark.filterwarnings("ignore:ping is removed")
async def test_a_server_answers_while_a_class_is_fetched_for_an_edited_file(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    waiting = "import pathlib\npathlib.Path('gate').read_text()\n"
    server = ProjectServer(load_project(tmp_path))
    listed: list[str] = []
    try:
        async with client_of(server, "legacy") as client, anyio.create_task_group() as group:
            write(tmp_path, {"schemas.py": waiting + SCHEMAS.replace("pages", "sheets")})
            os.mkfifo(tmp_path / "gate")

            async def list_tools() -> None:
                for tool in (await client.list_tools(cache_mode="bypass")).tools:
                    listed.extend(tool.input_schema["properties"])

            group.start_soon(list_tools)
            # Opens only when the import comes to read: all the while that this waits, the import is under way.
            gate = await anyio.to_thread.run_sync(os.open, tmp_path / "gate", os.O_WRONLY)
            await client.send_ping()
            assert listed == []
            os.close(gate)
    finally:
        await server.aclose()
    assert "sheets" in listed


@pytest.mark.anyio
@pytest.mark.proves("PROJECT-NO-PYTHON")
async def test_a_server_without_python_serves_the_rest(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            **FILES,
            "tools.py": "import pathlib\npathlib.Path('imported').touch()\ndef f() -> None: ...\n",
            "workers/plain.worker": worker(),
            "workers/names.worker": worker("tools: [f]"),
            "workers/scripted.worker": worker("model: scripted:reply.py"),
            "reply.py": "import pathlib\npathlib.Path('imported').touch()\ndef reply(request): return 'x'\n",
            "project.yaml": f"{FILES['project.yaml']}exports: [main, plain, names, scripted]\n",
        },
    )
    model = json.dumps({"workers": {"plain": [{"text": "done"}], "names": [{"text": "done"}]}})
    write(tmp_path, {"model.yaml": model})
    async with process(tmp_path, "auto", None, "--no-import-tools") as client:
        names = {tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools}
        assert not {"shop", "names"} & names and {"plain", "scripted"} <= names
        assert text(await client.call_tool("plain", {"input": ""})).startswith("done")
        for name in ("names", "scripted"):
            refused = await client.call_tool(name, {"input": ""})
            assert refused.is_error and "the project's Python is not loaded (--no-import-tools)" in text(refused)
    assert not (tmp_path / "imported").exists()


@pytest.mark.proves("PROJECT-CLASS-CACHE", "START-UP-TOOL-HOST")
def test_loading_a_project_without_class_schemas_starts_no_python(tmp_path: Path) -> None:
    write(tmp_path, {**FILES, "main.worker": worker(), "schemas.py": "import pathlib\npathlib.Path('ran').touch()\n"})
    ProjectServer(load_project(tmp_path, python=PythonOptions(state_folder=lambda root: str(tmp_path / "state"))))
    assert not (tmp_path / "ran").exists() and not (tmp_path / "state").exists()


@pytest.mark.anyio
@pytest.mark.proves("SURFACE-BROKEN-PYTHON", "A060")
async def test_a_worker_whose_python_is_not_there_is_not_published_and_loosens_nothing(tmp_path: Path) -> None:
    loose = "sandbox: {paths: {out: {root: ./out, mode: rw, write_approval: false}}}"
    write(tmp_path, {**FILES, "main.worker": worker(), "workers/names.worker": worker(f"tools: [f]\n{loose}")})
    write(tmp_path, {"project.yaml": f"{FILES['project.yaml']}exports: [main, names]\n"})
    async with process(tmp_path, "auto") as client:
        assert "Not served: worker names: there is no tool 'f': no tool module was found" in str(client.instructions)
        assert not {"names", "files_out_write_text"} & {tool.name for tool in (await client.list_tools()).tools}
        refused = await client.call_tool("names", {"input": ""})
        assert refused.is_error and "no tool module was found" in text(refused)


@pytest.mark.anyio
@pytest.mark.proves("SURFACE-BROKEN-PYTHON", "A060")
async def test_a_worker_whose_python_turns_out_broken_is_published_again_when_it_is_mended(tmp_path: Path) -> None:
    model = json.dumps({"workers": {"main": [{"text": "done"}], "names": [{"text": "done"}]}})
    files = {
        **FILES,
        "main.worker": worker(),
        "workers/names.worker": worker("tools: [f]"),
        "tools.py": "def g() -> None: ...\n",
        "model.yaml": model,
        "project.yaml": f"{FILES['project.yaml']}exports: [main, names]\n",
    }
    write(tmp_path, files)
    async with process(tmp_path, "auto") as client:

        async def listed() -> bool:
            return "names" in {tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools}

        assert await listed(), "nothing of its Python has run"
        for _ in range(2):
            refused = await client.call_tool("names", {"input": ""})
            assert refused.is_error and "there is no tool 'f' in tools.py; there are: g" in text(refused)
            assert not await listed()
        write(tmp_path, {"tools.py": "def f() -> None: ...\n"})
        assert text(await client.call_tool("names", {"input": ""})).startswith("done")
        assert await listed()
