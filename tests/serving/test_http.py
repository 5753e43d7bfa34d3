"""A server over Streamable HTTP: both eras, what is refused at the door, sessions, and how it ends."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from llm_do_mcp.cli.serve import main, parser
from llm_do_mcp.errors import UsageError
from llm_do_mcp.serving.http import serve as serving
from llm_do_mcp.serving.http import unread
from llm_do_mcp.serving.http.address import Address, HostNames, names, parse
from tests.models.messages_server import MessagesServer, message
from tests.serving.clients import (
    ERAS,
    GO,
    HANDSHAKE,
    PATIENCE_S,
    READ,
    Gate,
    Person,
    account,
    decide,
    named,
    process,
    shop,
    text,
    turn,
    write,
)
from tests.serving.web import HELLO, Serve, body, headers, over_http, visitor

pytestmark = pytest.mark.anyio


# ---- both eras


@pytest.mark.proves("HTTP-ERAS")
async def test_it_lists_calls_and_asks(tmp_path: Path, serve: Serve, mode: str) -> None:
    root = shop(tmp_path, turn(write("out/a.txt")), turn(write("out/b.txt")))
    person = Person(decide("once"), decide("deny"))
    async with visitor(serve(root).url, mode, person) as client, process(root, mode) as piped:
        assert (await client.list_tools()).tools == (await piped.list_tools()).tools
        assert text(await client.call_tool(**READ)) == "three pears\n"
        done = await client.call_tool("shop", GO)
    assert len(person.asked) == 2 and not done.is_error
    assert (root / "out/a.txt").read_text() == "new" and not (root / "out/b.txt").exists()


# ---- at the door


async def ask(url: str, content: Any = None, **changed: str) -> httpx2.Response:
    """A bare call; headers whose value is "-" are left out."""
    given = {name.replace("_", "-"): value for name, value in changed.items()}
    sent = {**headers("tools/call", READ["name"]), **given}
    raw = json.dumps(body("tools/call", READ)).encode() if content is None else content
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        return await http.post(url, content=raw, headers={k: v for k, v in sent.items() if v != "-"})


def bare(port: int, method: str, params: dict[str, Any], name: str) -> bytes:
    """A request as it goes over a connection."""
    content = json.dumps(body(method, params)).encode()
    given = {**headers(method, name), "Host": f"127.0.0.1:{port}", "Content-Length": str(len(content))}
    head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + content


async def answered_with(reader: asyncio.StreamReader) -> int:
    """Read the head of an answer: how many bytes follow."""
    head = await reader.readuntil(b"\r\n\r\n")
    return int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])


@pytest.mark.proves("A094")
async def test_what_comes_in_another_form_is_refused_by_name(tmp_path: Path, serve: Serve) -> None:
    service = serve(shop(tmp_path), "--allowed-host", "Workers.Example.org")
    port = service.port
    known = (
        f"127.0.0.1:{port}",
        f"LOCALHOST:{port}",
        f"[::1]:{port}",
        "workers.example.org",
        "WORKERS.example.org:443",
    )
    for host in known:
        answer = await ask(service.url, Host=host)
        assert answer.status_code == 200 and answer.json()["result"]["content"][0]["text"] == "three pears\n", host
    evil = ("workers.example.org.evil.example", "workers.example.org:80.evil", "workers.example.org:evil")
    for host in ("evil.example", f"127.0.0.1:{port + 1}", "localhost", "127.0.0.1", *evil):
        assert (await ask(service.url, Host=host)).status_code == 421, host
    for origin in (f"http://127.0.0.1:{port}", "https://Workers.example.org", "https://workers.example.org:8443"):
        assert (await ask(service.url, Origin=origin)).status_code == 200, origin
    pages = ("https://evil.example", "null", "http://localhost:3000", f"http://127.0.0.1:{port}.evil", "file://")
    for origin in (*pages, *(f"https://{host}" for host in evil)):
        assert (await ask(service.url, Origin=origin)).status_code == 403, origin
    refused = {
        400: [{"content": b"{"}, {"content": b'{"a":' * 5000}, {"Content_Type": "text/plain"}],
        406: [{"Accept": "text/html"}],
        413: [{"content": b" " * (6 << 20)}],
    }
    for status, requests in refused.items():
        for request in requests:
            assert (await ask(service.url, **request)).status_code == status, (status, str(request)[:60])
    for version in ("1999-01-01", "nonsense"):
        answer = await ask(service.url, MCP_Protocol_Version=version)
        assert answer.status_code == 400 and "error" in answer.json()
    assert (await ask(service.url)).status_code == 200


@pytest.mark.proves("A094")
async def test_the_handshake_checks_the_same(tmp_path: Path, serve: Serve) -> None:
    service = serve(shop(tmp_path))
    hello = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}).encode()
    older = {"MCP_Protocol_Version": "-", "Mcp_Method": "-", "Mcp_Name": "-"}
    assert (await ask(service.url, hello, **older)).status_code == 200
    assert (await ask(service.url, hello, **older, Host="evil.example")).status_code == 421
    assert (await ask(service.url, hello, **older, Origin="null")).status_code == 403
    assert (await ask(service.url, b"[]", **older)).status_code == 400


@pytest.mark.proves("A094")
async def test_nobody_is_sent_to_a_name_that_was_not_checked(tmp_path: Path, serve: Serve) -> None:
    service = serve(shop(tmp_path))
    assert (await ask(f"{service.url}/", Host="evil.example")).status_code == 421
    assert (await ask(f"{service.url}/")).status_code == 200
    for path in ("/health/", "/mcp//"):
        answer = await ask(service.url.replace("/mcp", path), Host="evil.example")
        assert answer.status_code == 404 and "location" not in answer.headers


@pytest.mark.proves("A088", "HTTP-ERAS")
async def test_half_a_character_of_a_model_is_written_out(tmp_path: Path, serve: Serve, mode: str) -> None:
    root = shop(tmp_path, model="anthropic:claude-haiku-4-5")
    with MessagesServer(message({"type": "text", "text": "half \ud83d of it"})) as model:
        service = serve(root, env={"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "none"})
        async with visitor(service.url, mode) as client:
            assert text(await client.call_tool("shop", GO)) == "half \\ud83d of it"
            assert text(await client.call_tool(**READ)) == "three pears\n"


@pytest.mark.proves("HTTP-HEALTH")
async def test_health_answers_whoever_asks(tmp_path: Path, serve: Serve) -> None:
    address = serve(shop(tmp_path)).url.replace("/mcp", "/health")
    async with httpx2.AsyncClient() as http:
        answer = await http.get(address, headers={"Host": "10.0.0.7"})
        assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
        assert (await http.get(address.replace("/health", "/"))).status_code == 404


# ---- where it listens


@pytest.mark.proves("A097", "HTTP-CLOSED")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--http", "0.0.0.0:0"], "have callers say who they are"),
        (["--http", "[::]:0"], "have callers say who they are"),
        (["--http", "192.0.2.1:0"], "have callers say who they are"),
        (["--http", "somewhere:80"], "give it as HOST:PORT"),
        (["--http", "127.0.0.1"], "give it as HOST:PORT"),
        (["--http", "127.0.0.1:99999"], "give it as HOST:PORT"),
        (["--http", "127.0.0.1:" + "9" * 5000], "give it as HOST:PORT"),
        (["--http", "127.0.0.1:0", "--tokens", "nowhere"], "No such file"),
        (["--http", "127.0.0.1:0", "--oauth-issuer", "https://issuer.example"], "needed together"),
        (["--tokens", "file"], "belong to --http"),
        (["--allowed-host", "a.example"], "belong to --http"),
    ],
)
def test_what_would_serve_nobody_or_anybody_does_not_start(
    tmp_path: Path, options: list[str], said: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[int] = []
    monkeypatch.setattr("llm_do_mcp.cli.serve.guard_stdout", lambda: None)  # of the process of the tests
    monkeypatch.setattr("llm_do_mcp.cli.serve.os._exit", ended.append)
    main([str(shop(tmp_path)), *options])
    error = capfd.readouterr().err
    assert ended == [2] and said in error and error.count("\n") == 1


@pytest.mark.proves("HTTP-CLOSED")
@pytest.mark.parametrize("option", ["--tokens", "--oauth-issuer", "--oauth-audience", "--oauth-jwks", "--model", ""])
def test_what_a_variable_left_empty_is_not_taken_for_nothing(option: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parser().parse_args(["--http", "127.0.0.1:0", *filter(None, [option]), ""])
    error = capfd.readouterr().err
    assert ended.value.code == 2 and f"{option or 'PROJECT'}: it is empty" in error and error.count("\n") == 1


@pytest.mark.proves("HTTP-CLOSED")
def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"127.0.0.1:{port}: cannot listen there"):
            serving.Listening.at(f"127.0.0.1:{port}")


NO_NAMES = (
    *("", "*", "https://a.example", "a.example/x", "a.example:", ".", "a..example", "x:abc", "a.example:0", "a b"),
    *("a.example:99999", f"a.example:{'9' * 5000}", "a.example:080", "[a.example]", "[2001:db8::7", "fe80::1%eth0"),
    *("1.2.3.999", "würk.example", "user@a.example", "a" * 64),
)


@pytest.mark.proves("A094", "A097")
def test_an_address_is_its_own_name_unless_it_is_everywhere() -> None:
    assert parse(":80") == parse("127.0.0.1:80") and parse("80").is_loopback
    assert parse("[::1]:80").named == "[::1]:80" and parse("127.9.9.9:80").is_loopback
    assert not parse("192.0.2.1:80").is_loopback
    assert names(parse("192.0.2.1:80"), ()) == HostNames(frozenset({"192.0.2.1:80"}), frozenset())
    with pytest.raises(UsageError, match="--allowed-host under which names"):
        names(Address("0.0.0.0", 80), ())
    assert names(Address("0.0.0.0", 80), ["a.example"]) == HostNames(frozenset(), frozenset({"a.example"}))
    assert names(Address("::", 80), ["A.Example:8443"]) == HostNames(frozenset({"a.example:8443"}), frozenset())
    for name in NO_NAMES:
        with pytest.raises(UsageError, match=r"--allowed-host .*: give a host as clients name it"):
            names(parse("80"), [name])
    for name in ("2001:DB8::7", "[2001:db8::7]"):
        known = names(parse("80"), [name])
        assert known.have("[2001:db8::7]:18233") and known.have("[2001:db8::7]") and not known.have("2001:db8::7")
    known = names(parse("80"), ["[2001:db8::7]:443", "192.0.2.1", "my_workers", "a.example."])
    assert all(map(known.have, ("[2001:db8::7]:443", "192.0.2.1:5", "My_Workers", "a.example.:8443")))
    assert not known.have("[2001:db8::7]:80")


# ---- the end


@pytest.mark.proves("A096", "HTTP-END")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_call_in_flight_says_how_its_result_is_had(
    tmp_path: Path, gate: Gate, serve: Serve, mode: str, number: int
) -> None:
    service = serve(tmp_path)
    async with visitor(service.url, mode) as client:
        call = asyncio.create_task(client.call_tool("shop", GO))
        await gate.begun()
        began = time.monotonic()
        code = await asyncio.to_thread(service.end, number)
        assert time.monotonic() - began < 5 and code == 0, service.said
        told = await call
    assert told.is_error and "about to end" in text(told) and "run_wait" in text(told)
    run = named(text(told), "run_id")
    async with visitor(serve(tmp_path).url, mode) as client:
        waited = asyncio.create_task(client.call_tool("run_wait", {"run_id": run}))
        await gate.begun()
        gate.open()
        assert text(await waited) == "slow but sure"


@pytest.mark.proves("A096", "HTTP-SLOW")
async def test_who_hangs_on_the_line_does_not_hold_up_the_end(tmp_path: Path, serve: Serve) -> None:
    service = serve(shop(tmp_path))
    opening = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    hanging = [b"", opening, opening + b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{", b"GET"]
    lines = [await asyncio.open_connection("127.0.0.1", service.port) for _ in hanging]
    for (_, writer), sent in zip(lines, hanging, strict=True):
        writer.write(sent)
        await writer.drain()
    async with visitor(service.url, HANDSHAKE):  # which keeps a stream open for what the server might say
        began = time.monotonic()
        assert await asyncio.to_thread(service.end) == 0
        assert time.monotonic() - began < 5
    for _, writer in lines:
        writer.close()


@pytest.mark.proves("HTTP-LEFT")
@pytest.mark.parametrize("revision", ["", "Mcp-Protocol-Version: 2025-11-25", "Mcp-Protocol-Version: 2026-07-28"])
async def test_who_leaves_in_the_middle_of_a_request_is_no_line_in_the_log(
    tmp_path: Path, serve: Serve, revision: str
) -> None:
    service = serve(shop(tmp_path))
    form = ["Content-Type: application/json", "Accept: application/json, text/event-stream", "Content-Length: 500"]
    head = ["POST /mcp HTTP/1.1", f"Host: 127.0.0.1:{service.port}", *form, *filter(None, [revision])]
    async with visitor(service.url, HANDSHAKE) as client:
        for _ in range(3):
            _, writer = await asyncio.open_connection("127.0.0.1", service.port)
            writer.write("\r\n".join([*head, "", '{"js']).encode())
            await writer.drain()
            assert (await client.list_tools()).tools  # by now the server waits for the rest
            writer.close()
            await writer.wait_closed()
            assert (await client.list_tools()).tools
    assert await asyncio.to_thread(service.end) == 0
    assert len(service.said) == 1, service.said


@pytest.mark.proves("HTTP-NONSENSE")
@pytest.mark.parametrize("line", ["POST /mcp", "GET /health", "POST /elsewhere", "GET /mcp"])
@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "elsewhere.example"])
async def test_a_body_that_is_none_is_refused_in_one_answer_and_one_line(
    tmp_path: Path, serve: Serve, line: str, host: str
) -> None:
    service = serve(shop(tmp_path))
    head = f"{line} HTTP/1.1\r\nHost: {host.format(port=service.port)}\r\nTransfer-Encoding: chunked\r\n\r\n"
    at_once = head + "zz\r\n"
    for sent in (at_once, head + "2\r\n{}\r\nzz\r\n"):
        reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
        writer.write(sent.encode())
        answer = await asyncio.wait_for(reader.read(), PATIENCE_S)
        assert answer.startswith(b"HTTP/1.1 400 ") and answer.count(b"HTTP/1.1") == 1
        writer.close()
    assert await asyncio.to_thread(service.end) == 0
    assert [one[-31:] for one in service.said[1:]] == ["Invalid HTTP request received.\n"] * 2, service.said


@pytest.mark.proves("HTTP-NONSENSE")
@pytest.mark.parametrize("elsewhere", [True, False])
async def test_a_body_that_becomes_none_behind_its_answer_ends_the_connection(
    tmp_path: Path, serve: Serve, elsewhere: bool
) -> None:
    service = serve(shop(tmp_path))
    path = "/elsewhere" if elsewhere else "/health"
    reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
    answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE_S)
    assert answer.startswith(b"HTTP/1.1 404 " if elsewhere else b"HTTP/1.1 200 ")
    writer.write(b"zz\r\n")
    assert b"HTTP/1.1" not in await asyncio.wait_for(reader.read(), PATIENCE_S)
    writer.close()
    assert await asyncio.to_thread(service.end) == 0
    assert [one[-31:] for one in service.said[1:]] == ["Invalid HTTP request received.\n"], service.said


@pytest.mark.proves("HTTP-NONSENSE")
async def test_who_asks_for_another_protocol_is_one_line(tmp_path: Path, serve: Serve) -> None:
    service = serve(shop(tmp_path))
    upgrade = {"Connection": "upgrade", "Upgrade": "websocket"}
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        assert (await http.get(service.url.replace("/mcp", "/health"), headers=upgrade)).status_code == 200
    assert await asyncio.to_thread(service.end) == 0
    assert [one[-29:] for one in service.said[1:]] == ["Unsupported upgrade request.\n"], service.said


@pytest.mark.proves("HTTP-PROMPT")
@pytest.mark.parametrize("address", ["127.0.0.1:0", "[::1]:0"])
async def test_an_answer_is_not_held_back(address: str) -> None:
    try:
        listening = serving.Listening.at(address)
    except UsageError:
        pytest.skip("this machine has no such address")
    at_once: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted = writer.get_extra_info("socket")
        at_once.set_result(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    async with await asyncio.start_server(connected, sock=listening.socket):
        _, writer = await asyncio.open_connection(listening.address.host, listening.address.port)
        assert await at_once
        writer.close()


@pytest.mark.proves("HTTP-SLOW")
async def test_a_request_that_does_not_come_in_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "REQUEST_WITHIN_S", 0.2)
    async with over_http(shop(tmp_path)) as port:
        opening = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        whole = "GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
        for sent, answered in (
            ("", b""),
            (opening, b""),
            (opening + "Content-Length: 9\r\n\r\n{", b""),
            (whole + opening, b'{"status":"ok"}'),
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent.encode())
            with anyio.fail_after(PATIENCE_S):
                assert (await reader.read()).endswith(answered), sent
            writer.close()


@pytest.mark.proves("A092", "HTTP-SLOW")
async def test_an_answer_that_is_not_read_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "READ_WITHIN_S", 1.0)
    read = {"uri": "llm-do://files/in/long.txt"}
    async with over_http(shop(tmp_path, files={"in/long.txt": "pear " * 1_900_000})) as port:
        deaf, slow = [await asyncio.open_connection("127.0.0.1", port, limit=1 << 14) for _ in range(2)]
        for _, writer in (deaf, slow):
            writer.write(bare(port, "resources/read", read, read["uri"]))
        length = await answered_with(slow[0])
        got, since = 0, time.monotonic()
        while got < length:  # a little at a time, for longer than whoever reads nothing has
            got += len(await slow[0].readexactly(min(length - got, 50_000)))
            await asyncio.sleep(0.01)
        assert time.monotonic() - since > 1
        with anyio.fail_after(PATIENCE_S), pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await deaf[0].readexactly(length)
        for _, writer in (deaf, slow):
            writer.close()


@pytest.mark.proves("A092", "HTTP-UNREAD")
async def test_who_reads_nothing_makes_room_for_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unread, "MOST_BYTES", 12_000_000)
    read = {"uri": "llm-do://files/in/long.txt"}
    async with over_http(shop(tmp_path, files={"in/long.txt": "pear " * 1_900_000})) as port:
        lines = [await asyncio.open_connection("127.0.0.1", port, limit=1 << 14) for _ in range(7)]
        lengths = []
        for number, (reader, writer) in enumerate(lines):
            writer.write(bare(port, "resources/read", read, read["uri"]))
            lengths.append(await answered_with(reader))
            if number == 0:
                lengths[0] -= len(await reader.readexactly(4_000_000))  # who reads slowly, but does
        with anyio.fail_after(PATIENCE_S):
            for number in (0, 6):
                await lines[number][0].readexactly(lengths[number])
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await lines[1][0].readexactly(lengths[1])
        for _, writer in lines:
            writer.close()


@pytest.mark.proves("A096")
@pytest.mark.parametrize("mode", ERAS[1:])
async def test_who_vanishes_in_mid_call_is_cancelled(tmp_path: Path, gate: Gate, serve: Serve, mode: str) -> None:
    service = serve(tmp_path)
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        call = {"name": "shop", "arguments": GO}
        sent = asyncio.create_task(
            http.post(service.url, json=body("tools/call", call), headers=headers("tools/call", "shop"))
        )
        await gate.begun()
        sent.cancel()
    async with visitor(service.url, mode) as client:
        with anyio.fail_after(PATIENCE_S):
            while not (ended := _runs(tmp_path)):
                await client.call_tool("files_in_list", {})
    assert ended == [("main", "cancelled")]


def _runs(root: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(root / ".llm-do/runs.sqlite3")) as db:
        return db.execute("SELECT name, status FROM run WHERE name='main' AND status NOT IN ('running')").fetchall()


# ---- many calls


@pytest.mark.proves("A092", "HTTP-MANY")
async def test_calls_that_are_sent_without_waiting_are_all_answered(tmp_path: Path, serve: Serve) -> None:
    service = serve(shop(tmp_path))
    request = bare(service.port, "tools/call", READ, READ["name"])

    async def pipelined(calls: int) -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
        writer.write(request * calls)
        answered = 0
        for _ in range(calls):
            answered += b"three pears" in await reader.readexactly(await answered_with(reader))
        writer.close()
        return answered

    with anyio.fail_after(3 * PATIENCE_S):
        assert sum(await asyncio.gather(*[pipelined(100) for _ in range(20)])) == 2000


@pytest.mark.proves("A092", "HTTP-MANY")
async def test_who_does_not_read_holds_up_nobody(tmp_path: Path, serve: Serve) -> None:
    root = shop(tmp_path, files={"in/long.txt": "pear " * 200_000})
    service = serve(root)
    call = {"name": "files_in_read_text", "arguments": {"path": "long.txt", "max_chars": 1_000_000}}
    request = bare(service.port, "tools/call", call, call["name"])
    deaf = []
    for _ in range(20):
        line = await asyncio.open_connection("127.0.0.1", service.port, limit=1)
        line[1].write(request * 40)  # each answer is a million characters
        deaf.append(line)
    async with visitor(service.url, ERAS[1]) as client:
        for _ in range(20):
            assert text(await client.call_tool(**READ)) == "three pears\n"
    if Path("/proc").exists():
        status = Path(f"/proc/{service.process.pid}/status").read_text()
        assert int(status.partition("VmRSS:")[2].split()[0]) < 400_000, "kB: more than one answer for each"
    began = time.monotonic()
    assert await asyncio.to_thread(service.end) == 0 and time.monotonic() - began < 5
    for _, writer in deaf:
        writer.transport.abort()


# ---- joining


@pytest.mark.proves("HTTP-JOIN")
async def test_a_call_with_the_same_key_joins_one_in_flight(
    tmp_path: Path, gate: Gate, serve: Serve, mode: str
) -> None:
    service = serve(tmp_path)
    key = {"llm-do/key": "monday"}
    async with visitor(service.url, mode) as one, visitor(service.url, mode) as other:
        first = asyncio.create_task(one.call_tool("shop", GO, meta=key))
        await gate.begun()
        second = asyncio.create_task(other.call_tool("shop", GO, meta=key))
        third = asyncio.create_task(other.call_tool("shop", GO, meta={"llm-do/key": "tuesday"}))
        await gate.begun()  # of the third; the second is with the first
        gate.open()
        gate.open()
        runs = [account(await call)["id"] for call in (first, second, third)]
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.proves("HTTP-JOIN")
async def test_who_joined_keeps_the_run_when_the_first_caller_goes(
    tmp_path: Path, gate: Gate, serve: Serve, mode: str
) -> None:
    service = serve(tmp_path)
    key = {"llm-do/key": "monday"}
    joined = anyio.Event()

    async def progressed(*_: object) -> None:
        joined.set()

    async with visitor(service.url, mode) as one, visitor(service.url, mode) as other:
        first = asyncio.create_task(one.call_tool("shop", GO, meta=key))
        await gate.begun()
        second = asyncio.create_task(other.call_tool("shop", GO, meta=key, progress_callback=progressed))
        with anyio.fail_after(PATIENCE_S):
            await joined.wait()
        first.cancel()
        await asyncio.wait((first,))
        await one.call_tool("files_in_list", {})  # answered behind the cancellation
        gate.open()
        assert text(await second) == "slow but sure"
