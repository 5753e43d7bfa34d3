"""`llm-do runs`, `llm-do list` and `llm-do demo`."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest

from tests.cli.commands import llm_do
from tests.cli.test_run import PROJECT
from tests.models.messages_server import MessagesServer, message, text, tool_use
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
        assert {"id", "status", "worker", "created", "updated", "models", "tokens", "cost"} <= set(run)
        assert began <= run["created"] <= run["updated"] <= time.time()
    for_people = llm_do("runs", "--project", project).stdout.splitlines()
    assert len(for_people) == 3
    left = runs[0]["id"]
    assert for_people[0].startswith(left)
    assert for_people[0].endswith(f"main  → llm-do runs resume {left} --project {project}")
    assert for_people[2].endswith("plain")


@pytest.mark.proves("CLI-RUNS", "COST-ACCOUNT", "COST-LOST")
def test_runs_are_listed_with_what_their_models_cost(tmp_path: Path) -> None:
    manifest = "name: shop\nmodel: anthropic:local\nprices: {local: {input: 1000, output: 2000}}\n"
    write(tmp_path, {"main.worker": worker(), "project.yaml": manifest})
    broken = message(tool_use("", {}, id="t0"))
    with MessagesServer(message(text("hi")), message(text("hi")), broken) as server:
        done = llm_do(tmp_path, "go", env={"ANTHROPIC_BASE_URL": server.url})
        assert "15 tokens · $0.0200" in done.stderr
        (tmp_path / "project.yaml").write_text(manifest.partition("prices")[0])
        llm_do(tmp_path, "go", env={"ANTHROPIC_BASE_URL": server.url})
        (tmp_path / "project.yaml").write_text(manifest)
        llm_do(tmp_path, "go", env={"ANTHROPIC_BASE_URL": server.url})
    unanswered, unknown, known = json.loads(llm_do("runs", "--json", "--project", tmp_path).stdout)
    assert (known["models"], known["tokens"], known["cost"]) == (["anthropic:local"], {"input": 10, "output": 5}, 0.02)
    assert (unanswered["models"], unanswered["tokens"], unanswered["cost"]) == ([], {"input": 20, "output": 10}, 0.04)
    assert (unknown["cost"], unknown["unpriced"]) == (None, ["anthropic:local"])
    for_people = llm_do("runs", "--project", tmp_path).stdout.splitlines()
    assert for_people[0].endswith("main  $0.0400")
    assert for_people[1].endswith("main  cost unknown (no price for anthropic:local)")
    assert for_people[2].endswith("main  $0.0200")


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
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, "", "llm-do: the project has no runs yet\n")
    assert not (project / ".llm-do").exists()


@pytest.mark.proves("CLI-LAST")
def test_last_stands_for_the_newest_run_in_every_command(project: Path) -> None:
    for _ in range(2):
        assert llm_do(project, "go").returncode == 4
    newest, _ = (run["id"] for run in json.loads(llm_do("runs", "--json", "--project", project).stdout))
    waiting = json.loads(llm_do("approve", "last", "--json", "--project", project).stdout)
    assert {each["run"] for each in waiting} == {newest}
    done = llm_do("runs", "resume", "last", "--approve-all", "--json", "--project", project)
    assert json.loads(done.stdout)["run"]["id"] == newest
    assert json.loads(llm_do("trace", "last", "--json", "--project", project).stdout)["run"] == newest
    locked = llm_do("approvals", "lock", "last", "--project", project)
    assert (locked.returncode, locked.stdout) == (0, "approvals.lock: 3 approvals (3 new, 0 replaced)\n")


@pytest.mark.proves("CLI-LIST")
def test_list_shows_workers_tools_and_what_is_broken(project: Path) -> None:
    write(project, {"workers/bad.worker": worker("modle: x")})
    listed = llm_do("list", project, "--json")
    found = json.loads(listed.stdout)
    assert listed.returncode == 2
    assert ("plain", "says hello") in [(one["id"], one["description"]) for one in found["workers"]]
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
