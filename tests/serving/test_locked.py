"""A server under `--approvals locked` or `deny`: the client is never asked, and sees what can run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llm_do_mcp.runtime import lock
from llm_do_mcp.runtime.approvals import Approvals, of_project
from tests.serving.clients import (
    HANDSHAKE,
    Person,
    account,
    client_of,
    decide,
    process,
    served,
    serving,
    shop,
    text,
    turn,
    write,
)

pytestmark = pytest.mark.anyio


async def _lock(root: Path, tool: str, arguments: dict[str, Any]) -> None:
    """The lock, from a call whose questions a person at the client approved."""
    async with served(root) as server, client_of(server, HANDSHAKE, Person(decide("once"))) as client:
        result = await client.call_tool(tool, arguments)
        approved = lock.approved(await server.engine.store.events(account(result)["id"]))
    lock.write(str(root), (lock.read(str(root)) or lock.Lock()).merged(entry for entry, _ in approved))
    for left in ("a.txt", "b.txt"):
        (root / "out" / left).unlink(missing_ok=True)


@pytest.mark.proves("LOCK-SERVED")
async def test_what_is_locked_runs_without_a_question_and_the_rest_is_refused(tmp_path: Path, mode: str) -> None:
    root = shop(tmp_path, turn(write("out/a.txt")))
    await _lock(root, "shop", {"input": "go"})
    shop(tmp_path, turn(write("out/a.txt"), write("out/b.txt")))
    person = Person(decide("once"))
    async with serving(root, mode, person, approvals=of_project("locked", str(root))) as client:
        result = await client.call_tool("shop", {"input": "go"})
    assert person.asked == [] and not result.is_error
    assert "approvals.lock does not allow it: path is 'out/b.txt', approved is 'out/a.txt'" in text(result)
    assert (root / "out/a.txt").exists() and not (root / "out/b.txt").exists()
    assert {(one["decision"], one["by"]) for one in account(result)["approvals"]} == {
        ("once", "approvals.lock"),
        ("not_locked", "approvals.lock"),
    }


@pytest.mark.proves("LOCK-SERVED", "LOCK-HIDDEN")
async def test_a_tool_that_could_only_be_refused_is_not_published(tmp_path: Path, mode: str) -> None:
    root = shop(tmp_path)
    async with serving(root, mode, approvals=Approvals("locked")) as client:
        assert "files_out_write_text" not in {tool.name for tool in (await client.list_tools()).tools}
    await _lock(root, "files_out_write_text", {"path": "a.txt", "content": "new"})
    async with serving(root, mode, approvals=of_project("locked", str(root))) as client:
        assert "files_out_write_text" in {tool.name for tool in (await client.list_tools()).tools}
        good = await client.call_tool("files_out_write_text", {"path": "a.txt", "content": "new"})
        bad = await client.call_tool("files_out_write_text", {"path": "a.txt", "content": "other"})
    assert not good.is_error and bad.is_error
    assert "content is 'other', approved is 'new'" in text(bad)


@pytest.mark.proves("LOCK-SERVED")
async def test_deny_refuses_without_asking(tmp_path: Path, mode: str) -> None:
    person = Person(decide("once"))
    root = shop(tmp_path, turn(write("out/a.txt")))
    async with serving(root, mode, person, approvals=Approvals("deny")) as client:
        result = await client.call_tool("shop", {"input": "go"})
    assert person.asked == [] and "this run's settings refuse what would need approval" in text(result)
    assert [(one["decision"], one["by"]) for one in account(result)["approvals"]] == [("policy", "--approvals deny")]


@pytest.mark.proves("LOCK-SERVED")
async def test_the_command_serves_under_the_lock(tmp_path: Path) -> None:
    root = shop(tmp_path, turn(write("out/a.txt")))
    await _lock(root, "shop", {"input": "go"})
    async with process(root, HANDSHAKE, None, "--approvals", "locked") as client:
        result = await client.call_tool("shop", {"input": "go"})
    assert not result.is_error and (root / "out/a.txt").exists()
