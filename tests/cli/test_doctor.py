"""`llm-do-mcp doctor`: a server started as a host does, and what is wrong with it in plain words."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from llm_do_mcp.cli.doctor import examine
from tests.cli.test_install import llm_do_mcp
from tests.serving.clients import shop, worker


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def wrong(output: str) -> list[str]:
    """What a report says is wrong."""
    return [line.split(maxsplit=1)[1] for line in output.splitlines() if line.startswith("wrong ")]


@pytest.mark.proves("DOCTOR-WHOLE")
def test_a_whole_project_is_called_that(tmp_path: Path, home: Path) -> None:
    shop(tmp_path / "shop")
    done = llm_do_mcp("doctor", "shop", home=home, cwd=tmp_path)
    assert (done.returncode, done.stderr, wrong(done.stdout)) == (0, "", [])
    lines = done.stdout.splitlines()
    assert lines[-1] == "nothing is wrong"
    assert any(line.startswith("ok     2025-11-25: ") for line in lines)
    assert any(line.startswith("ok     2026-07-28: ") for line in lines)
    assert not (tmp_path / "shop" / ".llm-do").exists(), "looking writes nothing"


@pytest.mark.proves("DOCTOR-WRONG")
def test_what_keeps_a_server_from_starting_is_its_own_line(tmp_path: Path, home: Path) -> None:
    shop(tmp_path)
    (tmp_path / "project.yaml").write_text("nmae: shop\n")
    done = llm_do_mcp("doctor", tmp_path, home=home)
    assert done.returncode == 1
    [line] = wrong(done.stdout)
    assert line.startswith("project.yaml:1:1: ") and done.stdout.endswith("1 thing is wrong\n")


@pytest.mark.proves("DOCTOR-WRONG")
def test_a_broken_worker_is_named_and_the_others_are_served(tmp_path: Path, home: Path) -> None:
    files = {"workers/bad.worker": worker({"nope": 1}), "workers/good.worker": worker()}
    shop(tmp_path, files=files, exports=["main", "bad", "good"])
    done = llm_do_mcp("doctor", tmp_path, home=home)
    [line] = wrong(done.stdout)
    assert line.startswith("not served: workers/bad.worker:2:2: ") and "tools" in done.stdout


@pytest.mark.proves("DOCTOR-WRONG")
def test_a_model_that_could_not_be_called_is_told_before_it_is(tmp_path: Path, home: Path) -> None:
    shop(tmp_path)
    (tmp_path / "project.yaml").write_text('{"name": "shop"}')
    none = llm_do_mcp("doctor", tmp_path, home=home)
    assert wrong(none.stdout)[0].startswith("worker main has no model; name one in its file")
    set_here = {"LLM_DO_MODEL": "anthropic:claude-haiku-4-5", "ANTHROPIC_API_KEY": "sk-secret"}
    no_key = llm_do_mcp("doctor", tmp_path, home=home, **set_here)
    assert "cannot be called without ANTHROPIC_API_KEY" in wrong(no_key.stdout)[0], "a host would not hand it on"
    given = llm_do_mcp("doctor", tmp_path, "--env", "ANTHROPIC_API_KEY", home=home, **set_here)
    assert given.returncode == 0 and "sk-secret" not in given.stdout
    lent = llm_do_mcp("doctor", tmp_path, "--env", "LLM_DO_MODEL=sampling", home=home)
    assert lent.returncode == 0 and "no model is called" not in lent.stdout


@pytest.mark.proves("DOCTOR-HOST")
def test_what_a_host_has_in_its_file_is_what_is_started(tmp_path: Path, home: Path) -> None:
    project = shop(tmp_path / "shop")
    assert llm_do_mcp("install", "claude-desktop", project, home=home).returncode == 0
    done = llm_do_mcp("doctor", project, "--host", "claude-desktop", home=home)
    assert done.returncode == 0, done.stdout
    [place] = home.rglob("claude_desktop_config.json")
    data = json.loads(place.read_text())
    data["mcpServers"]["shop"]["command"] = "/no/such/program"
    place.write_text(json.dumps(data))
    broken = llm_do_mcp("doctor", project, "--host", "claude-desktop", home=home)
    assert wrong(broken.stdout)[0].endswith("/no/such/program cannot be started: No such file or directory")
    missing = llm_do_mcp("doctor", project, "--host", "claude-desktop", "--name", "other", home=home)
    assert missing.returncode == 2 and "no server 'other'" in missing.stderr and "shop" in missing.stderr


BABBLER = """\
import json, sys
print("welcome")
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method = message["method"]
    if method == "tools/list":
        sys.exit(print("llm-do-mcp: out of paper", file=sys.stderr))
    result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


@pytest.mark.proves("DOCTOR-WRONG")
def test_a_server_that_prints_and_dies_is_described(tmp_path: Path) -> None:
    program = tmp_path / "babbler.py"
    program.write_text(BABBLER)
    said = [finding.text for finding in examine("x", [sys.executable, str(program)], {}) if finding.kind == "wrong"]
    assert said == [
        "2025-11-25: on its output, where only messages may be: 'welcome'",
        "2026-07-28: on its output, where only messages may be: 'welcome'",
        "out of paper",
    ]
