"""`llm-do-mcp doctor`: a server started as a host does, and what is wrong with it in plain words."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from llm_do_mcp.cli.doctor import examine
from llm_do_mcp.cli.hosts import start
from tests.cli.commands import llm_do_mcp
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
    gone = llm_do_mcp("doctor", tmp_path, "--env", "LLM_DO_MODEL=scripted:gone.yaml", home=home)
    assert wrong(gone.stdout) == ["model 'scripted:gone.yaml': there is no script gone.yaml"] and gone.returncode == 1
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


def entered(home: Path, command: list[str], /, **keys: object) -> Path:
    """A host's file with one server, `shop`."""
    place = home / "mcp.json"
    entry = {"command": command[0], "args": command[1:], **keys}
    place.write_text(json.dumps({"mcpServers": {"shop": entry}}))
    return place


def looked_at(project: Path, place: Path, home: Path) -> subprocess.CompletedProcess[str]:
    return llm_do_mcp("doctor", project, "--host", "cursor", "--file", place, home=home)


@pytest.mark.proves("DOCTOR-WRAPPED")
@pytest.mark.parametrize("wrapper", [["/usr/bin/env", "LLM_DO_MODEL=scripted:nope.yaml"], ["/usr/bin/nice", "-n", "1"]])
def test_what_another_program_starts_is_looked_at_as_well(tmp_path: Path, home: Path, wrapper: list[str]) -> None:
    project = shop(tmp_path / "shop")
    (project / "project.yaml").write_text('{"name": "shop"}')
    env = {"LLM_DO_MODEL": "scripted:gone.yaml"}
    done = looked_at(project, entered(home, [*wrapper, *start.command(str(project))], env=env), home)
    script = "nope.yaml" if "nope" in wrapper[-1] else "gone.yaml"
    assert wrong(done.stdout) == [f"model 'scripted:{script}': there is no script {script}"] and done.returncode == 1


@pytest.mark.proves("DOCTOR-WRAPPED")
@pytest.mark.parametrize("line", ["exec {}", "{} && true # llm-do-mcp"])
def test_where_the_command_does_not_tell_what_is_served_that_is_said(tmp_path: Path, home: Path, line: str) -> None:
    project = shop(tmp_path / "shop")
    command = ["/bin/sh", "-c", line.format(shlex.join(start.command(str(project))))]
    done = looked_at(project, entered(home, command), home)
    assert (done.returncode, done.stderr, wrong(done.stdout)) == (0, "", [])
    assert "note   the command does not tell what is served: " in done.stdout


@pytest.mark.proves("DOCTOR-HOST")
def test_paths_are_those_of_the_server_and_not_of_the_terminal(tmp_path: Path, home: Path) -> None:
    project = shop(tmp_path / "shop")
    place = entered(home, [*start.command(str(project)), "--state-dir", "no-such-folder/runs"])
    done = llm_do_mcp("doctor", project, "--host", "cursor", "--file", place, home=home, cwd=tmp_path)
    assert "note   --state-dir no-such-folder/runs is not absolute" in done.stdout
    assert f"{os.sep}no-such-folder" in done.stdout and str(tmp_path / "no-such-folder") not in done.stdout


@pytest.mark.proves("DOCTOR-HOST")
@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"env": 5}, "`env` is no object"),
        ({"env": {"A=B": "x"}}, "'A=B' is not the name of a variable"),
        ({"args": 5}, "`args` is no list"),
        ({"command": ""}, "`command` is no text"),
    ],
)
def test_an_entry_that_no_host_can_start_is_one_line(
    tmp_path: Path, home: Path, keys: dict[str, object], said: str
) -> None:
    project = shop(tmp_path / "shop")
    done = looked_at(project, entered(home, start.command(str(project)), **keys), home)
    assert (done.returncode, done.stdout) == (2, "") and said in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.proves("DOCTOR-WRONG")
def test_what_no_system_can_start_is_called_that(tmp_path: Path) -> None:
    found = [finding.text for finding in examine("x", [sys.executable, "a\0b"], {}) if finding.kind == "wrong"]
    assert len(found) == 2 and found[0] == f"2025-11-25: {sys.executable} cannot be started: embedded null byte"


@pytest.mark.proves("DOCTOR-WRONG")
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("print(line, end='', flush=True)", "it is no MCP server: it only says again what it is told"),
        ("say(result=5)", "initialize: its answer has neither a result nor an error"),
        ("say(error='no')", "initialize: its answer has neither a result nor an error"),
        ("say(error={'code': 1, 'message': 'no'})", "initialize: no"),
        (
            "say(result={'protocolVersion': '2025-11-25', 'capabilities': {'tools': {}}, 'tools': [5]})",
            "tools/list: its answer is no list of tools with names",
        ),
    ],
)
def test_what_is_no_mcp_server_is_called_that(tmp_path: Path, answer: str, said: str) -> None:
    program = tmp_path / "other.py"
    program.write_text(
        "import json, sys\n"
        "def say(**what):\n"
        "    asked = json.loads(line)\n"
        "    if 'id' in asked:\n"
        "        print(json.dumps({'jsonrpc': '2.0', 'id': asked['id'], **what}), flush=True)\n"
        f"for line in sys.stdin:\n    {answer}\n"
    )
    found = [finding.text for finding in examine("x", [sys.executable, str(program)], {}) if finding.kind == "wrong"]
    assert found[0] == f"2025-11-25: {said}"


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
