"""`llm-do check` and `llm-do list` as people run them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.commands import llm_do
from tests.project.conftest import worker, write

FILES = {
    "project.yaml": "name: shop\nmodel: scripted:s.yaml\nexports: [main]\n",
    "main.worker": worker("description: Sells.\nallow_workers: [helper]\ntoolsets: {custom: [greet]}"),
    "workers/helper.worker": worker("description: Helps."),
    "tools.py": "def greet(name: str, times: int = 1) -> list[str]:\n    return [name] * times\n",
    "s.yaml": "workers: {}\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path / "shop", FILES)
    return tmp_path / "shop"


@pytest.mark.proves("CHECK-EXIT")
def test_errors_exit_2_and_what_is_odd_exits_0(project: Path) -> None:
    done = llm_do("check", project)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "ok: 2 workers, 1 published"
    write(project, {"workers/odd.worker": worker()})
    done = llm_do("check", project)
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "ok: 3 workers, 1 published; 1 warning"
    write(project, {"workers/bad.worker": worker("modle: x"), "main.worker": worker("descripton: x")})
    done = llm_do("check", project)
    assert (done.returncode, done.stderr) == (2, "")
    lines = done.stdout.splitlines()
    assert lines[lines.index("errors") :] == [
        "errors",
        "  main.worker:2:1: unknown key 'descripton'; did you mean 'description'?",
        "  workers/bad.worker:2:1: unknown key 'modle'; did you mean 'model'?",
        "",
        "2 errors",
    ]


@pytest.mark.proves("CHECK-EXIT")
def test_a_broken_manifest_is_reported_and_no_traceback(project: Path) -> None:
    write(project, {"project.yaml": "nmae: x\ndependencies: {}\n"})
    done = llm_do("check", project)
    assert (done.returncode, done.stderr) == (2, "")
    assert done.stdout.splitlines()[0] == "errors" and done.stdout.splitlines()[-1] == "2 errors"
    write(project, FILES)
    for words in (("check", "--lib", "nowhere", project), ("check", project, "--import-tools", "--no-import-tools")):
        done = llm_do(*words)
        assert done.returncode == 2 and done.stdout == "" and "Traceback" not in done.stderr


@pytest.mark.proves("CHECK-SHOWS")
def test_for_people_a_worker_is_a_few_lines_of_100_columns(project: Path) -> None:
    done = llm_do("check", project, "--import-tools")
    lines = done.stdout.splitlines()
    assert all(len(line) <= 100 for line in lines)
    at = lines.index("worker main  (entry, published as shop)")
    shown = [" ".join(line.split()) for line in lines[at + 1 : lines.index("", at)]]
    assert shown == [
        "Sells.",
        "file main.worker",
        "model scripted:s.yaml",
        "input text",
        "output text",
        "calls helper",
        "allow worker_call helper",
        "ask greet(name: string, times?: integer) -> [string]",
    ]


@pytest.mark.proves("CHECK-SHOWS")
def test_without_python_it_is_told_what_was_not_looked_at(project: Path) -> None:
    write(project, {"main.worker": worker("toolsets: {custom: all}")})
    assert "  Python     tools.py (not loaded: --import-tools)" in llm_do("check", project).stdout.splitlines()


@pytest.mark.proves("CHECK-SHOWS")
def test_nothing_that_a_file_says_reaches_the_terminal_raw(project: Path) -> None:
    write(project, {"main.worker": worker('description: "a \\e[31m red \\u202e one"')})
    shown = llm_do("check", project).stdout
    assert "\x1b" not in shown and "\u202e" not in shown and "\\x1b[31m" in shown


@pytest.mark.proves("CHECK-JSON")
def test_json_is_the_same_as_data(project: Path) -> None:
    done = llm_do("check", project, "--json", "--import-tools")
    found = json.loads(done.stdout)
    assert (found["ok"], found["verdict"], found["findings"]) == (True, "ok: 2 workers, 1 published", [])
    main = found["workers"][0]
    assert [one["name"] for one in main["functions"]] == ["worker_call", "greet"]
    write(project, {"main.worker": worker("modle: x")})
    done = llm_do("check", project, "--json")
    assert done.returncode == 2 and json.loads(done.stdout)["findings"][0]["line"] == 2


@pytest.mark.proves("CHECK-COMMANDS")
def test_check_is_an_option_too(project: Path) -> None:
    assert llm_do(project, "--check").stdout == llm_do("check", project).stdout
    assert json.loads(llm_do(project, "--check", "--json").stdout)["ok"] is True
    write(project, {"main.worker": worker("modle: x")})
    assert llm_do(project, "--check").returncode == 2
    assert llm_do("check", cwd=project).stdout.splitlines()[-1] == "1 error"
    assert llm_do("check", env={"LLM_DO_PROJECT": str(project)}).stdout.splitlines()[-1] == "1 error"


@pytest.mark.proves("CHECK-COMMANDS")
def test_looking_writes_nothing(project: Path) -> None:
    before = sorted(project.rglob("*"))
    llm_do("check", project, "--import-tools")
    llm_do(project, "--list-workers")
    assert sorted(project.rglob("*")) == before


@pytest.mark.proves("CLI-LIST-WORKERS")
def test_the_workers_are_listed_whole_or_not(project: Path) -> None:
    assert llm_do(project, "--list-workers").returncode == 0
    files = ("workers/bad.worker", "workers/twice.worker", "workers/twice/worker.worker", "workers/a b.worker")
    write(project, {**dict.fromkeys(files, worker()), files[0]: worker("modle: x")})
    done = llm_do(project, "--list-workers")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("llm-do: workers/a b.worker: 'a b.worker': names of workers have letters")
    assert done.stdout.splitlines() == [
        "main    main.worker  Sells.",
        "bad     workers/bad.worker  broken: workers/bad.worker:2:1: unknown key 'modle'; did you mean 'model'?",
        "helper  workers/helper.worker  Helps.",
        "twice   workers/twice.worker  broken: workers/twice.worker: more than one file for worker 'twice': "
        "workers/twice.worker, workers/twice/worker.worker; keep one",
    ]
    listed = {one["id"]: one for one in json.loads(llm_do(project, "--list-workers", "--json").stdout)}
    assert listed["main"] == {
        "id": "main",
        "path": "main.worker",
        "description": "Sells.",
        "entry": True,
        "published": "shop",
        "error": None,
    }
    assert listed["bad"]["error"].startswith("workers/bad.worker:2:1") and listed["helper"]["published"] is None
    assert llm_do("list", project).returncode == 2


@pytest.mark.proves("CLI-LIST")
def test_list_gives_workers_tools_and_what_is_broken_as_data(project: Path) -> None:
    write(project, {"workers/bad.worker": worker("modle: x")})
    found = json.loads(llm_do("list", project, "--json").stdout)
    assert found["project"] == "shop"
    assert [(one["id"], one["path"]) for one in found["workers"]] == [
        ("main", "main.worker"),
        ("helper", "workers/helper.worker"),
    ]
    assert {"name": "shop", "calls": "main"} in found["tools"]
    (broken,) = found["broken"]
    assert broken.startswith("workers/bad.worker:2:1: unknown key 'modle'")


@pytest.mark.proves("CHECK-LIGHT")
@pytest.mark.parametrize("command", ["check", "list"])
def test_looking_at_a_project_imports_neither_the_protocol_nor_a_model_sdk(project: Path, command: str) -> None:
    program = """
import sys
from llm_do_mcp.cli.run import main

sys.argv = ["llm-do", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    assert not end.code
print([name for name in ("mcp", "anthropic", "sqlite3") if name in sys.modules], "yaml" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program, command, project], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1:] == ["[] True"], done.stderr
