"""Results as hosts take them: one form, links to what was written, and no more than is shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mcp.types import ResourceLink

from llm_do_mcp.serving import results
from tests.serving.clients import Person, account, decide, serving, shop, text, texts, turn, worker, write

pytestmark = pytest.mark.anyio


@pytest.mark.proves("RESULT-LINKS")
async def test_a_result_links_to_the_files_that_were_written(tmp_path: Path, mode: str) -> None:
    shop(tmp_path, turn(write("out/a b#.txt", "kept")))
    async with serving(tmp_path, mode, Person(decide("once"))) as client:
        for result in (
            await client.call_tool("shop", {"input": "go"}),
            await client.call_tool("files_out_write_text", {"path": "a b#.txt", "content": "kept"}),
        ):
            [link] = [block for block in result.content if isinstance(block, ResourceLink)]
            assert (link.name, link.uri) == ("out/a b#.txt", "llm-do://files/out/a%20b%23.txt")
            [content] = (await client.read_resource(link.uri)).contents
            assert content.model_dump()["text"] == "kept"
        read = await client.call_tool("files_in_read_text", {"path": "stock.txt"})
        assert [block.type for block in read.content] == ["text"]


FORM = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


@pytest.mark.proves("RESULT-FORMS")
async def test_a_form_is_the_same_as_text_and_text_is_only_text(tmp_path: Path, mode: str) -> None:
    files = {"workers/form.worker": worker({"output_schema": FORM})}
    shop(tmp_path, {"text": "plain words"}, files=files, exports=["main", "form"])
    (tmp_path / "turns.json").write_text(json.dumps({"main": [{"text": "plain"}], "form": [{"text": '{"text": "é"}'}]}))
    async with serving(tmp_path, mode) as client:
        plain = await client.call_tool("shop", {"input": "go"})
        form = await client.call_tool("form", {"input": "go"})
        listed = await client.call_tool("files_in_list", {})
        sizes = {tool.name: tool.meta for tool in (await client.list_tools()).tools}
    assert plain.structured_content is None and text(plain) == "plain"
    assert form.structured_content == json.loads(text(form)) == {"text": "é"}
    assert listed.structured_content == json.loads(text(listed))
    assert account(form)["status"] == account(listed)["status"] == "done"
    long = {name for name, meta in sizes.items() if meta == {"anthropic/maxResultSizeChars": results.WHOLE_CHARS}}
    assert long == {"form", "files_in_read_text", "files_out_read_text"}


@pytest.mark.proves("RESULT-SIZE")
async def test_of_a_long_text_the_rest_is_behind_a_handle(tmp_path: Path, mode: str) -> None:
    whole = "".join(f"{number:07}," for number in range(11_000))
    shop(tmp_path, {"text": whole})
    async with serving(tmp_path, mode) as client:
        result = await client.call_tool("shop", {"input": "go"})
        run, found, offset = account(result)["id"], "", 0
        while True:
            part, more, rest = text(result).partition("\n[")
            assert len(part) <= results.TEXT_CHARS
            found += part
            if not more:
                break
            assert rest.startswith(f"{len(whole) - len(found)} more characters of {len(whole)}: run_wait ")
            offset = int(rest.rpartition(" ")[2].rstrip("]"))
            result = await client.call_tool("run_wait", {"run_id": run, "offset": offset})
        assert found == whole and offset == 80_000


@pytest.mark.proves("RESULT-SIZE")
async def test_a_form_that_is_too_long_is_read_in_parts(tmp_path: Path, mode: str) -> None:
    long = {"text": "x" * results.WHOLE_CHARS}
    shop(tmp_path, {"text": json.dumps(long)}, files={"main.worker": worker({"output_schema": FORM})})
    async with serving(tmp_path, mode) as client:
        result = await client.call_tool("shop", {"input": "go"})
        assert result.is_error and "Read it in parts: run_wait" in text(result)
        again = {"run_id": account(result)["id"], "offset": 0}
        assert text(await client.call_tool("run_wait", again)).startswith('{\n  "text": "xxx')


@pytest.mark.proves("RESULT-LISTING")
async def test_a_listing_that_is_long_is_had_in_parts(tmp_path: Path, mode: str) -> None:
    named = [f'{number:03} "{"n" * 180}' for number in range(500)]
    shop(tmp_path, turn(("list_files", {"path": "in"})))
    for name in named:
        (tmp_path / "in" / name).touch()
    (tmp_path / "in" / "stock.txt").unlink()
    async with serving(tmp_path, mode) as client:
        found: list[str] = []
        for pattern in ("**/*", *(f"{first}[{second}]*" for first in range(5) for second in ("0-4", "5-9"))):
            listed = await client.call_tool("files_in_list", {"pattern": pattern})
            form = listed.structured_content
            assert form is not None and json.loads(text(listed)) == form and len(text(listed)) <= results.TEXT_CHARS
            paths = [file["path"] for file in form["files"]]
            if pattern == "**/*":
                assert paths == named[: len(paths)] and len(paths) > 100 and form["total"] == 500
                assert form["more"].startswith(f"{500 - len(paths)} more, after these in the order of names; ")
            else:
                assert form["total"] == len(paths) == 50 and "more" not in form
                found += paths
        worker = text(await client.call_tool("shop", {"input": "go"}))
    assert found == named
    assert '"more"' in worker and len(worker) <= results.TEXT_CHARS, "a worker's model is told the same"


@pytest.mark.proves("RESULT-ERRORS")
async def test_the_cause_of_an_error_comes_first_and_is_not_long(tmp_path: Path, mode: str) -> None:
    shop(tmp_path, {"text": "hm"})
    async with serving(tmp_path, mode) as client:
        wrong = await client.call_tool("files_in_read_text", {"path": "x" * 100_000})
        unknown = await client.call_tool("files_in_list", {"pattern": "y" * 30_000, "z" * 30_000: 1})
    for result in (wrong, unknown):
        assert result.is_error and 0 < len(texts(result)) < 10_000
    assert text(wrong).startswith("in/xxx") and text(unknown).startswith("files_in_list: ")
