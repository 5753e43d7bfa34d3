"""The folder `attachments/` of a worker that is called with files: what it can do there, and what lies there."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from llm_do_mcp.toolsets.attached import FOLDER
from tests.project.conftest import worker
from tests.runtime.driving import asked, finished
from tests.runtime.workshop import Workshop, approve, calling

pytestmark = pytest.mark.anyio

HOLDER = """
toolsets:
  filesystem: {}
  te: {}
  delegation: {allow_workers: [last]}
sandbox: {paths: {own: {root: ./in, mode: rw}}}
"""
TURNS = '''
import json


def reply(request):
    """Makes the calls of one turn after the other, and then tells all that it was sent back."""
    messages = request["messages"]
    turns = json.loads(messages[0]["content"][-1]["text"])
    if request["turn"] < len(turns):
        return {"tool_calls": [turns[request["turn"]]]}
    return json.dumps([message["content"][0]["content"] for message in messages[2::2]])
'''
NAMES = """
import json


def reply(request):
    return json.dumps([block["name"] for block in request["messages"][0]["content"] if block["type"] == "attachment"])
"""


def shop(root: Path, holder: str = HOLDER) -> Workshop:
    """A project whose main worker calls `holder` with files of `in/`; and `last`, which tells what it was given."""
    files = {
        "workers/holder.worker": worker(holder),
        "workers/last.worker": worker("model: scripted:names.py"),
        "names.py": NAMES,
        "turns.py": TURNS,
        "in/notes.md": "three\n",
        "in/sub/notes.md": "four\n",
        "in/deeper/Notes.md": "five\n",
    }
    return Workshop(root, files)


def turn(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, "input": given}


async def told(shop: Workshop, attachments: list[str], *calls: tuple[str, Mapping[str, Any]]) -> list[tuple[str, bool]]:
    """What the holder is told after these calls, with these files: text, and whether it is an error."""
    given = {"worker": "holder", "attachments": attachments, "input_data": calling(*calls)}
    ((answer, failed),) = await shop.told(("worker_call", given))
    assert not failed, answer
    return [(result["content"], result["is_error"]) for result in json.loads(answer)["results"]]


@pytest.mark.proves("ATTACH-FOLDER")
async def test_a_worker_lists_reads_searches_and_passes_on_what_was_attached(tmp_path: Path) -> None:
    async with shop(tmp_path) as made:
        listed, read, searched, passed = await told(
            made,
            ["in/notes.md"],
            ("list_files", {"path": "attachments"}),
            ("read_file", {"path": "attachments/notes.md"}),
            ("te", {"command": "grep -n thr attachments"}),
            ("worker_call", {"worker": "last", "attachments": ["attachments:notes.md"]}),
        )
    assert json.loads(listed[0])["files"] == [{"path": "attachments/notes.md", "bytes": 6}]
    assert read == ("three\n", False)
    assert "attachments/notes.md:1: three" in searched[0]
    assert passed == ('["notes.md"]', False)


@pytest.mark.proves("ATTACH-FOLDER")
async def test_a_worker_without_folders_of_its_own_finds_its_attachments(tmp_path: Path) -> None:
    async with shop(tmp_path, "toolsets: {filesystem: {}}") as made:
        (read,) = await told(made, ["in/notes.md"], ("read_file", {"path": "attachments/notes.md"}))
    assert read == ("three\n", False)


@pytest.mark.skipif(os.name == "nt", reason="runs cat")
@pytest.mark.proves("ATTACH-FOLDER")
async def test_a_program_may_be_given_what_was_attached(tmp_path: Path) -> None:
    keys = "toolsets: {shell: {rules: [{pattern: cat, approval_required: false}]}}"
    async with shop(tmp_path, keys) as made:
        ((result, failed),) = await told(made, ["in/notes.md"], ("shell", {"command": "cat notes.md"}))
        ((whole, _),) = await told(made, ["in/notes.md"], ("shell", {"command": "cat attachments/notes.md"}))
    assert not failed
    assert (json.loads(result)["stdout"], json.loads(whole)["stdout"]) == ("three\n", "three\n")


@pytest.mark.proves("ATTACH-FOLDER")
async def test_without_attachments_there_is_no_such_folder_and_the_caller_has_none_either(tmp_path: Path) -> None:
    reads = ("read_file", {"path": "attachments/notes.md"})
    async with shop(tmp_path) as made:
        (read,) = await told(made, [], reads)
        attaching = ("worker_call", {"worker": "last", "attachments": ["in/notes.md"]})
        attached, own = await made.told(attaching, reads)
    assert read == ("attachments/notes.md: no such sandbox; allowed are own", True)
    assert attached == ('["notes.md"]', False)
    assert own == ("attachments/notes.md: no such sandbox; allowed are in, out", True)


@pytest.mark.proves("ATTACH-CONFINED")
@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("write_file", {"path": "attachments/new.md", "content": "x"}, "the sandbox is read-only"),
        ("write_file", {"path": "attachments/notes.md", "content": "x"}, "the sandbox is read-only"),
        ("read_file", {"path": "attachments/../notes.md"}, "`..` is not allowed"),
        ("read_file", {"path": "attachments//etc/passwd"}, "an absolute path"),
        ("read_file", {"path": "attachments/sub/notes.md"}, "attachments/sub/notes.md: "),
        ("worker_call", {"worker": "last", "attachments": ["attachments/../notes.md"]}, "`..` is not allowed"),
    ],
)
async def test_the_folder_is_read_only_and_nothing_leads_out_of_it(
    tmp_path: Path, name: str, given: dict[str, Any], words: str
) -> None:
    async with shop(tmp_path) as made:
        ((answer, failed),) = await told(made, ["in/notes.md"], (name, given))
    assert failed and words in answer
    assert FOLDER not in answer and str(tmp_path) not in answer


@pytest.mark.proves("ATTACH-CONFINED")
async def test_the_policy_speaks_of_the_folder_as_of_any_other(tmp_path: Path) -> None:
    rules = "approvals: [{function: files.read, subject: 'attachments/*.md', decision: deny}]\n"
    calls = [("read_file", {"path": "attachments/notes.md"}), ("te", {"command": "grep -n thr attachments"})]
    async with shop(tmp_path, rules + HOLDER) as made:
        (read, refused), (searched, _) = await told(made, ["in/notes.md"], *calls)
    assert refused and "approvals of worker holder, rule 1" in read
    assert "three" not in searched


@pytest.mark.proves("ATTACH-COPIES", "A065")
async def test_what_lies_there_are_the_bytes_that_were_attached_whatever_becomes_of_the_file(tmp_path: Path) -> None:
    changes = [
        turn("write_file", {"path": "own/notes.md", "content": "changed"}),
        turn("read_file", {"path": "attachments/notes.md"}),
    ]
    async with shop(tmp_path, f"model: scripted:turns.py\n{HOLDER}") as made:
        given = {"worker": "holder", "attachments": ["in/notes.md"], "input_data": json.dumps(changes)}
        ((answer, _),) = await made.told(("worker_call", given), decide=approve)
    assert json.loads(answer)[1] == "three\n"
    assert (tmp_path / "in" / "notes.md").read_text() == "changed"


@pytest.mark.skipif(os.name == "nt", reason="makes links")
@pytest.mark.proves("ATTACH-COPIES")
async def test_what_a_link_led_to_lies_there_as_a_file(tmp_path: Path) -> None:
    async with shop(tmp_path) as made:
        (tmp_path / "in" / "link.md").symlink_to("notes.md")
        (tmp_path / "in" / "out.md").symlink_to(tmp_path / "main.worker")
        listed, read = await told(
            made,
            ["in/link.md"],
            ("list_files", {"path": "attachments"}),
            ("read_file", {"path": "attachments/link.md"}),
        )
        ((leading_out, failed),) = await made.told(("worker_call", {"worker": "holder", "attachments": ["in/out.md"]}))
    assert json.loads(listed[0])["files"] == [{"path": "attachments/link.md", "bytes": 6}]
    assert read == ("three\n", False)
    assert failed and leading_out.startswith("in/out.md: ")


@pytest.mark.proves("ATTACH-NAMES")
async def test_files_of_the_same_name_are_told_apart_in_the_folder_and_in_the_conversation(tmp_path: Path) -> None:
    files = ["in/notes.md", "in/sub/notes.md", "in/deeper/Notes.md"]
    names = ["notes.md", "2/notes.md", "3/Notes.md"]
    async with shop(tmp_path) as made:
        (seen,) = await made.told(("worker_call", {"worker": "last", "attachments": files}))
        reads = [("read_file", {"path": f"attachments/{name}"}) for name in names]
        listed, *read = await told(made, files, ("list_files", {"path": "attachments"}), *reads)
    assert json.loads(seen[0]) == names
    assert [file["path"] for file in json.loads(listed[0])["files"]] == sorted(f"attachments/{name}" for name in names)
    assert [text for text, _ in read] == ["three\n", "four\n", "five\n"]


@pytest.mark.proves("ATTACH-COPIES")
async def test_a_run_that_another_process_takes_up_finds_them_again_and_nothing_is_left_behind(
    tmp_path: Path, temporary: Path
) -> None:
    turns = [
        turn("write_file", {"path": "own/new.md", "content": "x"}),
        turn("read_file", {"path": "attachments/notes.md"}),
    ]
    given = {"worker": "holder", "attachments": ["in/notes.md"], "input_data": json.dumps(turns)}
    root, holder = tmp_path / "project", f"model: scripted:turns.py\n{HOLDER}"
    async with shop(root, holder) as first:
        run = await first.start(calling(("worker_call", given)))
        await asked(first.engine, run)
        assert len([path for path in temporary.glob(f"{FOLDER}*/*/*") if path.is_file()]) == 1
    assert not list(temporary.glob(f"{FOLDER}*"))
    async with Workshop(root) as second:
        (root / "in" / "notes.md").write_text("changed")
        await second.engine.resume(run)
        done = await finished(second.engine, run, approve)
        assert not list(temporary.glob(f"{FOLDER}*/*"))
    (result,) = json.loads(done.output)["results"]
    assert json.loads(result["content"])[1] == "three\n"
