"""`llm-do runs`, `llm-do list` and `llm-do demo`."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest

from tests.cli.commands import llm_do
from tests.cli.test_run import PROJECT
from tests.project.conftest import worker, write

EXAMPLE = Path(__file__).parents[2] / "projects" / "pitchdeck_eval"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path, PROJECT)
    return tmp_path


@pytest.mark.proves("CLI-RUNS")
def test_runs_are_listed_newest_first_with_what_they_came_to(project: Path) -> None:
    assert json.loads(llm_do("runs", "--json", "--project", project).stdout) == []
    began = time.time()
    for arguments in (["hi", "--entry", "plain"], ["go", "--entry", "broken"], ["go"]):
        llm_do(project, *arguments)
    runs = json.loads(llm_do("runs", "--json", "--project", project).stdout)
    assert [(run["worker"], run["status"]) for run in runs] == [
        ("main", "waiting"),
        ("broken", "failed"),
        ("plain", "done"),
    ]
    for run in runs:
        assert set(run) == {"id", "status", "worker", "created", "updated"}
        assert began <= run["created"] <= run["updated"] <= time.time()
    for_people = llm_do("runs", "--project", project).stdout.splitlines()
    assert len(for_people) == 3
    assert for_people[0].startswith(runs[0]["id"]) and for_people[0].endswith("main  (llm-do runs resume)")
    assert for_people[2].endswith("plain")


@pytest.mark.proves("CLI-RUNS")
def test_the_project_is_the_one_of_the_environment_else_the_working_directory(project: Path, tmp_path: Path) -> None:
    llm_do(project, "hi", "--entry", "plain")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    named = llm_do("runs", "--json", cwd=elsewhere, env={"LLM_DO_PROJECT": str(project)})
    here = llm_do("runs", "--json", cwd=project)
    assert len(json.loads(named.stdout)) == 1
    assert named.stdout == here.stdout


@pytest.mark.proves("CLI-RUNS")
def test_a_run_that_is_not_there_cannot_be_resumed(project: Path) -> None:
    ran = llm_do("runs", "resume", "nonesuch", "--project", project)
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, "", "llm-do: there is no run nonesuch\n")


@pytest.mark.proves("CLI-LIST")
def test_list_shows_workers_tools_and_what_is_broken(project: Path) -> None:
    write(project, {"workers/bad.worker": worker("modle: x")})
    listed = llm_do("list", project, "--json")
    found = json.loads(listed.stdout)
    assert listed.returncode == 0
    assert {"id": "plain", "description": "says hello"} in found["workers"]
    assert [tool["name"] for tool in found["tools"]] == [
        "small",
        "files_out_list",
        "files_out_read_text",
        "files_out_write_text",
        "te",
        "run_wait",
        "run_cancel",
    ]
    assert len(found["broken"]) == 1 and found["broken"][0].startswith("workers/bad.worker:2:1: ")
    for_people = llm_do("list", project).stdout
    assert "project small\n" in for_people
    assert "  worker main  (entry)\n" in for_people
    assert "  broken workers/bad.worker:2:1: " in for_people


@pytest.mark.proves("CLI-DEMO")
def test_the_demo_does_the_whole_job_and_says_that_no_model_was_called(tmp_path: Path) -> None:
    example = tmp_path / "pitchdeck_eval"
    shutil.copytree(EXAMPLE, example, ignore=shutil.ignore_patterns(".llm-do", "__pycache__", "evaluations"))
    (example / "evaluations").mkdir()
    ran = llm_do("demo", "--yes", "--project", example)
    assert ran.returncode == 0, ran.stderr
    decks = sorted((example / "input").glob("*.pdf"))
    reports = {path.name: path.read_text(encoding="utf-8") for path in (example / "evaluations").glob("*.md")}
    assert len(reports) == len(decks) + 1 >= 5
    assert all("no model was called" in report.lower() for report in reports.values())
    assert all(name in reports["summary.md"] for name in reports if name != "summary.md")
    assert "no model was called" in ran.stdout.lower()
    assert "approved without asking: Approval needed: create the file evaluations/summary.md" in ran.stderr
    assert f"  evaluations/{min(reports)}\n" in ran.stderr
    (run,) = json.loads(llm_do("runs", "--json", "--project", example).stdout)
    assert run["id"] in ran.stderr and run["status"] == "done"
