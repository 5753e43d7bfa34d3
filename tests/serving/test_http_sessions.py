"""Sessions of the handshake revisions, over HTTP: who is answered with what, whose id is whose, and when they end."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp.types import JSONRPCResponse

from llm_do_mcp.serving.http import sessions
from tests.serving.clients import GO, PATIENCE_S, Gate, shop
from tests.serving.web import HELLO, Serve, over_http

pytestmark = pytest.mark.anyio

Post = Callable[[dict[str, Any], str | None], Awaitable[httpx2.Response]]


def posting(http: httpx2.AsyncClient, url: str) -> Post:
    """`post(message, session)` sends a message of the revisions that have sessions."""

    async def post(message: dict[str, Any], session: str | None) -> httpx2.Response:
        named = {} if session is None else {"Mcp-Session-Id": session}
        plain = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        return await http.post(url, json={"jsonrpc": "2.0", **message}, headers={**plain, **named})

    return post


async def hello(post: Post) -> str:
    """A session that has begun."""
    answer = await post({"id": 1, "method": "initialize", "params": HELLO}, None)
    session = answer.headers["mcp-session-id"]
    assert (await post({"method": "notifications/initialized"}, session)).status_code == 202
    return str(session)


@pytest.mark.proves("A095")
@pytest.mark.torture
async def test_a_session_lasts_until_it_is_ended(
    tmp_path: Path, serve: Serve, torture_scaled: Callable[[int, int], int]
) -> None:
    service = serve(shop(tmp_path))
    listing = {"id": 2, "method": "tools/list"}
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        post = posting(http, service.url)
        first, second = await hello(post), await hello(post)
        assert first != second
        assert (await post(listing, None)).status_code == 400
        assert (await post(listing, "unknown")).status_code == 404
        assert (await post(listing, first)).status_code == 200
        assert (await http.delete(service.url, headers={"Mcp-Session-Id": first})).status_code == 200
        assert (await post(listing, first)).status_code == 404
        assert (await post(listing, second)).status_code == 200
        for _ in range(torture_scaled(50, 1000)):
            await hello(post)
        assert (await post(listing, second)).status_code == 200
        service.end()
        assert (await posting(http, serve(tmp_path).url)(listing, second)).status_code == 404


@pytest.mark.proves("A095", "HTTP-IDS")
async def test_of_two_requests_with_one_id_the_first_is_answered(tmp_path: Path, gate: Gate, serve: Serve) -> None:
    service = serve(tmp_path)
    call = {"method": "tools/call", "params": {"name": "shop", "arguments": GO}}
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        post = posting(http, service.url)
        session, other = await hello(post), await hello(post)
        first = asyncio.create_task(post({"id": 7, **call}, session))
        await gate.begun()
        for identifier in (7, "7"):  # which the transport cannot tell apart
            refused = await post({"id": identifier, "method": "tools/list"}, session)
            assert refused.status_code == 400 and "the id '7' already" in refused.json()["error"]["message"]
            assert refused.json()["id"] is None, "or it could be taken for the first one's answer"
        assert (await post({"id": 7, "result": {}}, session)).status_code == 202, "an answer to the server"
        assert "tools" in (await post({"id": 7, "method": "tools/list"}, other)).text
        gate.open()
        assert "slow but sure" in (await first).text
        for _ in range(20):  # as soon as the answer is there, the id is free
            assert "tools" in (await post({"id": 7, "method": "tools/list"}, session)).text


@pytest.fixture(params=[False, True], ids=["alone", "stream"])
def streams(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether all answers are streams, or none is."""
    monkeypatch.setattr(sessions, "ALONE_WITHIN_S", 0.0 if request.param else PATIENCE_S)
    return bool(request.param)


@asynccontextmanager
async def in_session(root: Path) -> AsyncIterator[tuple[Callable[[dict[str, Any]], Awaitable[httpx2.Response]], Any]]:
    """`post(message)` sends a message of a session of a server in this process, `end()` ends the session."""
    async with over_http(root) as port, httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        url = f"http://127.0.0.1:{port}/mcp"
        post = posting(http, url)
        session = await hello(post)
        yield (
            lambda message: post(message, session),
            lambda: http.delete(url, headers={"Mcp-Session-Id": session}),
        )


CALL = {"id": 7, "method": "tools/call", "params": {"name": "shop", "arguments": GO}}
LISTING = {"id": 7, "method": "tools/list"}


@pytest.mark.proves("A096", "HTTP-ALONE")
async def test_a_call_of_a_session_that_is_ended_waits_no_longer(tmp_path: Path, gate: Gate, streams: bool) -> None:
    async with in_session(tmp_path) as (post, end):
        called = asyncio.create_task(post(CALL))
        await gate.begun()
        assert (await end()).status_code == 200
        answer = await called
        if streams:  # which had begun
            assert answer.status_code == 200 and "data:" not in answer.text
        else:
            assert answer.status_code == 500 and "terminated before" in answer.json()["error"]["message"]


@pytest.mark.proves("A096", "HTTP-ALONE")
async def test_an_answer_and_the_end_of_its_session_may_meet(tmp_path: Path, serve: Serve) -> None:
    service = serve(shop(tmp_path))
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        post = posting(http, service.url)
        for number in range(100):
            session = await hello(post)
            pinged = asyncio.create_task(post({"id": 7, "method": "ping"}, session))
            await asyncio.sleep(number / 100 * 0.004)
            assert (await http.delete(service.url, headers={"Mcp-Session-Id": session})).status_code in (200, 404)
            assert "jsonrpc" in (await pinged).json(), "the answer, or that the session has ended"
    assert service.end() == 0 and len(service.said) == 1, service.said


@pytest.mark.proves("HTTP-IDS")
async def test_an_id_is_taken_until_its_request_is_answered_even_if_its_client_has_left(
    tmp_path: Path, gate: Gate, streams: bool
) -> None:
    async with in_session(tmp_path) as (post, _):
        called = asyncio.create_task(post(CALL))
        await gate.begun()
        called.cancel()
        for _ in range(5):
            assert (await post(LISTING)).status_code == 400
            await asyncio.sleep(0.02)  # until the server has seen it, too
        gate.open()
        with anyio.fail_after(PATIENCE_S):
            while (answer := await post(LISTING)).status_code == 400:
                await asyncio.sleep(0.01)
        assert "tools" in answer.text


@pytest.mark.proves("HTTP-IDS")
async def test_the_name_of_a_sessions_own_stream_is_no_id(tmp_path: Path) -> None:
    async with in_session(shop(tmp_path)) as (post, _):
        refused = await post({**LISTING, "id": "_GET_stream"})
        assert refused.status_code == 400 and "'_GET_stream'" in refused.json()["error"]["message"]


@pytest.mark.proves("A096", "HTTP-ALONE")
async def test_a_call_that_its_client_cancels_is_told_so(tmp_path: Path, gate: Gate, streams: bool) -> None:
    async with in_session(tmp_path) as (post, _):
        called = asyncio.create_task(post(CALL))
        await gate.begun()
        assert (await post({"method": "notifications/cancelled", "params": {"requestId": 7}})).status_code == 202
        assert "-32800" in (await called).text
        assert "tools" in (await post(LISTING)).text


@pytest.mark.proves("HTTP-FORGETS")
async def test_what_was_answered_is_not_kept(tmp_path: Path, streams: bool) -> None:
    read = {"id": 7, "method": "resources/read", "params": {"uri": "llm-do://files/in/plums.txt"}}
    async with in_session(shop(tmp_path, files={"in/plums.txt": "four plums"})) as (post, _):
        assert "four plums" in (await post(read)).text
        assert not [kept for kept in gc.get_objects() if isinstance(kept, JSONRPCResponse) and "plums" in str(kept)]
