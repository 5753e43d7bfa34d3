"""Whatever is wrong with a command line, a project or its state: one line that says what, and the exit code for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from llm_do_mcp.errors import UsageError
from llm_do_mcp.runtime.state import KEYS, make_private
from tests.cli.commands import LLM_DO, SERVE, environment, llm_do
from tests.project.conftest import worker, write
from tests.serving.clients import Wire, shop

COMMANDS = {
    "run": ["PROJECT", "hi", "--approve-all"],
    "list": ["list", "PROJECT"],
    "policy": ["list", "PROJECT", "--policy"],
    "demo": ["demo", "--yes", "--project", "PROJECT"],
    "runs": ["runs", "--project", "PROJECT"],
    "resume": ["runs", "resume", "x", "--project", "PROJECT"],
    "prune": ["runs", "prune", "--project", "PROJECT"],
    "trace": ["trace", "x", "--project", "PROJECT"],
    "approve": ["approve", "--project", "PROJECT"],
    "lock": ["approvals", "lock", "x", "--project", "PROJECT"],
    "lock libraries": ["lib", "lock", "PROJECT"],
    "serve": ["PROJECT"],
}
HAVE_STATE = [name for name in COMMANDS if name not in ("list", "policy", "demo", "lock libraries")]


def _run(name: str, project: Path, *more: str) -> subprocess.CompletedProcess[str]:
    words = [word.replace("PROJECT", str(project)) for word in COMMANDS[name]]
    if name != "serve":
        return llm_do(*words, *more)
    return subprocess.run(
        [*SERVE, *words, *more],
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def _one_line(ran: subprocess.CompletedProcess[str], code: int, words: str) -> None:
    assert (ran.returncode, ran.stdout) == (code, ""), ran.stderr
    assert ran.stderr.count("\n") == 1 and words in ran.stderr, ran.stderr
    assert ran.stderr.startswith(("llm-do", "llm-do-mcp"))


NO_PROJECT: dict[str, tuple[dict[str, str], str]] = {
    "nothing": ({}, "there is no '{}'"),
    "a file": ({"project": "text"}, "is neither a folder nor a worker's file"),
    "an empty folder": ({"project/notes.txt": ""}, "no project in '{}'"),
    "a broken manifest": ({"project/project.yaml": "name: ["}, "project.yaml:2:1: "),
}


@pytest.mark.proves("ERROR-LINE", "CLI-DEMO")
@pytest.mark.parametrize(
    ("case", "name"),
    [(case, name) for case in NO_PROJECT for name in (COMMANDS if case == "nothing" else ("run", "demo", "serve"))],
)
def test_what_is_no_project_is_told_in_one_line(tmp_path: Path, case: str, name: str) -> None:
    files, words = NO_PROJECT[case]
    write(tmp_path, files)
    _one_line(_run(name, tmp_path / "project"), 2, words.format(tmp_path / "project"))


@pytest.mark.proves("ERROR-LINE", "CLI-DEMO")
@pytest.mark.parametrize("name", ["run", "demo"])
def test_a_broken_entry_worker_is_told_in_one_line(tmp_path: Path, name: str) -> None:
    write(tmp_path, {"main.worker": worker("modle: x")})
    _one_line(_run(name, tmp_path), 2, "main.worker:2:1: unknown key 'modle'; did you mean 'model'?")


@pytest.mark.proves("CLI-LIST")
@pytest.mark.parametrize("more", [(), ("--policy",), ("--json",), ("--policy", "--json")])
def test_a_list_with_broken_workers_shows_the_others_and_exits_2(tmp_path: Path, more: tuple[str, ...]) -> None:
    write(tmp_path, {"main.worker": worker("description: whole"), "workers/bad.worker": worker("modle: x")})
    ran = llm_do("list", tmp_path, *more)
    assert (ran.returncode, ran.stderr) == (2, "")
    assert "main" in ran.stdout
    assert "workers/bad.worker:2:1: unknown key 'modle'" in ran.stdout


@pytest.mark.proves("CLI-LIST")
@pytest.mark.parametrize("more", [(), ("--policy",), ("--json",), ("--policy", "--json")])
def test_a_list_names_workers_whose_functions_cannot_be_had(tmp_path: Path, more: tuple[str, ...]) -> None:
    write(tmp_path, {"main.worker": worker(), "workers/bad.worker": worker("toolsets: {custom: {nope: {}}}")})
    ran = llm_do("list", tmp_path, *more)
    assert (ran.returncode, ran.stderr) == (2, "")
    assert "worker bad: there is no tool 'nope': no tool module was found" in ran.stdout


@pytest.mark.proves("ERROR-STATE")
@pytest.mark.parametrize(("place", "name"), [*(("file", name) for name in HAVE_STATE), ("file/state", "run")])
def test_a_state_folder_that_cannot_be_one_is_told_in_one_line(tmp_path: Path, name: str, place: str) -> None:
    root = shop(tmp_path / "shop")
    (tmp_path / "file").write_text("")
    words = f"runs cannot be recorded in {tmp_path / place}: {tmp_path / 'file'} is no folder; name another"
    _one_line(_run(name, root, "--state-dir", str(tmp_path / place)), 2, words)


@pytest.mark.proves("ERROR-STATE")
def test_a_file_in_the_place_of_the_state_folder_is_told_in_one_line(tmp_path: Path) -> None:
    root = shop(tmp_path / "shop", files={".llm-do": ""})
    _one_line(_run("run", root), 2, f"runs cannot be recorded in {root / '.llm-do'}")
    _one_line(_run("run", root, "--state-dir", ""), 2, "--state-dir: name a folder")
    (state := tmp_path / "state" / KEYS).mkdir(parents=True)
    _one_line(_run("serve", root, "--state-dir", str(state.parent)), 2, "is no file that can be read")


@pytest.mark.proves("ERROR-STATE")
@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a folder in which nothing can be made")
def test_what_shows_only_when_the_folder_is_made_is_an_error_of_the_call(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"runs cannot be recorded in /proc/none: No such file"):
        make_private(Path("/proc/none"))
    root = shop(tmp_path)
    _one_line(_run("run", root, "--state-dir", "/proc/none"), 2, "runs cannot be recorded in /proc/none: ")
    wire = Wire([*SERVE, str(root), "--state-dir", "/proc/none"])
    try:
        wire.open()
        result = wire.request("tools/call", {"name": "shop", "arguments": {"input": "x"}})
        assert result["isError"] and "runs cannot be recorded in /proc/none" in result["content"][0]["text"]
        assert wire.request("tools/list")["tools"]
    finally:
        wire.close()


@pytest.mark.proves("ERROR-STATE")
@pytest.mark.parametrize("name", ["runs", "resume", "prune", "trace", "approve", "lock"])
def test_a_record_that_cannot_be_read_is_told_in_one_line(tmp_path: Path, name: str) -> None:
    root = shop(tmp_path, files={".llm-do/runs.sqlite3": "not a database, whatever its name says"})
    _one_line(_run(name, root), 1, "runs.sqlite3: the record of runs cannot be ")


ARGUMENTS = {
    "too many": (["trace", "a", "b"], "llm-do trace: unrecognized arguments: b"),
    "an unknown option": (["trace", "x", "--htm1"], "llm-do trace: unrecognized arguments: --htm1"),
    "nothing to trace": (["trace"], "llm-do trace: the following arguments are required: RUN"),
    "an unknown action": (["runs", "stop"], "llm-do runs: argument action: invalid choice: 'stop'"),
    "no run": (["runs", "resume"], "llm-do runs: resume needs the id of a run"),
    "no number of days": (["runs", "prune", "--older-than", "old"], "'old' is no number of days"),
    "no number": (["runs", "prune", "--keep", "-1"], "'-1' is no number of runs"),
    "no run to lock": (["approvals"], "llm-do approvals: the following arguments are required: action, RUN"),
    "an unknown mode": ([".", "--approvals", "maybe"], "llm-do: argument --approvals: invalid choice: 'maybe'"),
}


@pytest.mark.proves("ERROR-LINE", "CLI-USAGE")
@pytest.mark.parametrize(("arguments", "words"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_wrong_arguments_are_told_in_one_line(arguments: list[str], words: str) -> None:
    _one_line(llm_do(*arguments), 2, words)


@pytest.mark.proves("ERROR-LINE", "CLI-USAGE")
@pytest.mark.parametrize("given", ["soon", "-1", "nan"])
@pytest.mark.parametrize("option", ["--call-within", "--answer-within"])
def test_a_server_takes_seconds_and_nothing_else(tmp_path: Path, option: str, given: str) -> None:
    _one_line(_run("serve", shop(tmp_path), option, given), 2, f"argument {option}: {given!r} is no number of seconds")


@pytest.mark.proves("CLI-VERSION")
@pytest.mark.parametrize(
    ("program", "command"),
    {"llm-do": LLM_DO, "llm-do-mcp": SERVE, "te": [sys.executable, "-m", "llm_do_mcp.te"]}.items(),
)
def test_each_program_tells_its_version(program: str, command: list[str]) -> None:
    from llm_do_mcp import __version__

    ran = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=60, check=True)
    assert (ran.stdout, ran.stderr) == (f"{program} {__version__}\n", "")


NAMED = "toolsets: {custom: [f]}"
SHARED = "def f() -> int:\n    return 1\n"
LISTED = f"__all__ = ['f']\n{SHARED}"


@pytest.mark.proves("CLI-WRONG-PROJECT", "A060")
@pytest.mark.parametrize(
    ("keys", "files", "body", "error"),
    [
        (NAMED, {"tools.py": "def f(*names): ..."}, "x", "tools.py:1: `f` cannot be a tool: `*names` takes any number"),
        (NAMED, {"tools.py": "x = 1\n1 / 0"}, "x", "tools.py:2: ZeroDivisionError: division by zero"),
        (NAMED, {"tools.py": "def g() -> None: ..."}, "x", "there is no tool 'f' in tools.py; there are: g"),
        (NAMED, {}, "x", "there is no tool 'f': no tool module was found"),
        (
            NAMED,
            {"tools/m.py": SHARED},
            "x",
            "there is no tool 'f' in tools/m.py; none is offered there: write",
        ),
        ("toolsets: {custom: all}", {"tools/m.py": SHARED}, "x", "tools/m.py: no function is offered; write register"),
        (NAMED, {"tools/a.py": LISTED, "tools/b.py": LISTED}, "x", "two functions are called 'f', in tools/a.py and"),
        (
            "imports: {tools: [toolsets/x.py]}",
            {"toolsets/x.py": SHARED},
            "x",
            "toolsets/x.py: tool module missing",
        ),
        ("", {}, "{% if %}", "main.worker:4: "),
        ("", {}, "{% include 'nowhere.jinja' %}", "there is no 'nowhere.jinja'"),
    ],
)
def test_what_a_check_would_find_in_the_worker_ends_the_command_before_there_is_a_run(
    tmp_path: Path, keys: str, files: dict[str, str], body: str, error: str
) -> None:
    write(tmp_path, {"main.worker": worker(keys, body), "model.yaml": "workers: {main: [never]}", **files})
    done = llm_do(tmp_path, "x", env={"LLM_DO_MODEL": "scripted:model.yaml"})
    assert (done.returncode, done.stdout) == (2, "") and error in done.stderr
    assert len(done.stderr.splitlines()) == 1 and "Traceback" not in done.stderr
    assert not (tmp_path / ".llm-do").exists(), "there is no run"
