"""Several servers on one store: whoever is asked next goes on, and the keys of request states are the store's."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import MCPError
from mcp.types import CallToolResult, ElicitRequestFormParams, ElicitResult

from llm_do_mcp.runtime.state import KEYS, request_state_keys
from tests.serving.clients import ERAS, GO, PATIENCE_S, READ, Gate, Person, account, decide, shop, text, turn, write
from tests.serving.web import Balancer, Serve, Service, token, visitor

pytestmark = pytest.mark.anyio

MODERN = ERAS[1]
NAMED = ("--allowed-host", "127.0.0.1")
"""Clients reach them by the balancer's port."""


def answering(*before: Callable[[], object]) -> Person:
    """Someone who says yes, and before each answer in turn does something else."""

    def answer(number: int) -> Callable[[ElicitRequestFormParams], ElicitResult]:
        def said(_: ElicitRequestFormParams) -> ElicitResult:
            before[number]()
            return decide("once")

        return said

    return Person(*map(answer, range(len(before))), decide("once"))


def written(root: Path, *names: str) -> bool:
    return all((root / "out" / name).read_text() == "new" for name in names)


# ---- instances


@pytest.mark.proves("HTTP-INSTANCES")
async def test_questions_of_one_are_answered_at_another(tmp_path: Path, serve: Serve) -> None:
    names = [f"{number}.txt" for number in range(5)]
    root = shop(
        tmp_path / "shop", turn(*[write(f"out/{n}") for n in names[:3]]), *[turn(write(f"out/{n}")) for n in names[3:]]
    )
    ann = token(tmp_path / "tokens", "ann")
    services = [serve(root, *NAMED, "--tokens", str(tmp_path / "tokens")) for _ in range(3)]
    balancer = Balancer([service.port for service in services])
    person = Person(decide("once"))
    async with balancer as url, visitor(url, MODERN, person, ann, keeps=False) as client:
        done = await client.call_tool("shop", GO)
    assert not done.is_error and written(root, *names), text(done)
    assert len(person.asked) == 5 and len(set(balancer.served)) == 3
    assert [one["by"] for one in account(done)["approvals"]] == ["client ann"] * 5


@pytest.mark.proves("HTTP-INSTANCES")
async def test_one_that_asked_is_killed_before_the_answer(tmp_path: Path, serve: Serve) -> None:
    root = shop(tmp_path, turn(write("out/a.txt")), turn(write("out/b.txt")), turn(write("out/c.txt")))
    services = [serve(root, *NAMED) for _ in range(3)]
    balancer = Balancer([service.port for service in services])
    killed: list[int] = []

    def kill() -> None:
        asker = next(service for service in services if service.port == balancer.served[-1])
        asker.end(signal.SIGKILL)
        killed.append(asker.port)

    person = answering(kill, kill)
    async with balancer as url, visitor(url, MODERN, person, keeps=False) as client:
        done = await client.call_tool("shop", GO)
    assert not done.is_error and written(root, "a.txt", "b.txt", "c.txt"), text(done)
    assert len(set(killed)) == 2 and len(person.asked) == 3


@pytest.mark.proves("HTTP-INSTANCES")
async def test_a_run_is_waited_for_and_asked_about_at_another(tmp_path: Path, serve: Serve, mode: str) -> None:
    root = shop(tmp_path, turn(write("out/a.txt")))
    one, other = serve(root), serve(root)
    async with visitor(one.url, mode) as client:  # which cannot ask
        run = account(await client.call_tool("shop", GO))["id"]
    person = Person(decide("once"))
    async with visitor(other.url, mode, person) as client:
        assert not (await client.call_tool("run_wait", {"run_id": run})).is_error
    assert person.asked and written(root, "a.txt")


@pytest.mark.proves("HTTP-INSTANCES", "HTTP-JOIN")
async def test_a_key_joins_the_run_of_another(tmp_path: Path, gate: Gate, serve: Serve, mode: str) -> None:
    key = {"llm-do/key": "monday"}
    joined = anyio.Event()

    async def progressed(*_: object) -> None:
        joined.set()

    one, other = serve(tmp_path), serve(tmp_path)
    async with visitor(one.url, mode) as here, visitor(other.url, mode) as there:
        first = asyncio.create_task(here.call_tool("shop", GO, meta=key))
        await gate.begun()
        second = asyncio.create_task(there.call_tool("shop", GO, meta=key, progress_callback=progressed))
        with anyio.fail_after(PATIENCE_S):
            await joined.wait()
        gate.open()
        done = [await call for call in (first, second)]
    assert [text(one) for one in done] == ["slow but sure"] * 2
    assert account(done[0])["id"] == account(done[1])["id"]


@pytest.mark.proves("HTTP-INSTANCES", "HTTP-JOIN")
@pytest.mark.parametrize("killed", [False, True], ids=["both live", "the first is killed"])
async def test_the_same_call_of_a_principal_joins_the_run_of_another(
    tmp_path: Path, gate: Gate, serve: Serve, killed: bool
) -> None:
    file = tmp_path / "tokens"
    ann, bo = token(file, "ann"), token(file, "bo")
    one, other = (serve(tmp_path, "--tokens", str(file), "--call-within", "0.2") for _ in range(2))

    async def call(service: Service, who: str, **arguments: str) -> CallToolResult:
        async with visitor(service.url, MODERN, token=who) as client:
            return await client.call_tool("shop", {**GO, **arguments})

    mine = account(await call(one, ann))["id"]
    await gate.begun()
    if killed:
        one.end(signal.SIGKILL)
    joined = await call(other, ann)
    assert joined.is_error and account(joined)["id"] == mine
    others = [await call(other, bo), await call(other, ann, extra_context="more")]
    assert mine not in [account(result)["id"] for result in others]
    for _ in range(4):  # one for each call of the tool that may wait there, the one of a killed server, too
        gate.open()
    async with visitor(other.url, MODERN, token=ann) as client:
        while (done := await client.call_tool("run_wait", {"run_id": mine})).is_error:
            assert account(done)["status"] == "running"
    assert text(done) == "slow but sure"
    gate.open()
    assert account(await call(other, ann))["id"] != mine, "what has ended is joined no more"


# ---- the keys


def rotating(*arguments: Path | str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "llm_do_mcp.cli.serve", "rotate-key", *map(str, arguments)]
    return subprocess.run(line, check=False, capture_output=True, text=True)


def rotate(*arguments: Path | str) -> None:
    assert rotating(*arguments).returncode == 0


@pytest.mark.proves("HTTP-KEYS")
async def test_keys_are_replaced_while_servers_run(tmp_path: Path, serve: Serve) -> None:
    root = shop(tmp_path, *[turn(write(f"out/{number}.txt")) for number in range(3)])
    services = [serve(root, *NAMED) for _ in range(2)]
    before: list[list[bytes]] = []

    def change() -> None:
        before.append(request_state_keys(root / ".llm-do"))
        rotate(root)

    person = answering(change, change)
    balancer = Balancer([service.port for service in services])
    async with balancer as url, visitor(url, MODERN, person, keeps=False) as client:
        done = await client.call_tool("shop", GO)
    assert not done.is_error and written(root, "0.txt", "1.txt", "2.txt"), text(done)
    now = request_state_keys(root / ".llm-do")
    assert before[0][0] not in now and before[1][0] == now[1] and len(now) == 2
    if sys.platform != "win32":
        assert (root / ".llm-do" / KEYS).stat().st_mode & 0o777 == 0o600


@pytest.mark.proves("HTTP-KEYS")
async def test_what_was_sealed_two_keys_ago_opens_nothing(tmp_path: Path, serve: Serve) -> None:
    root = shop(tmp_path, turn(write("out/a.txt")))

    def change() -> None:
        rotate(root)
        rotate(root)

    async with visitor(serve(root).url, MODERN, answering(change)) as client:
        with pytest.raises(MCPError) as refused:
            await client.call_tool("shop", GO)
    assert refused.value.error.code == -32602 and not (root / "out/a.txt").exists()


@pytest.mark.proves("HTTP-KEYS")
async def test_keys_outlast_a_restart(tmp_path: Path, serve: Serve) -> None:
    root = shop(tmp_path, turn(write("out/a.txt")))
    services: list[Any] = [serve(root, *NAMED)]
    balancer = Balancer([services[0].port])

    def restart() -> None:
        services[0].end()
        balancer.ports = [serve(root, *NAMED).port]

    async with balancer as url, visitor(url, MODERN, answering(restart), keeps=False) as client:
        done = await client.call_tool("shop", GO)
    assert not done.is_error and written(root, "a.txt"), text(done)


@pytest.mark.proves("HTTP-KEYS")
@pytest.mark.parametrize("left", [b"", b"0123456789", b"\xff" * 100], ids=["empty", "cut off", "something else"])
async def test_a_file_without_a_key_is_replaced(tmp_path: Path, serve: Serve, left: bytes) -> None:
    root = shop(tmp_path, turn(write("out/a.txt")), turn(write("out/b.txt")))
    key = root / ".llm-do" / KEYS
    key.parent.mkdir(mode=0o700)
    key.write_bytes(left)
    services = [serve(root, *NAMED) for _ in range(2)]
    balancer = Balancer([service.port for service in services])
    async with balancer as url, visitor(url, MODERN, Person(decide("once")), keeps=False) as client:
        done = await client.call_tool("shop", GO)
    assert not done.is_error and written(root, "a.txt", "b.txt"), text(done)
    assert not left or left not in key.read_bytes()
    assert "Traceback" not in "".join(line for service in services for line in service.said)


@pytest.mark.proves("HTTP-KEYS")
@pytest.mark.skipif(sys.platform == "win32", reason="there are no such pipes there")
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
async def test_what_takes_the_place_of_a_key_holds_up_nobody(
    tmp_path: Path, serve: Serve, make: Callable[[Path], None]
) -> None:
    service = serve(shop(tmp_path, turn(write("out/a.txt"))))
    (tmp_path / ".llm-do").mkdir()
    make(tmp_path / ".llm-do" / KEYS)
    async with visitor(service.url, MODERN, Person(decide("once"))) as client:
        with pytest.raises(MCPError, match="Internal error"):  # what is wrong is no business of a client's
            await client.call_tool("shop", GO)
        assert text(await client.call_tool(**READ)) == "three pears\n"
    assert "it is no regular file; until then nothing can be asked" in service.line(KEYS)


@pytest.mark.proves("HTTP-KEYS")
@pytest.mark.skipif(sys.platform == "win32", reason="permissions are told otherwise there")
async def test_a_key_that_others_can_read_is_told_of_once(tmp_path: Path, serve: Serve) -> None:
    root = shop(tmp_path, turn(write("out/a.txt")), turn(write("out/b.txt")))
    request_state_keys(root / ".llm-do")
    (root / ".llm-do" / KEYS).chmod(0o644)
    service = serve(root)
    async with visitor(service.url, MODERN, Person(decide("once"))) as client:
        assert not (await client.call_tool("shop", GO)).is_error
    assert "chmod 600" in service.line(KEYS)
    assert service.end() == 0 and sum(KEYS in line for line in service.said) == 1


# ---- the keys of several projects


def two(root: Path, *names: str) -> list[Path]:
    """Two shops, each of which writes these, one after the other."""
    turns = [turn(write(f"out/{name}")) for name in names]
    return [shop(root / name, *turns, name=name) for name in ("north", "south")]


@pytest.mark.proves("SEVERAL-KEYS", "HTTP-INSTANCES")
async def test_whichever_server_has_the_project_is_answered(tmp_path: Path, serve: Serve) -> None:
    names = [f"{number}.txt" for number in range(5)]
    north, south = two(tmp_path, *names)
    beside: list[list[Path]] = [[south], [north], []]
    services = [serve(root, *NAMED, beside=more) for root, more in zip((north, south, south), beside, strict=True)]
    balancer = Balancer([service.port for service in services])
    person = Person(decide("once"))
    async with balancer as url, visitor(url, MODERN, person, keeps=False) as client:
        done = await client.call_tool("south", GO)
    assert not done.is_error and written(south, *names), text(done)
    assert len(person.asked) == 5 and len(set(balancer.served)) == 3
    assert not (north / ".llm-do" / KEYS).exists()


@pytest.mark.proves("SEVERAL-KEYS", "HTTP-KEYS")
@pytest.mark.parametrize("project", ["north", "south"])
@pytest.mark.parametrize("together", [False, True], ids=["folders of their own", "one folder"])
async def test_new_keys_are_of_one_project(tmp_path: Path, serve: Serve, project: str, together: bool) -> None:
    north, south = two(tmp_path, "a.txt")
    kept = ["--state-dir", str(tmp_path / "state")] if together else []
    folders = {root.name: tmp_path / "state" / root.name if together else root / ".llm-do" for root in (north, south)}

    def change() -> None:
        for _ in range(2):
            rotate(tmp_path / project, "--state-dir", folders[project])

    service = serve(north, *kept, beside=[south])
    for name in ("north", "south"):
        async with visitor(service.url, MODERN, answering(*[change] * (name == "south"))) as client:
            if name == project == "south":
                with pytest.raises(MCPError, match="requestState"):
                    await client.call_tool(name, GO)
            else:
                assert not (await client.call_tool(name, GO)).is_error
    assert written(north, "a.txt") and (south / "out/a.txt").exists() == (project == "north")


@pytest.mark.proves("SEVERAL-KEYS", "HTTP-KEYS")
async def test_the_keys_that_are_replaced_are_those_of_the_server(tmp_path: Path, serve: Serve) -> None:
    north, south = two(tmp_path, "a.txt")
    state = tmp_path / "state"
    kept = ["--state-dir", str(state)]
    none = rotating(north, south, *kept)
    assert none.returncode == 2 and "there is no key to replace; name the projects" in none.stderr
    service = serve(north, *kept, beside=[south])

    def change() -> None:
        done = rotating(north, south, *kept)
        assert done.returncode == 0 and f"{state / 'south' / KEYS}: a new key seals" in done.stderr
        assert f"{state / 'north' / KEYS}: there is no key to replace" in done.stderr
        rotate(south, north, *kept)

    async with visitor(service.url, MODERN, answering(change)) as client:
        with pytest.raises(MCPError, match="requestState"):
            await client.call_tool("south", GO)
    alone = rotating(south, *kept)
    assert alone.returncode == 2 and f"{state / KEYS}: there is no key to replace" in alone.stderr
    assert [*state.rglob(KEYS)] == [state / "south" / KEYS]
