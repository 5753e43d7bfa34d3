"""The forms of an answer: the envelope, one JSON object, the tool's own output; each within the budget."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import llm_do_mcp
from llm_do_mcp.te import run
from llm_do_mcp.te.settings import Settings
from llm_do_mcp.te.text import quoted
from tests.te.searching import search, te, write

POSIX = pytest.mark.skipif(os.name != "posix", reason="grep, cat and find of POSIX")


@pytest.mark.proves("TE-JSON")
def test_json_is_one_object_with_what_the_envelope_has(tmp_path: Path) -> None:
    write(tmp_path, {f'd"{n % 3}\\/ü{n}.py': 'needle = "quoted \\ and\ttabbed"\n' * 9 for n in range(20)})
    for command in ("grep needle", "find .", "grep -E '('", "frob", "grep needle nope ."):
        text = run(f"te {command}", roots={".": str(tmp_path)}, budget=100_000, confine=False)
        whole = json.loads(run(f"te --json {command}", roots={".": str(tmp_path)}, budget=100_000, confine=False))
        notes = [f"[TE] {note}" for note in whole.get("notes", [])]
        assert [json.dumps(whole["meta"], separators=(",", ":"), ensure_ascii=False)] == text.splitlines()[1:2]
        assert notes + whole["lines"] == text.splitlines()[3:]


@pytest.mark.proves("TE-JSON", "TE-BUDGET")
def test_json_keeps_the_budget_and_stays_json(tmp_path: Path) -> None:
    write(tmp_path, {f'd"{n % 3}\\/ü{n}.py': 'needle = "quoted \\ and\ttabbed"\n\n' * 9 for n in range(20)})
    for command in ("grep needle", "find .", "cat 'd\"0\\/ü0.py'", "frob", "grep -E '('"):
        for budget in [*range(0, 1_500, 11), 4_000]:
            options = {"roots": {".": str(tmp_path)}, "budget": budget, "confine": False}
            text = run(f"te --json {command}", **options, session="s")  # type: ignore[arg-type]
            assert len(text) <= budget
            if budget > 3:
                told = json.loads(text)
                if handle := told.get("meta", {}).get("handle"):
                    chunk = run(f"--json --handle {handle}", **options, session="s")  # type: ignore[arg-type]
                    assert len(chunk) <= budget
                    assert budget < 300 or "lines" in json.loads(chunk)
            for form in ("", "-i "):
                assert len(run(f"te {form}{command}", **options)) <= budget  # type: ignore[arg-type]


@pytest.mark.proves("TE-JSON")
@pytest.mark.parametrize("text", ["", 'a"b\\c', "\x00\x1f\t\n", "ünï \U0001f600 \u2028"])
def test_our_json_strings_are_json(text: str) -> None:
    assert json.loads(quoted(text)) == text


@POSIX
@pytest.mark.proves("TE-RAW")
@pytest.mark.parametrize(
    "words",
    [["grep", "-rn", "needle"], ["grep", "-c", "needle", "a.txt"], ["cat", "a.txt"], ["find", ".", "-name", "a*"]],
)
def test_raw_is_the_tool_s_own_output_untouched(tmp_path: Path, words: list[str]) -> None:
    write(tmp_path, {"a.txt": b"needle \xff\x1b[31m\nneedle", "d/b.txt": "needle\n"})
    own = subprocess.run(words, cwd=tmp_path, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    ran = te("-i", *words, folder=tmp_path)
    assert (ran.stdout, ran.stderr, ran.returncode) == (own.stdout, own.stderr, own.returncode)
    assert own.stdout
    write(tmp_path, {"llmc.toml": "[tool_envelope]\nenabled = false\ntelemetry.enabled = false\n"})
    assert te(*words, folder=tmp_path).stdout.splitlines()[:1] == own.stdout.splitlines()[:1], "te is switched off"


@pytest.mark.proves("TE-RAW", "TE-ERRORS")
def test_where_te_is_switched_off_it_says_so_and_knows_the_tools_only(tmp_path: Path) -> None:
    write(tmp_path, {"llmc.toml": "[tool_envelope]\nenabled = false\n"})
    for words in (["--json", "grep", "x"], ["--handle", "res_0123456789abcdef"], ["coach", "report"]):
        told = te(*words, folder=tmp_path).stdout.decode().splitlines()[-1]
        known = "te, which is switched off here (enabled = false), knows the commands grep, cat, find"
        assert told == f"[TE] {known}, not {words[0]}"
    assert b"[TE] te -i knows the commands" in te("-i", "coach", folder=tmp_path).stdout


@POSIX
@pytest.mark.proves("TE-RAW", "TE-TELEMETRY")
def test_raw_is_told_in_the_log_and_judges_the_command_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TE_SESSION_ID", "s")
    write(tmp_path, {"llmc.toml": "[tool_envelope]\n", "a.txt": "needle\n"})
    for words in (["grep", "needle"], ["-i", "grep", "needle"], ["-i", "frob"]):
        te(*words, folder=tmp_path)
    told = [json.loads(line) for line in (tmp_path / ".llmc/te_telemetry.jsonl").read_text().splitlines()]
    commands = [event for event in told if event["event"] == "command"]
    assert [(event["cmd"], event["mode"], event["error"]) for event in commands] == [
        ("grep", "enriched", None),
        ("grep", "raw", None),
        ("te", "error", "unknown_command"),
    ]
    assert commands[1]["arguments"] == ["-i", "grep", "needle"] and commands[1]["output_size"] is None
    judged = [(event["of"], event["action"]) for event in told if event["event"] == "next_action"]
    assert judged == [(commands[0]["id"], "repeats")], "and an error commends nothing"
    write(tmp_path, {"llmc.toml": "[tool_envelope]\nenabled = false\n"})
    te("cat", "a.txt", folder=tmp_path)
    last = json.loads((tmp_path / ".llmc/te_telemetry.jsonl").read_text().splitlines()[-1])
    assert (last["cmd"], last["mode"]) == ("cat", "raw"), "also where te is switched off"
    write(tmp_path, {"llmc.toml": "not toml"})
    assert te("-i", "cat", "a.txt", folder=tmp_path).stdout == b"needle\n"


@pytest.mark.proves("TE-RAW", "TE-JSON")
@pytest.mark.parametrize("forms", [["--json", "-i"], ["-i", "--json"]])
def test_two_forms_at_once_are_refused(tmp_path: Path, forms: list[str]) -> None:
    ran = te(*forms, "grep", "needle", folder=tmp_path)
    assert ran.returncode == 2 and b'"error":"usage"' in ran.stdout and b"ask for one of them" in ran.stdout


@pytest.mark.proves("CALL-SEARCH-SETTINGS", "TE-ERRORS")
@pytest.mark.parametrize("command", ["--json -i grep x", "grep 'x", "frob", "grep -E '('"])
def test_where_the_envelope_is_switched_off_errors_have_none_either(tmp_path: Path, command: str) -> None:
    write(tmp_path, {"a.txt": "needle\n"})
    told = run(command, roots={".": str(tmp_path)}, settings=Settings({"enabled": False}))
    assert told.startswith("[TE] ") and told.count("\n") == 1


@POSIX
@pytest.mark.proves("TE-COMMAND")
@pytest.mark.parametrize("form", ["", "-i "])
def test_output_that_cannot_be_written_is_one_line_and_that_nobody_reads_none(tmp_path: Path, form: str) -> None:
    write(tmp_path, {"a.txt": "needle\n" * 100_000})
    home, python = str(Path(llm_do_mcp.__file__).parents[1]), f"{sys.executable} -m llm_do_mcp.te"

    def run_in_shell(line: str) -> subprocess.CompletedProcess[bytes]:
        environment = {**os.environ, "PYTHONPATH": home}
        command = ["sh", "-c", line.replace("te ", f"{python} ", 1)]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False, timeout=60)

    closed = run_in_shell(f"te {form}grep needle a.txt >&-")
    assert closed.returncode == 2 and closed.stderr.count(b"\n") == 1 and b"Traceback" not in closed.stderr
    if os.path.exists("/dev/full"):
        full = run_in_shell(f"te {form}grep needle a.txt > /dev/full")
        assert full.returncode == 2 and full.stderr.count(b"\n") == 1 and b"No space left" in full.stderr
    unread = run_in_shell(f"te {form}grep needle a.txt | head -c 1")
    assert (unread.returncode, unread.stdout[1:], unread.stderr) == (0, b"", b"")
    assert run_in_shell(f"te {form}grep -c needle a.txt <&- 2>&-").stdout


@POSIX
@pytest.mark.proves("TE-RAW")
def test_raw_finds_and_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "x"})
    for action in (["-delete"], ["-exec", "rm", "{}", ";"], ["-fprint", "b.txt"]):
        ran = te("-i", "find", ".", *action, folder=tmp_path)
        assert ran.returncode == 2 and f"does not take {action[0]}".encode() in ran.stdout
    assert te("-i", "rm", "a.txt", folder=tmp_path).returncode == 2
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.proves("TE-RAW")
def test_raw_through_the_tool_has_no_envelope_and_keeps_its_budget(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "needle\n" * 100})
    text = run("te -i grep needle", roots={"x": str(tmp_path)}, budget=500)
    lines = text.splitlines()
    assert lines[0] == "x/a.py:1: needle" and len(text) <= 500
    assert lines[-1].startswith("# TE: ") and not any(line.startswith("# TE") for line in lines[:-1])


@POSIX
@pytest.mark.proves("TE-ERRORS")
def test_a_fault_of_ours_is_told_to_agents_and_people_get_the_tool_s_own_output(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "needle\n"})
    fault = "import llm_do_mcp.te.grep as grep; grep.parse = None"
    agent = te("grep", "-r", "needle", folder=tmp_path, start=fault)
    assert agent.returncode == 2 and agent.stderr == b""
    assert b'{"v":1,"cmd":"grep","error":"internal"}' in agent.stdout
    assert b"[TE] internal error, operator intervention required" in agent.stdout
    person = te(
        "grep", "-r", "needle", folder=tmp_path, start=f"{fault}; import os; os.environ['TE_AGENT_ID'] = 'human-cli'"
    )
    assert person.returncode == 0
    assert b"a.txt:needle" in person.stdout and b"TE_BEGIN" not in person.stdout
    assert person.stderr == b"te: internal error; this is the tool's own output\n"


@pytest.mark.proves("TE-ERRORS")
def test_a_text_that_speaks_of_a_fault_is_none(tmp_path: Path) -> None:
    write(tmp_path, {"a.log": '"error":"internal"\n'})
    human = "import os; os.environ['TE_AGENT_ID'] = 'human-cli'"
    for command in (("grep", '"error":"internal"'), ("cat", "a.log")):
        ran = te(*command, folder=tmp_path, start=human)
        assert ran.returncode == 0 and ran.stderr == b"" and b"TE_BEGIN" in ran.stdout


@pytest.mark.proves("TE-COMMAND")
def test_the_command_tells_its_version(tmp_path: Path) -> None:
    assert te("--version", folder=tmp_path).stdout.startswith(b"te 0")


@pytest.mark.proves("TE-JSON")
def test_only_what_stands_before_the_command_is_a_form(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "NEEDLE\n"})
    assert search("te grep -i needle", tmp_path, guard="none").hits == ["a.txt:1: NEEDLE"]
