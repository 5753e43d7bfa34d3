"""The small files at the top: what git ignores, and the commands of the Makefile."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.examples.scripts import REPOSITORY

needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")


def _make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        ["make", *arguments], cwd=folder, env=environment, capture_output=True, encoding="utf-8", timeout=30
    )


@pytest.mark.proves("REPO-IGNORES")
def test_git_ignores_what_running_leaves_behind_and_keeps_the_decks(tmp_path: Path) -> None:
    for ignore in (".gitignore", "projects/pitchdeck_eval/evaluations/.gitignore"):
        (tmp_path / ignore).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / ignore, tmp_path / ignore)
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True, timeout=30)
    project = "projects/pitchdeck_eval"
    made = [f"{project}/evaluations/summary.md", f"{project}/.llm-do/runs.sqlite3", ".venv/bin/python"]
    made += [f"projects/notes/notes/{name}.md" for name in ("weekly", "inbox/apples")]  # by the README's own commands
    kept = [f"{project}/evaluations/.gitignore", f"{project}/input/tidewell.pdf", "llm_do_mcp/server.py"]

    checked = subprocess.run(
        ["git", "check-ignore", *made, *kept], cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=30
    )
    assert checked.stdout.splitlines() == made


@needs_make
@pytest.mark.proves("REPO-SETUP-ONCE")
def test_setup_does_nothing_once_it_is_done_until_the_requirements_change(tmp_path: Path) -> None:
    shutil.copy(REPOSITORY / "Makefile", tmp_path)
    stamp, requirements = tmp_path / ".venv" / ".installed", tmp_path / "pyproject.toml"
    stamp.parent.mkdir()
    stamp.touch()
    requirements.touch()

    os.utime(requirements, (1_000, 1_000))
    assert _make(tmp_path, "--question", "setup").returncode == 0
    os.utime(stamp, (500, 500))
    assert _make(tmp_path, "--question", "setup").returncode == 1


@pytest.mark.skipif(os.name == "nt", reason="CI runs on a POSIX system")
@pytest.mark.proves("REPO-CI")
@pytest.mark.parametrize(
    ("fails", "expected"), [("", ["check", "clients", "test", "conformance"]), ("check", ["check"])]
)
def test_ci_runs_the_commands_that_people_run_and_stops_at_the_first_failure(
    tmp_path: Path, fails: str, expected: list[str]
) -> None:
    recorder = tmp_path / "make"
    recorder.write_text(f'#!/bin/sh\necho "$@"\ntest "$1" != "{fails}"\n')
    recorder.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}

    result = subprocess.run(
        [REPOSITORY / ".ci" / "run"], cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8", timeout=30
    )
    assert result.stdout.split() == expected
    assert (result.returncode == 0) is (not fails)
