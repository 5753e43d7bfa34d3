"""`check` and the project's Python: nothing of it runs unless that is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.check.looking import MODEL, look, said
from tests.project.conftest import worker

pytestmark = pytest.mark.anyio

LEAVES_A_TRACE = "import pathlib\npathlib.Path('trace').touch()\n"
SCHEMAS = f"""
{LEAVES_A_TRACE}
from dataclasses import dataclass

@dataclass
class Report:
    title: str
"""


@pytest.mark.proves("CHECK-NO-PYTHON")
async def test_without_import_tools_nothing_of_the_projects_python_runs(tmp_path: Path) -> None:
    keys = f"model: {MODEL}\noutput_schema_ref: schemas.py:Report\ntoolsets: {{custom: [greet]}}"
    files = {
        "main.worker": worker(keys),
        "schemas.py": SCHEMAS,
        "tools.py": f"{LEAVES_A_TRACE}def greet(name: str) -> str:\n    return name\n",
    }
    report = await look(tmp_path, files)
    assert report.findings == () and not (tmp_path / "project" / "trace").exists()
    (main,) = report.to_json()["workers"]
    assert main["output_schema"] is None
    (policy,) = main["policy"]
    assert (policy["function"], policy["decision"]) == ("custom.greet", "ask") and "--import-tools" in policy["source"]

    report = await look(tmp_path, files, import_tools=True)
    assert report.findings == () and (tmp_path / "project" / "trace").exists()
    (main,) = report.to_json()["workers"]
    assert main["output_schema"]["properties"] == {"title": {"type": "string"}}
    (function,) = main["functions"]
    assert (function["name"], function["module"], function["risk"]) == ("greet", "tools.py", "write")
    assert function["input_schema"]["required"] == ["name"]


@pytest.mark.proves("CHECK-IMPORT-TOOLS", "A057")
async def test_what_is_broken_in_python_has_its_file_and_line(tmp_path: Path) -> None:
    files = {
        "main.worker": worker(f"model: {MODEL}\ntoolsets: {{custom: [good, odd, missing]}}"),
        "workers/a/worker.worker": worker(f"model: {MODEL}"),
        "workers/a/tools.py": "import sys\nsys.exit(3)\n",
        "tools.py": "def good() -> int:\n    return 1\n\ndef odd(*names):\n    return 1\n",
        "project.yaml": "exports: ['*']\n",
    }
    assert (await look(tmp_path, files)).ok
    report = await look(tmp_path, files, import_tools=True)
    errors = said(report, "error")
    assert errors[0].startswith("tools.py:4: `odd` cannot be a tool: `*names` takes any number of arguments")
    assert errors[1].startswith("workers/a/tools.py:2: ") and "exit" in errors[1].lower()
    assert len(errors) == 2, "each once, though a worker needs it as well"


@pytest.mark.proves("CHECK-IMPORT-TOOLS")
async def test_a_function_that_is_nowhere_is_an_error_of_who_names_it(tmp_path: Path) -> None:
    keys = f"model: {MODEL}\ntoolsets:\n  te: {{}}\n  custom: [missing]"
    files = {"main.worker": worker(keys), "tools.py": "def good() -> int:\n    return 1\n"}
    (error,) = said(await look(tmp_path, files, import_tools=True), "error")
    assert error == "main.worker:5:11: there is no tool 'missing' in tools.py; there are: good"


@pytest.mark.proves("CHECK-IMPORT-TOOLS")
async def test_a_function_that_is_named_where_there_is_no_python_is_an_error_without_importing(tmp_path: Path) -> None:
    keys = f"model: {MODEL}\ntoolsets:\n  te: {{}}\n  custom: [missing]"
    (error,) = said(await look(tmp_path, {"main.worker": worker(keys)}), "error")
    assert error == "main.worker:5:11: there is no tool 'missing': no tool module was found"


@pytest.mark.proves("CHECK-IMPORT-TOOLS")
async def test_a_module_that_offers_nothing_is_odd_and_says_what_to_write(tmp_path: Path) -> None:
    files = {
        "main.worker": worker(f"model: {MODEL}\ntoolsets: {{custom: [given]}}"),
        "tools/a.py": "from llm_do_mcp import tool\n@tool\ndef given() -> int: ...\n",
        "tools/b.py": "def forgotten() -> int: ...\n",
        "tools/_helper.py": "def helps() -> int: ...\n",
    }
    (warning,) = said(await look(tmp_path, files, import_tools=True), "warning")
    how = "write register(agent), or mark functions with @tool, or list them in __all__"
    assert warning == f"tools/b.py: it offers no function; {how}"


@pytest.mark.proves("CHECK-UNSEEN")
async def test_functions_that_nobody_sees_are_odd(tmp_path: Path) -> None:
    files = {
        "project.yaml": f"model: {MODEL}\nexports: [a, b]\n",
        "workers/a.worker": worker(),
        "workers/b/worker.worker": worker(),
        "workers/b/tools.py": "def own() -> int:\n    return 1\n",
        "toolsets/text.py": "__all__ = ['used', 'spare']\ndef used() -> int: ...\ndef spare() -> int: ...\n",
    }
    for import_tools, what in ((False, "what it offers"), (True, "`spare`, `used`")):
        (warning,) = said(await look(tmp_path, files, import_tools=import_tools), "warning")
        assert warning.startswith(f"toolsets/text.py: no worker sees {what}: name it under `toolsets: {{custom:")
    files["workers/a.worker"] = worker("toolsets: {custom: [used]}")
    assert said(await look(tmp_path, files), "warning") == []
    (warning,) = said(await look(tmp_path, files, import_tools=True), "warning")
    assert warning.startswith("toolsets/text.py: no worker sees `spare`")
    files["workers/a.worker"] = worker("toolsets: {custom: all}")
    assert said(await look(tmp_path, files, import_tools=True), "warning") == []


@pytest.mark.proves("CHECK-SHADOWED")
async def test_functions_behind_nearer_ones_are_told(tmp_path: Path) -> None:
    function = "def clean() -> int:\n    return 1\n"
    files = {
        "project.yaml": f"model: {MODEL}\nexports: [a, b]\n",
        "workers/a/worker.worker": worker("toolsets: {custom: [clean]}"),
        "workers/a/tools.py": function,
        "workers/b.worker": worker("toolsets: {custom: [clean]}"),
        "tools.py": function,
    }
    report = await look(tmp_path, files, import_tools=True)
    assert said(report, "warning") == [
        "tools.py: a sees `clean` of workers/a/tools.py, which is nearer, and not this one; "
        "rename one where both are meant"
    ]
    assert report.ok
