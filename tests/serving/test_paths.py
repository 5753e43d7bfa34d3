"""One table of paths that lead nowhere, for every argument that is a path."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from llm_do_mcp.cli.run import main
from tests.serving.clients import (
    HANDSHAKE,
    Person,
    account,
    decide,
    everything,
    serving,
    shop,
    text,
    turn,
)

CLIMBING = ("../secret.txt", "a/../../secret.txt", "a/./../..", "sub/../stock.txt", "..", "../in/stock.txt")
ABSOLUTE = ("/etc/passwd", "//etc/passwd", "{root}/in/stock.txt")
NO_NAMES = ("a\0b", "\0", "\ud800")
TOO_LONG = ("x" * 256, "x/" * 3000, "a/" * 300 + "b")
LOOKALIKES = (
    "....//secret.txt",
    "..\\secret.txt",
    "%2e%2e/secret.txt",
    "．．/secret.txt",  # noqa: RUF001
    "‥/secret.txt",
    "file:///etc/passwd",
    "~/.ssh/id_rsa",
    "$HOME/x",
)
NEIGHBOURS = ("../in-evil/secret.txt", "../.llm-do/runs.sqlite3", "../project.yaml", ".llm-do/x")
LINKS = ("away/secret.txt", "to_secret.txt", "loop", "pipe", "sub")

SECRET = "SECRET"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project whose folder `in` lies among secrets, with links to them."""
    root = shop(
        tmp_path / "shop", files={"in/sub/pear.txt": "a pear\n", "secret.txt": SECRET, "in-evil/secret.txt": SECRET}
    )
    (tmp_path / "secret.txt").write_text(SECRET)
    for folder in ("in", "out"):
        (root / folder / "away").symlink_to(root)
        (root / folder / "to_secret.txt").symlink_to("../secret.txt")
        (root / folder / "loop").symlink_to("loop")
        os.mkfifo(root / folder / "pipe")
        (root / folder / "sub").mkdir(exist_ok=True)
    return root


Arguments = Callable[[str], tuple[str, dict[str, Any]]]
READING: dict[str, Arguments] = {
    "read": lambda path: ("files_in_read_text", {"path": path}),
    "attach": lambda path: ("shop", {"input": "x", "attachments": [f"in/{path}"]}),
    "attach with a colon": lambda path: ("shop", {"input": "x", "attachments": [f"in:{path}"]}),
}
WRITING: dict[str, Arguments] = {
    "write": lambda path: ("files_out_write_text", {"path": path, "content": "written"}),
}
SEARCHING: dict[str, Arguments] = {
    "list": lambda path: ("files_in_list", {"pattern": path}),
    "search": lambda path: ("te", {"command": f"grep SECRET 'in/{path}'"}),
}
LEADING_OUT = (*CLIMBING, *ABSOLUTE, *NO_NAMES, *TOO_LONG, *NEIGHBOURS)


async def _refused(client: Client, arguments: Arguments, path: str) -> None:
    tool, given = arguments(path)
    result = await client.call_tool(tool, given)
    said = text(result)
    assert result.is_error, (path, said)
    assert SECRET not in said and len(said.splitlines()) <= 2, "the reason, and for a worker its account"
    assert said.splitlines()[0].isprintable() and len(said) < 600


@pytest.fixture
async def client(root: Path) -> AsyncIterator[Client]:
    async with serving(root, HANDSHAKE, Person(decide("once"))) as client:
        yield client


@pytest.mark.proves("A001", "A002", "A003", "A004", "A005", "A006", "PATHS-EVERYWHERE")
@pytest.mark.anyio
@pytest.mark.parametrize("operation", [*READING, *WRITING])
async def test_no_path_of_a_call_leads_out(root: Path, client: Client, operation: str) -> None:
    before = everything(root.parent)
    for path in (*LEADING_OUT, *LINKS, "", "."):
        await _refused(client, {**READING, **WRITING}[operation], path.format(root=root))
    after = everything(root.parent)
    assert {name: after[name] for name in before} == before
    assert all(".llm-do" in name for name in after.keys() - before.keys()), "nothing but the record is new"


@pytest.mark.proves("A001", "A002", "A006", "PATHS-EVERYWHERE")
@pytest.mark.anyio
async def test_what_only_looks_like_a_way_out_is_a_name_like_any_other(root: Path, client: Client) -> None:
    for path in LOOKALIKES:
        for arguments in READING.values():
            await _refused(client, arguments, path)
        result = await client.call_tool("files_out_write_text", {"path": path, "content": "inside"})
        assert result.structured_content is not None, text(result)
        read = await client.call_tool("files_out_read_text", {"path": result.structured_content["path"]})
        assert text(read) == "inside"
    assert not (root.parent / "x").exists() and (root / "secret.txt").read_text() == SECRET


@pytest.mark.proves("A003", "A006", "PATHS-EVERYWHERE")
@pytest.mark.anyio
async def test_spellings_of_one_path_are_one_file(root: Path, client: Client) -> None:
    for path in ("stock.txt", "./stock.txt", ".//./stock.txt"):
        assert text(await client.call_tool("files_in_read_text", {"path": path})) == "three pears\n"
        attached = await client.call_tool("shop", {"input": "x", "attachments": [f"in/{path}"]})
        assert not attached.is_error
    for path in ("stock.txt/", "stock.txt/."):
        for arguments in READING.values():
            await _refused(client, arguments, path)


@pytest.mark.proves("A001", "A002", "A004", "A005", "A006", "PATHS-EVERYWHERE")
@pytest.mark.anyio
@pytest.mark.parametrize("operation", SEARCHING)
async def test_no_pattern_and_no_search_shows_what_lies_outside(client: Client, operation: str) -> None:
    patterns = (
        "../*",
        "/etc/*",
        "sub/../../*",
        "**/../*",
        "../in-evil/*",
        "away/*",
        "{in,..}/*",
        "[.][.]/*",
        "**/**/**/*",
    )
    for path in (*LEADING_OUT, *LINKS, *LOOKALIKES, *patterns):
        tool, given = SEARCHING[operation](path)
        result = await client.call_tool(tool, given)
        said = text(result).replace(path, "").replace("SECRET'", "")
        assert SECRET not in said and "in-evil/" not in said and "root:" not in said and "project.yaml" not in said


@pytest.mark.proves("A006", "PATHS-EVERYWHERE")
@pytest.mark.anyio
@pytest.mark.parametrize(
    "command",
    ["grep SECRET ..", "grep SECRET /", "grep -r SECRET", "grep SECRET out/../..", "grep -f in/to_secret.txt x in"],
)
async def test_a_search_stays_below_its_folders(client: Client, command: str) -> None:
    result = await client.call_tool("te", {"command": command})
    assert "secret.txt:" not in text(result) and "turns.json" not in text(result)


@pytest.mark.proves("A006", "PATHS-EVERYWHERE")
@pytest.mark.parametrize(
    "entry",
    ["../main", "/etc/passwd", "..", "a/../main", "", "x" * 5000, "\0", "./../main.worker", "main.worker.worker"],
)
def test_no_entry_leads_out_of_the_project(root: Path, capsys: pytest.CaptureFixture[str], entry: str) -> None:
    assert main([str(root), "x", "--entry", entry]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("\n") == 1 and len(printed.err) < 600


RULED: dict[str, Any] = {
    "sandbox": {
        "paths": {"in": {"root": "./in", "mode": "ro", "read_approval": True}, "out": {"root": "./out", "mode": "rw"}}
    },
    "approvals": [{"function": "files.write", "subject": "out/ledger.txt", "decision": "deny"}],
}


@pytest.mark.proves("A086", "PATHS-ONE-SPELLING")
@pytest.mark.anyio
@pytest.mark.parametrize("path", ["in/stock.txt", "in:stock.txt", "in//stock.txt", "in/./stock.txt", "in:./stock.txt"])
async def test_a_rule_holds_for_every_spelling_of_a_read(tmp_path: Path, path: str) -> None:
    root = shop(tmp_path, turn(("read_file", {"path": path})), **RULED)
    person = Person(decide("deny"))
    async with serving(root, HANDSHAKE, person) as client:
        result = await client.call_tool("shop", {"input": "go"})
    assert "three pears" not in text(result) and len(account(result)["approvals"]) == 1


@pytest.mark.proves("A086", "PATHS-ONE-SPELLING")
@pytest.mark.anyio
@pytest.mark.parametrize(
    "path", ["out/ledger.txt", "out:ledger.txt", "out/.//ledger.txt", "out/./ledger.txt", "out:.//ledger.txt"]
)
async def test_a_rule_holds_for_every_spelling_of_a_write(tmp_path: Path, path: str) -> None:
    root = shop(tmp_path, turn(("write_file", {"path": path, "content": "x"})), **RULED)
    person = Person(decide("once"))
    async with serving(root, HANDSHAKE, person) as client:
        result = await client.call_tool("shop", {"input": "go"})
        direct = await client.call_tool("files_out_write_text", {"path": path[4:], "content": "x"})
    assert person.asked == [] and "refused by approvals of" in text(result) + text(direct)
    assert direct.is_error and (root / "out/ledger.txt").read_text() == "opened\n"
