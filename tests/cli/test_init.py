"""`llm-do init`: what it makes passes `check`, runs at once, and replaces nothing."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from llm_do_mcp.cli.init import TEMPLATES
from tests.cli.commands import llm_do

WRITTEN = {"minimal": "summary.md", "pipeline": "report.md", "research-agent": "report.md"}


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.proves("INIT-RUNS")
@pytest.mark.parametrize("template", sorted(TEMPLATES))
def test_what_is_made_passes_check_and_runs(tmp_path: Path, template: str) -> None:
    made = llm_do("init", "my-project", "--template", template, cwd=tmp_path)
    assert (made.returncode, made.stderr) == (0, "")
    folder = tmp_path / "my-project"
    assert {"main.worker", ".gitignore", "output/.gitkeep"} <= files(folder)
    assert ".llm-do/" in (folder / ".gitignore").read_text().splitlines()

    checked = json.loads(llm_do("check", folder, "--import-tools", "--json").stdout)
    assert checked["findings"] == [] and checked["ok"] and checked["project"]["name"] == "my-project"

    # The commands that it prints, word for word.
    _, _, check, run, serve = made.stdout.splitlines()
    words = [shlex.split(line, comments=True) for line in (check, run, serve)]
    assert words[0] == ["llm-do", "check", "my-project"] and words[2] == ["llm-do-mcp", "my-project"]
    done = llm_do(*words[1][1:], "--approve-all", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"output/{WRITTEN[template]}" in done.stdout and "A script wrote this" in done.stdout
    assert "no model was called" in done.stderr
    assert "no model was called" in (folder / "output" / WRITTEN[template]).read_text()


@pytest.mark.proves("INIT-LAYOUT")
def test_the_layouts_are_those_that_are_documented(tmp_path: Path) -> None:
    llm_do("init", "one", cwd=tmp_path)
    assert {path.name for path in (tmp_path / "one").iterdir()} == {
        *("main.worker", "input", "output"),
        *(".gitignore", "scripted"),
    }
    llm_do("init", "two", "--template", "pipeline", cwd=tmp_path)
    assert {"main.worker", "project.yaml", *(f"workers/stage_{n}.worker" for n in (1, 2, 3))} <= files(tmp_path / "two")
    assert (tmp_path / "two" / "input").is_dir() and (tmp_path / "two" / "output").is_dir()


@pytest.mark.proves("INIT-LAYOUT")
def test_the_templates_are_listed(tmp_path: Path) -> None:
    listed = llm_do("init", "--list-templates", cwd=tmp_path)
    assert [line.split()[0] for line in listed.stdout.splitlines()] == ["minimal", "pipeline", "research-agent"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.proves("INIT-REFUSED")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "name the new project: llm-do init my-project"),
        (["full"], "full' is there already, and not empty; choose another name"),
        (["file"], "file' is there already"),
        (["a b"], "'a b' cannot name a project; use letters, digits, - and _"),
        (["-x"], "unrecognized arguments"),
        ([".hidden"], "'.hidden' cannot name a project"),
        (["ä"], "'ä' cannot name a project"),
        (["x" * 61], "cannot name a project"),
        (["te"], "'te' cannot name a project: 'te' is another tool; choose another name"),
        (["deep/Run-Wait"], "'Run-Wait' cannot name a project: 'run_wait' is another tool"),
        (["run_approve"], "'run_approve' cannot name a project: "),
        (["files_input_list"], "'files_input_list' cannot name a project: "),
        (["new", "--template", "pipelin"], "there is no template 'pipelin'; did you mean 'pipeline'?"),
        (["new", "--template", "../minimal"], "there is no template '../minimal'"),
    ],
)
def test_what_cannot_be_made_is_one_line_and_changes_nothing(tmp_path: Path, arguments: list[str], words: str) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "main.worker").write_text("mine")
    (tmp_path / "file").write_text("mine")
    done = llm_do("init", *arguments, cwd=tmp_path)
    assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr
    assert files(tmp_path) == {"full/main.worker", "file"}
    assert (tmp_path / "full" / "main.worker").read_text() == "mine"


@pytest.mark.proves("INIT-REFUSED")
def test_an_empty_folder_and_one_further_down_can_be_filled(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert llm_do("init", ".", cwd=tmp_path / "empty").returncode == 0
    assert (tmp_path / "empty" / "main.worker").exists()
    assert llm_do("init", os.path.join("new", "deep"), cwd=tmp_path).returncode == 0
    assert (tmp_path / "new" / "deep" / "main.worker").exists()


@pytest.mark.proves("INIT-RUNS")
def test_the_templates_are_in_the_distribution() -> None:
    """Files that git ignores are in no wheel; nor are folders that have none."""
    import llm_do_mcp.cli.init as module

    folder = Path(module.__file__).parent / "templates"
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "."],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git repository")
    assert set(listed.stdout.splitlines()) == {name for name in files(folder) if "__pycache__" not in name}
