"""A project with libraries from end to end: in the terminal, and served to an MCP client in a process of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llm_do_mcp.serving.server import ProjectServer
from tests.cli.commands import llm_do
from tests.project.conftest import worker, write
from tests.project.shelf import load_with, shelve
from tests.serving.clients import process, text

SCRIPT = '''
import json

CALLS = [
    {"name": "worker_call", "input": {"worker": "utils:summarizer", "input_data": "three short words"}},
    {"name": "count", "input": {"text": "one two"}},
]


def reply(request):
    """The main worker calls a worker and a function of a library; each then says all that it knows."""
    if request["worker"] == "main" and request["turn"] == 0:
        return {"tool_calls": CALLS}
    last = request["messages"][-1]["content"]
    results = [block["content"] for block in last if block["type"] == "tool_result"]
    return json.dumps({"worker": request["worker"], "system": request["system"], "results": results})
'''
PROJECT = {
    "project.yaml": "name: desk\nmodel: scripted:script.py\ndependencies: [utils, legal@1.0]\n",
    "script.py": SCRIPT,
    "main.worker": worker(
        "toolsets: {delegation: {allow_workers: ['utils:*']}, custom: [count]}",
        "At the desk. {% include 'legal:disclaimer.jinja' %}",
    ),
}
COUNT = '''
from llm_do_mcp import tool

@tool(risk="read")
def count(text: str) -> int:
    """Counts words."""
    return len(text.split())
'''
LIBRARIES = {
    "utils": {
        "lib.yaml": "version: 2.1.0\nexports: [summarizer]\ndependencies: [legal]",
        "workers/summarizer.worker": worker("", "Sum up. {% include 'house.jinja' %}"),
        "templates/house.jinja": "{% include 'legal:disclaimer.jinja' %}",
        "tools.py": COUNT,
    },
    "legal@1.0": {"templates/disclaimer.jinja": "No advice. {% include 'by.jinja' %}", "templates/by.jinja": "Legal."},
}


def put(folder: Path) -> tuple[Path, Path]:
    """The project, and the folder of its libraries."""
    write(folder / "desk", PROJECT)
    shelve(folder / "shelf", LIBRARIES)
    return folder / "desk", folder / "shelf"


def check(output: str) -> None:
    """Everything that the libraries gave is in the answer."""
    said = json.loads(output)
    assert said["worker"] == "main" and said["system"] == "At the desk. No advice. Legal.\n"
    inner, counted = said["results"]
    assert json.loads(inner) == {"worker": "utils:summarizer", "system": "Sum up. No advice. Legal.\n", "results": []}
    assert counted == "2"


@pytest.mark.proves("LIB-END-TO-END")
def test_a_run_in_the_terminal_uses_workers_templates_and_python_of_libraries(tmp_path: Path) -> None:
    root, shelf = put(tmp_path)
    for options, env in ((["--lib", str(shelf)], {}), ([], {"LLM_DO_LIBS": str(shelf)})):
        done = llm_do(root, "go", *options, env={"HOME": str(tmp_path), **env})
        assert done.returncode == 0, done.stderr
        check(done.stdout)
    done = llm_do(root, "go", env={"HOME": str(tmp_path)})
    assert done.returncode == 2 and not done.stdout
    assert "project.yaml:3:15: no library 'utils' (looked in ~/.llm-do/libs); install it with" in done.stderr


@pytest.mark.anyio
@pytest.mark.proves("LIB-END-TO-END", "LIB-PUBLISHED")
async def test_a_client_calls_a_worker_that_uses_libraries_and_one_of_a_library(tmp_path: Path, mode: str) -> None:
    root, shelf = put(tmp_path)
    write(root, {"project.yaml": PROJECT["project.yaml"] + "exports: [main, 'utils:summarizer']\n"})
    async with process(root, mode, None, "--lib", str(shelf)) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert {"desk", "utils_summarizer"} <= tools
        result = await client.call_tool("desk", {"input": "go"})
        check(text(result))
        account = (result.meta or {})["llm-do/run"]
        assert account["status"] == "done"
        result = await client.call_tool("utils_summarizer", {"input": "three short words"})
        assert json.loads(text(result))["worker"] == "utils:summarizer"


@pytest.mark.proves("LIB-CODE-TOLD", "A056")
def test_the_python_of_libraries_is_told_at_the_start_with_its_hash(tmp_path: Path) -> None:
    project = load_with(tmp_path, PROJECT, LIBRARIES)
    told = ProjectServer(project).instructions or ""
    (line,) = [line for line in told.splitlines() if "library" in line]
    assert line == f"Python of the library utils@2.1.0: tools.py (sha256 {project.libraries['utils'].python_hash[:12]})"
    changed = {**LIBRARIES["utils"], "tools.py": COUNT + "\n"}
    again = load_with(tmp_path, PROJECT, {**LIBRARIES, "utils": changed})
    assert again.libraries["utils"].python_hash != project.libraries["utils"].python_hash
