"""What clients read besides tools: workers as prompts, resources by address, and completions, in both eras."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import (
    BlobResourceContents,
    PromptReference,
    ResourceTemplateReference,
    TextContent,
    TextResourceContents,
)

from llm_do_mcp.project.load import load_project
from llm_do_mcp.serving import completions
from llm_do_mcp.serving.names import Names
from llm_do_mcp.serving.server import ProjectServer
from llm_do_mcp.serving.several import SeveralProjects
from tests.serving.clients import account, client_of, serving, shop, text, turn, worker
from tests.serving.clients import write as writes

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
SCHEMA = {
    "type": "object",
    "properties": {
        "topic": {"type": "string", "description": "what about"},
        "depth": {"type": "integer"},
        "style": {"type": "string", "enum": ["short", "long", "SHOUTED"]},
        "draft": {"type": "boolean"},
    },
    "required": ["topic"],
    "additionalProperties": False,
}


def library(root: Path) -> Path:
    """A shop with a worker that has a schema, a template and a parameter, and some files."""
    keys: dict[str, Any] = {
        "description": "Reports.",
        "input_schema": SCHEMA,
        "params": {"tone": "dry"},
        "toolsets": {"filesystem": {}, "te": {}, "custom": ["sum_up"]},
        "allow_workers": ["main"],
        "output_schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    }
    body = "Report on {{ topic }} ({{ depth | default(1) + 1 }}), {{ tone }}.\n{{ file('style.md') }}"
    files = {
        "workers/reports/report.worker": worker(keys, body),
        "workers/hidden.worker": worker({}, "A secret plan."),
        "tools.py": "def sum_up(text: str) -> str:\n    return text\n",
        "templates/style.md": "No {{ adjectives }}.",
        "in/sub dir/ü#1.md": "# ü\n",
    }
    shop(root, turn(writes("out/a b.txt")), files=files, exports=["main", "reports/report"])
    (root / "in" / "dot.png").write_bytes(PNG)
    (root / "in" / "raw.bin").write_bytes(b"\x00\xff\x00")
    return root


async def read(client: Client, uri: str) -> tuple[str | bytes, str]:
    """What is at an address, and its media type."""
    [content] = (await client.read_resource(uri)).contents
    assert content.uri == uri and content.mime_type is not None
    if isinstance(content, BlobResourceContents):
        return base64.b64decode(content.blob), content.mime_type
    assert isinstance(content, TextResourceContents)
    return content.text, content.mime_type


async def values(client: Client, reference: Any, name: str, begun: str = "") -> list[str]:
    return (await client.complete(reference, {"name": name, "value": begun})).completion.values


# ---- prompts


@pytest.mark.proves("PROMPT-LIST")
async def test_each_exported_worker_is_a_prompt_with_the_fields_of_its_input(tmp_path: Path, mode: str) -> None:
    async with serving(library(tmp_path), mode) as client:
        listed = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
    assert list(listed) == ["shop", "reports_report"]
    arguments = {argument.name: argument for argument in listed["reports_report"].arguments or []}
    assert list(arguments) == ["topic", "depth", "style", "draft", "tone"]
    assert [name for name, argument in arguments.items() if argument.required] == ["topic"]
    assert (arguments["topic"].description, arguments["depth"].description) == ("what about", "JSON: integer")
    assert [argument.name for argument in listed["shop"].arguments or []] == ["input"]


@pytest.mark.proves("PROMPT-TEXT")
async def test_a_prompt_has_the_workers_own_instructions_and_names_the_tools(tmp_path: Path, mode: str) -> None:
    given = {"topic": "pears", "depth": "3", "draft": "", "tone": "lyrical"}
    async with serving(library(tmp_path), mode) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        prompt = await client.get_prompt("reports_report", given)
    how, what = (message.content for message in prompt.messages)
    assert isinstance(how, TextContent) and isinstance(what, TextContent)
    assert how.text.startswith("Report on pears (4), lyrical.\nNo {{ adjectives }}.")
    lines = how.text.splitlines()
    assert "- read_file in in: files_in_read_text, with paths below in" in lines
    assert "- write_file in out: files_out_write_text, with paths below out" in lines
    assert {"- te: te", "- worker main: shop"} <= set(lines)
    assert "Not to be had here, so say where it would be needed: sum_up" in lines
    named = {line.split(": ")[1].split(",")[0] for line in lines if line.startswith("- ")}
    assert named <= tools and '"required": ["n"]' in how.text
    assert json.loads(what.text) == {"topic": "pears", "depth": 3}


ECHOES = """\
def reply(request):
    return request["messages"][0]["content"][0]["text"]
"""


@pytest.mark.proves("PROMPT-TEXT")
async def test_a_prompt_asks_in_the_words_that_the_workers_own_model_gets(tmp_path: Path, mode: str) -> None:
    schema = {"type": "object", "properties": {"topic": {"type": "string"}}}
    files = {"main.worker": worker({"input_schema": schema}), "model.py": ECHOES}
    given = {"topic": "grüne Äpfel, 青"}
    async with serving(shop(tmp_path, files=files), mode) as client:
        _, what = (await client.get_prompt("shop", given)).messages
        assert isinstance(what.content, TextContent)
        assert what.content.text == text(await client.call_tool("shop", given))


SHAPES = {
    "type": "object",
    "$defs": {"Colour": {"enum": ["red", "blue"]}, "Least": {"type": "integer", "minimum": 2}},
    "properties": {
        "count": {"anyOf": [{"$ref": "#/$defs/Least"}, {"type": "null"}]},
        "note": {"type": ["string", "null"]},
        "level": {"enum": [1, 2, 3]},
        "colour": {"$ref": "#/$defs/Colour"},
        "code": {"type": "string", "minLength": 2},
        "either": {"oneOf": [{"type": "string", "pattern": "^[a-z]+$"}, {"type": "array"}]},
        "any": True,
    },
}


@pytest.mark.proves("PROMPT-ARGUMENTS")
@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"count": "3"}, {"count": 3}),
        ({"count": "null"}, {"count": None}),
        ({"count": ""}, {}),
        ({"note": "hello", "any": "[1"}, {"note": "hello", "any": "[1"}),
        ({"note": ""}, {"note": ""}),
        ({"level": "1", "colour": "blue"}, {"level": 1, "colour": "blue"}),
        ({"level": "", "colour": "", "code": ""}, {}),
        ({"either": "abc"}, {"either": "abc"}),
        ({"either": "[1]"}, {"either": [1]}),
        ({"count": "1"}, "count: must be at least 2, not 1"),
        ({"count": "many"}, "count must be JSON of type integer or null, not many"),
        ({"count": "NaN"}, "count must be JSON of type integer or null, not NaN"),
        ({"level": "4"}, "level: must be one of 1, 2, 3, not 4"),
        ({"colour": "green"}, 'colour: must be one of "red", "blue", not "green"'),
        ({"code": "x"}, "code: must be a string of at least 2 characters"),
    ],
)
async def test_a_text_is_taken_for_what_the_field_can_be(
    tmp_path: Path, mode: str, given: dict[str, str], meant: dict[str, Any] | str
) -> None:
    files = {"main.worker": worker({"input_schema": SHAPES}, "Do it.")}
    async with serving(shop(tmp_path, files=files), mode) as client:
        if isinstance(meant, str):
            with pytest.raises(MCPError, match=re.escape(meant)):
                await client.get_prompt("shop", given)
            return
        _, what = (await client.get_prompt("shop", given)).messages
        assert isinstance(what.content, TextContent) and json.loads(what.content.text) == meant


@pytest.mark.proves("PROMPT-ARGUMENTS", "COMPLETION")
async def test_what_is_offered_for_a_field_is_taken_and_its_form_is_told(tmp_path: Path, mode: str) -> None:
    files = {"main.worker": worker({"input_schema": SHAPES}, "Do it.")}
    prompt = PromptReference(name="shop")
    async with serving(shop(tmp_path, files=files), mode) as client:
        (listed,) = (await client.list_prompts()).prompts
        for name, wanted in {"level": ["1", "2", "3"], "colour": ["red", "blue"], "count": [], "any": []}.items():
            assert await values(client, prompt, name) == wanted
            for value in wanted:
                assert (await client.get_prompt("shop", {name: value})).messages
    told = {argument.name: argument.description for argument in listed.arguments or [] if argument.description}
    assert told == {"count": "JSON: integer or null", "level": "JSON: integer"}


@pytest.mark.proves("PROMPT-REFUSED")
@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("nobody", {}, "unknown prompt 'nobody'"),
        ("files_in_list", {}, "unknown prompt"),
        ("hidden", {}, "unknown prompt"),
        ("reports_report", {}, "topic"),
        ("reports_report", {"topic": "x", "depth": "deep"}, "depth must be JSON of type integer, not deep"),
        ("reports_report", {"topic": "x", "style": "wild"}, "style"),
        ("reports_report", {"topic": "x", "other": "y"}, "other"),
    ],
)
async def test_a_prompt_that_cannot_be_made_says_why(
    tmp_path: Path, mode: str, name: str, given: dict[str, str], said: str
) -> None:
    async with serving(library(tmp_path), mode) as client:
        with pytest.raises(MCPError, match=said) as refused:
            await client.get_prompt(name, given)
    assert refused.value.error.code == -32602 and "\n" not in str(refused.value)


@pytest.mark.proves("PROMPT-REFUSED")
async def test_a_prompt_of_a_broken_worker_says_what_is_wrong_with_it(tmp_path: Path, mode: str) -> None:
    files = {"workers/bad.worker": worker({"nope": 1})}
    async with serving(shop(tmp_path, files=files, exports=["main", "bad"]), mode) as client:
        with pytest.raises(MCPError, match=r"workers/bad\.worker:2:2: .*nope"):
            await client.get_prompt("bad", {"input": "x"})
        (tmp_path / "workers/bad.worker").write_text(worker())
        assert (await client.get_prompt("bad", {"input": "x"})).messages


# ---- resources


@pytest.mark.proves("RESOURCE-LIST")
async def test_what_is_listed_can_be_read(tmp_path: Path, mode: str) -> None:
    async with serving(library(tmp_path), mode) as client:
        listed = (await client.list_resources()).resources
        found = {}
        for resource in listed:
            text, found_type = await read(client, resource.uri)
            assert found_type == resource.mime_type and isinstance(text, str)
            found[resource.uri] = text
        tool = next(tool for tool in (await client.list_tools()).tools if tool.name == "reports_report")
    root = "llm-do://"
    assert found[f"{root}workers/reports/report"] == (tmp_path / "workers/reports/report.worker").read_text()
    assert json.loads(found[f"{root}schemas/reports_report/input"]) == tool.input_schema
    assert json.loads(found[f"{root}schemas/reports_report/output"]) == tool.output_schema
    public = json.loads(found[f"{root}project"])
    assert public["name"] == "shop" and public["files"] == ["in", "out"] and "files_in_list" in public["tools"]
    everything = "".join(found.values())
    assert "scripted:model.py" not in everything and str(tmp_path) not in everything, "no model, no place"
    assert not any("hidden" in uri for uri in found)


@pytest.mark.proves("RESOURCE-FILES")
async def test_files_are_read_by_address_as_text_or_bytes(tmp_path: Path, mode: str) -> None:
    base = "llm-do://files/in"
    async with serving(library(tmp_path), mode) as client:
        forms = [form.uri_template for form in (await client.list_resource_templates()).resource_templates]
        assert forms == [f"{base}/{{+path}}", "llm-do://files/out/{+path}", "llm-do://runs/{run_id}"]
        assert await read(client, f"{base}/stock.txt") == ("three pears\n", "text/plain")
        assert await read(client, f"{base}/sub%20dir/%C3%BC%231.md") == ("# ü\n", "text/markdown")
        assert await read(client, f"{base}/dot.png") == (PNG, "image/png")
        assert await read(client, f"{base}/raw.bin") == (b"\x00\xff\x00", "application/octet-stream")


@pytest.mark.proves("RESOURCE-CONFINED")
@pytest.mark.parametrize(
    "uri",
    [
        "llm-do://files/in/../project.yaml",
        "llm-do://files/in/%2e%2e/project.yaml",
        "llm-do://files/in//etc/passwd",
        "llm-do://files/in/link",
        "llm-do://files/in/",
        "llm-do://files/in/missing.txt",
        "llm-do://files/none/a.txt",
        "llm-do://files/in/closed/a.txt",
        "llm-do://workers/hidden",
        "llm-do://workers/../project",
        "llm-do://schemas/te/output",
        "llm-do://runs/0123456789abcdef",
        "file:///etc/passwd",
        "project.yaml",
    ],
)
async def test_nothing_else_is_to_be_read(tmp_path: Path, mode: str, uri: str) -> None:
    root = library(tmp_path)
    (root / "in" / "link").symlink_to("/etc/passwd")
    (root / "in" / "closed").mkdir()
    (root / "in" / "closed" / "a.txt").write_text("secret")
    manifest = json.loads((root / "project.yaml").read_text())
    manifest["approvals"] = [{"function": "files.read", "subject": "in/closed/**", "decision": "ask"}]
    (root / "project.yaml").write_text(json.dumps(manifest))
    async with serving(root, mode) as client:
        with pytest.raises(MCPError) as refused:
            await client.read_resource(uri)
        assert refused.value.error.code == -32602
        said = str(refused.value)
        assert "\n" not in said and str(tmp_path) not in said and "secret" not in said
        assert await read(client, "llm-do://files/in/stock.txt")


@pytest.mark.proves("RESOURCE-TRACE")
async def test_a_run_can_be_read_by_the_id_in_its_account(tmp_path: Path, mode: str) -> None:
    async with serving(library(tmp_path), mode, when_nobody_can_answer="deny") as client:
        run = account(await client.call_tool("shop", {"input": "go"}))["id"]
        text, found_type = await read(client, f"llm-do://runs/{run}")
        assert isinstance(text, str) and found_type == "application/json"
        trace = json.loads(text)
        assert (trace["run"], trace["status"]) == (run, "done") and trace["items"]
        form = ResourceTemplateReference(uri="llm-do://runs/{run_id}")
        assert run in await values(client, form, "run_id", run[:4])
        assert await values(client, form, "run_id", "zz") == []


# ---- completions


@pytest.mark.proves("COMPLETION")
async def test_values_that_are_known_are_offered(tmp_path: Path, mode: str) -> None:
    root = library(tmp_path)
    prompt = PromptReference(name="reports_report")
    files = ResourceTemplateReference(uri="llm-do://files/in/{+path}")
    async with serving(root, mode) as client:
        assert await values(client, prompt, "style", "s") == ["short", "SHOUTED"]
        assert await values(client, prompt, "draft") == ["true", "false"]
        assert await values(client, prompt, "topic") == await values(client, prompt, "none") == []
        assert await values(client, PromptReference(name="nobody"), "style") == []
        assert await values(client, files, "path", "s") == ["stock.txt", "sub dir/ü#1.md"]
        assert await values(client, ResourceTemplateReference(uri="llm-do://files/no/{+path}"), "path") == []
        for number in range(150):
            (root / "in" / f"many-{number:03}").touch()
        found = (await client.complete(files, {"name": "path", "value": "many"})).completion
        assert (len(found.values), found.total, found.has_more) == (100, None, True)


@pytest.mark.proves("COMPLETION", "COMPLETION-MANY")
async def test_paths_are_offered_however_many_there_are(tmp_path: Path, mode: str) -> None:
    folders = {f"in/D{folder:02}/f{number:03}.md": "" for folder in range(12) for number in range(110)}
    denied = [{"function": "files.list", "subject": "in/D10/**", "decision": "deny"}]
    shop(tmp_path, files=folders, approvals=denied)
    files = ResourceTemplateReference(uri="llm-do://files/in/{+path}")
    async with serving(tmp_path, mode) as client:
        found = (await client.complete(files, {"name": "path", "value": "d11/F10"})).completion
        assert found.values == [f"D11/f{number}.md" for number in range(100, 110)]
        assert (found.total, found.has_more) == (10, False)
        assert (await values(client, files, "path"))[:2] == ["stock.txt", "D00/f000.md"]
        assert await values(client, files, "path", "D1") == [f"D11/f{number:03}.md" for number in range(100)]
        for nothing in ("D10/", "D11/f2", "../", "/", "D11/../", "D11//f", "*", "\0"):
            assert await values(client, files, "path", nothing) == [], nothing


# ---- several projects


@asynccontextmanager
async def two(root: Path, mode: str) -> AsyncIterator[Client]:
    """A client of two projects, `shop` and `den`."""
    library(root / "shop")
    shop(root / "den", name="den", files={"in/stock.txt": "one bear\n"})
    names = Names()
    servers = [ProjectServer(load_project(root / name), beside=names) for name in ("shop", "den")]
    several = SeveralProjects(servers)
    try:
        async with client_of(several, mode) as client:
            yield client
    finally:
        await several.aclose()


@pytest.mark.proves("RESOURCE-SEVERAL")
async def test_of_several_projects_each_has_its_own(tmp_path: Path, mode: str) -> None:
    async with two(tmp_path, mode) as client:
        assert [prompt.name for prompt in (await client.list_prompts()).prompts] == [
            "shop",
            "shop_reports_report",
            "den",
        ]
        prompt = await client.get_prompt("shop_reports_report", {"topic": "x"})
        assert "files_in_read_text" in str(prompt.messages[0])
        for resource in (await client.list_resources()).resources:
            await read(client, resource.uri)
        for name, stock in (("shop", "three pears\n"), ("den", "one bear\n")):
            assert (await read(client, f"llm-do://projects/{name}/files/in/stock.txt"))[0] == stock
        run = account(await client.call_tool("den_files_in_list", {}))["id"]
        assert json.loads((await read(client, f"llm-do://runs/{run}"))[0])["run"] == run
        assert run in await values(client, ResourceTemplateReference(uri="llm-do://runs/{run_id}"), "run_id")
        form = ResourceTemplateReference(uri="llm-do://projects/den/files/in/{+path}")
        assert await values(client, form, "path") == ["stock.txt"]
        with pytest.raises(MCPError):
            await client.read_resource("llm-do://projects/none/project")


@pytest.mark.proves("COMPLETION", "RESOURCE-SEVERAL")
async def test_runs_that_one_of_several_projects_leaves_out_are_told_of(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(completions, "MAX_VALUES", 2)
    async with two(tmp_path, mode) as client:
        runs = ResourceTemplateReference(uri="llm-do://runs/{run_id}")
        for total, has_more in ((1, False), (2, False), (None, True)):
            await client.call_tool("den_files_in_list", {})
            found = (await client.complete(runs, {"name": "run_id", "value": ""})).completion
            assert (found.total, found.has_more) == (total, has_more)
