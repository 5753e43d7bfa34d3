"""Files that are edited while the server runs: the next call sees them, a call in flight does not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from mcp.types import ElicitRequestFormParams, ElicitResult

from tests.serving.clients import HANDSHAKE, Gate, Person, client_of, decide, served, serving, shop, text, turn, worker
from tests.serving.clients import write as write_call

pytestmark = pytest.mark.anyio

ECHO = '''\
"""A model that says what it was told."""


def reply(request):
    return {"text": request["system"]}
'''


def put(root: Path, files: Mapping[str, str]) -> None:
    """Write files, as an editor does."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def echoing(root: Path, files: Mapping[str, str] | None = None) -> Path:
    """A shop whose workers say their instructions."""
    return shop(root, files={"main.worker": worker(body="first"), "model.py": ECHO, **(files or {})})


def manifest(root: Path, **keys: Any) -> str:
    """The shop's manifest with further keys, or others."""
    return json.dumps({**json.loads((root / "project.yaml").read_text()), **keys})


async def said(client: Any, name: str = "shop", **arguments: Any) -> str:
    """What a call came to, whether result or error."""
    return text(await client.call_tool(name, arguments or {"input": "go"})).strip()


async def listed(client: Any) -> dict[str, Any]:
    """What the server lists now, whatever the client may have kept."""
    return {tool.name: tool for tool in (await client.list_tools(cache_mode="bypass")).tools}


@pytest.mark.proves("EDIT-NEXT-CALL")
async def test_the_next_call_sees_the_edited_worker_template_and_manifest(tmp_path: Path, mode: str) -> None:
    root = echoing(tmp_path)
    async with serving(root, mode) as client:
        assert await said(client) == "first"
        put(root, {"main.worker": worker(body="other")})
        assert await said(client) == "other"
        put(root, {"main.worker": worker(body='{{ file("T.md") }}'), "templates/T.md": "one"})
        assert await said(client) == "one"
        put(root, {"templates/T.md": "two"})
        assert await said(client) == "two"
        put(root, {"other.py": ECHO.replace("system", "model")})
        put(root, {"project.yaml": manifest(root, model="scripted:other.py")})
        assert await said(client) == "scripted:other.py"


@pytest.mark.proves("EDIT-NEXT-CALL")
async def test_the_next_call_sees_the_edited_schema_and_tool(tmp_path: Path, mode: str) -> None:
    def schema(name: str) -> str:
        return json.dumps({"type": "object", "properties": {name: {"type": "string"}}, "additionalProperties": False})

    def tool(answer: str) -> str:
        return f"from llm_do_mcp import tool\n\n\n@tool(risk='read')\ndef ready() -> str:\n    return {answer!r}\n"

    keys = {"schema_in_ref": "schemas/in.json", "toolsets": {"custom": ["ready"]}}
    files = {"main.worker": worker(keys), "schemas/in.json": schema("a"), "tools.py": tool("yes")}
    root = shop(tmp_path, turn(("ready", {})), files=files)
    async with serving(root, mode) as client:
        assert await said(client, a="x") == "yes"
        put(root, {"schemas/in.json": schema("b"), "tools.py": tool("not")})
        properties = (await listed(client))["shop"].input_schema["properties"]
        assert "b" in properties and "a" not in properties
        assert await said(client, b="x") == "not"
        assert (await said(client, a="x")).startswith("shop: ")


@pytest.mark.proves("EDIT-NEXT-CALL")
async def test_workers_come_and_go(tmp_path: Path, mode: str) -> None:
    root = echoing(tmp_path, {"workers/a.worker": worker(body="a"), "workers/b.worker": worker(body="b")})
    (root / "main.worker").unlink()
    async with serving(root, mode) as client:
        assert {"a", "b"} <= (await listed(client)).keys()
        put(root, {"workers/c.worker": worker(body="c")})
        assert await said(client, "c") == "c"
        (root / "workers/a.worker").unlink()
        assert "a" not in await listed(client)
        with pytest.raises(MCPError, match="unknown tool 'a'"):
            await client.call_tool("a", {"input": "go"})
        assert await said(client, "b") == "b"


@pytest.mark.proves("EDIT-IN-FLIGHT")
async def test_a_call_in_flight_keeps_what_it_began_with(tmp_path: Path, mode: str, gate: Gate) -> None:
    turns = [turn(("slow", {})), turn(("worker_call", {"worker": "helper"}))]
    helper = {"model": "scripted:echo.py"}
    put(
        tmp_path,
        {
            "main.worker": worker({"toolsets": {"custom": ["slow"]}, "allow_workers": ["helper"]}),
            "turns.json": json.dumps({"main": turns}),
            "workers/helper.worker": worker(helper, "old help"),
            "echo.py": ECHO,
        },
    )
    answers: list[str] = []
    async with serving(tmp_path, mode) as client, anyio.create_task_group() as group:

        async def call() -> None:
            answers.append(await said(client))

        group.start_soon(call)
        await gate.begun()
        put(tmp_path, {"workers/helper.worker": worker(helper, "new help"), "main.worker": worker(body="{{ broken")})
        await listed(client)  # takes the edits up
        gate.open()
    assert answers == ["slow but sure\nold help"]


@pytest.mark.proves("EDIT-IN-FLIGHT")
async def test_a_call_in_flight_keeps_its_python_and_its_list_of_workers(tmp_path: Path, mode: str, gate: Gate) -> None:
    """Also the Python that it has not come to import, and a worker that is gone; a new one is not for it."""

    def later(version: str) -> str:
        return f"from llm_do_mcp import tool\n\n\n@tool(risk='read')\ndef later() -> str:\n    return {version!r}\n"

    def asks(name: str) -> Any:
        return turn(("worker_call", {"worker": name}))

    slow = (tmp_path / "tools.py").read_text()
    main = [turn(("slow", {})), turn(("slow", {})), asks("helper"), asks("gone"), asks("fresh")]
    edited = {
        "tools.py": slow.replace("slow but sure", "slower"),
        "workers/helper/tools.py": later("new"),
        "workers/fresh.worker": worker({"model": "scripted:echo.py"}, "fresh"),
    }
    put(
        tmp_path,
        {
            "main.worker": worker({"toolsets": {"custom": ["slow"]}, "allow_workers": ["*"]}),
            "turns.json": json.dumps({"main": main, "helper": [turn(("later", {}))]}),
            "workers/helper/worker.worker": worker(),
            "workers/helper/tools.py": later("old"),
            "workers/gone.worker": worker({"model": "scripted:echo.py"}, "not gone"),
            "echo.py": ECHO,
        },
    )
    answers: list[str] = []
    async with serving(tmp_path, mode) as client:
        for _ in range(2):
            async with anyio.create_task_group() as group:

                async def call() -> None:
                    answers.append(await said(client))

                group.start_soon(call)
                await gate.begun()
                put(tmp_path, edited)
                (tmp_path / "workers/gone.worker").unlink(missing_ok=True)
                await listed(client)  # takes the edits up
                gate.open()
                await gate.begun()
                gate.open()
    before, after = ([line for line in answer.splitlines() if line] for answer in answers)
    assert before[:4] == ["slow but sure", "slow but sure", "old", "not gone"]
    assert before[4].startswith("no worker 'fresh'")
    assert (after[:3], after[4]) == (["slower", "slower", "new"], "fresh")
    assert after[3].startswith("no worker 'gone'")


@pytest.mark.proves("EDIT-IN-FLIGHT")
@pytest.mark.parametrize("edit", ["removed", "broken", "broken manifest"])
async def test_an_answer_reaches_its_run_whatever_was_edited_meanwhile(tmp_path: Path, mode: str, edit: str) -> None:
    root = shop(tmp_path, turn(write_call("out/a.md")))

    def answer(_: ElicitRequestFormParams) -> ElicitResult:
        if edit == "removed":
            (root / "main.worker").unlink()
        put(root, {"project.yaml" if edit == "broken manifest" else "main.worker": "nonsense: {"})
        return decide("once")

    async with serving(root, mode, Person(answer)) as client:
        assert '"created": true' in await said(client)
        assert (await client.call_tool("shop", {"input": "go"})).is_error
    assert (root / "out/a.md").read_text() == "new"


@pytest.mark.proves("EDIT-BROKEN", "PROJECT-BROKEN-WORKER")
async def test_a_worker_that_an_edit_breaks_says_so_and_the_others_work(tmp_path: Path, mode: str) -> None:
    root = echoing(tmp_path, {"workers/a.worker": worker(body="a")})
    put(root, {"project.yaml": manifest(root, exports=["main", "a"])})
    async with serving(root, mode) as client:
        assert await said(client, "a") == "a"
        put(root, {"workers/a.worker": worker({"modle": "x"})})
        assert "a" not in await listed(client)
        assert (await said(client, "a")).startswith("workers/a.worker:2:2: unknown key 'modle'")
        assert await said(client) == "first"
        put(root, {"workers/a.worker": worker(body="mended")})
        assert await said(client, "a") == "mended"


@pytest.mark.proves("EDIT-BROKEN")
@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"project.yaml": "modle: x"}, "project.yaml:1:1: unknown key 'modle'"),
        ({"project.yaml": "name: {"}, "project.yaml:2:1: did not find"),
        ({"llm-do.yaml": ""}, "are two names of one file"),
        ({"project.yaml": "name: shop\nexports: [main, nobody]"}, "project.yaml:2:17: no worker 'nobody'"),
        ({"project.yaml": "name: a\nexports: [main, a]", "workers/a.worker": worker()}, "both be published as 'a'"),
        ({"project.yaml": "name: shop\nredact: ['(']"}, "is no regular expression"),
    ],
)
async def test_a_project_that_an_edit_breaks_says_so_until_it_is_mended(
    tmp_path: Path, mode: str, files: dict[str, str], says: str
) -> None:
    root = echoing(tmp_path)
    good = (root / "project.yaml").read_text()
    async with serving(root, mode) as client:
        before = await listed(client)
        put(root, files)
        for name, arguments in (("shop", {"input": "go"}), ("files_out_list", {}), ("te", {"command": "te grep x"})):
            result = await client.call_tool(name, arguments)
            assert result.is_error and says in text(result)
        assert await listed(client) == before, "what can be called when it is mended"
        for name in files:
            (root / name).unlink()
        put(root, {"project.yaml": good, "main.worker": worker(body="mended")})
        assert await said(client) == "mended"


@pytest.mark.proves("EDIT-BROKEN")
async def test_what_was_handed_over_is_fetched_from_a_broken_project(tmp_path: Path, gate: Gate) -> None:
    async with served(tmp_path, call_within=0.2) as server, client_of(server, HANDSHAKE) as client:
        begun = await client.call_tool("shop", {"input": "go"})
        run = begun.meta["llm-do/run"]["id"]
        put(tmp_path, {"project.yaml": "nonsense: {"})
        assert (await client.call_tool("shop", {"input": "other"})).is_error
        gate.open()
        server.call_within = None
        assert await said(client, "run_wait", run_id=run) == "slow but sure"


@pytest.mark.proves("EDIT-NEXT-CALL")
async def test_nothing_is_loaded_anew_where_nothing_was_edited(tmp_path: Path, mode: str) -> None:
    root = shop(tmp_path, turn(write_call("out/a.md")))
    async with served(root) as server, client_of(server, mode, Person(decide("once"))) as client:
        await said(client)  # the files may be of just now, which is taken as an edit
        project = server.project
        await listed(client)
        await said(client)
        assert server.project is project
