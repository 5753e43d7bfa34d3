"""The command lines that people are told to type: pasted into a shell elsewhere, each does what it says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from llm_do_mcp.project.hosting import PythonOptions
from llm_do_mcp.project.load import load_project
from llm_do_mcp.runtime.hint import of_project
from tests.cli.commands import LLM_DO, environment, llm_do
from tests.serving.clients import Wire, command, shop, turn, worker, write

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="lines are for a POSIX shell here"),
    pytest.mark.proves("HINTS"),
]


def paste(line: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Type a line that begins with `llm-do` into a shell."""
    program, rest = line.partition(" ")[::2]
    assert program == "llm-do", line
    shell = f'llm_do() {{ "{LLM_DO[0]}" -m {LLM_DO[2]} "$@"; }}; llm_do {rest}'
    return subprocess.run(
        shell, shell=True, cwd=cwd, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip


def only(pattern: str, text: str) -> str:
    """The one place where a text has this."""
    (found,) = re.findall(pattern, text, re.MULTILINE)
    return str(found)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A shop in a folder whose name a shell has to be told with care, and a worker of its own beside it."""
    alone = worker(
        {
            "model": "scripted:model.py",
            "toolsets": {"filesystem": {}},
            "sandbox": {"paths": {"out": {"root": "./out", "mode": "rw"}}},
        }
    )
    root = shop(tmp_path / "it's a $HOME; shop", turn(write("out/a.txt")), files={"workers/alone.worker": alone})
    for name in ("model.py", "turns.json"):
        (root / "workers" / name).write_text((root / name).read_text().replace('"main"', '"alone"'))
    return root


WAYS: dict[str, tuple[str, list[str]]] = {
    "its folder": (".", []),
    "a path from elsewhere": ("..", ["ROOT"]),
    "a worker's file": (".", ["main.worker"]),
    "a worker's file without its project": ("..", ["ROOT/workers/alone.worker", "--no-project"]),
    "another state folder": ("..", ["ROOT", "--state-dir", "some state"]),
    "libraries, and modules by name": ("..", ["ROOT", "--lib", "more libs", "--allow-module-imports"]),
}


@pytest.mark.parametrize(("where", "given"), WAYS.values(), ids=WAYS)
def test_a_run_that_was_left_goes_on_with_the_line_that_is_shown(
    project: Path, tmp_path: Path, where: str, given: list[str]
) -> None:
    (tmp_path / "more libs").mkdir()
    words = [word.replace("ROOT", project.name) for word in given] or ["."]
    left = llm_do(words[0], "go", *words[1:], cwd=project / where)
    assert left.returncode == 4, left.stderr
    resume = only("in a terminal: (llm-do .*)", left.stderr)
    again = paste(resume, Path("/"))
    assert again.returncode == 4 and resume in again.stderr, again.stderr
    trace = resume.replace("runs resume", "trace")
    listed = paste(re.sub(r"runs resume \w+", "runs", resume), Path("/"))
    assert only("→ (llm-do .*)", listed.stdout) == resume
    done = paste(f"{resume} --approve-all", Path("/"))
    assert done.returncode == 0, done.stderr
    assert "create the file out/a.txt" in paste(trace, Path("/")).stdout


def test_a_run_that_is_not_there_names_the_line_that_lists_those_there_are(project: Path) -> None:
    left = llm_do(project, "go")
    assert left.returncode == 4
    for arguments in (["trace", "nonesuch"], ["approve", "nonesuch"], ["approvals", "lock", "nonesuch"]):
        told = llm_do(*arguments, "--project", project)
        assert told.returncode == 1
        assert " waiting " in paste(only("to list them: (llm-do .*)", told.stderr), Path("/")).stdout


def _call(wire: Wire, tool: str, **arguments: Any) -> tuple[str, str]:
    result = wire.request("tools/call", {"name": tool, "arguments": arguments})
    return result["content"][0]["text"], result.get("_meta", {}).get("llm-do/run", {}).get("id", "")


def test_what_a_client_is_told_works_in_any_terminal(project: Path) -> None:
    wire = Wire(command(project))
    try:
        wire.open()
        told, run = _call(wire, "shop", input="go")
        approve = only("in a terminal with: (llm-do .*)", told)
        waits = paste(approve, Path("/"))
        assert waits.returncode == 4 and f"run {run}\nApproval needed" in waits.stdout
        listed = llm_do("runs", "--project", project).stdout
        assert only("→ (llm-do .*)", listed) == approve, "a run that is driven cannot be resumed, but answered"
    finally:
        wire.close()
    after = Wire(command(project, "--call-within", "0.5"))
    try:
        after.open()
        told, _ = _call(after, "run_wait", run_id=run)
    finally:
        after.close()
    assert only("in a terminal with: (llm-do .*)", told) == approve, "it goes on there"
    left = paste(only("→ (llm-do .*)", llm_do("runs", "--project", project).stdout) + " --approve-all", Path("/"))
    assert left.returncode == 0 and (project / "out/a.txt").exists()


def test_a_lock_that_is_missing_is_written_with_the_line_that_is_shown(project: Path) -> None:
    assert llm_do(project, "go", "--approve-all", "--json").returncode == 0
    (run,) = json.loads(llm_do("runs", "--json", "--project", project).stdout)
    told = llm_do(project, "go", "--approvals", "locked")
    lock = only("written with: (llm-do .*)", told.stderr).replace("RUN", run["id"])
    assert paste(lock, Path("/")).returncode == 0
    assert llm_do(project, "go", "--approvals", "locked").returncode == 0


def test_a_line_holds_all_that_names_the_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.parent)
    Path("some libs").mkdir()
    file = project / "workers" / "alone.worker"
    python = PythonOptions(imported=False, module_imports=True)
    hint = of_project(load_project(file, no_project=True, libs=["some libs"], python=python), "~/state")
    assert hint("runs").endswith(
        f" --no-project --lib '{project.parent / 'some libs'}' --no-import-tools --allow-module-imports"
        f" --state-dir {Path.home() / 'state'}"
    )
