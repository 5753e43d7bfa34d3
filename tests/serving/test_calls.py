"""Calling what is published: results, their account, keys, and what is said where no model was called."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.types import CallToolResult

from tests.serving.clients import (
    Person,
    account,
    client_of,
    decide,
    served,
    serving,
    shop,
    text,
    texts,
    turn,
    worker,
    write,
)

pytestmark = pytest.mark.anyio

REPORT = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "pages": {"type": "integer"}},
    "required": ["title"],
    "additionalProperties": False,
}
LABEL = "no model was called (scripted:"


def _reporter(*answers: str, **keys: Any) -> dict[str, Any]:
    """A project whose entry worker gives a report, and answers so."""
    script = {"workers": {"main": list(answers)}}
    files = {"main.worker": worker({"output_schema": REPORT, **keys}), "script.yaml": json.dumps(script)}
    return {"files": files, "model": "scripted:script.yaml"}


@pytest.mark.proves("CALL-TEXT", "CALL-LABEL", "CALL-ACCOUNT")
async def test_a_worker_without_a_schema_gives_text_and_its_account(tmp_path: Path, mode: str) -> None:
    root = shop(tmp_path, turn(("read_file", {"path": "in/stock.txt"})))
    async with serving(root, mode) as client:
        result = await client.call_tool("shop", {"input": "how many?"})
    answer, line = texts(result).rsplit("\n", 1)
    assert answer == "three pears\n" and result.structured_content is None and not result.is_error
    told = account(result)
    assert line == f"run {told['id']} · {LABEL}model.py) · 2 calls"
    assert told == {
        "id": told["id"],
        "status": "done",
        "models": ["scripted:model.py"],
        "tokens": {"input": 0, "output": 0},
        "cost": 0,
        "calls": 2,
        "approvals": [],
        "files_changed": [],
        "note": "no model was called",
    }


@pytest.mark.proves("CALL-STRUCTURED", "CALL-LABEL")
async def test_a_worker_with_a_schema_gives_a_value_that_fits(tmp_path: Path, mode: str) -> None:
    root = shop(tmp_path, **_reporter('```json\n{"title": "Q3", "pages": 4}\n```'))
    async with serving(root, mode) as client:
        result = await client.call_tool("shop", {"input": "go"})
    assert result.structured_content == {"title": "Q3", "pages": 4} == json.loads(text(result))
    assert LABEL in texts(result)


@pytest.mark.proves("CALL-STRUCTURED", "CALL-LABEL")
async def test_an_output_that_does_not_fit_is_an_error_that_says_so(tmp_path: Path, mode: str) -> None:
    root = shop(tmp_path, **_reporter('{"title": 3}', '{"pages": 1}'))
    async with serving(root, mode) as client:
        result = await client.call_tool("shop", {"input": "go"})
    assert result.is_error and result.structured_content is None
    assert "worker main: its output does not fit: " in text(result) and "title is missing" in text(result)
    assert '{"pages": 1}' in text(result), "what it was instead"
    assert LABEL in texts(result) and account(result)["status"] == "failed"


@pytest.mark.proves("CALL-FAILED", "CALL-ACCOUNT")
async def test_a_worker_that_fails_says_in_one_line_why(tmp_path: Path, mode: str) -> None:
    root = shop(tmp_path, **_reporter())
    async with serving(root, mode) as client:
        result = await client.call_tool("shop", {"input": "go"})
        after = await client.call_tool("files_in_read_text", {"path": "stock.txt"})
    assert result.is_error and "turn 1 was asked for" in text(result)
    assert len(text(result).splitlines()) == 2, "the reason, and the account"
    assert account(result)["status"] == "failed" and text(after) == "three pears\n"


@pytest.mark.proves("CALL-INPUT")
async def test_input_parameters_and_context_reach_the_worker(tmp_path: Path, mode: str) -> None:
    echo = (
        "import json\n\ndef reply(request):\n"
        "    return {'text': json.dumps([request['system'], request['messages']])}\n"
    )
    main = worker(
        {"params": {"tone": "dry"}, "input_schema": {**REPORT, "required": []}}, "Be {{ tone }}: {{ title }}."
    )
    root = shop(tmp_path, files={"main.worker": main, "model.py": echo})
    async with serving(root, mode) as client:
        result = await client.call_tool("shop", {"title": "Q3", "tone": "merry", "extra_context": "It rained."})
    system, messages = json.loads(text(result))
    assert system == "Be merry: Q3.\n"
    said = [block["text"] for block in messages[0]["content"]]
    assert "It rained." in said and any(block == '{"title": "Q3"}' for block in said)


@pytest.mark.proves("CALL-INPUT")
async def test_an_attachment_comes_with_its_bytes(tmp_path: Path, mode: str) -> None:
    echo = (
        "import base64\n\ndef reply(request):\n    block = request['messages'][0]['content'][0]\n"
        "    return {'text': block['name'] + ': ' + base64.b64decode(block['data']).decode()}\n"
    )
    root = shop(tmp_path, files={"model.py": echo})
    async with serving(root, mode) as client:
        result = await client.call_tool("shop", {"input": "x", "attachments": ["in/stock.txt"]})
    assert text(result) == "stock.txt: three pears\n"


@pytest.mark.proves("CALL-FILES")
async def test_files_are_named_below_the_folder_in_arguments_and_results(tmp_path: Path, mode: str) -> None:
    root = shop(tmp_path, files={"out/sub/deep.txt": "x" * 100})
    async with serving(root, mode, Person(decide("once"))) as client:
        listed = await client.call_tool("files_out_list", {"pattern": "**/*.txt"})
        assert listed.structured_content is not None
        paths = [file["path"] for file in listed.structured_content["files"]]
        assert paths == ["ledger.txt", "sub/deep.txt"]
        read = await client.call_tool("files_out_read_text", {"path": paths[1], "max_chars": 10})
        written = await client.call_tool("files_out_write_text", {"path": "sub/new.txt", "content": "n"})
    assert text(read).startswith("x" * 10 + "\n[90 more characters of 100")
    assert written.structured_content == {"path": "sub/new.txt", "bytes": 1, "created": True}
    assert account(written)["files_changed"] == ["out/sub/new.txt"]
    assert account(read)["calls"] == 1


@pytest.mark.proves("CALL-FILES")
async def test_search_names_the_folder_before_the_path(tmp_path: Path, mode: str) -> None:
    async with serving(shop(tmp_path), mode) as client:
        result = await client.call_tool("te", {"command": "grep -n pears"})
    assert "in/stock.txt:1: three pears" in text(result) and result.structured_content is None


@pytest.mark.proves("CALL-LABEL")
async def test_only_a_result_of_a_script_says_that_no_model_was_called(tmp_path: Path, mode: str) -> None:
    async with serving(shop(tmp_path), mode) as client:
        result = await client.call_tool("files_in_read_text", {"path": "stock.txt"})
    assert texts(result) == "three pears\n" and "note" not in account(result)


KEYED: dict[str, Any] = {"meta": {"llm-do/key": "order 7"}}


@pytest.mark.proves("CALL-KEY")
async def test_a_repeated_call_with_a_key_joins_its_run(tmp_path: Path, mode: str) -> None:
    root = shop(tmp_path, turn(write("out/a.txt")))
    person = Person(decide("once"), decide("deny"))
    async with serving(root, mode, person) as client:
        first = await client.call_tool("shop", {"input": "go"}, **KEYED)
        again = await client.call_tool("shop", {"input": "go"}, **KEYED)
        other = await client.call_tool("shop", {"input": "go"})
    async with serving(root, mode, person) as client:
        restarted = await client.call_tool("shop", {"input": "go"}, **KEYED)
    assert texts(first) == texts(again) == texts(restarted)
    assert account(first)["id"] == account(again)["id"] == account(restarted)["id"] != account(other)["id"]
    assert len(person.asked) == 2, "the run with the key asked once, the other once"


@pytest.mark.proves("CALL-KEY")
async def test_two_calls_with_a_key_at_once_are_one_run(tmp_path: Path, mode: str) -> None:
    results: list[CallToolResult] = []
    async with serving(shop(tmp_path, turn(write("out/a.txt"))), mode, Person(decide("once"))) as client:

        async def call() -> None:
            results.append(await client.call_tool("shop", {"input": "go"}, **KEYED))

        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(call)
    assert len({account(result)["id"] for result in results}) == 1
    assert all(account(result)["files_changed"] == ["out/a.txt"] for result in results)


@pytest.mark.proves("CALL-KEY")
async def test_a_key_belongs_to_one_call(tmp_path: Path, mode: str) -> None:
    async with serving(shop(tmp_path), mode) as client:
        await client.call_tool("files_in_read_text", {"path": "stock.txt"}, **KEYED)
        results = [
            await client.call_tool("files_in_read_text", {"path": "other.txt"}, **KEYED),
            await client.call_tool("shop", {"input": "go"}, **KEYED),
        ]
    assert all(result.is_error and "the key 'order 7' was given for another call" in text(result) for result in results)


@pytest.mark.proves("CALL-KEY")
@pytest.mark.parametrize("key", [5, True, ["a"], {"a": 1}, "", "a\ud800"], ids=ascii)
async def test_a_key_that_is_no_text_is_refused_and_runs_nothing(tmp_path: Path, mode: str, key: Any) -> None:
    async with served(shop(tmp_path)) as server, client_of(server, mode) as client:
        result = await client.call_tool("shop", {"input": "go"}, meta={"llm-do/key": key})
        assert await server.engine.store.runs() == []
    said = f"shop: llm-do/key in _meta must be a text of Unicode, not empty, not {json.dumps(key)}"
    assert result.is_error and text(result) == said


@pytest.mark.proves("CALL-AT-ONCE")
async def test_calls_at_once_are_runs_of_their_own(tmp_path: Path, mode: str) -> None:
    root = shop(tmp_path, turn(("read_file", {"path": "in/stock.txt"})))
    results: list[CallToolResult] = []
    async with served(root) as server, client_of(server, mode) as client:

        async def call() -> None:
            results.append(await client.call_tool("shop", {"input": "go"}))

        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(call)
    assert len({account(result)["id"] for result in results}) == 10
    assert all(text(result) == "three pears\n" for result in results)


@pytest.mark.proves("CALL-OWN-SURFACE")
async def test_a_worker_can_do_what_it_is_given_and_no_more(tmp_path: Path, mode: str) -> None:
    """A worker without the file operations has none, though clients of the same project do."""
    root = shop(tmp_path, turn(write("out/a.txt"), ("files_in_list", {})), files={"main.worker": worker()})
    async with serving(root, mode, Person(decide("once"))) as client:
        result = await client.call_tool("shop", {"input": "go"})
    assert "there is no function 'write_file' here" in text(result)
    assert not (root / "out/a.txt").exists()
