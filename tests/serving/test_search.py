"""The search as a tool: whose budget holds, who may ask for what was left out, what the project sets."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import Implementation

from tests.serving.clients import FILES, HANDSHAKE, served, serving, shop, text, texts, turn, worker

pytestmark = pytest.mark.anyio
MANY = {f"in/f{n}.py": "pears = 'many of them'\n" * 60 for n in range(60)}
GREP = {"command": "grep pears"}


def handle_in(answer: str) -> str:
    found = re.search(r"res_[0-9a-f]{16}", answer)
    assert found is not None
    return found[0]


@pytest.fixture(autouse=True)
def kept(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path_factory.mktemp("kept")))


@pytest.mark.proves("CALL-SEARCH-HANDLE")
async def test_what_was_left_out_is_served_to_its_client(tmp_path: Path, mode: str) -> None:
    async with serving(shop(tmp_path, files=MANY), mode) as client:
        (tool,) = [tool for tool in (await client.list_tools()).tools if tool.name == "te"]
        assert "--handle res_… [--chunk N]" in str(tool.description), "a model learns of it before it needs it"
        answer = text(await client.call_tool("te", GREP))
        chunks = [text(await client.call_tool("te", {"command": f"--handle {handle_in(answer)}"}))]
        number = json.loads(chunks[0].splitlines()[1])["chunks"]
        for chunk in range(2, number + 1):
            chunks.append(
                text(await client.call_tool("te", {"command": f"te --handle {handle_in(answer)} --chunk {chunk}"}))
            )
    hits = [line for part in (answer, *chunks) for line in part.splitlines() if line.startswith("in/")]
    assert len(hits) == len(set(hits)) == 60 * 60 + 1
    assert max(map(len, (answer, *chunks))) <= 16_000


@pytest.mark.proves("CALL-SEARCH-HANDLE")
async def test_no_other_client_can_use_a_handle(tmp_path: Path) -> None:
    async with (
        served(shop(tmp_path, files=MANY)) as server,
        Client(server, mode=HANDSHAKE) as first,
        Client(server, mode=HANDSHAKE) as second,
    ):
        handle = handle_in(text(await first.call_tool("te", GREP)))
        own = text(await first.call_tool("te", {"command": f"--handle {handle}"}))
        other = text(await second.call_tool("te", {"command": f"--handle {handle}"}))
    assert '"chunk":1' in own
    assert '"error":"unknown_handle"' in other and "pears" not in other


@pytest.mark.proves("CALL-SEARCH-HANDLE")
async def test_a_worker_s_handle_is_its_run_s(tmp_path: Path) -> None:
    files = {**MANY, "main.worker": worker({"toolsets": {**FILES, "te": {}}})}
    root = shop(tmp_path, turn(("te", GREP)), files=files)
    async with serving(root, HANDSHAKE) as client:
        told = texts(await client.call_tool("shop", {"input": "go"}))
        other = text(await client.call_tool("te", {"command": f"--handle {handle_in(told)}"}))
    assert '"error":"unknown_handle"' in other


@pytest.mark.proves("TE-FIND", "TE-CAT")
async def test_every_command_works_in_a_sandbox_folder(tmp_path: Path, mode: str) -> None:
    files = {"in/a/x.md": "one\n", "in/y.md": "two\n", "in/empty/.keep": ""}
    async with serving(shop(tmp_path, files=files), mode) as client:

        async def lines(command: str) -> list[str]:
            return text(await client.call_tool("te", {"command": command})).splitlines()[3:]

        assert await lines("find in -name '*.md'") == ["in/y.md", "in/a/x.md"]
        assert await lines("find in/a") == ["in/a", "in/a/x.md"]
        assert await lines("find . -maxdepth 1") == ["in/", "out/"]
        assert await lines("cat in/a/x.md") == ["one"]
        assert await lines("grep -l two in") == ["in/y.md"]
        assert "[TE] standard input is not read" in (await lines("grep two -"))[0]


@pytest.mark.proves("CALL-SEARCH-BUDGET")
@pytest.mark.parametrize(("name", "most"), [("qwen-local", 28_000), ("gemini-shell", 40_000), ("tests", 16_000)])
async def test_the_budget_is_that_of_the_client_s_name(tmp_path: Path, mode: str, name: str, most: int) -> None:
    async with (
        served(shop(tmp_path, files=MANY)) as server,
        Client(server, mode=mode, client_info=Implementation(name=name, version="1")) as client,
    ):
        answers = [
            text(await client.call_tool("te", {"command": f"{form} grep pears"})) for form in ("", "--json", "-i")
        ]
    assert all(0.95 * most < len(answer) <= most for answer in answers)


@pytest.mark.proves("CALL-SEARCH-SETTINGS")
async def test_what_the_manifest_sets_is_in_force(tmp_path: Path, mode: str) -> None:
    settings: dict[str, Any] = {
        "workspace": {"root": ".", "respect_gitignore": False},
        "grep": {"max_output_chars": 900},
        "telemetry": {"enabled": True},
    }
    more = {".gitignore": "built/\n", ".llm-doignore": "drafts/\n", "built/a.py": "plums\n", "drafts/b.py": "plums\n"}
    async with serving(shop(tmp_path, files={**MANY, **more}, tool_envelope=settings), mode) as client:
        pears = text(await client.call_tool("te", GREP))
        plums = text(await client.call_tool("te", {"command": "grep plums"}))
        log = text(await client.call_tool("te", {"command": "grep --hidden --no-ignore te_telemetry"}))
        outside = text(await client.call_tool("te", {"command": "grep x .."}))
    assert 500 < len(pears) <= 900 and '"matches":3601' in pears
    assert plums.splitlines()[3:] == ["built/a.py:1: plums"]
    assert '"matches":0' in log or '"error":"nothing_searched"' in log
    assert '"error":"outside"' in outside
    events = [json.loads(line) for line in (tmp_path / ".llm-do" / "te_telemetry.jsonl").read_text().splitlines()]
    assert [event["arguments"] for event in events if event["event"] == "command"][:2] == [
        ["grep", "pears"],
        ["grep", "plums"],
    ]


@pytest.mark.proves("CALL-SEARCH-SETTINGS")
async def test_where_the_manifest_switches_the_envelope_off_answers_are_the_tools_own_lines(
    tmp_path: Path, mode: str
) -> None:
    async with serving(shop(tmp_path, files=MANY), mode) as client:
        own = text(await client.call_tool("te", {"command": "-i grep pears"}))
    async with serving(shop(tmp_path, files=MANY, tool_envelope={"enabled": False}), mode) as client:
        assert text(await client.call_tool("te", GREP)) == own
        assert text(await client.call_tool("te", {"command": "-i grep pears"})) == own
        (tool,) = [tool for tool in (await client.list_tools()).tools if tool.name == "te"]
    assert tool.description is not None and "The answer is lines alone" in tool.description
    assert "pears" in own and "TE_BEGIN_META" not in own


@pytest.mark.proves("CALL-SEARCH-SETTINGS")
@pytest.mark.parametrize("folder", ["in", "..in"])
async def test_a_project_s_ignore_file_holds_in_its_sandboxes(tmp_path: Path, mode: str, folder: str) -> None:
    paths = {"in": {"root": f"./{folder}", "mode": "ro"}}
    more = {f"{folder}/{name}": "three pears\n" for name in ("stock.txt", "drafts/b.txt")}
    files = {".llm-doignore": f"/{folder}/drafts/\n", **more}
    async with serving(shop(tmp_path, files=files, sandbox={"paths": paths}), mode) as client:
        assert '"matches":1,' in text(await client.call_tool("te", GREP))
        assert "in/drafts/b.txt:1:" in text(await client.call_tool("te", {"command": "grep pears in/drafts"}))
    assert not list((tmp_path / ".llm-do").glob("te_*")), "no log unless it is switched on"


@pytest.mark.proves("CALL-SEARCH-SETTINGS")
async def test_the_search_is_not_widened_over_what_may_not_be_read_without_asking(tmp_path: Path, mode: str) -> None:
    paths = {"in": {"root": "./in", "mode": "ro"}, "closed": {"root": "./closed", "mode": "ro", "read_approval": True}}
    more = {"closed/a.txt": "three pears\n", "open.txt": "three pears\n"}
    given = {"sandbox": {"paths": paths}, "tool_envelope": {"workspace": {"root": "."}}}
    async with serving(shop(tmp_path, files=more, **given), mode) as client:
        answer = text(await client.call_tool("te", GREP))
    assert answer.splitlines()[3:] == ["in/stock.txt:1: three pears"]
