"""What clients are told without asking: lists that changed on disk, traces that grow. Nothing is told in vain."""

from __future__ import annotations

import asyncio
import io
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Any

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated, ToolsListChanged
from mcp.types import Tool

from llm_do_mcp.project.seen import Seen
from llm_do_mcp.serving import watch
from llm_do_mcp.serving.news import News
from llm_do_mcp.serving.watch import Looks, Watch
from tests.serving.clients import HANDSHAKE, MODERN, PATIENCE_S, Gate, command, served, worker
from tests.serving.test_edits import echoing, manifest, put
from tests.serving.web import Service

pytestmark = [
    pytest.mark.anyio,
    # A handshake-era client subscribes in the way of its era.
    pytest.mark.filterwarnings("ignore:resources.(un)?subscribe is removed"),
]

TOOLS = "tools/list_changed"
Notice = str


class Listener:
    """A client that is told things, in either era, and what it was told."""

    def __init__(self, client: Client, told: asyncio.Queue[Notice]) -> None:
        self.client, self._told = client, told

    async def next(self) -> Notice:
        """The next notice."""
        with anyio.fail_after(PATIENCE_S):
            return await self._told.get()

    async def tools(self) -> set[str]:
        return {tool.name for tool in (await self.client.list_tools()).tools}

    @property
    def nothing_more(self) -> bool:
        return self._told.empty()


_NAMES = {
    ToolsListChanged: TOOLS,
    PromptsListChanged: "prompts/list_changed",
    ResourcesListChanged: "resources/list_changed",
}


@asynccontextmanager
async def listening(server: Any, mode: str, *uris: str) -> AsyncIterator[Listener]:
    """A client that listens for changes of the tools, and of the traces at these addresses."""
    told: asyncio.Queue[Notice] = asyncio.Queue()

    async def heard(message: Any) -> None:
        method = getattr(message, "method", "").removeprefix("notifications/")
        if method == TOOLS or method == "resources/updated":
            told.put_nowait(method if method == TOOLS else f"updated {message.params.uri}")

    by_hand = heard if mode == HANDSHAKE else None
    client = Client(server, mode=mode, message_handler=by_hand, read_timeout_seconds=PATIENCE_S)
    async with client, anyio.create_task_group() as group:
        if mode == HANDSHAKE:
            await client.list_tools()
            for uri in uris:
                await client.subscribe_resource(uri)
            yield Listener(client, told)
        else:
            ready = anyio.Event()

            async def listen() -> None:
                async with client.listen(tools_list_changed=True, resource_subscriptions=list(uris)) as stream:
                    ready.set()
                    async for event in stream:
                        updated = isinstance(event, ResourceUpdated)
                        told.put_nowait(f"updated {event.uri}" if updated else _NAMES[type(event)])

            group.start_soon(listen)
            await ready.wait()
            yield Listener(client, told)
        group.cancel_scope.cancel()


def export(root: Path, *workers: str) -> None:
    """Publish further workers."""
    put(root, {f"workers/{name}.worker": worker(body=name) for name in workers})
    put(root, {"project.yaml": manifest(root, exports=["main", *workers])})


# ---- lists


@pytest.mark.proves("NEWS-LISTS")
async def test_a_client_is_told_when_workers_come_and_go(tmp_path: Path, mode: str) -> None:
    root = echoing(tmp_path)
    async with served(root) as server, listening(server, mode) as listener:
        export(root, "a")
        assert await listener.next() == TOOLS and "a" in await listener.tools()
        put(root, {"project.yaml": manifest(root, exports=["main"])})
        assert await listener.next() == TOOLS and "a" not in await listener.tools()


@pytest.mark.proves("NEWS-LISTS")
async def test_a_client_is_told_when_a_description_or_schema_changes(tmp_path: Path, mode: str) -> None:
    root = echoing(tmp_path, {"schemas/in.json": json.dumps({"type": "object", "properties": {}})})
    async with served(root) as server, listening(server, mode) as listener:
        put(root, {"main.worker": worker({"description": "Other.", "schema_in_ref": "schemas/in.json"})})
        assert await listener.next() == TOOLS
        properties = {"pages": {"type": "integer"}}
        put(root, {"schemas/in.json": json.dumps({"type": "object", "properties": properties})})
        assert await listener.next() == TOOLS
        (tool,) = [tool for tool in (await listener.client.list_tools()).tools if tool.name == "shop"]
        assert "pages" in tool.input_schema["properties"]


@pytest.mark.proves("NEWS-LISTS", "EDIT-BROKEN")
async def test_a_worker_that_breaks_and_is_mended_is_told_of(tmp_path: Path, mode: str) -> None:
    root = echoing(tmp_path)
    export(root, "a")
    async with served(root) as server, listening(server, mode) as listener:
        put(root, {"workers/a.worker": worker({"modle": "x"})})
        assert await listener.next() == TOOLS and "a" not in await listener.tools()
        put(root, {"workers/a.worker": worker(body="mended")})
        assert await listener.next() == TOOLS and "a" in await listener.tools()


@pytest.mark.proves("NEWS-LISTS")
async def test_a_client_is_told_over_stdio(tmp_path: Path, mode: str) -> None:
    root = echoing(tmp_path)
    first, *rest = command(root)
    async with listening(stdio_client(StdioServerParameters(command=first, args=rest)), mode) as listener:
        export(root, "a")
        assert await listener.next() == TOOLS and "a" in await listener.tools()


@pytest.mark.proves("NEWS-LISTS")
async def test_a_client_is_told_over_http(tmp_path: Path, mode: str) -> None:
    root = echoing(tmp_path)
    service = Service(root)
    try:
        async with listening(streamable_http_client(service.url), mode) as listener:
            export(root, "a")
            assert await listener.next() == TOOLS and "a" in await listener.tools()
    finally:
        service.close()


@pytest.mark.proves("NEWS-LISTS")
async def test_a_call_that_sees_an_edit_first_takes_no_news_away(tmp_path: Path, mode: str) -> None:
    root = echoing(tmp_path)
    async with served(root) as server, listening(server, mode) as listener:
        export(root, "a")
        await listener.client.call_tool("a", {"input": "go"})
        assert await listener.next() == TOOLS


@pytest.mark.proves("NEWS-SAID")
async def test_both_eras_say_that_changes_are_told(tmp_path: Path, mode: str) -> None:
    era = HANDSHAKE if mode == HANDSHAKE else "auto"  # which discovers what the server says of itself
    async with served(echoing(tmp_path)) as server, Client(server, mode=era) as client:
        said = client.server_capabilities
        if mode == MODERN:
            listed = await client.list_tools()
            assert listed.ttl_ms == 5000 and listed.cache_scope == "private"
        assert said.tools and said.tools.list_changed
        assert said.resources and said.resources.list_changed and said.resources.subscribe
        assert said.prompts and said.prompts.list_changed


@pytest.mark.proves("NEWS-IN-VAIN")
async def test_an_edit_that_changes_no_list_is_no_news() -> None:
    """What is listed, and when files change, is in the test's hands."""
    lists: dict[str, list[Tool]] = {"tools": [], "prompts": [], "resources": []}
    stirs: asyncio.Queue[None] = asyncio.Queue()
    looked: asyncio.Queue[str] = asyncio.Queue()

    def listing(kind: str) -> Callable[[], Any]:
        async def now() -> list[Tool]:
            looked.put_nowait(kind)
            return list(lists[kind])

        return now

    async def none(_: str) -> None:
        return None

    async def never(_: str) -> bool:
        return False

    news = News({kind: listing(kind) for kind in lists}, stirs.get, none, never)
    events: asyncio.Queue[Any] = asyncio.Queue()
    news.bus.subscribe(events.put_nowait)
    try:
        await news._begin()
        with anyio.fail_after(PATIENCE_S):
            for kind in ("", "prompts", "", "tools"):
                while not looked.empty():
                    looked.get_nowait()
                if kind:
                    lists[kind].append(Tool(name="a", input_schema={}))
                stirs.put_nowait(None)
                while await looked.get() != list(lists)[-1]:
                    pass
            assert [type(await events.get()) for _ in range(2)] == [PromptsListChanged, ToolsListChanged]
        assert events.empty()
    finally:
        await news.aclose()


# ---- traces


@pytest.mark.proves("NEWS-TRACES")
async def test_whoever_watches_a_trace_is_told_while_its_run_goes_on(tmp_path: Path, mode: str, gate: Gate) -> None:
    async with served(tmp_path) as server, Client(server, mode=mode) as caller, anyio.create_task_group() as group:
        group.start_soon(caller.call_tool, "shop", {"input": "go"})
        await gate.begun()
        (run,) = [row.id for row in await server.engine.store.runs()]
        uri = f"llm-do://runs/{run}"
        async with listening(server, mode, uri) as listener:
            gate.open()
            assert await listener.next() == f"updated {uri}"


@pytest.mark.proves("NEWS-TRACES")
async def test_nobody_watches_the_trace_of_a_run_that_is_not_there(tmp_path: Path) -> None:
    uri = "llm-do://runs/0123456789abcdef"
    async with served(echoing(tmp_path)) as server:
        async with Client(server, mode=HANDSHAKE) as client:
            with pytest.raises(MCPError, match="there is no run 0123456789abcdef"):
                await client.subscribe_resource(uri)
            await client.subscribe_resource("test://something-else")
            await client.unsubscribe_resource("test://something-else")
        async with (
            Client(server, mode=MODERN) as client,
            client.listen(resource_subscriptions=[uri, "test://other"]) as stream,
        ):
            assert stream.honored.resource_subscriptions == ["test://other"]


# ---- watching


@pytest.fixture(params=["told", "looking"])
def watching(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Watch:
    """A watch that the system tells of changes, and one that has to look."""
    made = Watch()
    if request.param == "looking":
        made._notify = None
        monkeypatch.setattr(watch, "_LOOK_AT_LEAST_S", 0.01)
    elif made._notify is None:
        pytest.skip("this system tells of no changes")
    return made


CHANGES: dict[str, Callable[[Path], object]] = {
    "written": lambda folder: (folder / "there").write_text("x"),
    "made": lambda folder: (folder / "new").write_text("x"),
    "a folder made": lambda folder: (folder / "below").mkdir(),
    "renamed": lambda folder: (folder / "there").rename(folder / "elsewhere"),
    "deleted": lambda folder: (folder / "there").unlink(),
    "its mode": lambda folder: (folder / "there").chmod(0o600),
}


@pytest.mark.proves("NEWS-WATCH")
@pytest.mark.parametrize("change", CHANGES)
async def test_any_change_in_a_folder_is_noticed(tmp_path: Path, watching: Watch, change: str) -> None:
    (tmp_path / "there").write_text("")
    watched = anyio.Event()

    def look() -> bool:
        watched.set()  # the folder is watched before it is looked at
        return False

    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group:
            group.start_soon(watching.stirred, [str(tmp_path), str(tmp_path / "not there")], look)
            await watched.wait()
            CHANGES[change](tmp_path)
    watching.close()


@pytest.mark.proves("NEWS-WATCH")
async def test_what_changed_before_it_was_watched_is_noticed(tmp_path: Path, watching: Watch) -> None:
    with anyio.fail_after(PATIENCE_S):
        await watching.stirred([str(tmp_path)], lambda: True)
    watching.close()


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    """Looks that trust the kernel for as long as a test takes."""
    made = Looks()
    if made._notify is None:
        pytest.skip("this system tells of no changes")
    monkeypatch.setattr(watch, "TRUSTED_S", PATIENCE_S)
    return made


def _written_to(path: Path) -> IO[bytes]:
    file = path.open("wb", buffering=0)
    file.write(b"x")
    return file


WRITES: dict[str, Callable[[Path], object]] = {
    **CHANGES,
    "written by one who keeps it open": lambda folder: _written_to(folder / "there"),
    "written where its link leads": lambda folder: (folder.parent / "elsewhere/linked").write_text("x"),
}


@pytest.mark.proves("NEWS-LOOKS")
@pytest.mark.parametrize("change", WRITES)
def test_a_look_is_spared_until_something_changes(tmp_path: Path, looks: Looks, change: str) -> None:
    (folder := tmp_path / "project").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (folder / "there").write_text("")
    (tmp_path / "elsewhere/linked").write_text("")
    (folder / "link").symlink_to(tmp_path / "elsewhere/linked")
    seen = Seen(str(folder))
    for name in ("there", "link", "new", "below", ""):
        seen.content(name)
    looked: list[bool] = []

    def look() -> bool:
        looked.append(True)
        return len(looked) > 2

    assert not looks.changed(lambda: seen.folders, look)  # nothing is watched for one look
    assert not looks.changed(lambda: seen.folders, look)
    assert not looks.changed(lambda: seen.folders, look) and len(looked) == 2
    kept = WRITES[change](folder)
    assert looks.changed(lambda: seen.folders, look)
    assert looks.changed(lambda: seen.folders, look)  # what had changed is no longer trusted
    looks.close()
    if isinstance(kept, io.IOBase):
        kept.close()


@pytest.mark.proves("NEWS-LOOKS")
def test_what_is_watched_stays_watched_when_it_is_looked_at_once_more(
    tmp_path: Path, looks: Looks, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched: list[bool] = []
    looked: list[bool] = []

    def folders() -> list[str]:
        watched.append(True)
        return [str(tmp_path)]

    def changed() -> bool:
        return looks.changed(folders, lambda: bool(looked.append(True)))

    assert not any(changed() for _ in range(3)) and (len(watched), len(looked)) == (1, 2)
    with monkeypatch.context() as later:
        later.setattr(watch, "TRUSTED_S", 0.0)
        assert not changed() and (len(watched), len(looked)) == (1, 3)
    assert not changed() and (len(watched), len(looked)) == (1, 3)
    (tmp_path / "new").write_text("")
    assert not changed() and (len(watched), len(looked)) == (2, 4)
    looks.close()


@pytest.mark.proves("NEWS-LOOKS")
def test_what_the_kernel_does_not_tell_is_seen_after_a_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, answers = Looks(), [False, False, True]
    assert not looks.changed(lambda: [str(tmp_path)], lambda: answers.pop(0))
    assert not looks.changed(lambda: [str(tmp_path)], lambda: answers.pop(0))
    monkeypatch.setattr(watch, "TRUSTED_S", 0.0)
    assert looks.changed(lambda: [str(tmp_path)], lambda: answers.pop(0))
    looks.close()


@pytest.mark.proves("NEWS-IDLE")
async def test_an_idle_server_that_watches_takes_no_time(tmp_path: Path, mode: str) -> None:
    root = echoing(tmp_path)
    async with served(root) as server, listening(server, mode) as listener:
        export(root, "a")
        assert await listener.next() == TOOLS  # it watches
        await listener.tools()
        before = time.process_time()
        with anyio.move_on_after(1.0):
            await listener.next()
        assert time.process_time() - before < 0.02
        assert listener.nothing_more
