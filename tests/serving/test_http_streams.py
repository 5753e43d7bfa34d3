"""On which stream a server over HTTP says something to sessions of the handshake revisions.

`Session` opens no stream besides those of its calls, as the protocol allows.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from llm_do_mcp.serving.http import revoked
from llm_do_mcp.serving.http.app import Authentication
from llm_do_mcp.serving.http.tokens import TokenFile
from tests.serving.clients import (
    GO,
    HANDSHAKE,
    PATIENCE_S,
    READ,
    YES,
    Gate,
    Person,
    named,
    shop,
    text,
    turn,
    worker,
    write,
)
from tests.serving.web import Serve, bearer, body, headers, over_http, token, visitor

pytestmark = pytest.mark.anyio

VERSION = "2025-11-25"
ASKS = {"elicitation": {}}


class Session:
    """A session of a client that reads the answers to its requests, and nothing else.

    Args:
        http: Its connections.
        url: Of the server.
        session: The session's id; "" for one to be opened.
        token: Of who has it; None where nobody is asked.
    """

    def __init__(self, http: httpx2.AsyncClient, url: str, session: str = "", token: str | None = None) -> None:
        self._http, self._url, self._ids, self._token = http, url, 0, token
        self.headers = {"Accept": "application/json, text/event-stream", **bearer(token)}
        if session:
            self.headers |= {"Mcp-Session-Id": session, "MCP-Protocol-Version": VERSION}

    async def opened(self, capabilities: Mapping[str, Any]) -> Session:
        info = {"name": "tests", "version": "1"}
        params = {"protocolVersion": VERSION, "capabilities": capabilities, "clientInfo": info}
        hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        answer = await self._http.post(self._url, json=hello, headers=self.headers)
        session = Session(self._http, self._url, answer.headers["mcp-session-id"], self._token)
        await session.send({"method": "notifications/initialized"})
        return session

    async def send(self, message: Mapping[str, Any], status: int = 202) -> None:
        """Send what has no answer; `status` is what is said to that."""
        answer = await self._http.post(self._url, json={"jsonrpc": "2.0", **message}, headers=self.headers)
        assert answer.status_code == status

    @asynccontextmanager
    async def request(self, method: str, params: Mapping[str, Any]) -> AsyncIterator[httpx2.Response]:
        """Send a request: its answer, of which nothing is read yet."""
        self._ids += 1
        sent = {"jsonrpc": "2.0", "id": self._ids, "method": method, "params": params}
        async with self._http.stream("POST", self._url, json=sent, headers=self.headers) as answer:
            yield answer

    @asynccontextmanager
    async def call(self, tool: str, arguments: Mapping[str, Any]) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        """Call a tool: the messages that it is answered with."""
        async with self.request("tools/call", {"name": tool, "arguments": arguments}) as answer:
            yield _messages(answer)

    async def result(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """The text that a call has as its result, and nothing comes before it."""
        async with self.call(tool, arguments) as messages:
            return said(await anext(messages))


async def _messages(answer: httpx2.Response) -> AsyncIterator[dict[str, Any]]:
    if answer.headers["content-type"] == "application/json":
        await answer.aread()
        yield answer.json()
        return
    async for line in answer.aiter_lines():
        if line.startswith("data:"):
            yield json.loads(line[5:])


def said(message: Mapping[str, Any]) -> str:
    return str(message["result"]["content"][0]["text"])


@asynccontextmanager
async def session(url: str, capabilities: Mapping[str, Any], token: str | None = None) -> AsyncIterator[Session]:
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        yield await Session(http, url, token=token).opened(capabilities)


@pytest.mark.proves("HTTP-STREAMS")
async def test_what_a_call_asks_comes_on_its_own_stream(tmp_path: Path, serve: Serve) -> None:
    root = shop(tmp_path, turn(write("out/a.txt")))
    async with session(serve(root).url, ASKS) as client, client.call("shop", GO) as messages:
        asked = await anext(messages)
        assert asked["method"] == "elicitation/create"
        await client.send({"id": asked["id"], "result": YES})
        assert "out/a.txt" in said(await anext(messages))
    assert (root / "out/a.txt").read_text() == "new"


@pytest.mark.proves("HTTP-STREAMS")
async def test_so_does_a_turn_of_the_clients_model(tmp_path: Path, serve: Serve) -> None:
    root = shop(tmp_path, files={"main.worker": worker({}, "Be brief.")}, model="sampling")
    async with session(serve(root).url, {"sampling": {}}) as client, client.call("shop", GO) as messages:
        asked = await anext(messages)
        assert asked["method"] == "sampling/createMessage"
        reply = {"role": "assistant", "content": {"type": "text", "text": "Three pears."}, "model": "lent-1"}
        await client.send({"id": asked["id"], "result": reply})
        assert said(await anext(messages)) == "Three pears."


@pytest.mark.proves("HTTP-SCOPES")
async def test_an_answer_is_taken_of_who_may_approve_when_it_comes(tmp_path: Path, serve: Serve) -> None:
    file, root = tmp_path / "tokens", shop(tmp_path / "shop", turn(write("out/a.txt")))
    ann = token(file, "ann")
    allowed = file.read_text()
    async with (
        session(serve(root, "--tokens", str(file)).url, ASKS, ann) as client,
        client.call("shop", GO) as messages,
    ):
        asked = await anext(messages)
        file.write_text(allowed.replace("call,write,approve", "call,write"))
        await client.send({"id": asked["id"], "result": YES}, 403)
        await client.send({"method": "notifications/roots/list_changed"})
        assert not (root / "out/a.txt").exists()
        file.write_text(allowed)
        await client.send({"id": asked["id"], "result": YES})
        assert "out/a.txt" in said(await anext(messages))


@pytest.mark.proves("HTTP-STREAMS")
async def test_a_question_is_answered_after_its_call_was_handed_over(tmp_path: Path, serve: Serve) -> None:
    root = shop(tmp_path, turn(write("out/a.txt")))
    service = serve(root, "--call-within", "1")
    async with session(service.url, ASKS) as client:
        async with client.call("shop", GO) as messages:
            asked = await anext(messages)
            run = named(said(await anext(messages)), "run_id")
        await client.send({"id": asked["id"], "result": YES})
        assert "out/a.txt" in await client.result("run_wait", {"run_id": run})


@pytest.mark.proves("HTTP-STREAMS")
async def test_a_question_that_its_call_leaves_behind_is_withdrawn_on_the_other_stream(
    tmp_path: Path, serve: Serve
) -> None:
    service = serve(shop(tmp_path, turn(write("out/a.txt"))), "--call-within", "3")
    person = Person(None)
    async with visitor(service.url, HANDSHAKE, person) as client:
        handed_over = text(await client.call_tool("shop", GO))
        assert person.asked and not person.withdrawn.is_set()
        await client.call_tool("run_cancel", {"run_id": named(handed_over, "run_id")})
        with anyio.fail_after(PATIENCE_S):
            await person.withdrawn.wait()


@pytest.mark.proves("HTTP-ALONE")
async def test_an_answer_that_is_soon_there_comes_alone(tmp_path: Path, serve: Serve) -> None:
    async with session(serve(shop(tmp_path)).url, {}) as client, client.request("tools/list", {}) as answer:
        assert answer.headers["content-type"] == "application/json" and answer.headers["mcp-session-id"]
        assert "tools" in json.loads(await answer.aread())["result"]


@pytest.mark.proves("HTTP-ALONE")
async def test_what_takes_its_time_is_a_stream_before_it_has_an_answer(
    tmp_path: Path, gate: Gate, serve: Serve
) -> None:
    async with session(serve(tmp_path).url, {}) as client, client.call("shop", GO) as messages:  # which has begun now
        gate.open()
        assert said(await anext(messages)) == "slow but sure"
        assert [message async for message in messages] == []


# ---- news


@pytest.mark.proves("HTTP-REVOKED")
async def test_a_stream_of_news_ends_with_its_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revoked, "LOOKED_EVERY_S", 0.05)
    file, root = tmp_path / "tokens", shop(tmp_path / "shop")
    tokens = {name: token(file, name) for name in ("ann", "bob")}
    listen = body("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    async with over_http(root, authentication=Authentication(TokenFile(file))) as port, AsyncExitStack() as streams:
        url = f"http://127.0.0.1:{port}/mcp"

        async def listening(who: str) -> AsyncIterator[str]:
            http = await streams.enter_async_context(httpx2.AsyncClient(timeout=PATIENCE_S))
            sent = headers("subscriptions/listen", **bearer(tokens[who]))
            answer = await streams.enter_async_context(http.stream("POST", url, json=listen, headers=sent))
            lines = (line async for line in answer.aiter_lines() if line.startswith("data:"))
            assert "acknowledged" in await anext(lines)
            return lines

        client = await streams.enter_async_context(session(url, {}, tokens["ann"]))
        http = await streams.enter_async_context(httpx2.AsyncClient(timeout=PATIENCE_S))
        own = await streams.enter_async_context(http.stream("GET", url, headers=client.headers))
        taken, told = await listening("ann"), await listening("bob")
        file.write_text(file.read_text().splitlines()[-1])
        assert [line async for line in taken] == [] and not await own.aread(), "and they are whole"
        (root / "main.worker").write_text(worker({"description": "Runs another shop."}))
        assert "list_changed" in await anext(told)


# ---- in 2026-07-28


@pytest.fixture
def direct(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each request to a server in this process, whether it was answered directly."""
    seen: list[bool] = []
    handle = StreamableHTTPSessionManager.handle_request

    async def handle_request(manager: StreamableHTTPSessionManager, *request: Any) -> None:
        seen.append(manager.json_response)
        await handle(manager, *request)

    monkeypatch.setattr(StreamableHTTPSessionManager, "handle_request", handle_request)
    return seen


@pytest.mark.proves("HTTP-DIRECT")
async def test_a_read_that_asks_nobody_is_answered_directly(tmp_path: Path, direct: list[bool]) -> None:
    async with over_http(shop(tmp_path)) as port, httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        read, other = body("tools/call", READ), body("tools/call", {"name": "shop", "arguments": GO})
        for call, sent, status in (
            (read, headers("tools/call", READ["name"]), 200),
            (read, headers("tools/call", READ["name"], Accept="application/json"), 406),
            (other, headers("tools/call", "shop"), 200),
            (other, headers("tools/call", READ["name"]), 400),
        ):
            answer = await http.post(f"http://127.0.0.1:{port}/mcp", json=call, headers=sent)
            assert answer.status_code == status
        assert direct == [True, False, False, True]


@pytest.mark.proves("HTTP-DIRECT")
async def test_whoever_may_be_asked_of_a_read_is_not(tmp_path: Path, direct: list[bool]) -> None:
    asking = {"in": {"root": "./in", "mode": "ro", "read_approval": True}, "out": "rw:./out"}
    sent, call = headers("tools/call", READ["name"]), body("tools/call", READ, ASKS)
    async with over_http(shop(tmp_path, sandbox={"paths": asking})) as port, httpx2.AsyncClient() as http:
        answer = await http.post(f"http://127.0.0.1:{port}/mcp", json=call, headers=sent)
        assert "inputRequests" in answer.json()["result"] and direct == [False]


@pytest.mark.proves("HTTP-DIRECT")
async def test_of_several_projects_reads_are_too(tmp_path: Path, serve: Serve) -> None:
    service = serve(shop(tmp_path / "shop"), beside=[shop(tmp_path / "other", name="other")])
    read = {**READ, "name": "shop_files_in_read_text"}
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        answer = await http.post(
            service.url, json=body("tools/call", read), headers=headers("tools/call", read["name"])
        )
        assert said(answer.json()) == "three pears\n"


@pytest.mark.proves("HTTP-DIRECT")
async def test_a_session_stays_one_whatever_else_its_requests_name(tmp_path: Path, serve: Serve) -> None:
    service = serve(shop(tmp_path))
    async with session(service.url, {}) as client, httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        given = {**client.headers, "Mcp-Method": "tools/call", "Mcp-Name": READ["name"]}
        call = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": READ}
        assert said((await http.post(service.url, json=call, headers=given)).json()) == "three pears\n"
        given["Mcp-Session-Id"] = "unknown"
        assert (await http.post(service.url, json=call, headers=given)).status_code == 404


# ---- what is kept


@pytest.mark.proves("HTTP-FORGETS")
@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells how much memory a process has")
async def test_a_session_keeps_nothing_of_what_it_has_answered(tmp_path: Path, serve: Serve) -> None:
    service = serve(shop(tmp_path, files={"in/long.txt": "pear " * 1_900_000}))
    status = Path(f"/proc/{service.process.pid}/status")
    async with AsyncExitStack() as sessions:
        for _ in range(40):
            client = await sessions.enter_async_context(session(service.url, {}))
            async with client.request("resources/read", {"uri": "llm-do://files/in/long.txt"}) as answer:
                assert len(await answer.aread()) > 9_500_000
        assert int(status.read_text().partition("VmRSS:")[2].split()[0]) < 300_000, "kB, of 40 answers of 9,500 kB"


# ---- the end


@pytest.mark.proves("HTTP-END")
@pytest.mark.parametrize("signals", [[signal.SIGTERM], [signal.SIGINT], [signal.SIGINT] * 3], ids=str)
async def test_who_listens_for_news_is_told_that_this_is_the_end(
    tmp_path: Path, serve: Serve, signals: list[signal.Signals]
) -> None:
    service = serve(shop(tmp_path))
    listen = body("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    async with (
        visitor(service.url, HANDSHAKE),  # which listens on a stream of its session
        httpx2.AsyncClient(timeout=PATIENCE_S) as http,
        http.stream("POST", service.url, json=listen, headers=headers("subscriptions/listen")) as answer,
    ):
        messages = (json.loads(line[5:]) async for line in answer.aiter_lines() if line.startswith("data:"))
        assert (await anext(messages))["method"] == "notifications/subscriptions/acknowledged"
        for number in signals:
            service.process.send_signal(number)
        assert "result" in await anext(messages)
        assert [message async for message in messages] == [], "and the stream is whole"
        assert await asyncio.to_thread(service.end) == 0
    assert len(service.said) == 1, "nothing went wrong"


@pytest.mark.proves("HTTP-END")
async def test_an_answer_that_is_being_read_is_sent_to_its_end(tmp_path: Path, serve: Serve) -> None:
    service = serve(shop(tmp_path, files={"in/long.txt": "pear " * 1_900_000}))
    async with (
        session(service.url, {}) as client,
        client.request("resources/read", {"uri": "llm-do://files/in/long.txt"}) as answer,
    ):
        service.process.send_signal(signal.SIGTERM)
        read, since = 0, time.monotonic()
        async for part in answer.aiter_raw(100_000):
            read += len(part)
            await asyncio.sleep(max(since + read / 9_500_000 - time.monotonic(), 0))  # over a second
        assert read > 9_500_000 and time.monotonic() - since > 0.9
    assert await asyncio.to_thread(service.end) == 0 and len(service.said) == 1


@pytest.mark.proves("A096", "HTTP-END")
async def test_who_does_not_read_is_cut_off_at_the_end(tmp_path: Path, serve: Serve) -> None:
    service = serve(shop(tmp_path, files={"in/long.txt": "pear " * 1_900_000}))
    async with (
        session(service.url, {}) as client,
        client.request("resources/read", {"uri": "llm-do://files/in/long.txt"}),
    ):
        assert await asyncio.to_thread(service.end) == 0 and len(service.said) == 1
