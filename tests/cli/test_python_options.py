"""`--no-import-tools` and `--allow-module-imports`, in every command that may run the project's Python."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.commands import llm_do
from tests.project.conftest import worker, write


@pytest.fixture
def project(tmp_path: Path) -> Path:
    turns = [{"tool_calls": [{"name": "add", "input": {"a": 2}}]}, {"text": "done"}]
    write(
        tmp_path,
        {
            "project.yaml": "model: scripted:model.yaml\n",
            "model.yaml": json.dumps({"workers": {"main": turns}}),
            "main.worker": worker("imports: {tools: ['my_project.tools:register']}"),
            "my_project/tools.py": """
                import pathlib
                pathlib.Path("imported").touch()

                def add(a: int) -> int:
                    return a + 1

                def register(agent):
                    agent.tool(add, risk="read")
            """,
        },
    )
    return tmp_path


@pytest.mark.proves("PROJECT-MODULE-IMPORTS")
def test_modules_by_name_are_allowed_on_the_command_line(project: Path) -> None:
    refused = llm_do(project, "x")
    assert refused.returncode == 2
    assert "main.worker:2:19: module imports such as 'my_project.tools:register' are not allowed" in refused.stderr
    assert "--allow-module-imports" in refused.stderr and not (project / "imported").exists()
    done = llm_do(project, "x", "--allow-module-imports")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    listed = llm_do("list", project, "--allow-module-imports", "--json")
    assert json.loads(listed.stdout)["broken"] == []


@pytest.mark.proves("PROJECT-NO-PYTHON")
def test_without_python_a_worker_that_names_functions_says_so(project: Path) -> None:
    ran = llm_do(project, "x", "--allow-module-imports", "--no-import-tools")
    assert ran.returncode == 2
    expected = "worker main names my_project.tools:register, and the project's Python is not loaded (--no-import-tools)"
    assert expected in ran.stderr
    assert not (project / "imported").exists()


@pytest.mark.proves("PROJECT-CLASS-CACHE")
def test_after_a_run_a_class_is_known_without_python(project: Path) -> None:
    write(
        project,
        {
            "main.worker": worker("schema_in_ref: schemas.py:Given"),
            "schemas.py": "from dataclasses import dataclass\n\n@dataclass\nclass Given:\n    topic: str\n",
            "model.yaml": json.dumps({"workers": {"main": [{"text": "done"}]}}),
        },
    )
    given = ("--input", '{"topic": "tea"}')
    for _ in range(2):  # the first makes the state folder, the second keeps the schema in it
        assert llm_do(project, *given).returncode == 0
    done = llm_do(project, *given, "--no-import-tools")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
