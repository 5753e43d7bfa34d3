"""What callers get wrong: names of tools, and arguments that do not fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, METHOD_NOT_FOUND, PARSE_ERROR

from tests.serving.clients import MODERN, Wire, command, everything, serving, shop, text, worker
from tests.serving.conftest import Open

ORDER = {
    "type": "object",
    "properties": {"fruit": {"enum": ["pear", "plum"]}, "count": {"type": "integer", "minimum": 1}},
    "required": ["fruit"],
    "additionalProperties": False,
}


@pytest.mark.proves("CALL-UNKNOWN")
@pytest.mark.anyio
@pytest.mark.parametrize("name", ["nothing", "", "main", "files_in_write_text", "files.read", "x" * 10_000, "\n"])
async def test_an_unknown_tool_is_an_error_of_the_protocol(tmp_path: Path, mode: str, name: str) -> None:
    async with serving(shop(tmp_path), mode) as client:
        with pytest.raises(MCPError, match="unknown tool") as refused:
            await client.call_tool(name, {})
        assert refused.value.error.code == INVALID_PARAMS
        assert len(refused.value.error.message) < 300
        assert text(await client.call_tool("files_in_read_text", {"path": "stock.txt"})) == "three pears\n"


MISFITS: dict[str, tuple[str, dict[str, Any], str]] = {
    "nothing given": ("shop", {}, "input is missing"),
    "null": ("shop", {"input": None}, "input: must be a string, not null"),
    "a list": ("shop", {"input": ["x"]}, 'input: must be a string, not ["x"]'),
    "a further field": ("shop", {"input": "x", "inptu": "y"}, "unknown field 'inptu'; did you mean 'input'?"),
    "attachments that are text": ("shop", {"input": "x", "attachments": "in/a.pdf"}, "attachments: must be an array"),
    "an attachment that is a number": ("shop", {"input": "x", "attachments": [1]}, "attachments[0]: must be a string"),
    "not in the enum": ("order", {"fruit": "apple"}, 'fruit: must be one of "pear", "plum", not "apple"'),
    "below the minimum": ("order", {"fruit": "pear", "count": 0}, "count: must be at least 1, not 0"),
    "a fraction": ("order", {"fruit": "pear", "count": 1.5}, "count: must be an integer, not 1.5"),
    "a boolean for a number": ("order", {"fruit": "pear", "count": True}, "count: must be an integer, not true"),
    "nothing but extras": ("order", {"count": 1}, "fruit is missing"),
    "a path that is a number": ("files_in_read_text", {"path": 5}, "path: must be a string, not 5"),
    "too much at once": ("files_in_read_text", {"path": "a", "max_chars": 10**9}, "max_chars: must be at most "),
    "before the beginning": ("files_in_read_text", {"path": "a", "offset": -1}, "offset: must be at least 0, not -1"),
    "no content": ("files_out_write_text", {"path": "a"}, "content is missing"),
    "a structure to write": (
        "files_out_write_text",
        {"path": "a", "content": {"a": 1}},
        "content: must be a string, not {",
    ),
    "a pattern that is null": ("files_in_list", {"pattern": None}, "pattern: must be a string, not null"),
    "a command as arguments": ("te", {"command": ["grep", "x"]}, 'command: must be a string, not ["grep", "x"]'),
    "no run": ("run_wait", {}, "run_id is missing"),
    "a run that is a number": ("run_cancel", {"run_id": 7}, "run_id: must be a string, not 7"),
}


@pytest.mark.proves("A069", "CALL-ARGUMENTS")
@pytest.mark.anyio
@pytest.mark.parametrize(("tool", "arguments", "said"), MISFITS.values(), ids=MISFITS)
async def test_arguments_that_do_not_fit_name_the_field_and_run_nothing(
    tmp_path: Path, mode: str, tool: str, arguments: dict[str, Any], said: str
) -> None:
    root = shop(tmp_path, files={"workers/order.worker": worker({"input_schema": ORDER})}, exports=["main", "order"])
    before = everything(root)
    async with serving(root, mode) as client:
        result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert text(result).startswith(f"{tool}: ") and said in text(result)
    assert "\n" not in text(result) and len(text(result)) < 600
    assert everything(root) == before, "not even a record"


PEARS = "three pears\n"
RAW = {
    "an infinite number": ("files_in_read_text", '{"path": "stock.txt", "offset": 1e400}', "an integer, not Infinity"),
    "no number": ("files_in_read_text", '{"path": "stock.txt", "offset": NaN}', "offset: must be an integer, not NaN"),
    "a number of 400 digits": (
        "files_in_read_text",
        f'{{"path": "stock.txt", "max_chars": {"9" * 400}}}',
        "not a number of 400 digits",
    ),
    "an integer with a point": ("files_in_read_text", '{"path": "stock.txt", "offset": 0.0, "max_chars": 1e3}', PEARS),
    "a negative nothing": ("files_in_read_text", '{"path": "stock.txt", "offset": -0}', PEARS),
    "a key twice": ("files_in_read_text", '{"path": "nothing", "path": "stock.txt"}', PEARS),
    "a deep value": ("shop", f'{{"input": {"[" * 150}{"]" * 150}}}', "input: must be a string"),
}


@pytest.mark.proves("A069")
def test_numbers_and_structures_that_json_allows_do_no_harm(tmp_path: Path, open_wire: Open, mode: str) -> None:
    wire = open_wire(command(shop(tmp_path)), mode)
    for name, (tool, arguments, said) in RAW.items():
        call = wire.message("tools/call", {"name": tool, "arguments": "..."})
        wire.write(json.dumps(call).replace('"..."', arguments).encode())
        answer = wire.answer(call["id"])["result"]
        assert said in answer["content"][0]["text"], name
        assert answer.get("isError", False) is (said != PEARS), name


@pytest.mark.proves("A069")
def test_arguments_that_are_no_object_are_an_error_of_the_protocol(tmp_path: Path, open_wire: Open, mode: str) -> None:
    wire = open_wire(command(shop(tmp_path)), mode)
    for arguments in ("text", 5, [1], True):
        assert wire.answer(wire.call("shop", arguments))["error"]["code"] == INVALID_PARAMS
    assert wire.request("tools/list")["tools"]


@pytest.mark.proves("A069", "NEWS-TRACES")
def test_what_cannot_be_listened_for_is_an_error_of_the_protocol(tmp_path: Path, open_wire: Open) -> None:
    wire = open_wire(command(shop(tmp_path)), MODERN)
    for uris in ([5], [None], ["llm-do://project", {}], "llm-do://project"):
        answer = wire.answer(wire.send("subscriptions/listen", {"notifications": {"resourceSubscriptions": uris}}))
        assert answer["error"]["code"] == INVALID_PARAMS, uris
    assert wire.request("tools/list")["tools"]


@pytest.mark.proves("A089")
def test_what_comes_out_of_turn_is_answered_by_the_protocol(tmp_path: Path) -> None:
    wire = Wire(command(shop(tmp_path)))
    try:
        wire.listen()
        assert wire.answer(wire.call("shop", {"input": "x"}))["error"]["code"] == INVALID_PARAMS, "before initialize"
        hello = {"protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": {"name": "old", "version": "0"}}
        for _ in range(2):
            assert wire.request("initialize", hello)["protocolVersion"] == "2025-11-25"
        wire.write({"jsonrpc": "2.0", "method": "notifications/nothing"})
        assert wire.answer(wire.send("nothing/known"))["error"]["code"] == METHOD_NOT_FOUND
        assert wire.request("tools/list")["tools"]
    finally:
        wire.close()


@pytest.mark.proves("A087", "A088", "STDIO-UNREADABLE")
def test_what_cannot_be_read_is_answered_and_the_server_goes_on(tmp_path: Path, open_wire: Open, mode: str) -> None:
    wire = open_wire(command(shop(tmp_path)), mode)
    for line in (
        b"{",
        b"5",
        b"[]",
        b"",
        b"\r",
        b"null",
        b'{"jsonrpc": "2.0"}',
        b"\xff\xfe",
        b"\xef\xbb\xbf{}",
        b"[" * 5000,
        b'{"params": {"id": "inner", "method": "x"}, "method": "x", ',
        b'{"id": %s, "method": "ping"' % (b"9" * 5000),
        b'{"id": "no\\x", "method": "ping"',
    ):
        wire.write(line)
    marked = wire.message("tools/list")
    wire.write(b"\xef\xbb\xbf" + json.dumps(marked).encode())
    assert wire.answer(marked["id"])["result"]["tools"], "a mark in front is no part of it"
    unreadable = {
        "half": b'{"jsonrpc": "2.0", "id": "half", "method": "tools/list", "params": {"a": "\\ud800"}}',
        "deep": b'{"jsonrpc": "2.0", "id": "deep", "method": "tools/list", "params": {"a": %s}}'
        % (b"[" * 5000 + b"]" * 5000),
        "long": b'{"jsonrpc": "2.0", "id": "long", "method": "ping", "params": {"id": %s}}' % (b"9" * 5000),
        "cut": b'{"jsonrpc": "2.0", "id": "cut", "method": "ping"',
        "earlier": b'{"id": "earlier", "method": "pi',
        "last": b'{"method": "x", "params": {"id": "inner", "a": [{"id": 1}, "\\"id"]}, "id": "last", "jsonrpc',
        "half \\ud800": b'{"jsonrpc": "2.0", "id": "half \\ud800", "method": "ping"}',
        "old": b'{"jsonrpc": "1.0", "id": "old", "method": "tools/list"}',
        "list": b'{"jsonrpc": "2.0", "id": "list", "method": "tools/list", "params": [1]}',
    }
    for identifier, line in unreadable.items():
        wire.write(line)
        error = wire.answer(identifier)["error"]
        assert (error["code"] == PARSE_ERROR) is (identifier not in ("old", "list"))
    assert wire.request("tools/list")["tools"]
    assert not [message for message in wire.passed if "id" in message], "and nothing is answered twice"


@pytest.mark.proves("A087", "STDIO-UNREADABLE")
@pytest.mark.parametrize("text", [b'\\"a', b"\\\\", b'"'], ids=["escaped quotes", "backslashes", "quotes"])
def test_a_long_line_that_is_cut_off_holds_up_nothing(tmp_path: Path, open_wire: Open, mode: str, text: bytes) -> None:
    wire = open_wire(command(shop(tmp_path)), mode)
    wire.write(b'{"jsonrpc": "2.0", "id": "long", "method": "ping", "params": {"a": "' + text * 300_000)
    assert wire.answer("long")["error"]["code"] == PARSE_ERROR
    assert wire.request("tools/list")["tools"]
