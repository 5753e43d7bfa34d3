"""`llm-do approvals lock` and `--approvals locked`: what a person approved once, and nothing else, runs in CI."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import LLM_DO, Terminal, llm_do
from tests.cli.test_run import at_terminal
from tests.project.conftest import worker, write

TOOLS = """
from pathlib import Path

from llm_do_mcp import tool


@tool
def send(to: str) -> str:
    "Sends."
    import later

    with Path("sent.txt").open("a") as sent:
        print(to, file=sent)
    return "sent"
"""
HELPER = """
def unused() -> None:
    pass
"""
KEYS = """
toolsets: {filesystem: {}, custom: [send]}
sandbox: {paths: {out: {root: ./out, mode: rw}}}
"""
MODEL = '''
import json
from pathlib import Path


def reply(request):
    """Makes the calls of calls.json, and then says which tools it was shown and what came of the calls."""
    if request["turn"] == 0 and (calls := json.loads(Path("calls.json").read_text())):
        return {"tool_calls": [{"name": name, "input": given} for name, given in calls]}
    results = [block["content"] for block in request["messages"][-1]["content"] if block["type"] == "tool_result"]
    return json.dumps({"tools": [tool["name"] for tool in request["tools"]], "results": results})
'''
WRITE = ("write_file", {"path": "out/a.md", "content": "text"})
SEND = ("send", {"to": "a@example.com"})
CHANGED = "worker main, something that it includes, or its manifest"
CODE_CHANGED = r"the code of custom.send, tools.python or tools.env has changed since \(approved \w{12}, now \w{12}\)"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {
        "project.yaml": "name: small\nmodel: scripted:model.py\n",
        "main.worker": worker(KEYS),
        "model.py": MODEL,
        "tools.py": TOOLS,
        "later.py": "LATER = 1",
    }
    write(tmp_path, files)
    calls(tmp_path, WRITE, SEND)
    return tmp_path


def calls(project: Path, *made: tuple[str, dict[str, Any]]) -> None:
    (project / "calls.json").write_text(json.dumps(made))


def newest(project: Path) -> str:
    return str(json.loads(llm_do("runs", "--json", "--project", project).stdout)[0]["id"])


def locked(project: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """The lock, from a run that was approved."""
    assert llm_do(project, "go", "--approve-all").returncode == 0
    ran = llm_do("approvals", "lock", newest(project), "--project", project, *options)
    for left in ("out/a.md", "sent.txt"):
        (project / left).unlink(missing_ok=True)
    return ran


def run(project: Path) -> tuple[int, dict[str, Any]]:
    """A run as in CI: exit code, what the model said."""
    ran = llm_do(project, "go", "--approvals", "locked", env={"CI": "true"})
    return ran.returncode, json.loads(ran.stdout) if ran.stdout else {"error": ran.stderr}


@pytest.mark.proves("LOCK-RUN", "LOCK-WRITE")
def test_what_was_approved_once_runs_without_a_person(project: Path) -> None:
    made = locked(project)
    assert (made.returncode, made.stdout) == (0, "approvals.lock: 2 approvals (2 new, 0 replaced)\n"), made.stderr
    assert "approved in the run by: --approve-all (2)" in made.stderr
    text = (project / "approvals.lock").read_text()
    assert 'function: "files.write"' in text and '"path": {is: "out/a.md"}' in text and "worker_code: " in text
    assert '"to": {is: "a@example.com"}' in text and text.count("function_code: ") == 1
    code, said = run(project)
    assert code == 0 and said["tools"] == ["list_files", "read_file", "write_file", "send"]
    assert (project / "out/a.md").read_text() == "text" and (project / "sent.txt").read_text() == "a@example.com\n"
    account = json.loads(llm_do(project, "go", "--approvals", "locked", "--json").stdout)["run"]
    assert [(one["decision"], one["by"]) for one in account["approvals"]] == [("once", "approvals.lock")] * 2
    again = llm_do("approvals", "lock", newest(project), "--project", project)
    assert again.returncode == 1 and "was approved by a person; there is nothing to lock" in again.stderr


@pytest.mark.proves("LOCK-RUN", "LOCK-DIFFERENCE")
def test_another_argument_is_refused_with_the_difference_and_exits_3(project: Path) -> None:
    locked(project)
    calls(project, WRITE, ("write_file", {"path": "out/b.md", "content": "text"}), ("send", {"to": "b@example.com"}))
    code, said = run(project)
    assert code == 3
    refused = "was not run: approvals.lock does not allow it: "
    assert said["results"][1:] == [
        f"files.write out/b.md {refused}path is 'out/b.md', approved is 'out/a.md'",
        f"custom.send {refused}to is 'b@example.com', approved is 'a@example.com'",
    ]
    assert not (project / "out/b.md").exists() and not (project / "sent.txt").exists()


@pytest.mark.proves("LOCK-RUN", "LOCK-DIFFERENCE", "A076")
@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        (
            "main.worker",
            worker(KEYS, "Do it, and more."),
            rf"{CHANGED} has changed since \(approved \w{{12}}, now \w{{12}}\)",
        ),
        ("tools.py", TOOLS + HELPER, CODE_CHANGED),
        ("later.py", "LATER = 2", CODE_CHANGED),
        ("project.yaml", "name: small\nmodel: scripted:model.py\ntools: {env: [HOME]}\n", CODE_CHANGED),
        ("project.yaml", "name: small\nmodel: scripted:model.py\ntools: {python: python3}\n", CODE_CHANGED),
    ],
)
def test_changed_code_is_refused_with_the_difference(project: Path, file: str, text: str, words: str) -> None:
    locked(project)
    write(project, {file: text})
    code, said = run(project)
    assert code == 3
    assert re.search(f"^custom.send was not run: approvals.lock does not allow it: {words}$", said["results"][1])
    assert said["tools"][-1] == "send", "what is out of date stays in sight"
    assert not (project / "sent.txt").exists()
    assert locked(project).stdout == f"approvals.lock: 2 approvals ({2 if file == 'main.worker' else 1} new, " + (
        "2 replaced)\n" if file == "main.worker" else "1 replaced)\n"
    )
    assert run(project)[0] == 0


@pytest.mark.proves("LOCK-SECRETS")
def test_a_secret_is_locked_by_its_digest_and_allowed_where_it_is_not_known(project: Path) -> None:
    secret, found = "hunter2-VALUE-99", "id-4711"
    with (project / "project.yaml").open("a") as manifest:
        print('redact: ["id-[0-9]+"]', file=manifest)
    (project / "tools.py").write_text(TOOLS.replace("to: str", "to: str, by: list[str]"))
    calls(project, ("send", {"to": f"https://{secret}@host", "by": [found]}))
    known = {"API_TOKEN": secret}
    assert llm_do(project, "go", "--approve-all", env=known).returncode == 0
    for again in (known, None):  # the record of the run knows what was secret then
        made = llm_do("approvals", "lock", newest(project), "--project", project, env=again)
        assert made.returncode == 0, made.stderr
        text = (project / "approvals.lock").read_text()
        assert secret not in text and found not in text and text.count("sha256: ") == 2
    assert made.stdout == "approvals.lock: 1 approval (0 new, 0 replaced)\n"
    assert run(project)[0] == 0
    calls(project, ("send", {"to": f"https://{secret}@other", "by": [found]}))
    assert run(project)[0] == 3
    widened = llm_do("approvals", "lock", newest(project), "--project", project, "--pattern", "by=*")
    assert widened.returncode == 1, "nothing was approved by a person there"


@pytest.mark.proves("LOCK-RUN", "LOCK-DIFFERENCE")
def test_an_included_template_and_the_manifest_count_and_what_is_unrelated_does_not(project: Path) -> None:
    manifest = "name: small\nmodel: scripted:model.py\nsandbox: {paths: {in: {root: ./in, mode: ro}}}\n"
    included = {"project.yaml": manifest, "templates/rules.md": "Rules."}
    write(project, {"main.worker": worker(KEYS, '{% include "rules.md" %}'), "in/notes.md": "x", **included})
    locked(project)
    write(project, {"templates/other.md": "Other.", "workers/other.worker": worker()})
    assert run(project)[0] == 0
    for edited in ({"templates/rules.md": "Other rules."}, {"project.yaml": manifest.replace("mode: ro", "mode: rw")}):
        write(project, {**included, **edited})
        code, said = run(project)
        assert (code, len(said["results"])) == (3, 2)
        assert all(f"does not allow it: {CHANGED} has changed since" in result for result in said["results"])
    write(project, included)
    assert run(project)[0] == 0


@pytest.mark.proves("LOCK-HIDDEN")
def test_what_could_only_be_refused_is_not_shown_to_the_model(project: Path) -> None:
    calls(project, WRITE)
    locked(project)
    calls(project)
    assert run(project) == (0, {"tools": ["list_files", "read_file", "write_file"], "results": []})
    calls(project, SEND)
    code, said = run(project)
    assert code == 3
    assert said["results"] == [
        "custom.send was not run: approvals.lock does not allow it: nothing of custom.send is approved for worker main"
    ]
    keys = KEYS + "tool_rules: {send: {approval_required: false}}"
    write(project, {"main.worker": worker(keys)})
    calls(project)
    assert "send" in run(project)[1]["tools"], "what runs without asking needs no lock"


@pytest.mark.proves("LOCK-HIDDEN")
@pytest.mark.parametrize(
    ("approvals", "rules", "tools"),
    [
        ("ask", [], ["list_files", "read_file", "write_file", "send"]),
        ("ask", [{"function": "custom.*", "decision": "deny"}], ["list_files", "read_file", "write_file"]),
        (
            "ask",
            [{"function": "files.write", "subject": "out", "decision": "deny"}],
            ["list_files", "read_file", "send"],
        ),
        ("ask", [{"function": "files.write", "subject": "out/x/**", "decision": "deny"}], 4),
        ("deny", [], ["list_files", "read_file"]),
        ("deny", [{"function": "files.write", "subject": "out/x/*", "decision": "allow"}], 3),
    ],
)
def test_what_policy_or_settings_refuse_in_any_case_is_not_shown_to_the_model(
    project: Path, approvals: str, rules: list[dict[str, str]], tools: Any
) -> None:
    calls(project)
    manifest = (project / "project.yaml").read_text()
    (project / "project.yaml").write_text(f"{manifest}approvals: {json.dumps(rules)}\n")
    ran = llm_do(project, "go", "--approvals", approvals)
    shown = json.loads(ran.stdout)["tools"]
    assert (shown if isinstance(tools, list) else len(shown)) == tools


@pytest.mark.proves("LOCK-WRITE", "LOCK-MERGE")
def test_a_pattern_widens_and_a_second_run_is_merged(project: Path) -> None:
    locked(project)
    calls(project, ("write_file", {"path": "out/b.md", "content": "x"}))
    made = locked(project, "--pattern", "files.write:path=out/*.md", "--pattern", "content=*")
    assert made.stdout == "approvals.lock: 2 approvals (1 new, 1 replaced)\n", "the wider one covers what was exact"
    calls(project, ("write_file", {"path": "out/c.md", "content": "y"}), SEND)
    assert run(project)[0] == 0
    calls(project, ("write_file", {"path": "out/deep/c.md", "content": "y"}))
    assert run(project)[0] == 3
    before = (project / "approvals.lock").read_bytes()
    assert llm_do("approvals", "lock", newest(project), "--project", project).returncode == 1
    assert (project / "approvals.lock").read_bytes() == before


@at_terminal
@pytest.mark.proves("LOCK-WRITE", "GRANT-RECORDED")
def test_what_a_person_allowed_for_the_rest_of_the_run_is_locked_and_what_was_refused_is_not(project: Path) -> None:
    writes = [("write_file", {"path": f"out/{name}.md", "content": "text"}) for name in "abc"]
    calls(project, *writes, SEND)
    with Terminal([*LLM_DO, str(project), "go", "--json"]) as terminal:
        for _ in range(2):
            terminal.type("d\n" if "custom.send" in terminal.expect("> ") else "s\n")
        code, output = terminal.finish()
    assert code == 3
    by = sorted((one["decision"], one["by"]) for one in json.loads(output)["run"]["approvals"])
    assert by == [("deny", "terminal"), ("once", "grant"), ("once", "grant"), ("run", "terminal")]
    made = llm_do("approvals", "lock", newest(project), "--project", project)
    assert made.stdout == "approvals.lock: 3 approvals (3 new, 0 replaced)\n"
    calls(project, *writes)
    assert run(project)[0] == 0


@pytest.mark.proves("LOCK-RUN", "CLI-USAGE")
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["PROJECT", "go", "--approvals", "locked"], 2, "llm-do: there is no approvals.lock in the project; "),
        (["approvals"], 2, "the following arguments are required: action, RUN"),
        (["approvals", "lock", "nope", "--project", "PROJECT"], 1, "llm-do: the project has no runs yet"),
        (
            ["approvals", "lock", "RUN", "--project", "PROJECT", "--pattern", "path"],
            2,
            "is not of the form [FUNCTION:]",
        ),
        (
            ["approvals", "lock", "RUN", "--project", "PROJECT", "--pattern", ":a=b"],
            2,
            "is not of the form [FUNCTION:]",
        ),
        (["approvals", "lock", "RUN", "--project", "PROJECT", "--pattern", "path=x/*"], 2, "fits no argument"),
        (["approvals", "lock", "RUN", "--project", "PROJECT", "--pattern", "path=/x"], 2, "--pattern path=/x: "),
    ],
)
def test_what_cannot_be_locked_says_why(project: Path, arguments: list[str], code: int, words: str) -> None:
    if "RUN" in arguments:
        assert llm_do(project, "go", "--approve-all").returncode == 0
    names = {"PROJECT": str(project), "RUN": newest(project) if "RUN" in arguments else ""}
    ran = llm_do(*(names.get(argument, argument) for argument in arguments))
    assert (ran.returncode, ran.stdout) == (code, "") and words in ran.stderr
    assert "Traceback" not in ran.stderr and not (project / "approvals.lock").exists()


@pytest.mark.proves("LOCK-RUN")
def test_a_broken_lock_stops_before_anything_runs(project: Path) -> None:
    (project / "approvals.lock").write_text("version: 1\napprovals: [x]\n")
    ran = llm_do(project, "go", "--approvals", "locked")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("llm-do: approvals.lock:2:13: ")
    assert not (project / ".llm-do").exists()


@pytest.mark.proves("LOCK-RUN")
def test_a_run_that_waits_may_be_resumed_under_the_lock(project: Path) -> None:
    locked(project)
    assert llm_do(project, "go").returncode == 4
    resumed = llm_do("runs", "resume", newest(project), "--project", project, "--approvals", "locked")
    assert resumed.returncode == 0, resumed.stderr
    assert (project / "sent.txt").exists()


@pytest.mark.proves("LOCK-WRITE")
@pytest.mark.skipif(sys.platform == "win32", reason="folders have no such permissions")
def test_no_worker_can_write_the_lock(project: Path) -> None:
    keys = "toolsets: {filesystem: {}}\nsandbox: {paths: {all: {root: ., mode: rw, write_approval: false}}}"
    write(project, {"main.worker": worker(keys)})
    calls(project, ("write_file", {"path": "all/approvals.lock", "content": "version: 1\napprovals: []\n"}))
    ran = llm_do(project, "go", "--approve-all")
    assert "protected" in json.loads(ran.stdout)["results"][0] and not (project / "approvals.lock").exists()
