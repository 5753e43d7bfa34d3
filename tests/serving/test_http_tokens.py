"""Who may call over HTTP: tokens of a file, what they allow, and whose runs are whose."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import sys
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import MCPError
from mcp.types import ResourceTemplateReference

from llm_do_mcp.cli.token import main as make_token
from llm_do_mcp.errors import UsageError
from llm_do_mcp.serving.caller import SCOPES
from llm_do_mcp.serving.http.tokens import TokenFile, add
from tests.serving.clients import (
    ERAS,
    GO,
    PATIENCE_S,
    READ,
    YES,
    Gate,
    Person,
    account,
    decide,
    named,
    shop,
    text,
    texts,
    turn,
    worker,
    write,
)
from tests.serving.web import Serve, Service, bearer, body, headers, token, visitor

pytestmark = pytest.mark.anyio

WRITE = {"name": "files_out_write_text", "arguments": {"path": "a.txt", "content": "new"}}


async def post(url: str, call: dict[str, Any], token: str | None, **more: Any) -> httpx2.Response:
    """A bare call."""
    sent = {**body("tools/call", {**call, **more}), "id": 7}
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        return await http.post(url, json=sent, headers={**headers("tools/call", call["name"]), **bearer(token)})


# ---- the file


@pytest.mark.proves("HTTP-TOKENS", "HTTP-LOG", "HTTP-HEALTH")
async def test_a_token_holds_as_long_as_its_line_is_there(tmp_path: Path, serve: Serve) -> None:
    file = tmp_path / "tokens"
    ann = token(file, "ann")
    service = serve(shop(tmp_path / "shop"), "--tokens", str(file))
    assert (await post(service.url, READ, ann)).status_code == 200
    for wrong in (None, "llmdo_wrong", ann + "x", ann[:-1], ann.upper()):
        refused = await post(service.url, READ, wrong)
        assert refused.status_code == 401 and refused.headers["www-authenticate"].startswith("Bearer ")
    second = token(file, "ann")  # the new one beside the old one, then the old one is taken out
    assert (await post(service.url, READ, second)).status_code == 200
    kept = [line for line in file.read_text().splitlines() if hashlib.sha256(ann.encode()).hexdigest() not in line]
    file.write_text("\n".join(kept))
    assert (await post(service.url, READ, ann)).status_code == 401
    assert (await post(service.url, READ, second)).status_code == 200
    file.write_text("nonsense")  # rather nobody than anybody
    assert (await post(service.url, READ, second)).status_code == 401
    assert (await post(service.url, READ, second)).status_code == 401
    assert (await asyncio.to_thread(httpx2.get, service.url.replace("/mcp", "/health"))).status_code == 200
    assert service.end() == 0
    (told,) = [line for line in service.said if "sha256" in line]
    assert f"{file}:1: not of the form" in told and told.endswith("until then nobody is let in\n")


@pytest.mark.proves("HTTP-TOKENS")
def test_the_file_is_private_and_holds_no_token(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    made = [add(file, name, SCOPES) for name in ("ann", "bo@example.org", "ann")]
    assert len(set(made)) == 3 and all(len(one) > 40 for one in made)
    assert not any(one in file.read_text() for one in made)
    if sys.platform != "win32":
        assert file.stat().st_mode & 0o777 == 0o600
        for mode in (0o640, 0o604, 0o620, 0o666):
            file.chmod(mode)
            with pytest.raises(UsageError, match="chmod 600"):
                TokenFile(file)


@pytest.mark.proves("HTTP-TOKENS", "HTTP-LOG", "HTTP-HEALTH")
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a pipe with a name")
async def test_what_is_no_file_any_more_lets_nobody_in_and_holds_up_nobody(tmp_path: Path, serve: Serve) -> None:
    file = tmp_path / "tokens"
    ann = token(file, "ann")
    service = serve(shop(tmp_path / "shop"), "--tokens", str(file))
    os.mkfifo(tmp_path / "pipe", 0o600)
    file.rename(tmp_path / "kept")
    file.symlink_to(tmp_path / "pipe")
    assert [(await post(service.url, READ, ann)).status_code for _ in range(2)] == [401, 401]
    assert (await asyncio.to_thread(httpx2.get, service.url.replace("/mcp", "/health"))).status_code == 200
    (tmp_path / "kept").replace(file)
    assert (await post(service.url, READ, ann)).status_code == 200
    assert service.end() == 0
    (told,) = [line for line in service.said if "--tokens" in line]
    assert f"--tokens {file}: it is no regular file; " in told and told.endswith("until then nobody is let in\n")


@pytest.mark.proves("HTTP-TOKENS", "HTTP-CLOSED")
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a pipe with a name")
def test_what_is_no_file_stops_the_start(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o600)
    for place in (pipe, tmp_path):
        with pytest.raises(UsageError, match="it is no regular file; make it with"):
            TokenFile(place)
        with pytest.raises(UsageError, match="it is no regular file; make it with"):
            add(place, "ann", SCOPES)


@pytest.mark.proves("HTTP-TOKENS")
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ann call", ":2: not of the form"),
        ("ann call llmdo_secret", ":2: not of the form"),
        (f"ann call,fly sha256:{'0' * 64}", ":2: 'fly' is no scope; there are: call, write, approve"),
        (f"ann  sha256:{'0' * 64}", ":2: not of the form"),
        (f"../ann call sha256:{'0' * 64}", ":2: not of the form"),
    ],
)
def test_a_line_that_means_nothing_stops_the_start(tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "tokens"
    file.touch(0o600)
    file.write_text(f"# a comment\n{line}\n")
    with pytest.raises(UsageError) as raised:
        TokenFile(file)
    assert said in str(raised.value) and "secret" not in str(raised.value)
    with pytest.raises(UsageError):
        add(file, "bo", SCOPES)
    with pytest.raises(UsageError, match="a name has letters"):
        add(tmp_path / "other", "two words", SCOPES)
    assert not (tmp_path / "other").exists()


@pytest.mark.proves("HTTP-TOKENS")
async def test_a_mark_at_the_beginning_is_no_part_of_the_first_line(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    ann = add(file, "ann", SCOPES)
    file.write_bytes(b"\xef\xbb\xbf" + b"".join(file.read_bytes().splitlines(keepends=True)[1:]))
    assert await TokenFile(file).verify_token(ann) is not None


# ---- scopes


def stall(root: Path, **manifest: Any) -> Path:
    """A shop whose main worker writes and whose other worker only reads, or has no way to."""
    return shop(
        root,
        turn(write("out/a.txt")),
        files={"workers/reader.worker": worker({"description": "Reads."})},
        exports=["main", "reader"],
        **manifest,
    )


@pytest.mark.proves("HTTP-SCOPES")
async def test_a_token_calls_what_its_scopes_allow(tmp_path: Path, serve: Serve, mode: str) -> None:
    file = tmp_path / "tokens"
    root = stall(tmp_path / "shop")
    reads, writes = token(file, "reads", "call"), token(file, "writes", "call,write")
    service = serve(root, "--tokens", str(file))
    changing = {"main", "shop", "files_out_write_text"}
    async with visitor(service.url, mode, token=reads) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert "reader" in names and "run_cancel" in names and not names & changing
        assert not (await client.call_tool(**READ)).is_error
        refused = await client.call_tool(**WRITE)
        assert refused.is_error and "scope 'write'" in text(refused)
        assert "scope 'write'" in text(await client.call_tool("shop", GO))
    assert not (root / "out/a.txt").exists()
    async with visitor(service.url, mode, token=writes) as client:
        assert "files_out_write_text" in {tool.name for tool in (await client.list_tools()).tools}
    nothing = add(file, "nothing", ["write", "approve"])
    answer = await post(service.url, READ, nothing)
    assert answer.status_code == 403 and "insufficient_scope" in answer.headers["www-authenticate"]


@pytest.mark.proves("HTTP-SCOPES")
def test_a_token_that_would_let_nobody_in_is_not_made(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert make_token(["ann", "--tokens", str(tmp_path / "tokens"), "--scopes", "write,approve"]) == 2
    said = capfd.readouterr()
    assert "--scopes write,approve: without call it lets nobody in; write call,write,approve\n" in said.err
    assert not said.out and not (tmp_path / "tokens").exists()


@pytest.mark.proves("HTTP-SCOPES", "HTTP-PLACES")
async def test_only_who_may_approve_is_asked(tmp_path: Path, serve: Serve, mode: str) -> None:
    file = tmp_path / "tokens"
    both, writes = token(file, "ann"), token(file, "bo", "call,write")
    root = stall(tmp_path / "shop")
    service = serve(root, "--tokens", str(file))
    person = Person(decide("once"))
    async with visitor(service.url, mode, person, writes) as client:
        waits = await client.call_tool("shop", GO)
        assert waits.is_error and "waits for a person" in text(waits) and not person.asked
        assert str(tmp_path) not in str(waits) and "llm-do approve" in text(waits)
        assert not (root / "out/a.txt").exists()
        await client.call_tool("run_cancel", {"run_id": account(waits)["id"]})
    async with visitor(service.url, mode, person, both) as client:
        done = await client.call_tool("shop", GO)
    assert person.asked and account(done)["approvals"][0]["by"] == "client ann"
    assert (root / "out/a.txt").read_text() == "new"


@pytest.mark.proves("HTTP-SCOPES")
async def test_the_tool_that_approves_needs_the_scope_too(tmp_path: Path, serve: Serve) -> None:
    file = tmp_path / "tokens"
    both, writes = token(file, "ann"), token(file, "ann", "call,write")
    service = serve(stall(tmp_path / "shop"), "--tokens", str(file), "--approve-tool")
    async with visitor(service.url, ERAS[1], token=writes) as client:
        waits = await client.call_tool("shop", GO)
        key = named(text(waits), "question")
        answer = {"run_id": account(waits)["id"], "question": key, "decision": "once"}
        assert "scope 'approve'" in text(await client.call_tool("run_approve", answer))
    async with visitor(service.url, ERAS[1], token=both) as client:  # the same person, with the other token
        assert text(await client.call_tool("run_approve", answer)).startswith("taken")
        assert not (await client.call_tool("run_wait", {"run_id": answer["run_id"]})).is_error


# ---- whose run it is


@pytest.mark.proves("HTTP-PRINCIPALS")
async def test_to_others_a_run_does_not_exist(tmp_path: Path, serve: Serve, mode: str) -> None:
    file = tmp_path / "tokens"
    ann, bo = token(file, "ann"), token(file, "bo")
    service = serve(stall(tmp_path / "shop"), "--tokens", str(file), "--approve-tool")
    async with visitor(service.url, mode, token=ann) as hers, visitor(service.url, mode, token=bo) as his:
        waits = await hers.call_tool("shop", GO)
        run = account(waits)["id"]
        key = named(text(waits), "question")
        decided = {"question": key, "decision": "once"}
        for tool, more in (("run_wait", {}), ("run_cancel", {}), ("run_approve", decided)):
            refused = await his.call_tool(tool, {"run_id": run, **more})
            unknown = await his.call_tool(tool, {"run_id": "0" * len(run), **more})
            assert refused.is_error and text(refused).replace(run, "0" * len(run)) == text(unknown), tool
        key_ = {"llm-do/key": "monday"}
        first = account(await hers.call_tool("shop", GO, meta=key_))["id"]
        assert account(await his.call_tool("shop", GO, meta=key_))["id"] != first
        assert account(await hers.call_tool("shop", GO, meta=key_))["id"] == first
        assert text(await hers.call_tool("run_approve", {"run_id": run, **decided})).startswith("taken")
        assert not (await hers.call_tool("run_wait", {"run_id": run})).is_error
        ended = await his.call_tool("run_wait", {"run_id": run})
        assert text(ended) == f"there is no run {run}"


@pytest.mark.proves("HTTP-PRINCIPALS")
async def test_traces_are_of_no_use_to_others(tmp_path: Path, serve: Serve, mode: str) -> None:
    file = tmp_path / "tokens"
    ann, bo = token(file, "ann"), token(file, "bo")
    service = serve(stall(tmp_path / "shop"), "--tokens", str(file))
    runs = ResourceTemplateReference(type="ref/resource", uri="llm-do://runs/{run_id}")
    async with visitor(service.url, mode, token=ann) as hers, visitor(service.url, mode, token=bo) as his:
        run = account(await hers.call_tool("shop", GO))["id"]
        assert (await hers.read_resource(f"llm-do://runs/{run}")).contents
        said = []
        for other in (run, "0" * len(run)):
            with pytest.raises(MCPError) as refused:
                await his.read_resource(f"llm-do://runs/{other}")
            said.append(refused.value.error.message.replace(run, "0" * len(run)))
        assert said[0] == said[1]
        typed = {"name": "run_id", "value": run}
        assert (await hers.complete(runs, typed)).completion.values == [run]
        assert (await his.complete(runs, typed)).completion.values == []


@pytest.mark.proves("HTTP-PRINCIPALS")
async def test_tasks_are_of_no_use_to_others(tmp_path: Path, serve: Serve) -> None:
    file = tmp_path / "tokens"
    ann, bo = token(file, "ann"), token(file, "bo")
    service = serve(stall(tmp_path / "shop"), "--tokens", str(file))
    able = {"extensions": {"io.modelcontextprotocol/tasks": {}}, "elicitation": {"form": {}}}

    async def request(who: str, method: str, params: dict[str, Any], name: str) -> Any:
        async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
            sent = {**headers(method, name), **bearer(who)}
            return (await http.post(service.url, json=body(method, params, able), headers=sent)).json()

    begun = await request(ann, "tools/call", {"name": "shop", "arguments": GO}, "shop")
    task = begun["result"]["taskId"]
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        answers = [await request(bo, method, {"taskId": one}, one) for one in (task, "0" * len(task))]
        assert str(answers[0]["error"]).replace(task, "0" * len(task)) == str(answers[1]["error"]), method
    assert (await request(ann, "tasks/get", {"taskId": task}, task))["result"]["status"] != "cancelled"


@pytest.mark.proves("HTTP-PRINCIPALS")
async def test_a_request_state_is_of_no_use_to_others(tmp_path: Path, serve: Serve) -> None:
    file = tmp_path / "tokens"
    ann, bo = token(file, "ann"), token(file, "bo")
    root = stall(tmp_path / "shop")
    service = serve(root, "--tokens", str(file))
    call = {"name": "shop", "arguments": GO}
    sent = body("tools/call", call, {"elicitation": {"form": {}}})

    async def round_(token: str, more: dict[str, Any]) -> Any:
        request = {**sent, "params": {**sent["params"], **more}}
        async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
            answer = await http.post(
                service.url, json=request, headers={**headers("tools/call", "shop"), **bearer(token)}
            )
        return answer.json()

    asked = (await round_(ann, {}))["result"]
    (key,) = asked["inputRequests"]
    answered = {"requestState": asked["requestState"], "inputResponses": {key: YES}}
    assert (await round_(bo, answered))["error"]["code"] == -32602
    assert not (root / "out/a.txt").exists()
    assert (await round_(ann, answered))["result"]["resultType"] == "complete"
    assert (root / "out/a.txt").exists()


@pytest.mark.proves("HTTP-PRINCIPALS", "A095")
async def test_a_session_is_of_no_use_to_others(tmp_path: Path, serve: Serve) -> None:
    file = tmp_path / "tokens"
    ann, bo = token(file, "ann"), token(file, "bo")
    service = serve(shop(tmp_path / "shop"), "--tokens", str(file))
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }
    plain = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        opened = await http.post(service.url, json=hello, headers={**plain, **bearer(ann)})
        session = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        for who, status in ((bo, 404), (ann, 200)):
            answer = await http.post(service.url, json=listing, headers={**plain, **session, **bearer(who)})
            assert answer.status_code == status


@pytest.mark.proves("HTTP-JOIN", "HTTP-PRINCIPALS")
async def test_the_same_call_joins_within_one_principal(tmp_path: Path, serve: Serve) -> None:
    file = tmp_path / "tokens"
    ann, bo = token(file, "ann"), token(file, "bo")
    gate = Gate(tmp_path / "shop")
    service = serve(tmp_path / "shop", "--tokens", str(file), "--call-within", "0.2")
    try:
        runs = []
        for who in (ann, ann, bo):
            async with visitor(service.url, ERAS[1], token=who) as client:  # each time anew
                runs.append(account(await client.call_tool("shop", GO))["id"])
        assert runs[0] == runs[1] != runs[2]
    finally:
        gate.close()


@pytest.mark.proves("HTTP-PRINCIPALS")
async def test_what_a_search_leaves_out_is_kept_for_who_asked(tmp_path: Path, serve: Serve, mode: str) -> None:
    file = tmp_path / "tokens"
    ann, bo = token(file, "ann"), token(file, "bo")
    many = {f"in/{n:03}.txt": "pear " * 30 + "\n" for n in range(900)}
    service = serve(shop(tmp_path / "shop", files=many), "--tokens", str(file))
    async with visitor(service.url, mode, token=ann) as hers, visitor(service.url, mode, token=bo) as his:
        found = texts(await hers.call_tool("te", {"command": "grep -n pear in"}))
        handle = re.search(r"res_\w+", found)
        assert handle is not None
        recall = {"command": f"--handle {handle[0]}"}
        assert "pear" in texts(await hers.call_tool("te", recall))
        assert "pear pear" not in texts(await his.call_tool("te", recall))


@pytest.mark.proves("NOBODY-SILENT-HTTP")
async def test_who_is_silent_at_one_client_is_asked_at_another(tmp_path: Path, serve: Serve) -> None:
    file = tmp_path / "tokens"
    ann = token(file, "ann")
    root = shop(tmp_path / "shop", turn(write("out/a.txt")))
    service = serve(root, "--tokens", str(file), "--answer-within", "0.2", "--call-within", "5")
    call = {"name": "shop", "arguments": GO}

    async def kind(http: httpx2.AsyncClient, client: str, key: str) -> str:
        sent = body("tools/call", call, {"elicitation": {"form": {}}})
        meta = sent["params"]["_meta"]
        meta |= {"llm-do/key": key, "io.modelcontextprotocol/clientInfo": {"name": client, "version": "1"}}
        answer = await http.post(service.url, json=sent, headers={**headers("tools/call", "shop"), **bearer(ann)})
        return str(answer.json()["result"]["resultType"])

    async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        assert await kind(http, "laptop", "first") == "input_required"
        with anyio.fail_after(PATIENCE_S):
            while await kind(http, "laptop", "second") == "input_required":
                pass  # nobody has answered at the laptop; after a while that is known
        assert await kind(http, "phone", "third") == "input_required"
        assert await kind(http, "laptop", "fourth") == "complete"


@pytest.mark.proves("HTTP-TE", "HTTP-PRINCIPALS", "HTTP-INSTANCES")
async def test_what_a_search_leaves_out_is_had_at_every_instance(tmp_path: Path, serve: Serve) -> None:
    file = tmp_path / "tokens"
    ann, bo = token(file, "ann"), token(file, "bo")
    files = {"in/long.txt": "".join(f"pear {number} {'x' * 60}\n" for number in range(2000))}
    root = shop(tmp_path / "shop", files=files)
    here, there = (serve(root, "--tokens", str(file)) for _ in range(2))

    async def search(service: Service, who: str, command: str) -> str:
        answer = await post(service.url, {"name": "te", "arguments": {"command": command}}, who)
        return str(answer.json()["result"]["content"][0]["text"])

    handle = re.findall(r"res_\w+", await search(here, ann, "grep -n pear in"))[0]
    assert f"{'x' * 60}\n" in await search(there, ann, f"te --handle {handle} --chunk 2")
    assert "unknown_handle" in await search(there, bo, f"te --handle {handle}")
