"""Recorded runs as files of a project, and tests that replay them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llm_do_mcp.testing.copies import leave_out
from tests.cli.commands import llm_do
from tests.testing.keeper import FILES, keeper, one_test

OWN_MODEL = {
    "main.worker": FILES["main.worker"].replace("model: anthropic:claude-haiku-4-5\n", ""),
    "workers/judge.worker": FILES["workers/judge.worker"].replace('["anthropic:*"]', '["*"]'),
}
"""The workers without a model of their own."""


def _recorded(folder: Path, *options: str, **more: str) -> Path:
    """A project with a run that was recorded in `tests/it.json`, and is replayed with all approved."""
    root = keeper(folder, one_test("", " all\n", model="replay:tests/it.json"), **OWN_MODEL, **more)
    env = {"LLM_DO_MODEL": "scripted:script.yaml"}
    assert llm_do(root, "pears", *(options or ("--approve-all",)), env=env).returncode in (0, 3)
    assert llm_do("test", root, "--record", "last", "tests/it.json").returncode == 0
    return root


@pytest.mark.proves("TEST-REPLAY")
def test_a_recorded_run_is_a_file_of_the_project_and_is_replayed(tmp_path: Path) -> None:
    replays = one_test("    expect: {text: Kept}\n", " all\n", model="replay:tests/pears.json")
    root = keeper(tmp_path, replays, **OWN_MODEL)
    env = {"LLM_DO_MODEL": "scripted:script.yaml", "KEEPER_API_KEY": "sesame-opens-42"}
    assert llm_do(root, "pears", "--approve-all", env=env).returncode == 0
    recorded = llm_do("test", root, "--record", "last", "tests/pears.json", env=env)
    assert str(tmp_path) not in (root / "tests/pears.json").read_text()
    assert recorded.returncode == 0 and "look through it before you commit it" in recorded.stdout
    (root / "script.yaml").unlink()
    done = llm_do("test", root)
    assert done.returncode == 0, done.stdout

    (root / "tests/keeping.yaml").write_text(replays.replace("input: pears", "input: plums"))
    done = llm_do("test", root)
    assert done.returncode == 1
    assert "something else is asked than in run" in done.stdout and "plums" in done.stdout


@pytest.mark.proves("TEST-REPLAY-BEGINS")
def test_a_replay_begins_without_the_files_that_the_recorded_run_made(tmp_path: Path) -> None:
    """Also those that a tool of a worker below made; what merely was changed is there."""
    tools = """from llm_do_mcp import ToolContext, tool

@tool
def stamp(context: ToolContext, text: str) -> str:
    context.call("write_file", {"path": "notes/deep/a b.md", "content": text})
    context.call("write_file", {"path": "notes/old.md", "content": text})
    return text
"""
    root = _recorded(tmp_path, **{"tools.py": tools})
    recorded = json.loads((root / "tests/it.json").read_text())
    assert recorded["created"] == ["notes/new.md", "notes/deep/a b.md"]
    done = llm_do("test", root)
    assert done.returncode == 0, done.stdout
    assert (root / "notes/new.md").exists()


@pytest.mark.proves("TEST-REPLAY-BEGINS")
def test_the_folder_of_what_is_left_out_stays(tmp_path: Path) -> None:
    """The run may have listed it before it wrote there."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "new.md").write_text("new")
    leave_out(str(tmp_path), ["out/new.md"])
    assert [path.name for path in tmp_path.rglob("*")] == ["out"]


@pytest.mark.skipif(os.name == "nt", reason="making links is a privilege there")
@pytest.mark.proves("TEST-REPLAY-BEGINS")
def test_nothing_is_left_out_of_what_a_link_leads_to(tmp_path: Path) -> None:
    root = _recorded(tmp_path)
    kept = tmp_path / "kept.txt"
    kept.write_text("kept")
    (root / "away").symlink_to(tmp_path)
    recorded = json.loads((root / "tests/it.json").read_text())
    recorded["created"] += ["away/kept.txt", "never/there.md"]
    (root / "tests/it.json").write_text(json.dumps(recorded))
    assert llm_do("test", root).returncode == 0
    assert kept.read_text() == "kept"


@pytest.mark.proves("TEST-REPLAY")
def test_what_differs_from_a_recorded_run_is_shown_with_the_words_that_differ(tmp_path: Path) -> None:
    root = _recorded(tmp_path, **{"script.yaml": FILES["script.yaml"].replace('"pears\\n"', json.dumps("pears " * 99))})
    recorded = json.loads((root / "tests/it.json").read_text())
    (root / "tests/it.json").write_text(json.dumps({**recorded, "created": []}))
    done = llm_do("test", root)
    assert done.returncode == 1
    assert '"created": true' in done.stdout and '"created": false' in done.stdout
    assert "; replay it with the same input and files, or record the run anew" in done.stdout


@pytest.mark.proves("TEST-REPLAY")
def test_functions_that_were_hidden_from_a_recorded_run_are_told(tmp_path: Path) -> None:
    root = _recorded(tmp_path, "--approvals", "deny")
    assert "the functions: then 'list_files, " in llm_do("test", root).stdout
    (root / "tests/keeping.yaml").write_text(one_test("", " deny\n", model="replay:tests/it.json"))
    done = llm_do("test", root)
    assert done.returncode == 0, done.stdout


@pytest.mark.proves("TEST-REPLAY")
def test_an_attachment_that_is_another_one_than_in_the_recorded_run_is_told(tmp_path: Path) -> None:
    root = _recorded(tmp_path, "--attach", str(tmp_path / "keeper/notes/old.md"), "--approve-all")
    suite = one_test("    attach: [notes/old.md]\n", " all\n", model="replay:tests/it.json")
    (root / "tests/keeping.yaml").write_text(suite)
    done = llm_do("test", root)
    assert done.returncode == 0, done.stdout
    (root / "notes/old.md").write_text("not so old\n")
    said = llm_do("test", root).stdout
    assert "the content of the attachment old.md: then 4 bytes (sha256 " in said and "now 11 (" in said


@pytest.mark.proves("TEST-REPLAY")
def test_a_run_that_read_much_is_replayed_as_well(tmp_path: Path) -> None:
    reads = [{"name": "read_file", "input": {"path": f"notes/{number}.md"}} for number in range(6)]
    script = json.dumps({"workers": {"main": [{"tool_calls": reads}, "Kept."]}})
    notes = {f"notes/{number}.md": f"{number}" * 190_000 for number in range(6)}
    root = _recorded(tmp_path, **{"script.yaml": script, **notes})
    assert (root / "tests/it.json").stat().st_size > 1_100_000
    done = llm_do("test", root)
    assert done.returncode == 0, done.stdout


@pytest.mark.proves("TEST-REPLAY")
def test_a_run_that_is_no_file_yet_cannot_be_replayed_in_a_test(tmp_path: Path) -> None:
    """A copy has no runs: it must not say that there is none, or name a list in which the run is."""
    root = _recorded(tmp_path)
    said = llm_do("test", root, "--model", "replay:last").stdout
    assert "'last' is no recording: a test replays a file of the project that ends in .json; write one with: " in said


DAMAGES: dict[str, Callable[[Any], Any]] = {
    "it": lambda file: [file],
    "format": lambda file: {**file, "format": 2},
    "run": lambda file: {**file, "run": "\ud800"},
    "created.0": lambda file: {**file, "created": ["../x"]},
    "events": lambda file: {**file, "events": []},
    "events.0.kind": lambda file: _with(file, 0, kind=None),
    "events.0.instructions": lambda file: _with(file, 0, data={**file["events"][0]["data"], "instructions": 5}),
    "events.3.digset": lambda file: _with(file, 3, digset=""),
    "events.3.usage.output_tokens": lambda file: _with_turn(file, usage={"input_tokens": 1, "output_tokens": "x"}),
    "events.3.content": lambda file: _with_turn(file, content=5),
    "events.3.content.0": lambda file: _with_turn(file, content=[{"type": "text", "text": None}]),
}
"""What is wrong with a recording → how it came to be so."""


def _with(file: Any, at: int, **changed: Any) -> Any:
    events = [*file["events"]]
    events[at] = {**events[at], **changed}
    return {**file, "events": events}


def _with_turn(file: Any, **changed: Any) -> Any:
    assert file["events"][3]["kind"] == "model"
    return _with(file, 3, data={**file["events"][3]["data"], **changed})


@pytest.mark.proves("TEST-REPLAY-DAMAGED")
def test_a_damaged_recording_fails_its_own_test_in_one_line(tmp_path: Path) -> None:
    root = _recorded(tmp_path)
    whole = json.loads((root / "tests/it.json").read_text())
    tests = []
    for number, damage in enumerate(DAMAGES.values()):
        (root / f"tests/{number}.json").write_text(json.dumps(damage(whole)))
        tests.append(f"  damaged {number}: {{input: pears, approvals: all, model: 'replay:tests/{number}.json'}}\n")
    tests.append("  whole: {input: pears, approvals: all, model: 'replay:tests/it.json'}\n")
    (root / "tests/keeping.yaml").write_text(f"tests:\n{''.join(tests)}")
    done = llm_do("test", root)
    assert (done.returncode, done.stderr) == (1, "")
    *lines, whole_too, last = done.stdout.splitlines()
    for number, place in enumerate(DAMAGES):
        said = f"tests/{number}.json: no recording of format 1 ({place} is not of its form); write one with: "
        assert lines[2 * number + 1].strip().startswith(said), place
    assert whole_too.startswith("ok ") and f"1 passed, {len(DAMAGES)} failed" in last


@pytest.mark.proves("TEST-REPLAY")
def test_a_recording_holds_no_secret_of_the_environment(tmp_path: Path) -> None:
    root = keeper(tmp_path, one_test(""), **OWN_MODEL)
    env = {"LLM_DO_MODEL": "scripted:script.yaml", "KEEPER_API_KEY": "sesame-opens-42"}
    assert llm_do(root, "say sesame-opens-42", "--approve-all", env=env).returncode == 0
    assert llm_do("test", root, "--record", "last", "tests/it.json").returncode == 0
    text = (root / "tests/it.json").read_text()
    assert json.loads(text)["format"] == 1
    assert "sesame-opens-42" not in text and "KEEPER_API_KEY" in text


@pytest.mark.proves("TEST-REPLAY")
def test_a_recording_outside_the_project_is_neither_read_nor_written(tmp_path: Path) -> None:
    root = keeper(tmp_path, "tests:\n  a: {model: 'replay:../x.json'}\n  b: {model: 'scripted:script.yaml'}\n")
    (root / "main.worker").write_text("---\nmodel: scripted:said.yaml\n---\nx\n")
    (root / "script.yaml").write_text("workers: {main: [Kept.]}\n")
    done = llm_do("test", root)
    first, said, second, last = done.stdout.splitlines()
    assert (done.returncode, done.stderr, said.strip()[:20]) == (1, "", "'../x.json' has '..'")
    assert first.startswith("FAILED") and second.startswith("ok    ")
    assert last == "2 tests: 1 passed, 1 failed (no model was called)"
    assert llm_do(root, "x").returncode == 1  # there is no said.yaml
    refused = llm_do("test", root, "--record", "last", "../x.json")
    assert (refused.returncode, refused.stderr.count("\n"), (tmp_path / "x.json").exists()) == (2, 1, False)
    failed = llm_do("test", root, "--record", "last", "tests/x.json")
    assert failed.returncode == 0 and ", which is failed, not done, in tests/x.json;" in failed.stdout
    (root / "away").symlink_to(tmp_path)
    led_out = llm_do("test", root, "--record", "last", "away/x.json")
    assert (led_out.returncode, led_out.stderr.count("\n"), (tmp_path / "x.json").exists()) == (1, 1, False)


@pytest.mark.proves("TEST-RECORD-PLACE")
def test_a_recording_is_written_where_tests_look(tmp_path: Path) -> None:
    root = _recorded(tmp_path)
    (root / ".git").mkdir()
    before = sorted(root.rglob("*"))
    for file, said in (
        (".git/hooks/x.json", "'.git/hooks/x.json': .git is no part of the project"),
        (".LLM-DO/x.json", "'.LLM-DO/x.json': .LLM-DO is no part of the project"),
        ("tests/__pycache__/x.json", "__pycache__ is no part of the project"),
        ("../x.json", "only what lies inside the project can be named"),
        ("tests/x.yaml", "name a file that ends in .json"),
    ):
        done = llm_do("test", root, "--record", "last", file)
        assert (done.returncode, done.stdout) == (2, "") and said in done.stderr and done.stderr.count("\n") == 1
    assert sorted(root.rglob("*")) == before
