"""`llm-do PATH`: what it prints where, what it asks, and how it exits."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import LLM_DO, Terminal, environment, llm_do
from tests.descriptors import is_readable_within
from tests.project.conftest import worker, write

WRITER = """
toolsets: {filesystem: {}}
sandbox: {paths: {out: {root: ./out, mode: rw}}}
"""
ADDER = """
description: adds
input_schema:
  type: object
  properties: {a: {type: integer}, b: {type: integer}}
  required: [a]
  additionalProperties: false
output_schema: {type: object, properties: {sum: {type: integer}}, required: [sum]}
"""


def write_of(name: str) -> dict[str, Any]:
    return {"name": "write_file", "input": {"path": f"out/{name}.md", "content": "text"}}


SCRIPT = {
    "workers": {
        "main": [{"tool_calls": [write_of("a"), write_of("b"), write_of("c")]}, "written"],
        "adder": ['{"sum": 3}'],
        "plain": ["Grüße"],
        "broken": [{"text": "", "stop_reason": "refusal"}],
    }
}
PROJECT = {
    "project.yaml": "name: small\nmodel: scripted:model.yaml\n",
    "model.yaml": json.dumps(SCRIPT),
    "main.worker": worker(WRITER),
    "workers/adder.worker": worker(ADDER),
    "workers/plain.worker": worker("description: says hello"),
    "workers/broken.worker": worker(),
    "workers/free.worker": worker("params: {tone: null}", "{{ tone }}"),
}


at_terminal = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo terminal")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path, PROJECT)
    return tmp_path


def files(project: Path) -> list[str]:
    return sorted(path.name for path in (project / "out").glob("*")) if (project / "out").exists() else []


def status(project: Path) -> list[str]:
    """How the runs of a project ended, newest first."""
    return [run["status"] for run in json.loads(llm_do("runs", "--json", "--project", project).stdout)]


# ---- results


@pytest.mark.proves("CLI-RESULT")
def test_standard_output_carries_the_result_and_nothing_else(project: Path) -> None:
    ran = llm_do(project, "hello", "--entry", "plain")
    assert (ran.returncode, ran.stdout) == (0, "Grüße\n")
    assert "plain: turn 1" in ran.stderr
    assert "no model was called (scripted:model.yaml)" in ran.stderr
    assert llm_do(project, "--entry", "plain", "hello").stdout == "Grüße\n"  # options may stand before the input too
    structured = llm_do(project, "--entry", "adder", "--input", '{"a": 1, "b": 2}')
    assert (structured.returncode, json.loads(structured.stdout)) == (0, {"sum": 3})


@pytest.mark.proves("CLI-JSON")
def test_json_gives_the_output_and_the_account_also_of_a_failure(project: Path) -> None:
    good = llm_do(project, "go", "--json", "--approve-all")
    shown = json.loads(good.stdout)
    assert (good.returncode, shown["output"], shown["error"]) == (0, "written", None)
    assert shown["run"]["status"] == "done"
    assert sorted(shown["run"]["files_changed"]) == ["out/a.md", "out/b.md", "out/c.md"]
    assert shown["run"]["note"] == "no model was called"
    bad = llm_do(project, "go", "--json", "--entry", "broken")
    shown = json.loads(bad.stdout)
    assert (bad.returncode, shown["output"], shown["run"]["status"]) == (1, None, "failed")
    assert shown["error"] == "worker broken: the model scripted:model.yaml refused to answer"


@pytest.mark.proves("CLI-EXIT")
def test_a_run_that_fails_exits_1_with_one_line(project: Path) -> None:
    ran = llm_do(project, "go", "--entry", "broken")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "llm-do: worker broken: the model scripted:model.yaml refused to answer\n" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert status(project) == ["failed"]


# ---- bad usage


@pytest.mark.proves("CLI-USAGE")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["PROJECT", "--entry", "nope"], "llm-do: no worker 'nope' (looked for workers/nope.worker, "),
        (["PROJECT", "--entry", "../main"], "llm-do: "),
        (["PROJECT", "x", "--input", "{}"], "give INPUT or --input, not both"),
        (["PROJECT", "--input", "{not json"], "--input is not JSON: "),
        (["PROJECT", "--input", "[" * 100_000], "--input is not JSON: nested too deeply"),
        (["PROJECT", "--input", '{"a": 1, "a": 2}'], "--input is not JSON: key 'a' is given twice"),
        (["PROJECT", "--input", "[1]"], "--input must be a JSON object"),
        (["PROJECT", "--input", '{"a": 1}'], "worker main: unknown field 'a'; known: "),
        (["PROJECT", "text", "--entry", "adder"], "worker adder has an input schema; give its input with --input JSON"),
        (["PROJECT", "--entry", "adder"], "worker adder: a is missing"),
        (["PROJECT", "--entry", "adder", "--input", '{"a": "x"}'], 'worker adder: a: must be an integer, not "x"'),
        (["PROJECT", "--entry", "adder", "--input", '{"a": 1, "z": 1}'], "worker adder: unknown field 'z'; "),
        (["PROJECT", "--entry", "free"], "worker free: tone is missing"),
        (["PROJECT/missing"], "llm-do: "),
        (["PROJECT/model.yaml"], "llm-do: "),
        (["PROJECT", "--approvals", "maybe"], "invalid choice: 'maybe'"),
        (["PROJECT", "--approve-all", "--approvals", "deny"], "not allowed with argument"),
        (["runs", "resume"], "llm-do runs: resume needs the id of a run"),
        (["runs", "--project", "PROJECT/missing"], "llm-do: "),
    ],
)
def test_what_cannot_be_used_exits_2_and_begins_no_run(project: Path, arguments: list[str], words: str) -> None:
    ran = llm_do(*(argument.replace("PROJECT", str(project)) for argument in arguments))
    assert (ran.returncode, ran.stdout) == (2, ""), ran.stderr
    assert words in ran.stderr
    assert "Traceback" not in ran.stderr
    assert not (project / ".llm-do").exists()


@pytest.mark.proves("CLI-USAGE")
def test_an_error_in_a_file_is_one_line_with_its_place(project: Path) -> None:
    (project / "main.worker").write_text("---\nmodle: x\n---\n")
    ran = llm_do(project, "go")
    assert ran.returncode == 2
    assert ran.stderr.startswith("llm-do: main.worker:2:1: ")
    assert "'model'" in ran.stderr and ran.stderr.count("\n") == 1


@pytest.mark.proves("CLI-USAGE")
def test_without_an_entry_worker_one_must_be_named(project: Path) -> None:
    (project / "main.worker").unlink()
    ran = llm_do(project, "go")
    assert (ran.returncode, ran.stderr) == (2, f"llm-do: {project} has no entry worker; name one with --entry\n")


# ---- approvals

SLOW = """
import time
from pathlib import Path

from llm_do_mcp import tool


@tool
def slow() -> str:
    'Takes longer than it takes to see that nobody can be asked.'
    time.sleep(0.3)
    Path("slow.txt").write_text("done")
    return ""
"""


@pytest.mark.proves("CLI-APPROVALS")
def test_everything_is_approved_where_the_person_said_so(project: Path) -> None:
    ran = llm_do(project, "go", "--approve-all")
    assert (ran.returncode, ran.stdout) == (0, "written\n")
    assert files(project) == ["a.md", "b.md", "c.md"]


@pytest.mark.proves("CLI-APPROVALS", "CLI-EXIT")
def test_a_refused_call_exits_3_and_the_run_goes_on_without_it(project: Path) -> None:
    ran = llm_do(project, "go", "--approvals", "deny")
    assert (ran.returncode, ran.stdout) == (3, "written\n")
    assert files(project) == []


@pytest.mark.proves("CLI-EXIT", "GATE-POLICY")
@pytest.mark.parametrize("approvals", ["ask", "deny"])
def test_what_a_rule_refuses_exits_3_too_and_is_in_the_account(project: Path, approvals: str) -> None:
    rule = {"function": "files.write", "decision": "deny", "subject": "out/*.md"}
    (project / "project.yaml").write_text(f"name: small\nmodel: scripted:model.yaml\napprovals: [{json.dumps(rule)}]\n")
    ran = llm_do(project, "go", "--json", "--approvals", approvals)
    assert ran.returncode == 3
    found = json.loads(ran.stdout)["run"]["approvals"]
    said = {"decision": "policy", "by": "approvals of the manifest, rule 1", "note": ""}
    assert found == [{"function": "files.write", "target": f"out/{name}.md", **said} for name in "abc"]
    assert files(project) == []


@pytest.mark.proves("CLI-APPROVALS", "CLI-EXIT")
def test_a_run_that_nobody_can_be_asked_about_waits_and_exits_4(project: Path) -> None:
    ran = llm_do(project, "go", "--json")
    assert ran.returncode == 4
    for name in "abc":
        assert f"waits for approval: files.write out/{name}.md" in ran.stderr
    assert status(project) == ["waiting"]
    left = json.loads(ran.stdout)
    assert (left["output"], left["error"], left["run"]["status"]) == (None, None, "waiting")
    assert [approval["decision"] for approval in left["run"]["approvals"]] == ["open"] * 3
    resumed = llm_do("runs", "resume", left["run"]["id"], "--project", project, "--approve-all")
    assert (resumed.returncode, resumed.stdout) == (0, "written\n")
    assert files(project) == ["a.md", "b.md", "c.md"]


@pytest.mark.proves("CLI-APPROVALS")
def test_before_a_run_is_left_what_needs_no_answer_is_done(project: Path) -> None:
    keys = WRITER.replace("{filesystem: {}}", "{filesystem: {}, custom: {slow: {pre_approved: true}}}")
    turn = {"tool_calls": [write_of("a"), {"name": "slow", "input": {}}]}
    model = json.dumps({"workers": {"main": [turn, "end"]}})
    write(project, {"tools.py": SLOW, "main.worker": worker(keys), "model.yaml": model})
    ran = llm_do(project, "go")
    assert ran.returncode == 4
    assert "in doubt" not in ran.stderr
    assert (project / "slow.txt").read_text() == "done"


@pytest.mark.proves("RUN-LISTENING")
def test_a_run_that_goes_on_tells_what_it_does_and_not_what_it_has_done(project: Path) -> None:
    read = {"name": "list_files", "input": {"path": "out"}}
    turns = [{"tool_calls": [read]}, {"tool_calls": [write_of("a")]}, {"tool_calls": [read]}, "end"]
    write(project, {"model.yaml": json.dumps({"workers": {"main": turns}})})
    left = llm_do(project, "go")
    told = ["main: turn 1", "main: list_files out", "main: turn 2"]
    assert [line for line in left.stderr.splitlines() if line.startswith("main: ")] == told
    (run,) = json.loads(llm_do("runs", "--json", "--project", project).stdout)
    done = llm_do("runs", "resume", run["id"], "--approve-all", "--project", project)
    told = ["main: write_file out/a.md", "main: turn 3", "main: list_files out", "main: turn 4"]
    assert [line for line in done.stderr.splitlines() if line.startswith("main: ")] == told


@at_terminal
@pytest.mark.proves("CLI-RESULT-PLAIN")
def test_what_a_model_writes_commands_no_terminal(project: Path) -> None:
    import pty

    (project / "model.yaml").write_text(
        'workers: {plain: ["\\e[2Jgone\\x9b1A\\r\\n\\tm\u00fcde \u05d0\u200d"]}\n', encoding="utf-8"
    )
    command = [str(project), "go", "--entry", "plain"]
    assert llm_do(*command).stdout == "\x1b[2Jgone\x9b1A\n\tm\u00fcde \u05d0\u200d\n", "as it was"
    screen, theirs = pty.openpty()
    ran = subprocess.Popen(
        [*LLM_DO, *command], stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.DEVNULL, env=environment()
    )
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # how the end of a terminal's output is told
        while piece := os.read(screen, 4096):
            shown += piece
    os.close(screen)
    assert ran.wait(30) == 0
    assert shown.decode() == "\\x1b[2Jgone\\x9b1A\r\n\tm\u00fcde \u05d0\u200d\r\n"


@at_terminal
@pytest.mark.proves("CLI-PROMPT")
def test_at_a_terminal_the_person_decides_with_a_key_and_a_note(project: Path) -> None:
    with Terminal([*LLM_DO, str(project), "go", "--json"]) as terminal:
        shown = terminal.expect("[d] Refuse")
        (refused,) = re.findall(r"Approval needed: create the file out/(.\.md)", shown)
        assert "Asked by: main" in shown
        assert "[a] Allow this one   [s] Allow for the rest of this run   [d] Refuse" in shown
        terminal.expect("> ")
        terminal.type("x\n")
        terminal.expect("type one of: a, s, d\n> ")
        terminal.type("d not this one\n")
        terminal.expect("> ")
        terminal.type("S the others are fine\n")
        code, output = terminal.finish()
    account = json.loads(output)["run"]
    assert code == 3
    decisions = [(approval["decision"], approval["by"], approval["note"]) for approval in account["approvals"]]
    assert decisions == [
        ("deny", "terminal", "not this one"),
        ("run", "terminal", "the others are fine"),
        ("once", "grant", "the others are fine"),
    ]
    assert files(project) == sorted({"a.md", "b.md", "c.md"} - {refused})


@at_terminal
@pytest.mark.proves("CLI-PROMPT", "CLI-EXIT")
def test_ctrl_c_at_the_prompt_exits_130_and_the_run_can_be_resumed(project: Path) -> None:
    with Terminal([*LLM_DO, str(project), "go"]) as terminal:
        terminal.expect("> ")
        terminal.type("\x03")
        assert terminal.finish() == (130, "")
        told = terminal.expect("llm-do: interrupted\n")
    (run,) = json.loads(llm_do("runs", "--json", "--project", project).stdout)
    hint = shlex.join(["llm-do", "runs", "resume", run["id"], "--project", str(project)])
    assert f"\nrun {run['id']} was interrupted; to go on with it: {hint}\n" in told
    assert run["status"] == "waiting" and files(project) == []


@at_terminal
@pytest.mark.proves("CLI-PROMPT")
def test_the_end_of_input_at_the_prompt_is_no_approval(project: Path) -> None:
    with Terminal([*LLM_DO, str(project), "go"]) as terminal:
        for _ in range(3):
            terminal.expect("> ")
            terminal.type("\x04")
        assert terminal.finish() == (3, "written\n")
    assert files(project) == []


@at_terminal
@pytest.mark.proves("CLI-PROMPT", "APPROVE-WITHDRAWN")
def test_a_question_that_is_answered_in_another_terminal_is_withdrawn(project: Path) -> None:
    with Terminal([*LLM_DO, str(project), "go"]) as terminal:
        terminal.expect("> ")
        with Terminal([*LLM_DO, "approve", "--project", str(project)]) as other:
            other.expect("> ")
            other.type("s all of them\n")
            terminal.expect("answered already, by terminal: Allow for the rest of this run “all of them”")
            assert terminal.finish() == (0, "written\n"), "and so is what that answer settles besides"
            assert other.finish() == (0, "")
    assert files(project) == ["a.md", "b.md", "c.md"]


GATED = """
import os
from llm_do_mcp import ToolContext, tool


@tool(risk="read")
def gated(ctx: ToolContext) -> str:
    'Waits at a gate, and says that it was let through.'
    with open("gate", "rb", buffering=0) as gate:
        gate.read(1)
    ctx.log("let through")
    ctx.call("list_files", {"path": "out"})  # an answer: the line before it has been told
    with open("through", "wb", buffering=0) as through:
        through.write(b".")
    return ""
"""


class Gate:
    """A project whose main worker makes these turns, with a tool that waits at a gate."""

    def __init__(self, project: Path, *turns: Any) -> None:
        keys = WRITER.replace("{filesystem: {}}", "{filesystem: {}, custom: [gated]}")
        model = json.dumps({"workers": {"main": [{"tool_calls": turn} for turn in turns] + ["end"]}})
        write(project, {"tools.py": GATED, "main.worker": worker(keys), "model.yaml": model})
        for name in ("gate", "through"):
            os.mkfifo(project / name)
        # Open in both directions, neither side ever waits for the other to open.
        self._gate, self._through = (os.open(project / name, os.O_RDWR) for name in ("gate", "through"))

    def open(self) -> None:
        os.write(self._gate, b".")

    def passed(self) -> None:
        """Wait until the tool is through."""
        assert is_readable_within(self._through, 30), "the tool did not come through"

    def close(self) -> None:
        os.close(self._gate)
        os.close(self._through)


CALL = {"name": "gated", "input": {}}


@at_terminal
@pytest.mark.proves("CLI-TYPED-AHEAD")
def test_what_was_typed_before_a_question_was_seen_does_not_answer_it(project: Path) -> None:
    with (
        contextlib.closing(Gate(project, [CALL], [write_of("a"), write_of("b")])) as gate,
        Terminal([*LLM_DO, str(project), "go"]) as terminal,
    ):
        terminal.expect("main: gated")
        terminal.type("a\na\n")
        gate.open()
        terminal.expect("\n> ")
        terminal.type("d\na\n")  # the second line is for no question that is on the screen
        terminal.expect("\n> ")
        terminal.type("d\n")
        assert terminal.finish() == (3, "end\n")
    assert files(project) == []


@at_terminal
@pytest.mark.proves("CLI-PROMPT-LINE")
def test_progress_is_not_written_into_the_line_of_the_answer(project: Path) -> None:
    with (
        contextlib.closing(Gate(project, [write_of("a"), CALL])) as gate,
        Terminal([*LLM_DO, str(project), "go"]) as terminal,
    ):
        assert "and Enter.\n" in terminal.expect("\n> ")
        gate.open()
        gate.passed()
        terminal.type("a\n")
        assert terminal.expect("gated: let through").startswith("a\n")
        assert terminal.finish() == (0, "end\n")
    assert files(project) == ["a.md"]


RAISES = """
from llm_do_mcp import tool


@tool(risk="read")
def raises(text: str) -> str:
    raise ValueError("it was " + text)
"""


@pytest.mark.proves("A079", "TOOL-RAISES")
def test_a_tool_that_raises_is_one_line_and_its_traceback_is_for_who_debugs(project: Path) -> None:
    secret = "s3cret-value-99"
    turn = {"tool_calls": [{"name": "raises", "input": {"text": secret}}]}
    model = json.dumps({"workers": {"main": [turn, "end"]}})
    write(project, {"tools.py": RAISES, "main.worker": worker("toolsets: {custom: [raises]}"), "model.yaml": model})
    for debug in ("", "1"):
        ran = llm_do(project, "go", env={"MY_API_TOKEN": secret, "LLM_DO_DEBUG": debug})
        assert ran.returncode == 0
        assert secret not in ran.stderr
        assert "raises failed: tools.py:7: ValueError: it was [redacted MY_API_TOKEN]\n" in ran.stderr
        assert ("debug raises: Traceback (most recent call last):\n" in ran.stderr) == bool(debug)
        assert ("debug raises: ValueError: it was [redacted MY_API_TOKEN]\n" in ran.stderr) == bool(debug)
        assert ran.stderr.count("Traceback") == len(debug)


# ---- which project, which model


@pytest.mark.proves("CLI-NO-PROJECT")
def test_a_worker_file_is_taken_in_its_project_or_for_itself(project: Path) -> None:
    inside = llm_do(project / "workers" / "plain.worker", "hi")
    assert (inside.returncode, inside.stdout) == (0, "Grüße\n")
    alone = llm_do(project / "workers" / "plain.worker", "hi", "--no-project")
    assert alone.returncode == 2
    assert "has no model" in alone.stderr


@pytest.mark.proves("CLI-MODEL")
def test_the_model_comes_from_the_option_the_project_or_the_environment(project: Path) -> None:
    write(project, {"other.yaml": json.dumps({"workers": {"plain": ["other"], "main": ["other"]}})})
    named = llm_do(project, "hi", "--model", "scripted:other.yaml")
    assert named.stdout == "other\n"
    # `--model` is for the entry worker only, which is the one that `--entry` names.
    assert llm_do(project, "hi", "--entry", "plain", "--model", "scripted:other.yaml").stdout == "other\n"
    call = {"tool_calls": [{"name": "worker_call", "input": {"worker": "plain"}}]}
    write(
        project,
        {
            "workers/calls.worker": worker("allow_workers: [plain]"),
            "other.yaml": json.dumps({"workers": {"plain": ["other"], "main": ["other"], "calls": [call, "called"]}}),
        },
    )
    called = llm_do(project, "hi", "--entry", "calls", "--model", "scripted:other.yaml", "--json")
    assert json.loads(called.stdout)["run"]["models"] == ["scripted:other.yaml", "scripted:model.yaml"]
    (project / "project.yaml").write_text("name: small\n")
    of_environment = llm_do(project, "hi", "--entry", "plain", env={"LLM_DO_MODEL": "scripted:other.yaml"})
    assert of_environment.stdout == "other\n"
    before = status(project)
    for unknown in (
        llm_do(project, "hi", "--entry", "plain", env={"LLM_DO_MODEL": "gpt"}),
        llm_do(project, "hi", "--entry", "plain", "--model", "gpt"),
    ):
        assert unknown.returncode == 2
        assert unknown.stderr.startswith("llm-do: model 'gpt' cannot be opened; allowed: anthropic:<model>")
    assert status(project) == before, "no run was begun"


@pytest.mark.proves("CLI-STATE")
def test_runs_are_recorded_where_the_person_says(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    state = tmp_path_factory.mktemp("state")
    assert llm_do(project, "hi", "--entry", "plain", "--state-dir", state).returncode == 0
    assert not (project / ".llm-do").exists()
    (run,) = json.loads(llm_do("runs", "--json", "--project", project, "--state-dir", state).stdout)
    assert run["worker"] == "plain"


@pytest.mark.proves("CLI-RESULT")
def test_the_installed_command_is_the_same_program() -> None:
    script = Path(sys.executable).with_name("llm-do")
    if not script.exists():
        pytest.skip("llm-do is not installed beside this interpreter")
    ran = subprocess.run([script, "--help"], capture_output=True, text=True, check=False)
    assert ran.stdout == llm_do("--help").stdout


# ---- parameters and attachments


TELL = """
    def reply(request):
        blocks = request["messages"][0]["content"]
        files = [block["name"] for block in blocks if block["type"] == "attachment"]
        return {"text": f"{request['system'].strip()} {files}"}
"""


@pytest.mark.proves("CLI-SET")
def test_parameters_and_fields_are_set_one_by_one(project: Path) -> None:
    free = worker("model: scripted:tell.py\nparams: {tone: null, times: 1}", "{{ tone }}{{ times + 1 }}")
    write(project, {"tell.py": TELL, "workers/free.worker": free})
    ran = llm_do(project, "--entry", "free", "--set", "tone=warm", "--set", "times=2")
    assert (ran.returncode, ran.stdout) == (0, "warm3 []\n"), ran.stderr
    added = llm_do(project, "--entry", "adder", "--set", "a=1", "--set", "b=2")
    assert (added.returncode, json.loads(added.stdout)) == (0, {"sum": 3})
    for wrong in ("tune=warm", "tone"):
        refused = llm_do(project, "--entry", "free", "--set", wrong)
        assert refused.returncode == 2
        assert f"--set {wrong}: write NAME=VALUE; names are input, tone, times" in refused.stderr


@pytest.mark.proves("CLI-SET")
@pytest.mark.parametrize(
    ("field", "text", "means"),
    [
        ("true", "5", "5"),
        ("{anyOf: [{type: integer}, {type: 'null'}]}", "3", 3),
        ("{$ref: '#/$defs/count'}", "3", 3),
        ("{type: [string, 'null']}", "5", "5"),
        ("{type: [string, 'null']}", "null", None),
        ("{type: [string, integer]}", "5", 5),
        ("{type: [string, number]}", "NaN", "NaN"),
        ("{enum: [1, 2]}", "2", 2),
    ],
)
def test_a_field_is_set_by_whatever_its_schema_says(project: Path, field: str, text: str, means: Any) -> None:
    echo = """
        def reply(request):
            return {"text": request["messages"][0]["content"][0]["text"]}
    """
    keys = f"input_schema: {{type: object, properties: {{a: {field}}}, $defs: {{count: {{type: integer}}}}}}"
    write(project, {"echo.py": echo, "workers/echo.worker": worker(f"model: scripted:echo.py\n{keys}")})
    ran = llm_do(project, "--entry", "echo", "--set", f"a={text}")
    assert (ran.returncode, json.loads(ran.stdout or "0")) == (0, {"a": means}), ran.stderr


@pytest.mark.proves("CLI-ATTACH")
def test_files_are_attached_from_anywhere(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("a folder")
    (elsewhere / "Über uns.md").write_text("text")
    write(project, {"tell.py": TELL, "project.yaml": "name: small\nmodel: scripted:tell.py\n"})
    ran = llm_do(project, "x", "--entry", "plain", "--attach", str(elsewhere / "Über uns.md"))
    assert (ran.returncode, ran.stdout.rstrip().endswith("['Über uns.md']")) == (0, True), ran.stderr
    missing = llm_do(project, "x", "--entry", "plain", "--attach", "nowhere.pdf")
    assert (missing.returncode, "--attach nowhere.pdf: there is no such file" in missing.stderr) == (2, True)
    before = status(project)
    if sys.platform != "win32":
        os.mkfifo(elsewhere / "pipe")
        pipe = llm_do(project, "x", "--entry", "plain", "--attach", str(elsewhere / "pipe"))
        assert (pipe.returncode, "pipe: that is no regular file" in pipe.stderr) == (2, True)
    folder = llm_do(project, "x", "--entry", "plain", "--attach", str(elsewhere))
    assert folder.stderr == f"llm-do: --attach {elsewhere}: that is a folder; attach the files in it\n"
    policy = "attachment_policy: {allowed_suffixes: [.pdf]}"
    write(project, {"workers/plain.worker": worker(policy)})
    given = str(elsewhere / "Über uns.md")
    refused = llm_do(project, "x", "--entry", "plain", "--attach", given)
    assert refused.stderr == f"llm-do: --attach: attachment {given}: the worker called allows .pdf\n"
    assert (folder.returncode, refused.returncode, status(project)) == (2, 2, before)


@pytest.mark.proves("CLI-ATTACH")
def test_a_file_is_named_as_it_was_given_and_a_link_is_followed(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "real.md").write_text("text")
    (elsewhere / "data").write_bytes(b"\x00\xff\x00")
    (elsewhere / "cut.pdf").write_bytes(b"%PDF-1.7\n")
    (project / "link.txt").symlink_to(elsewhere / "real.md")
    write(project, {"tell.py": TELL, "project.yaml": "name: small\nmodel: scripted:tell.py\n"})

    def attach(file: str) -> subprocess.CompletedProcess[str]:
        return llm_do(".", "x", "--entry", "plain", "--attach", file, cwd=project)

    ran = attach("link.txt")
    assert (ran.returncode, ran.stdout.rstrip().endswith("['real.md']")) == (0, True), ran.stderr
    before = status(project)
    back = os.path.relpath(elsewhere, project)
    for file, said in (("data", "neither PDF, "), ("cut.pdf", "the PDF is cut short")):
        refused = attach(f"{back}/{file}")
        assert refused.returncode == 2 and refused.stderr.startswith(f"llm-do: --attach {back}/{file}: {said}")
    write(project, {"workers/plain.worker": worker("attachment_policy: {allowed_suffixes: [.txt]}")})
    denied = attach("link.txt")
    assert denied.stderr == f"llm-do: --attach: attachment {elsewhere}/real.md: the worker called allows .txt\n"
    assert status(project) == before, "nothing of it is a run"


@pytest.mark.proves("CLI-ATTACH")
def test_a_large_file_is_attached_as_far_as_the_policy_allows(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    large = tmp_path_factory.mktemp("large") / "log.txt"
    large.write_text("x" * 10_000_001)
    manifest = "name: small\nmodel: scripted:tell.py\nattachment_policy: {max_total_bytes: %s}\n"
    write(project, {"tell.py": TELL, "project.yaml": manifest % 20_000_000})
    ran = llm_do(project, "x", "--entry", "plain", "--attach", str(large))
    assert (ran.returncode, ran.stdout.rstrip().endswith("['log.txt']")) == (0, True), ran.stderr
    write(project, {"project.yaml": manifest % 10_000_000})
    refused = llm_do(project, "x", "--entry", "plain", "--attach", str(large))
    assert refused.stderr == (
        f"llm-do: --attach: {large} has 10000001 bytes; the caller allows 10000000 "
        "(`attachment_policy: {max_total_bytes: …}`)\n"
    )


@pytest.mark.proves("REPLAY-ANSWERS")
def test_the_newest_run_can_be_replayed_as_last(project: Path) -> None:
    nothing = llm_do(project, "go", "--entry", "plain", "--model", "replay:last")
    assert (nothing.returncode, nothing.stderr) == (1, "llm-do: the project has no runs yet\n")
    first = json.loads(llm_do(project, "go", "--entry", "plain", "--json").stdout)
    (project / "model.yaml").unlink()
    for _ in range(2):
        again = llm_do(project, "go", "--entry", "plain", "--model", "replay:last", "--json")
        assert (again.returncode, json.loads(again.stdout)["output"]) == (0, first["output"]), again.stderr


@pytest.mark.proves("SAMPLING-TERMINAL")
def test_a_terminal_lends_no_model_and_the_next_of_the_chain_answers(project: Path) -> None:
    write(project, {"tell.py": TELL, "workers/free.worker": worker("model: sampling", "Hi.")})
    refused = llm_do(project, "x", "--entry", "free")
    assert (refused.returncode, refused.stderr.splitlines()[-2]) == (
        1,
        "llm-do: worker free: model sampling: a terminal is no MCP client, which could lend its model; "
        "name another model, as with --model",
    )
    write(project, {"workers/free.worker": worker("model: [sampling, 'scripted:tell.py']", "Hi.")})
    ran = llm_do(project, "x", "--entry", "free")
    assert (ran.returncode, "no model was called (scripted:tell.py)" in ran.stderr) == (0, True), ran.stderr
