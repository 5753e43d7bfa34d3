"""The log: one whole line for each command, what was asked and never what was found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from llm_do_mcp.te.settings import Settings
from llm_do_mcp.te.telemetry import Log, next_action
from tests.te.searching import search, te, write

FIELDS = [
    *("event", "id", "timestamp", "agent_id", "session_id", "cmd", "arguments", "mode", "input_size", "output_size"),
    *("truncated", "handle_created", "handle", "latency_ms", "error", "strategy"),
]


def events(folder: Path, path: str = ".llmc/te_telemetry.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / path).read_text().splitlines()]


def ask(folder: Path, *commands: str, session: str = "s", **settings: Any) -> list[dict[str, Any]]:
    """Run commands in a folder that keeps a log; returns its events."""
    for command in commands:
        search(
            command,
            folder,
            guard="none",
            budget=2_000,
            session=session,
            agent="me",
            settings=Settings(settings, str(folder)),
            folder=str(folder.parent / "kept"),
        )
    return events(folder)


@pytest.mark.proves("TE-TELEMETRY")
def test_every_invocation_is_told_and_no_line_of_a_file(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {f"f{n}.py": "needle = 'the very secret'\n" * 50 for n in range(9)})
    write(tree, {"patterns": "very secret\n"})
    searches = ["te grep needle", "te cat f1.py", "te find . -name '*.py'", "te grep -E '('"]
    told = ask(tree, *searches, "te frob", "te grep -f patterns")
    found = [event for event in told if event["event"] == "command"]
    assert [event["cmd"] for event in found] == ["grep", "cat", "find", "grep", "te", "grep"]
    assert [event["error"] for event in found] == [None, None, None, "invalid_pattern", "unknown_command", None]
    assert [event["mode"] for event in found] == ["enriched"] * 3 + ["error"] * 2 + ["enriched"]
    assert all(list(event) == FIELDS for event in found)
    grep = found[0]
    assert (grep["agent_id"], grep["session_id"], grep["arguments"]) == ("me", "s", ["grep", "needle"])
    assert grep["truncated"] and grep["handle_created"] and grep["handle"].startswith("res_")
    assert grep["input_size"] > 10_000 > 2_000 >= grep["output_size"] > 1_000
    assert "secret" not in (tree / ".llmc" / "te_telemetry.jsonl").read_text()


@pytest.mark.proves("TE-TELEMETRY")
def test_the_next_action_is_an_event_that_names_the_command_before(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {f"f{n}.py": "needle = 1\n" * 50 for n in range(9)})
    ask(tree, "te grep needle")
    ask(tree, "te grep other", session="another")
    handle = events(tree)[0]["handle"]
    ask(tree, f"te --handle {handle}", "te grep -i NEEDLE f1.py", "te grep -w needle", "te cat f1.py")
    told = events(tree)
    by_id = {event["id"]: event for event in told if event["event"] == "command"}
    actions = [(by_id[event["of"]]["cmd"], event["action"]) for event in told if event["event"] == "next_action"]
    assert actions == [("grep", "uses_handle"), ("handle", "proceeds"), ("grep", "repeats"), ("grep", "proceeds")]
    assert [event["session_id"] for event in told if event["event"] == "next_action"] == ["s"] * 4


@pytest.mark.proves("TE-TELEMETRY")
def test_a_handle_shows_something_about_the_answer_that_it_is_from_once(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {f"f{n}.py": "needle = 1\n" * 50 for n in range(9)})
    ask(tree, "te grep needle")
    handle = events(tree)[0]["handle"]
    more = [
        "te cat f1.py",
        "te --handle res_0123456789abcdef",
        f"te --handle {handle}",
        f"te --handle {handle} --chunk 2",
    ]
    told = ask(tree, *more, "te find .")
    by_id = {event["id"]: event["arguments"] for event in told if event["event"] == "command"}
    actions = [(by_id[event["of"]], event["action"]) for event in told if event["event"] == "next_action"]
    assert actions == [
        (["grep", "needle"], "proceeds"),
        (["--handle", handle, "--chunk", "2"], "proceeds"),
    ]


@pytest.mark.proves("TE-TELEMETRY")
@pytest.mark.parametrize(
    ("before", "now", "action"),
    [
        ("grep connect", "grep connection_pool", "proceeds"),
        ("grep connect src", "grep -rn connect", "repeats"),
        ("grep 'def connect'", "grep connect", "repeats"),
        ("grep connect", "grep connect", "repeats"),
        ("find . -name x.py", "find src -name x.py", "repeats"),
        ("grep connect", "cat src/connect.py", "proceeds"),
        ("grep connect", "coach report", ""),
        ("grep connect", "grep --help", ""),
        ("grep connect", "cat --help", ""),
        ("grep --help", "grep connect", ""),
    ],
)
def test_what_a_command_shows_about_the_one_before(before: str, now: str, action: str) -> None:
    first, second = ({"cmd": line.split()[0], "arguments": line.split(), "mode": "enriched"} for line in (before, now))
    assert next_action(first, second) == action
    raw = {**second, "arguments": ["-i", *second["arguments"]], "mode": "raw"}
    assert next_action(first, raw) == action, "a form before the command changes nothing"
    assert next_action({**first, "mode": "error"}, second) == "", "what failed says nothing about how answers look"
    failed = next_action(first, {**second, "mode": "error"})
    assert failed == action.replace("proceeds", ""), "and is no step ahead"


@pytest.mark.proves("TE-TELEMETRY", "TE-COACH")
@pytest.mark.parametrize("wrong", ["te grep '['", "te bogus", "te cat nope", "te frob --help"])
def test_a_command_that_is_an_error_does_not_commend_the_answer_before_it(tmp_path: Path, wrong: str) -> None:
    write(tmp_path / "tree", {"a.txt": "needle\n"})
    told = ask(tmp_path / "tree", "te grep needle", wrong, "te cat a.txt")
    assert [(event["event"], event.get("mode")) for event in told] == [
        ("command", "enriched"),
        ("command", "error"),
        ("command", "enriched"),
    ]


@pytest.mark.proves("TE-TELEMETRY")
def test_an_answer_with_a_shortcoming_names_it_and_is_a_step_like_any_other(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {f"d{n}/f.py": "needle\n" for n in range(400)})
    ask(tree, "te grep needle d1 nope", "te cat nope d1/f.py", "te find d1 nope", "te grep needle nope", "te find d1")
    told = [event for event in events(tree) if event["event"] == "command"]
    assert [(event["mode"], event["error"]) for event in told] == [
        *[("enriched", "path_not_found")] * 3,
        ("error", "path_not_found"),
        ("enriched", None),
    ]
    actions = [event["of"] for event in events(tree) if event["event"] == "next_action"]
    assert actions == [event["id"] for event in told[:2]], "what has no answer says nothing about answers"


@pytest.mark.proves("TE-TELEMETRY")
def test_what_asks_about_te_itself_is_told_too_and_shows_nothing_about_answers(tmp_path: Path) -> None:
    write(tmp_path, {"llmc.toml": "[tool_envelope]\n", "a.txt": "needle\n"})
    codes = [
        te(*words, folder=tmp_path).returncode
        for words in (("grep", "needle"), (), ("--help",), ("--version",), ("help",), ("cat", "a.txt"))
    ]
    assert codes == [0, 2, 0, 0, 0, 0]
    assert not [event for event in events(tmp_path) if event["event"] == "next_action"]
    told = [event for event in events(tmp_path) if event["event"] == "command"]
    assert [(event["cmd"], event["mode"], event["error"]) for event in told] == [
        ("grep", "enriched", None),
        ("te", "error", "usage"),
        *[("te", "raw", None)] * 3,
        ("cat", "enriched", None),
    ]
    write(tmp_path, {"llmc.toml": "[tool_envelope]\nfrob = 1\n"})
    assert te("--help", folder=tmp_path).stdout.startswith(b"Search and read files"), "help is not barred"


@pytest.mark.proves("TE-TELEMETRY")
def test_a_hundred_processes_write_whole_lines(tmp_path: Path) -> None:
    write(tmp_path, {"llmc.toml": "[tool_envelope]\n", "a.txt": "needle\n"})
    pattern = "x" * 250  # lines that do not fit into a sector or a small buffer
    program = (
        "import sys\n"
        "from llm_do_mcp.te.__main__ import main\n"
        "print(end='ready', flush=True); sys.stdin.read()\n"
        f"sys.argv[1:] = ['grep', *['-e', {pattern!r}] * 20, sys.argv[1]]; main()\n"
    )
    environment = {**os.environ, "TE_SESSION_ID": "s"}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program, "a.txt"],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for _ in range(100)
    ]
    for process in running:  # all are loaded before the first may start
        assert process.stdout is not None and process.stdout.read(5) == b"ready"
    for process in running:
        assert process.stdin is not None
        process.stdin.close()
    for process in running:
        assert process.stdout is not None
        process.stdout.read()
        process.stdout.close()
        assert process.wait() == 1
    told = events(tmp_path)
    assert len({event["id"] for event in told if event["event"] == "command"}) == 100
    assert all(event["event"] == "next_action" or len(json.dumps(event)) > 5_000 for event in told)


@pytest.mark.proves("TE-TELEMETRY")
def test_nothing_is_written_where_no_log_is_kept_or_elsewhere(tmp_path: Path) -> None:
    write(tmp_path / "a", {"a.txt": "needle\n"})
    te("grep", "needle", folder=tmp_path / "a")
    write(tmp_path / "a", {"llmc.toml": "[tool_envelope.telemetry]\nenabled = false\n"})
    te("grep", "needle", folder=tmp_path / "a")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "a.txt", "llmc.toml"]
    if os.name == "posix":
        write(tmp_path, {"theirs/file": "as it was"})
        write(tmp_path / "a", {"llmc.toml": "[tool_envelope]\n"})
        (tmp_path / "a" / ".llmc").symlink_to(tmp_path / "theirs")
        te("grep", "needle", folder=tmp_path / "a")
        assert [path.name for path in (tmp_path / "theirs").iterdir()] == ["file"]
        (tmp_path / "a" / ".llmc").unlink()
        (tmp_path / "a" / ".llmc").mkdir()
        (tmp_path / "a" / ".llmc" / "te_telemetry.jsonl").symlink_to(tmp_path / "theirs" / "file")
        te("grep", "needle", folder=tmp_path / "a")
        assert (tmp_path / "theirs" / "file").read_text() == "as it was"


@pytest.mark.proves("TE-TELEMETRY")
def test_lines_that_are_no_events_are_passed_over(tmp_path: Path) -> None:
    good = b'{"event":"next_action","of":"1","action":"repeats"}'
    bad = [
        *(b"", b"[1]", b"\xff", b"[" * 100_000, b'{"event":"command"', b'{"event":"x"}', b'{"event":["command"]}'),
        *(good.replace(b'"1"', b"[1]"), good.replace(b"repeats", b"other"), b'{"event":"command","id":"1"}'),
        b'{"event":"command","id":"1","session_id":"s","cmd":"grep","mode":"raw","arguments":"grep"}',
        b'{"event":"command","id":"1","session_id":"s","cmd":"grep","mode":"raw","arguments":[],"strategy":1}',
    ]
    write(tmp_path, {"log.jsonl": b"\n".join([*bad, good, b'{"event":'])})
    assert list(Log(str(tmp_path), "log.jsonl").events()) == [json.loads(good)]
    search("grep x", tmp_path, session="s", settings=Settings({"telemetry": {"path": "log.jsonl"}}, str(tmp_path)))
    assert [event.get("cmd") for event in Log(str(tmp_path), "log.jsonl").events()] == [None, "grep"]


@pytest.mark.proves("TE-TELEMETRY")
def test_a_line_that_was_cut_short_takes_no_other_with_it(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"a.txt": "needle\n", "log.jsonl": b'{"event":"comm'})
    for _ in range(2):
        search("grep needle", tree, settings=Settings({"telemetry": {"path": "log.jsonl"}}, str(tree)))
    torn, *lines = (tree / "log.jsonl").read_text().splitlines()
    assert torn == '{"event":"comm'
    assert [json.loads(line)["cmd"] for line in lines] == ["grep", "grep"]


@pytest.mark.proves("TE-TELEMETRY")
@pytest.mark.skipif(os.name != "posix", reason="a FIFO")
def test_a_pipe_in_the_place_of_the_log_holds_nobody_up(tmp_path: Path) -> None:
    write(tmp_path, {"llmc.toml": "[tool_envelope.telemetry]\npath = 'log.jsonl'\n", "a.txt": "needle\n"})
    os.mkfifo(tmp_path / "log.jsonl")
    assert te("grep", "needle", folder=tmp_path).returncode == 0
    assert te("coach", "report", folder=tmp_path).returncode == 0
