"""`approvals.lock`: what it allows, what it says of what it does not, and the file itself."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llm_do_mcp.errors import ProjectError, RunError, UsageError
from llm_do_mcp.runtime import lock
from llm_do_mcp.runtime.approvals import Approvals, of_project
from llm_do_mcp.runtime.lock import CLIENT, Entry, Lock, exact, parse, read, widened, write
from llm_do_mcp.runtime.question import Kind, Question


def question(
    function: str = "files.write",
    value: Any = None,
    *,
    chain: tuple[str, ...] = ("main",),
    kind: Kind = "approval",
    worker_code: str = "w1",
    function_code: str = "",
) -> Question:
    given = {"path": "out/a.md", "content": "text"} if value is None else value
    return Question(
        "k",
        kind,
        chain,
        function,
        "write",
        "",
        "",
        "d" * 64,
        0,
        "",
        "out",
        worker_code,
        function_code,
        exact(function, given),
    )


def locked(*questions: Question) -> Lock:
    return Lock().merged(lock.entry_of(asked) for asked in questions)


# ---- what it allows


@pytest.mark.proves("LOCK-EXACT")
def test_exactly_what_was_approved_is_allowed_in_any_spelling_of_its_path() -> None:
    allowed = locked(question())
    assert allowed.difference(question()) is None
    for path in ("out:a.md", "out/.//a.md", "out/./a.md"):
        assert allowed.difference(question(value={"path": path, "content": "text"})) is None
    for path in ("out/A.md", "out/a.md.", "out/b/a.md", "out/../out/a.md", "out"):
        assert allowed.difference(question(value={"path": path, "content": "text"})) is not None


@pytest.mark.proves("LOCK-EXACT")
@pytest.mark.parametrize(
    "value",
    [
        *({"n": n} for n in (1, 1.5, True, None, [1, {"a": "b"}], "1", "x" * 5_000, list(range(1_000)), 10**30)),
        *({"n": text} for text in ("\ud800", "a\nb\u2028c\u202e")),
        *({}, {"": "x"}),
    ],
)
def test_no_other_value_passes_for_one_that_was_approved(value: dict[str, Any]) -> None:
    allowed = parse(locked(question("custom.f", value)).text())
    assert allowed.difference(question("custom.f", value)) is None
    others = [{"n": "1"}, {"n": 1}, {"n": 2}, {"n": "x" * 4_999 + "y"}, {}, {"n": 1, "m": 1}, {"n": False}, {"m": 1}]
    for other in (other for other in others if repr(other) != repr(value)):
        assert allowed.difference(question("custom.f", other)) is not None, other


@pytest.mark.proves("LOCK-EXACT")
def test_a_pattern_allows_what_fits_it() -> None:
    entry = lock.entry_of(question())
    paths = widened(entry, "files.*", "path", "out/*.md")
    assert paths is not None
    wide = widened(paths, "*", "content", "*")
    assert wide is not None
    allowed = Lock((wide,))
    assert allowed.difference(question(value={"path": "out/b.md", "content": "y" * 9_000})) is None
    assert allowed.difference(question(value={"path": "out/x/b.md", "content": ""})) is not None
    assert allowed.difference(question(value={"path": "out/b.txt", "content": ""})) is not None
    words = widened(lock.entry_of(question("custom.f", {"to": "a@example.com"})), "custom.f", "to", "*@example.com")
    assert words is not None
    assert Lock((words,)).difference(question("custom.f", {"to": "b@example.com"})) is None
    assert Lock((words,)).difference(question("custom.f", {"to": "b@example.org"})) is not None
    assert Lock((words,)).difference(question("custom.f", {})) is not None


@pytest.mark.proves("LOCK-EXACT")
def test_a_pattern_widens_only_what_it_fits() -> None:
    entry = lock.entry_of(question())
    assert widened(entry, "files.*", "path", "notes/**") is None
    assert widened(entry, "custom.*", "path", "out/**") is None
    assert widened(entry, "*", "other", "*") is None
    with pytest.raises(UsageError, match="--pattern path=/etc/"):
        widened(entry, "*", "path", "/etc/*")


# ---- what it says


@pytest.mark.proves("LOCK-DIFFERENCE")
def test_the_difference_is_one_line() -> None:
    allowed = locked(
        question(function_code="f1"), question(value={"path": "out/b.md", "content": "other"}, function_code="f1")
    )
    differences = {
        "nothing": allowed.difference(question("files.read")),
        "caller": allowed.difference(question(chain=())),
        "worker": allowed.difference(question(worker_code="w2", function_code="f1")),
        "code": allowed.difference(question(function_code="f2")),
        "argument": allowed.difference(question(value={"path": "out/c.md", "content": "other"}, function_code="f1")),
        "long": allowed.difference(
            question(value={"path": "out/a.md", "content": "x\n\x1b" * 900}, function_code="f1")
        ),
        "mode": allowed.difference(
            question(value={"path": "out/a.md", "content": "text", "mode": 1}, function_code="f1")
        ),
    }
    assert differences["nothing"] == "nothing of files.read is approved for worker main"
    assert differences["caller"] == "nothing of files.write is approved for worker (client)"
    nearest = " (the nearest of 2 entries)"
    assert differences["worker"] == (
        f"worker main, something that it includes, or its manifest has changed since (approved w1, now w2){nearest}"
    )
    assert differences["code"] == (
        f"the code of files.write, tools.python or tools.env has changed since (approved f1, now f2){nearest}"
    )
    assert differences["argument"] == f"path is 'out/c.md', approved is 'out/b.md'{nearest}"
    assert differences["mode"] == f"mode is 1, approved is not given{nearest}"
    assert differences["long"] is not None and "content is 2700 characters with sha256 " in differences["long"]
    assert all(said is not None and said.isprintable() and len(said) < 300 for said in differences.values())


@pytest.mark.proves("LOCK-EXACT")
def test_what_a_lock_answers_and_what_it_leaves_to_a_person() -> None:
    approvals = Approvals("locked", locked(question()))
    answers = [approvals.answer(asked) for asked in (question(), question(worker_code="w2"), question(kind="question"))]
    assert [(answer and (answer.decision, answer.silence, answer.by)) for answer in answers] == [
        ("once", None, "approvals.lock"),
        ("", "not_locked", "approvals.lock"),
        ("", "policy", "--approvals locked"),
    ]
    assert all(Approvals(mode).answer(question(kind="in_doubt")) is None for mode in ("ask", "locked", "deny"))
    assert Approvals().answer(question()) is None


# ---- the file


@pytest.mark.proves("LOCK-FILE")
def test_the_file_reads_back_as_what_it_was_and_its_order_is_fixed(tmp_path: Path) -> None:
    values: list[dict[str, Any]] = [
        {"path": "out/b.md", "content": 'quotes " and \\ and # and : {}\n\t\u202e\U000e0001 é 🎺'},
        {"path": "out/a.md", "content": "x" * 3_000},
        {"path": "out/\udcff.md", "content": "- a\n- b\x00"},
    ]
    asked = [question(value=value) for value in values] + [question("custom.f", {}, chain=(), worker_code="")]
    made = locked(*asked)
    write(str(tmp_path), made)
    assert read(str(tmp_path)) == made
    text = (tmp_path / "approvals.lock").read_text(encoding="utf-8")
    assert text == locked(*reversed(asked)).text()
    assert all(line.isprintable() for line in text.splitlines()) and "é 🎺" in text
    assert [entry.worker for entry in made.entries] == [CLIENT, "main", "main", "main"]
    write(str(tmp_path), Lock())
    assert read(str(tmp_path)) == Lock()


@pytest.mark.proves("LOCK-FILE")
def test_what_could_not_be_read_again_is_not_written(tmp_path: Path) -> None:
    good = locked(question())
    write(str(tmp_path), good)
    many = locked(*(question(value={"path": f"out/{n}.md", "content": "x" * 900}) for n in range(400)))
    with pytest.raises(RunError, match=r"approvals\.lock was not written: it could not be read again"):
        write(str(tmp_path), many)
    assert read(str(tmp_path)) == good
    assert os.listdir(tmp_path) == ["approvals.lock"]


@pytest.mark.proves("LOCK-FILE")
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("version: 2\napprovals: []\n", "approvals.lock:1:10: "),
        ("version: 1\n", "'approvals' is missing"),
        ("version: 1\napprovals: [{worker: a, function: b, arguments: {c: {is: x, like: y}}}]\n", "must be one of"),
        ("version: 1\napprovals: [{worker: a, function: b, arguments: {c: {}}}]\n", "must be one of"),
        ("version: 1\napprovals: [{worker: a, function: b, arguments: {c: {is: null}}}]\n", "must be one of"),
        ("version: 1\napprovals: [{worker: a, function: b, arguments: {c: {is: 1}}}]\n", "approvals.lock:2:58: "),
        (
            "version: 1\napprovals: [{worker: a, function: b, arguments: {}, decision: allow}]\n",
            "unknown key 'decision'",
        ),
        ("version: 1\napprovals: [{worker: a, arguments: {}}]\n", "'function' is missing"),
        ("version: 1\napprovals: [{worker: a, function: b, arguments: {c: {sha256: ab, characters: 1}}}]\n", ":2:"),
        ("\tversion: 1", "approvals.lock:1:"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_its_place(tmp_path: Path, body: str, words: str) -> None:
    (tmp_path / "approvals.lock").write_text(body)
    with pytest.raises(ProjectError) as refused:
        of_project("locked", str(tmp_path))
    assert words in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.proves("LOCK-FILE")
def test_without_a_file_locked_cannot_be_meant(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no approvals.lock .*: llm-do approvals lock RUN --project "):
        of_project("locked", str(tmp_path))
    assert of_project("deny", str(tmp_path)) == Approvals("deny")


# ---- merging


def _entry(path: str, **changes: Any) -> Entry:
    return replace(lock.entry_of(question(value={"path": path, "content": "x"})), **changes)


@pytest.mark.proves("LOCK-MERGE")
def test_merging_keeps_what_is_there_and_says_nothing_twice() -> None:
    first = Lock().merged([_entry("out/a.md"), _entry("out/b.md", worker="other")])
    again = first.merged([_entry("out/a.md"), _entry("out/c.md")])
    assert {json.dumps(entry.arguments["path"]["is"]) for entry in again.entries} == {
        '"out/a.md"',
        '"out/b.md"',
        '"out/c.md"',
    }
    assert again.merged([]) == again == again.merged(again.entries)


@pytest.mark.proves("LOCK-MERGE")
def test_merging_drops_what_could_never_match_again() -> None:
    before = Lock().merged([_entry("out/a.md"), _entry("out/b.md"), _entry("out/a.md", worker="other")])
    before = before.merged([_entry("out/a.md", function="files.read")])
    changed = before.merged([_entry("out/a.md", worker_code="w2")])
    assert [(entry.worker, entry.worker_code) for entry in changed.entries] == [("main", "w2"), ("other", "w1")]
    wide = widened(_entry("out/a.md"), "*", "path", "out/**")
    assert wide is not None
    read_only, other = _entry("out/a.md", function="files.read"), _entry("out/a.md", worker="other")
    assert before.merged([wide]).entries == (read_only, wide, other)
