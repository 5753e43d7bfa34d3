"""`llm-do-mcp doctor`: a server started as a host does, and what is wrong with it in plain words."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from llm_do_mcp.cli.doctor import examine
from llm_do_mcp.cli.hosts import probe, start
from llm_do_mcp.runtime.store import Store
from tests.cli.commands import llm_do_mcp
from tests.runtime.holding import holding
from tests.serving.clients import everything, shop, worker


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
    before = everything(shop(tmp_path / "shop"))
    done = llm_do_mcp("doctor", "shop", home=home, cwd=tmp_path)
    assert (done.returncode, done.stderr, wrong(done.stdout)) == (0, "", [])
    lines = done.stdout.splitlines()
    assert lines[-1] == "nothing is wrong"
    assert any(line.startswith("ok     2025-11-25: ") for line in lines)
    assert any(line.startswith("ok     2026-07-28: ") for line in lines)
    assert everything(tmp_path / "shop") == before, "looking writes nothing"


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
    assert "without ANTHROPIC_API_KEY among its variables" in wrong(no_key.stdout)[0], "a host would not hand it on"
    blank = llm_do_mcp("doctor", tmp_path, "--env", "ANTHROPIC_API_KEY= ", home=home, **set_here)
    assert wrong(blank.stdout) == wrong(no_key.stdout)
    nowhere = {**set_here, "ANTHROPIC_BASE_URL": "http://127.0.0.1:99999"}
    no_server = llm_do_mcp("doctor", tmp_path, home=home, **nowhere)
    assert wrong(no_server.stdout)[0].startswith("ANTHROPIC_BASE_URL: 'http://127.0.0.1:99999' is no address")
    (tmp_path / "project.yaml").write_text('{"name": "shop", "base_url": "http://127.0.0.1:8000"}')
    assert llm_do_mcp("doctor", tmp_path, home=home, **nowhere).returncode == 0, "the project names another address"
    (tmp_path / "project.yaml").write_text('{"name": "shop"}')
    given = llm_do_mcp("doctor", tmp_path, "--env", "ANTHROPIC_API_KEY", home=home, **set_here)
    assert given.returncode == 0 and "sk-secret" not in given.stdout
    gone = llm_do_mcp("doctor", tmp_path, "--env", "LLM_DO_MODEL=scripted:gone.yaml", home=home)
    assert wrong(gone.stdout) == ["model 'scripted:gone.yaml': there is no script gone.yaml"] and gone.returncode == 1
    lent = llm_do_mcp("doctor", tmp_path, "--env", "LLM_DO_MODEL=sampling", home=home)
    assert lent.returncode == 0 and "no model is called" not in lent.stdout


@pytest.mark.proves("DOCTOR-WRONG")
def test_what_is_wrong_with_several_workers_is_told_once(tmp_path: Path, home: Path) -> None:
    project = shop(tmp_path / "shop", files={f"workers/{name}.worker": worker() for name in ("a", "b")})
    (project / "project.yaml").write_text('{"name": "shop", "exports": ["main", "a", "b"]}')
    [none] = wrong(llm_do_mcp("doctor", project, home=home).stdout)
    assert none.startswith("worker main has no model; ") and none.endswith(" (nor 2 others: a, b)")
    named = llm_do_mcp("doctor", project, home=home, LLM_DO_MODEL="anthropic:claude-haiku-4-5")
    assert wrong(named.stdout) == [
        "worker main cannot call anthropic:claude-haiku-4-5 without ANTHROPIC_API_KEY among its variables "
        "(nor 2 others: a, b)"
    ]
    unknown = llm_do_mcp("doctor", project, home=home, LLM_DO_MODEL="nope")
    assert len(wrong(unknown.stdout)) == 1 and wrong(unknown.stdout)[0].startswith("model 'nope' ")


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
def test_a_server_is_started_in_the_folder_that_its_entry_names(tmp_path: Path, home: Path) -> None:
    project = shop(tmp_path / "shop")
    command = start.command("shop")
    done = looked_at(project, entered(home, command, cwd=str(tmp_path), disabled=True), home)
    assert done.returncode == 0 and not wrong(done.stdout)
    assert "note   the host's file has it switched off" in done.stdout
    missing = looked_at(project, entered(home, command, cwd=str(tmp_path / "gone")), home)
    assert wrong(missing.stdout)[0] == f"2025-11-25: {command[0]} cannot be started: there is no folder {tmp_path}/gone"
    relative = looked_at(project, entered(home, start.command(str(project)), cwd="here"), home)
    assert relative.returncode == 0 and "note   `cwd` 'here' is not absolute" in relative.stdout


@pytest.mark.proves("DOCTOR-WRONG")
def test_what_only_fails_when_a_worker_is_called_is_told(tmp_path: Path, home: Path) -> None:
    project = shop(tmp_path / "shop")
    (project / "project.yaml").write_text('{"name": "shop", "sandbox": {"paths": {"notes": "ro:./notes"}}}')
    lost = llm_do_mcp("doctor", project, "--env", "LLM_DO_MODEL=replay:nope", home=home)
    assert wrong(lost.stdout) == ["model 'replay:nope': no run of that name is recorded"]
    assert "note   sandbox.paths.notes: the folder does not exist yet; make it" in lost.stdout
    (project / ".llm-do").mkdir()
    key = project / ".llm-do" / "request-state.key"
    key.write_text("0" * 64)
    key.chmod(0o644)
    shown = llm_do_mcp("doctor", project, "--env", "LLM_DO_MODEL=sampling", home=home)
    assert [line.split(";")[0] for line in wrong(shown.stdout)] == [
        f"{key}: others can read or write the key of request states"
    ]
    (project / ".llm-do" / "runs.sqlite3").write_text("garbage")
    key.chmod(0o600)
    spoilt = llm_do_mcp("doctor", project, "--env", "LLM_DO_MODEL=sampling", home=home)
    assert wrong(spoilt.stdout) == [
        f"{project}/.llm-do/runs.sqlite3: the record of runs cannot be opened: file is not a database; "
        "move it away, or name another folder with --state-dir"
    ]


@pytest.mark.proves("DOCTOR-RUNS")
@pytest.mark.parametrize("recorded", [False, True], ids=["no record", "a record"])
def test_runs_that_could_not_be_recorded_are_told_before_one_begins(tmp_path: Path, home: Path, recorded: bool) -> None:
    project = shop(tmp_path / "shop")
    (project / ".llm-do").mkdir()
    if recorded:
        with closing(Store(project / ".llm-do" / "runs.sqlite3")) as store:
            assert asyncio.run(store.runs()) == []
    with holding(project / ".llm-do" / "runs.lock"):
        before = everything(project)
        done = llm_do_mcp("doctor", project, home=home)
        assert everything(project) == before
    assert wrong(done.stdout) == [
        f"{project}/.llm-do/runs.sqlite3: the record of runs cannot be opened: another process has held runs.lock "
        "for 3 s; end that process, or name another folder with --state-dir"
    ]


@pytest.mark.proves("DOCTOR-WRONG")
@pytest.mark.skipif(sys.platform != "linux", reason="needs a folder in which nobody can make anything, root included")
def test_where_nothing_can_be_made_no_runs_are_recorded(tmp_path: Path, home: Path) -> None:
    done = llm_do_mcp("doctor", shop(tmp_path / "shop"), "--", "--state-dir", "/proc/runs", home=home)
    [said] = wrong(done.stdout)
    assert said.startswith("runs cannot be recorded in /proc/runs: nothing can be made in /proc (")


@pytest.mark.proves("DOCTOR-HOST")
@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"env": 5}, "`env` is no object"),
        ({"env": {"A=B": "x"}}, "'A=B' is not the name of a variable"),
        ({"args": 5}, "`args` is no list"),
        ({"command": ""}, "`command` is no text"),
        ({"cwd": 5}, "`cwd` is no text"),
    ],
)
def test_an_entry_that_no_host_can_start_is_one_line(
    tmp_path: Path, home: Path, keys: dict[str, object], said: str
) -> None:
    project = shop(tmp_path / "shop")
    done = looked_at(project, entered(home, start.command(str(project)), **keys), home)
    assert (done.returncode, done.stdout) == (2, "") and said in done.stderr and done.stderr.count("\n") == 1


def wrongs(command: list[str]) -> list[str]:
    """What is wrong with a program that is no server of ours."""
    return [finding.text for finding in examine("x", start.Start(command)) if finding.kind == "wrong"]


@pytest.mark.proves("DOCTOR-WRONG")
def test_what_no_system_can_start_is_called_that() -> None:
    found = wrongs([sys.executable, "a\0b"])
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
    found = wrongs([sys.executable, str(program)])
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
    said = wrongs([sys.executable, str(program)])
    assert said == [
        "2025-11-25: on its output, where only messages may be: 'welcome'",
        "2026-07-28: on its output, where only messages may be: 'welcome'",
        "out of paper",
    ]


FLOODS = {
    "lines": ("while True: print('y')", "it writes without end"),
    "one line": ("while True: sys.stdout.write('y' * 1000)", "it writes without end"),
    "nothing": ("time.sleep(600)", "no answer to initialize within "),
    "errors": ("while True: print('x' * 100, file=sys.stderr)", "no answer to initialize within "),
    "what it starts": (
        "subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])",
        "no answer to initialize within ",
    ),
    "notifications": (
        "while True: print(json.dumps({'jsonrpc': '2.0', 'method': 'x'}), flush=True), time.sleep(0.002)",
        "no answer to initialize within ",
    ),
}


@pytest.mark.proves("DOCTOR-BOUNDED")
@pytest.mark.parametrize("flood", sorted(FLOODS))
def test_a_program_that_never_answers_is_soon_done_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flood: str
) -> None:
    line, said = FLOODS[flood]
    program = tmp_path / "flood.py"
    program.write_text(f"import json, subprocess, sys, time\n{line}\n")
    monkeypatch.setattr(probe, "PATIENCE_S", 0.5)
    monkeypatch.setattr(probe, "ROOM", 1_000_000)
    began = time.monotonic()
    heard = probe.speak(start.Start([sys.executable, str(program)]), probe.HANDSHAKE)
    assert heard.problem.startswith(said) and time.monotonic() - began < probe.END_S
    assert heard.silent == ("no answer" in said)
    assert len(heard.strays) <= probe.MOST_LINES and len(heard.errors) <= probe.MOST_LINES


@pytest.mark.proves("DOCTOR-BOUNDED")
def test_silence_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "PATIENCE_S", 0.2)
    assert wrongs([sys.executable, "-c", "import time; time.sleep(600)"]) == [
        "2025-11-25: no answer to initialize within 0.2 s"
    ]


@pytest.mark.proves("DOCTOR-WRONG")
def test_what_a_program_writes_is_shown_escaped_and_of_much_the_end(tmp_path: Path, home: Path) -> None:
    program = tmp_path / "loud.py"
    lines = "".join(f"print('line {number}', file=sys.stderr)\n" for number in range(50))
    program.write_text(f"import sys\n{lines}print('\\x1b[31mred', file=sys.stderr)\n")
    done = looked_at(shop(tmp_path / "shop"), entered(home, [sys.executable, str(program)]), home)
    notes = [line.split(maxsplit=1)[1] for line in done.stdout.splitlines() if line.startswith("note ")]
    assert notes == [*(f"line {number}" for number in range(41, 50)), "\\x1b[31mred"]


@pytest.mark.proves("DOCTOR-WRONG")
def test_an_entry_that_serves_over_http_is_told_so(tmp_path: Path, home: Path) -> None:
    project = shop(tmp_path / "shop")
    done = looked_at(project, entered(home, [*start.command(str(project)), "--http", "127.0.0.1:0"]), home)
    assert [line.split(":")[0] for line in wrong(done.stdout)] == ["--http"]
