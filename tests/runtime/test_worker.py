"""The worker loop, on real projects: what a model asks for, what is done, and what it is told."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from llm_do_mcp.runtime.engine import Asks
from llm_do_mcp.runtime.question import Answer, Question
from tests.models.messages_server import Answer as ServerAnswer
from tests.models.messages_server import MessagesServer, error, message, stall, text, tool_use
from tests.project.conftest import worker
from tests.runtime.driving import asked, finished
from tests.runtime.workshop import MAIN, Workshop, approve, calling

pytestmark = pytest.mark.anyio

SCORE = """
output_schema:
  type: object
  properties: {score: {type: integer, maximum: 10}}
  required: [score]
  additionalProperties: false
"""

HAIKU = "anthropic:claude-haiku-4-5"
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}


def scripted(*turns: Any, keys: str = MAIN, **more: str) -> dict[str, str]:
    """Files of a project whose main worker has these turns, and further workers those in `more` (id: JSON turns)."""
    workers = {"main": list(turns)}
    return {
        "main.worker": worker(keys, "The main worker."),
        "model.yaml": json.dumps({"workers": workers | {name: json.loads(turns) for name, turns in more.items()}}),
        "project.yaml": "name: shop\nmodel: scripted:model.yaml\n",
        **{f"workers/{name}.worker": worker("description: helps") for name in more},
    }


def call(name: str, **given: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "input": given}]}


WRITE = call("write_file", path="out/a.md", content="x")


# ---- calls of one turn


@pytest.mark.proves("WORKER-RESULTS", "A070")
async def test_every_call_of_a_turn_gets_one_result_in_order_whatever_became_of_it(tmp_path: Path) -> None:
    calls = [
        ("read_file", {"path": "in/notes.md"}),
        ("no_such_tool", {}),
        ("read_file", {"file": "in/notes.md"}),
        ("read_file", {"path": "in/missing.md"}),
        ("write_file", {"path": "out/a.md", "content": "x"}),
        ("list_files", {"path": "in"}),
    ]
    async with Workshop(tmp_path) as shop:
        done = await shop.run(calling(*calls, text="Let me look."))
    results = json.loads(done.output)["results"]
    assert [result["tool_use_id"] for result in results] == [f"call_0_{index}" for index in range(6)]
    assert [result["is_error"] for result in results] == [False, True, True, True, True, False]
    read, unknown, invalid, missing, refused, listed = [result["content"] for result in results]
    assert read == "three\n"
    assert (
        unknown == "there is no function 'no_such_tool' here; there are: "
        "list_files, read_file, write_file, worker_call, worker_create"
    )
    assert invalid.startswith("read_file: unknown field 'file'; known: ")
    assert missing.startswith("in/missing.md: ")
    assert refused == "files.write out/a.md was not run: the person refused it"
    assert json.loads(listed) == {"files": [{"path": "in/notes.md", "bytes": 6}], "total": 1}
    assert not (tmp_path / "out" / "a.md").exists()


@pytest.mark.proves("WORKER-WRITES")
async def test_what_a_person_approved_is_written_and_accounted_for(tmp_path: Path) -> None:
    async with Workshop(tmp_path) as shop:
        told = await shop.told(("write_file", {"path": "out/a/b.md", "content": "ü\n"}), decide=approve)
    assert [(json.loads(text), failed) for text, failed in told] == [
        ({"path": "out/a/b.md", "bytes": 3, "created": True}, False)
    ]
    assert (tmp_path / "out" / "a" / "b.md").read_text(encoding="utf-8") == "ü\n"


@pytest.mark.proves("WORKER-TRUNCATED")
async def test_a_reply_that_was_cut_off_runs_nothing_and_is_asked_for_again(tmp_path: Path) -> None:
    cut = {**WRITE, "stop_reason": "max_tokens"}
    async with Workshop(tmp_path, scripted(cut, {"text": "half an ans", "stop_reason": "max_tokens"}, "whole")) as shop:
        done = await shop.run(decide=approve)
    assert (done.status, done.output) == ("done", "whole")
    assert done.account["approvals"] == []
    assert not (tmp_path / "out" / "a.md").exists()


@pytest.mark.proves("WORKER-TRUNCATED", "MODEL-TRUNCATED")
async def test_a_cut_off_call_of_a_real_model_still_gets_its_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tool_use("write_file", {"path": "out/a.md", "content": "x"}, id="a")
    cut = message(whole, stop_reason="max_tokens")
    with MessagesServer(cut, message(text("short"))) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        async with Workshop(tmp_path, model="anthropic:claude-haiku-4-5") as shop:
            done = await shop.run("go", approve)
        assert (done.status, done.output) == ("done", "short")
        (result, words) = server.requests[1].body["messages"][-1]["content"]
    assert (result["type"], result["tool_use_id"], result["is_error"]) == ("tool_result", "a", True)
    assert "cut off" in words["text"]
    assert not (tmp_path / "out" / "a.md").exists()


@pytest.mark.proves("WORKER-RESULTS", "A070")
@pytest.mark.parametrize("reason", ["end_turn", "pause_turn", "galactic"])
async def test_calls_are_made_whatever_the_reply_says_of_why_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    odd = message(text("I write."), tool_use("list_files", {"path": "in"}, id="a"), stop_reason=reason)
    with MessagesServer(odd, message(text("done"))) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        async with Workshop(tmp_path, model=HAIKU) as shop:
            assert (await shop.run("go")).output == "done"
        (result,) = server.requests[1].body["messages"][-1]["content"]
    assert (result["tool_use_id"], result["is_error"]) == ("a", False)
    assert "in/notes.md" in result["content"]


# ---- what ends a loop


@pytest.mark.proves("WORKER-IDENTICAL", "A071")
@pytest.mark.parametrize(
    ("turns", "what"),
    [
        ([call("read_file", path="in/x")] * 3, 'read_file {"path": "in/x"}: in/x: '),
        ([call("read_file", path="in/x"), call("nope")] * 3, 'read_file {"path": "in/x"}: in/x: '),
        ([{"tool_calls": [call("nope")["tool_calls"][0]] * 3}], "nope {}: there is no function 'nope' here"),
        (
            [{"text": "abc", "stop_reason": "max_tokens"}] * 3,
            "its reply was longer than one may be (max_output_tokens ",
        ),
    ],
    ids=["in three turns", "with others between", "in one turn", "cut off"],
)
async def test_the_same_failure_three_times_ends_the_run(tmp_path: Path, turns: list[Any], what: str) -> None:
    async with Workshop(tmp_path, scripted(*turns, "never said")) as shop:
        done = await shop.run()
    assert done.status == "failed"
    assert done.error.startswith(f"worker main stopped: the same failure came 3 times: {what}")


@pytest.mark.proves("WORKER-STOPS", "A070")
@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("refusal", "worker main: the model scripted:model.yaml refused to answer"),
        (
            "model_context_window_exceeded",
            "worker main: the conversation no longer fits the context of scripted:model.yaml; "
            "give it less to read, or name a model with a larger context",
        ),
    ],
)
async def test_a_model_that_cannot_go_on_ends_the_run_in_one_line(tmp_path: Path, reason: str, words: str) -> None:
    async with Workshop(tmp_path, scripted({"text": "I", "stop_reason": reason})) as shop:
        done = await shop.run()
    assert (done.status, done.output, done.error) == ("failed", None, words)


@pytest.mark.proves("WORKER-LIMITS", "TRACE-UNFINISHED")
@pytest.mark.parametrize(
    ("limits", "turns", "which"),
    [
        ("max_turns: 2", [call("list_files", path="in")] * 3, "max_turns of 2"),
        ("max_tool_calls: 1", [call("list_files", path="in")] * 3, "max_tool_calls of 1"),
        ("max_tokens: 20", [{**call("list_files", path="in"), "usage": {"output_tokens": 15}}] * 3, "max_tokens of 20"),
    ],
)
async def test_a_limit_stops_the_worker_and_says_whose_and_which(
    tmp_path: Path, limits: str, turns: list[Any], which: str
) -> None:
    async with Workshop(tmp_path, scripted(*turns, "end", keys=f"{MAIN}limits: {{{limits}}}")) as shop:
        done = await shop.run()
        found = await shop.engine.trace(done.run)
    assert (done.status, done.error) == ("failed", f"worker main stopped: its limit {which} was reached")
    assert found is not None and found.of("unfinished") == [], "what a limit forbade has not begun"


@pytest.mark.proves("RUN-LIMIT-BELOW")
async def test_a_worker_goes_on_when_only_its_sub_workers_limit_was_met(tmp_path: Path) -> None:
    files = scripted(call("worker_call", worker="helper"), "main goes on", helper=json.dumps([call("nope", n=1), "x"]))
    files["workers/helper.worker"] = worker("limits: {max_turns: 1}")
    async with Workshop(tmp_path, files) as shop:
        assert (await shop.run()).output == "main goes on"


@pytest.mark.proves("RUN-LIMIT-BELOW")
async def test_a_worker_stops_when_its_sub_worker_meets_the_workers_own_limit(tmp_path: Path) -> None:
    helper = json.dumps([call("nope", n=1), call("nope", n=2), "x"])
    files = scripted(
        call("worker_call", worker="helper"), "never", keys=f"{MAIN}limits: {{max_turns: 2}}", helper=helper
    )
    async with Workshop(tmp_path, files) as shop:
        done = await shop.run()
    said = "worker main stopped: its limit max_turns of 2 was reached (by main > helper)"
    assert (done.status, done.error) == ("failed", said)


@pytest.mark.proves("LIMIT-DEPTH", "A053")
async def test_the_sixth_worker_below_one_another_is_refused_with_the_chain(tmp_path: Path) -> None:
    calls = calling()
    for _ in range(5):
        calls = calling(("worker_call", {"worker": "main", "input_data": calls}))
    async with Workshop(tmp_path) as shop:
        done = await shop.run(calls)
        events = await shop.engine.store.events(done.run)
    refused = f"worker main was not called: limit max_depth of 5 of worker main ({' > '.join(['main'] * 6)})"
    assert done.status == "done" and refused in done.output
    assert [event.data for event in events if event.state == "failed"] == [refused], "and so it is recorded"


# ---- outputs


@pytest.mark.proves("WORKER-OUTPUT", "A072")
@pytest.mark.parametrize(
    "turns",
    [
        ['{"score": 7}'],
        ['```json\n{"score": 7}\n```'],
        ["Here it is.", '{"score": 7}'],
        ['{"score": 11}', '{"score": 7}'],
        ['{"score": NaN}', '{"score": 7}'],
        ["[" * 100_000, '{"score": 7}'],
    ],
)
async def test_an_output_fits_its_schema_if_need_be_after_one_repair(tmp_path: Path, turns: list[str]) -> None:
    async with Workshop(tmp_path, scripted(*turns, keys=SCORE)) as shop:
        done = await shop.run()
    assert (done.status, done.output) == ("done", {"score": 7})


@pytest.mark.proves("MODEL-UNUSUAL")
async def test_half_of_a_surrogate_pair_in_an_output_is_written_out_too(tmp_path: Path) -> None:
    named = "\noutput_schema: {type: object, properties: {name: {type: string}}}\n"
    async with Workshop(tmp_path, scripted('{"name": "\\ud800"}', keys=named)) as shop:
        assert (await shop.run()).output == {"name": "\\ud800"}


@pytest.mark.proves("WORKER-OUTPUT", "A072")
async def test_a_second_output_that_does_not_fit_is_the_end_and_is_shown(tmp_path: Path) -> None:
    async with Workshop(tmp_path, scripted('{"score": 11}', '{"score": "x\x1b"}', '{"score": 7}', keys=SCORE)) as shop:
        done = await shop.run()
    assert done.status == "failed"
    assert done.error.startswith("worker main: its output does not fit: ")
    assert '{"score": "x\\x1b"}' in done.error


@pytest.mark.proves("WORKER-OUTPUT")
async def test_a_repair_turn_says_what_was_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with MessagesServer(message(text("no")), message(text('{"score": 1}'))) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        async with Workshop(tmp_path, {"main.worker": worker(MAIN + SCORE)}, model=HAIKU) as shop:
            assert (await shop.run("go")).output == {"score": 1}
        (words,) = server.requests[1].body["messages"][-1]["content"]
    assert words["text"].startswith("Your answer does not fit the output schema: it is not JSON")


@pytest.mark.proves("WORKER-EMPTY", "WORKER-OUTPUT")
@pytest.mark.parametrize("keys", [MAIN, MAIN + SCORE], ids=["free text", "a schema"])
@pytest.mark.parametrize("said", [(), (THOUGHT,), (text(" \n"),)], ids=["nothing", "a thought", "blanks"])
async def test_an_answer_without_text_is_asked_for_once_more_and_is_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: str, said: tuple[dict[str, Any], ...]
) -> None:
    with MessagesServer(message(*said), message(text('{"score": 1}')), message(*said)) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        async with Workshop(tmp_path, {"main.worker": worker(keys)}, model=HAIKU) as shop:
            assert (await shop.run("go")).output in ('{"score": 1}', {"score": 1})
            done = await shop.run("go")
    assert (done.status, done.output) == ("failed", None)
    assert re.fullmatch(
        r"worker main: its (output does not fit|answer cannot be used): there is no text in it", done.error
    )
    assert len(server.requests) == 4


@pytest.mark.proves("WORKER-EMPTY", "MODEL-EMPTY")
async def test_an_input_of_blanks_is_told_as_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with MessagesServer(message(text("Well?"))) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        async with Workshop(tmp_path, model=HAIKU) as shop:
            assert (await shop.run(" \n")).output == "Well?"
    assert server.requests[0].body["messages"] == [{"role": "user", "content": [text("(no input)")]}]


SEARCH = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}


@pytest.mark.proves("WORKER-FINAL-TEXT", "WORKER-OUTPUT", "WORKER-PAUSED")
@pytest.mark.parametrize(
    "replies",
    [
        [message(text("I'll search for that."), SEARCH, FOUND, text('{"score": '), text("7}"))],
        [message(text("I'll search."), SEARCH, FOUND, stop_reason="pause_turn"), message(text('{"score": 7}'))],
        [message(text('{"score": '), stop_reason="pause_turn"), message(text("7}"))],
        [message(text('{"score": 7}'), SEARCH, FOUND)],
        [message(text('{"score": '), THOUGHT, text("7"), {"type": "hologram", "x": 1}, text("}"))],
    ],
    ids=["after a search", "after a pause", "across a pause", "before a search", "around a thought"],
)
async def test_the_answer_is_what_is_said_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replies: list[ServerAnswer]
) -> None:
    with MessagesServer(*replies) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        async with Workshop(tmp_path, {"main.worker": worker(MAIN + SCORE)}, model=HAIKU) as shop:
            assert (await shop.run("go")).output == {"score": 7}
    assert len(server.requests) == len(replies)


# ---- sub-workers

HELPER = """
description: adds
input_schema:
  type: object
  properties: {a: {type: integer}}
  required: [a]
"""


@pytest.mark.proves("DELEGATE-CALL")
async def test_a_worker_with_an_input_schema_is_called_by_its_own_name_too(tmp_path: Path) -> None:
    helper = json.dumps(["helped"])
    files = scripted("unused", helper=helper) | {
        "workers/helper.worker": worker(HELPER),
        "main.worker": worker("model: scripted:script.py" + MAIN),
    }
    async with Workshop(tmp_path, files) as shop:
        told = await shop.told(
            ("worker_call", {"worker": "helper", "input_data": {"a": 1}}),
            ("helper", {"a": 1}),
            ("helper", {"a": "one"}),
            ("worker_call", {"worker": "helper", "input_data": {"a": "one"}}),
            ("worker_call", {"worker": "helper", "input_data": "one"}),
        )
    assert told == [
        ("helped", False),
        ("helped", False),
        ('helper: a: must be an integer, not "one"', True),
        ('worker helper: a: must be an integer, not "one"', True),
        ('worker helper: must be an object, not "one"', True),
    ]


@pytest.mark.proves("DELEGATE-ALLOWED", "A077")
async def test_only_allowed_workers_can_be_called_and_a_lock_holds(tmp_path: Path) -> None:
    free, other = json.dumps(["I am free"]), json.dumps(["I am other"])
    files = scripted("unused", free=free, other=other)
    narrow = MAIN.replace('["*"]', '["fr*"]')
    async with Workshop(tmp_path, files | {"main.worker": worker("model: scripted:script.py" + narrow)}) as shop:
        told = await shop.told(*(("worker_call", {"worker": name}) for name in ("free", "other", "../free", "gone")))
    assert told[0] == ("I am free", False)
    assert told[1] == ("worker 'other' may not be called from here; allowed: fr*", True)
    assert all(failed for _, failed in told[1:])
    locked = MAIN.replace('{allow_workers: ["*"]}', "{lock_worker: other}")
    async with Workshop(tmp_path, files | {"main.worker": worker("model: scripted:script.py" + locked)}) as shop:
        assert await shop.told(("worker_call", {"worker": "free"})) == [("I am other", False)]


@pytest.mark.proves("DELEGATE-BROKEN")
async def test_a_broken_worker_breaks_no_worker_that_may_call_it(tmp_path: Path) -> None:
    files = {"workers/broken.worker": worker("modle: x"), "workers/good.worker": worker("model: scripted:good.py")}
    async with Workshop(tmp_path, files | {"good.py": "def reply(request): return 'good'\n"}) as shop:
        told = await shop.told(("worker_call", {"worker": "good"}), ("worker_call", {"worker": "broken"}))
    assert told == [
        ("good", False),
        ("workers/broken.worker:2:1: unknown key 'modle'; did you mean 'model'?", True),
    ]


@pytest.mark.proves("DELEGATE-EXPECT-JSON")
async def test_json_can_be_expected_only_of_a_worker_with_an_output_schema(tmp_path: Path) -> None:
    files = scripted("unused", plain=json.dumps(["text"]), scored=json.dumps(['{"score": 3}'])) | {
        "workers/scored.worker": worker(SCORE),
        "main.worker": worker("model: scripted:script.py" + MAIN),
    }
    async with Workshop(tmp_path, files) as shop:
        told = await shop.told(
            ("worker_call", {"worker": "plain", "expect_json": True}),
            ("worker_call", {"worker": "scored", "expect_json": True}),
        )
    assert told == [
        ("worker plain has no output schema, so expect_json cannot be asked of it", True),
        ('{"score": 3}', False),
    ]


@pytest.mark.proves("DELEGATE-PARAMS")
async def test_parameters_reach_the_template_and_a_missing_one_is_named(tmp_path: Path) -> None:
    helper = worker("params: {tone: kind, topic: null}", "Be {{ tone }} about {{ topic }}.")
    async with Workshop(tmp_path, {"workers/helper.worker": helper}) as shop:
        inner = calling(("nope", {}))
        told = await shop.told(
            ("worker_call", {"worker": "helper", "input_data": inner, "params": {"topic": "cats"}}),
            ("worker_call", {"worker": "helper", "input_data": inner}),
            ("worker_call", {"worker": "helper", "input_data": inner, "params": {"topic": "x", "tune": "y"}}),
        )
    assert json.loads(told[0][0])["system"].strip() == "Be kind about cats."
    assert [failed for _, failed in told] == [False, True, True]
    assert "topic" in told[1][0] and "tune" in told[2][0]


@pytest.mark.proves("DELEGATE-FAILED")
async def test_a_sub_worker_that_fails_is_its_callers_to_handle(tmp_path: Path) -> None:
    files = {
        "workers/bad.worker": worker(body="{{ missing }}"),
        "workers/silent.worker": worker("model: scripted:no.py"),
    }
    async with Workshop(tmp_path, files) as shop:
        told = await shop.told(("worker_call", {"worker": "bad"}), ("worker_call", {"worker": "silent"}))
    assert [failed for _, failed in told] == [True, True]
    assert told[0][0].startswith("workers/bad.worker:") and "missing" in told[0][0]
    assert told[1][0].startswith("worker silent: model scripted:no.py: the script cannot answer: ")


# ---- attachments

PDF = "%PDF-1.4\n1 0 obj\n<<>>\nendobj\nstartxref\n9\n%%EOF\n"
READER = '''
import json

def reply(request):
    """Tells what is attached."""
    files = [block for block in request["messages"][0]["content"] if block["type"] == "attachment"]
    return json.dumps([[file["name"], file["media_type"], len(file["data"])] for file in files])
'''


def reading(callee: str = "{}", caller: str = "{}") -> dict[str, str]:
    """A project whose main worker attaches files to calls of `reader`, each with its attachment policy."""
    return {
        "main.worker": worker(f"attachment_policy: {caller}{MAIN}"),
        "workers/reader.worker": worker(f"model: scripted:reader.py\nattachment_policy: {callee}"),
        "reader.py": READER,
        "in/a.pdf": PDF,
        "in/b.pdf": PDF,
        "in/empty.pdf": "",
        "in/cut.pdf": PDF[:30],
        "in/text.pdf": "just text",
        "in/data.bin": "\0\1\2",
        "in/sub/c.md": "c",
    }


@pytest.mark.proves("ATTACH-GIVEN")
async def test_attached_files_reach_the_sub_workers_model_as_they_are(tmp_path: Path) -> None:
    async with Workshop(tmp_path, reading()) as shop:
        told = await shop.told(
            ("worker_call", {"worker": "reader", "attachments": ["in/a.pdf", "in:sub/c.md"]}),
            ("worker_call", {"worker": "reader"}),
        )
    size = 4 * -(-len(PDF) // 3)  # in base64
    files = [["a.pdf", "application/pdf", size], ["c.md", "text/plain", 4]]
    assert told == [(json.dumps(files), False), ("[]", False)]


@pytest.mark.proves("ATTACH-REFUSED", "A064", "A066")
@pytest.mark.parametrize(
    ("callee", "caller", "paths", "words"),
    [
        ("{}", "{}", ["in/empty.pdf"], "in/empty.pdf: the file is empty; attach one with content"),
        ("{}", "{}", ["in/cut.pdf"], "in/cut.pdf: the PDF is cut short or damaged"),
        ("{}", "{}", ["in/text.pdf"], "in/text.pdf: named .pdf, but its content is text/plain"),
        ("{}", "{}", ["in/data.bin"], "in/data.bin: neither PDF, PNG, JPEG, GIF, WebP nor text"),
        ("{}", "{}", ["in/gone.pdf"], "in/gone.pdf: "),
        ("{}", "{}", ["in/sub"], "in/sub: "),
        ("{}", "{}", ["in/pipe.pdf"], "in/pipe.pdf: "),
        ("{}", "{}", ["in/../main.worker"], "in/../main.worker: "),
        ("{}", "{}", ["elsewhere/a.pdf"], "elsewhere"),
        (
            "{}",
            "{}",
            ["file:///etc/passwd"],
            "file:///etc/passwd: an address, from which nothing is fetched; allowed are in, out",
        ),
        ("{}", "{}", ["http://127.0.0.1/a.pdf"], "http://127.0.0.1/a.pdf: an address, from which nothing"),
        ("{}", "{}", ["data:text/plain;base64,aGk="], "data:text/plain;base64,aGk=: an address, from which nothing"),
        ("{}", "{}", ["in/a.pdf"] * 5, "5 attachments, the worker called allows 4"),
        ("{max_attachments: 9}", "{}", ["in/a.pdf"] * 5, "5 attachments, the caller allows 4"),
        ("{allowed_suffixes: [.md]}", "{}", ["in/a.pdf"], "attachment in/a.pdf: the worker called allows .md"),
        ("{}", "{denied_suffixes: [.pdf]}", ["in/a.pdf"], "attachment in/a.pdf: the caller denies .pdf"),
        ("{max_total_bytes: 60}", "{}", ["in/a.pdf", "in/b.pdf"], "in/b.pdf have 94 bytes together, the worker called"),
        ("{}", "{max_total_bytes: 93}", ["in/a.pdf", "in/b.pdf"], "have 94 bytes together, the caller allows 93"),
        ("{}", "{max_total_bytes: 20}", ["in/a.pdf"], "in/a.pdf: at least 47 bytes, allowed are 20"),
    ],
)
async def test_what_cannot_be_attached_is_named_with_the_reason_and_nothing_is_called(
    tmp_path: Path, callee: str, caller: str, paths: list[str], words: str
) -> None:
    async with Workshop(tmp_path, reading(callee, caller)) as shop:
        if sys.platform != "win32":
            os.mkfifo(tmp_path / "in" / "pipe.pdf")
        ((told, failed),) = await shop.told(("worker_call", {"worker": "reader", "attachments": paths}))
    assert failed and words in told and "\n" not in told
    assert str(tmp_path) not in told


# ---- the project's Python

TOOLS = '''
from llm_do_mcp import ToolContext, tool


@tool(risk="read")
def add(a: int, b: int = 1) -> int:
    """Adds."""
    return a + b


@tool
def erase(what: str) -> str:
    """Erases."""
    return f"erased {what}"


@tool(risk="read")
def chain(context: ToolContext, worker: str) -> list:
    """Calls a worker and a file operation."""
    return [context.call(worker, "hello"), context.call("files.read", {"path": "in/notes.md"})]


@tool(risk="read")
async def colour(context: ToolContext) -> str:
    """Asks for a colour."""
    return await context.ask("Which colour?")


@tool(risk="read")
def fail() -> str:
    """Fails."""
    raise ValueError("on purpose")
'''


def with_tools(**files: str) -> dict[str, str]:
    keys = MAIN.replace("toolsets:", "toolsets:\n  custom: all")
    return {"main.worker": worker(keys), "tools.py": TOOLS, **files}


@pytest.mark.proves("CUSTOM-CALL")
async def test_the_projects_functions_are_called_with_their_types(tmp_path: Path) -> None:
    async with Workshop(tmp_path, with_tools()) as shop:
        told = await shop.told(
            ("add", {"a": 2}), ("add", {"a": "two"}), ("fail", {}), ("erase", {"what": "all"}), ("custom.add", {"a": 1})
        )
    assert told[0] == ("3", False)
    assert told[1] == ('add: a: must be an integer, not "two"', True)
    assert told[2][1] and "ValueError: on purpose" in told[2][0] and "tools.py" in told[2][0]
    assert told[3] == ("custom.erase was not run: the person refused it", True)
    assert told[4] == ("2", False)


@pytest.mark.proves("CUSTOM-CONTEXT")
async def test_a_function_calls_workers_and_files_and_asks_the_person(tmp_path: Path) -> None:
    def decide(question: Question) -> Answer:
        return Answer("answer", note="green") if question.kind == "question" else Answer("deny")

    helper = {"workers/helper.worker": worker("model: scripted:helper.py"), "helper.py": "def reply(r): return 'hi'\n"}
    async with Workshop(tmp_path, with_tools(**helper)) as shop:
        told = await shop.told(
            ("chain", {"worker": "helper"}), ("colour", {}), ("chain", {"worker": "gone"}), decide=decide
        )
    assert told[:2] == [('["hi", "three\\n"]', False), ("green", False)]
    assert told[2][1] and "gone" in told[2][0]


@pytest.mark.proves("A099", "CUSTOM-CONTEXT")
async def test_forty_five_functions_that_call_workers_that_call_functions_all_finish(tmp_path: Path) -> None:
    inner = "def reply(r): return {'tool_calls': [{'name': 'add', 'input': {'a': 1}}]} if r['turn'] == 0 else 'hi'\n"
    helper = worker("model: scripted:helper.py\ntoolsets: {custom: [add]}")
    async with Workshop(tmp_path, with_tools(**{"workers/helper.worker": helper, "helper.py": inner})) as shop:
        told = await shop.told(*[("chain", {"worker": "helper"})] * 45)
    assert told == [('["hi", "three\\n"]', False)] * 45


# ---- models


@pytest.mark.proves("WORKER-NO-MODEL")
async def test_without_a_model_the_ways_to_name_one_are_told(tmp_path: Path) -> None:
    async with Workshop(tmp_path, {"project.yaml": "name: shop"}) as shop:
        done = await shop.run()
    assert done.error == (
        "worker main has no model; name one in its file, the manifest, LLM_DO_MODEL or --model: "
        "anthropic:claude-haiku-4-5 with ANTHROPIC_API_KEY, anthropic:<name> of a local server at "
        "ANTHROPIC_BASE_URL, or sampling, which an MCP client lends"
    )


@pytest.mark.proves("WORKER-MODEL-ERRORS", "A073")
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (error(401, "authentication_error", "invalid x-api-key"), "401 authentication_error: invalid x-api-key"),
        (error(429, "rate_limit_error", "slow down", retry_after="0.01"), "429 rate_limit_error: slow down"),
        (error(529, "overloaded_error", "Overloaded", retry_after="0.01"), "529 overloaded_error: Overloaded"),
        (error(404, "not_found_error", "model: x"), "404 not_found_error: model: x"),
    ],
    ids=["401", "429", "529", "404"],
)
async def test_an_error_of_the_model_is_one_line_and_the_run_is_recorded_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: ServerAnswer, words: str
) -> None:
    with MessagesServer(answer) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
        async with Workshop(tmp_path, model="anthropic:claude-haiku-4-5") as shop:
            done = await shop.run("go")
            row = await shop.engine.store.get(done.run)
    assert done.error.startswith(f"worker main: model anthropic:claude-haiku-4-5: {words}")
    assert "\n" not in done.error and "sk-secret" not in done.error
    assert row is not None and (row.status, row.outcome["error"]) == ("failed", done.error)


@pytest.mark.proves("WORKER-MODEL-ERRORS", "A073")
async def test_a_model_that_does_not_answer_ends_with_the_workers_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MessagesServer(stall) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        files = {"main.worker": worker(f"{MAIN}limits: {{timeout_s: 1.5}}")}
        async with Workshop(tmp_path, files, model="anthropic:claude-haiku-4-5") as shop:
            done = await shop.run("go")
        assert server.hung_up.wait(5)
    assert done.status == "failed"
    assert done.error.startswith(("worker main: model anthropic:", "worker main stopped: its limit timeout_s of 1.5"))


@pytest.mark.proves("WORKER-FALLBACK")
async def test_the_next_model_of_the_chain_takes_over_stays_chosen_and_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MessagesServer(error(404, "not_found_error", "model: gone")) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        files = {"main.worker": worker(f"model: ['anthropic:gone', 'scripted:script.py']{MAIN}")}
        async with Workshop(tmp_path, files) as shop:
            run = await shop.start(calling(("write_file", {"path": "out/a.md", "content": "x"})))
            await asked(shop.engine, run)
        async with Workshop(tmp_path, files) as shop:
            await shop.engine.resume(run)
            done = await finished(shop.engine, run, approve)
        assert done.status == "done", done.error
        assert done.account["models"] == ["scripted:script.py"]
        assert done.account["note"] == "no model was called"
        assert len(server.requests) == 1


@pytest.mark.proves("WORKER-FALLBACK")
async def test_a_chain_of_models_that_all_fail_names_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with MessagesServer(error(404, "not_found_error", "no such model")) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        files = {"main.worker": worker(f"model: ['anthropic:one', 'anthropic:two']{MAIN}")}
        async with Workshop(tmp_path, files) as shop:
            done = await shop.run("go")
        assert [request.body["model"] for request in server.requests] == ["one", "two"]
    assert done.error.startswith("worker main: model anthropic:two: 404")


# ---- going on


@pytest.mark.proves("RUN-DEFINITION", "A102")
async def test_a_run_goes_on_as_it_began_although_its_files_were_edited(tmp_path: Path) -> None:
    async with Workshop(tmp_path) as shop:
        run = await shop.start(calling(("write_file", {"path": "out/a.md", "content": "x"})))
        await asked(shop.engine, run)
    edited = {
        "main.worker": worker("toolsets: {}", "Edited since."),
        "project.yaml": "name: shop\nmodel: scripted:no.py",
    }
    async with Workshop(tmp_path, edited) as shop:
        await shop.engine.resume(run)
        event = await shop.engine.advance(run)
        assert isinstance(event, Asks)
        done = await finished(shop.engine, run, approve)
    assert json.loads(done.output)["system"].strip() == "The main worker."
    assert (tmp_path / "out" / "a.md").read_text() == "x"


@pytest.mark.proves("RUN-REPLAY")
@pytest.mark.parametrize("at", [0, 1, 2])
async def test_a_run_of_sub_workers_goes_on_from_any_question(tmp_path: Path, at: int) -> None:
    def writes(name: str) -> dict[str, Any]:
        return call("write_file", path=f"out/{name}.md", content=name)

    helper = json.dumps([writes("b"), "helped"])
    files = scripted(writes("a"), call("worker_call", worker="helper"), writes("c"), "end", helper=helper)
    files["workers/helper.worker"] = worker(MAIN)
    async with Workshop(tmp_path, files) as shop:
        run = await shop.start()
        for _ in range(at):
            (question,) = await asked(shop.engine, run)
            await shop.engine.answer(run, question.key, approve(question))
        await asked(shop.engine, run)
    async with Workshop(tmp_path, files) as shop:
        await shop.engine.resume(run)
        done = await finished(shop.engine, run, approve)
    assert (done.status, done.output) == ("done", "end")
    assert done.account["files_changed"] == ["out/a.md", "out/b.md", "out/c.md"]
    assert len(done.account["approvals"]) == 3


@pytest.mark.proves("WORKER-RESULTS")
@pytest.mark.parametrize("path", ["zz/x", "x.md", "/etc/x", "", "in/x", "out/../x", "out/.git/x"])
async def test_a_write_that_could_only_fail_asks_nobody_and_stops_nothing(tmp_path: Path, path: str) -> None:
    asked: list[str] = []

    def decide(question: Question) -> Answer:
        asked.append(question.target)
        return Answer("once", by="client")

    async with Workshop(tmp_path) as shop:
        told = await shop.told(
            ("write_file", {"path": path, "content": "x"}),
            ("write_file", {"path": "out/ok.txt", "content": "x"}),
            decide=decide,
        )
    assert [failed for _, failed in told] == [True, False]
    assert asked == ["out/ok.txt"]
    assert (tmp_path / "out/ok.txt").read_text() == "x"


@pytest.mark.proves("ASK-NOTE")
@pytest.mark.parametrize("decision", ["once", "run"])
async def test_a_note_beside_a_consent_is_told_once(tmp_path: Path, decision: str) -> None:
    writes = [("write_file", {"path": f"out/{name}.md", "content": "x"}) for name in "ab"]
    notes = iter(["mind the gap", ""])
    async with Workshop(tmp_path) as made:
        told = await made.told(*writes, decide=lambda question: Answer(decision, note=next(notes), by="client"))
    assert [text.count("\n(note of the person who was asked: mind the gap)") for text, _ in told] == [1, 0]
