"""Each way of not approving, as the caller reads it and as the record keeps it: what came, and from whom; and who is
asked again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp.types import ElicitResult, ErrorData

from llm_do_mcp.runtime.approvals import Approvals
from llm_do_mcp.serving import silences
from llm_do_mcp.serving.silences import Silences
from tests.cli.commands import llm_do
from tests.serving.clients import HANDSHAKE, Person, accept, account, decide, serving, shop, text, turn, write

pytestmark = pytest.mark.anyio

DENY: dict[str, Any] = {"when_nobody_can_answer": "deny"}
WAYS: dict[tuple[str, str], tuple[Person | None, dict[str, Any], str]] = {
    ("deny", "client"): (Person(decide("deny")), {}, "the person refused it"),
    ("declined", "client"): (Person(ElicitResult(action="decline")), {}, "the person declined to answer"),
    ("cancelled", "client"): (Person(ElicitResult(action="cancel")), {}, "the person dismissed the question"),
    ("malformed", "client"): (Person(accept({"decision": "yes"})), {}, "the answer was none of once, run, deny"),
    ("failed", "client"): (Person(ErrorData(code=-1, message="no")), {}, "the question could not be asked"),
    ("timed_out", "--when-nobody-can-answer deny"): (
        Person(None),
        {**DENY, "answer_within": 0.1},
        "nobody answered in time; to allow it",
    ),
    ("cannot_ask", "--when-nobody-can-answer deny"): (None, DENY, "it needs approval and this client cannot ask"),
    ("policy", "--approvals deny"): (None, {"approvals": Approvals("deny")}, "this run's settings refuse what would"),
    ("not_locked", "approvals.lock"): (
        None,
        {"approvals": Approvals("locked")},
        "approvals.lock does not allow it: nothing of files.write is approved",
    ),
}


@pytest.mark.proves("NOBODY-SILENT", "NOBODY-SILENT-HTTP")
def test_a_client_without_a_connection_is_asked_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    known, connection, name = Silences(), object(), "'ann' 'laptop' '1'"
    for client in (connection, name):
        known.begin(client)
        assert known.has(client)
    monkeypatch.setattr(silences, "ASKED_AGAIN_S", 0.0)
    for client in (connection, name):
        known.begin(client)
    assert known.has(connection) and not known.has(name)
    known.end(connection)
    assert not known.has(connection) and not known.has(None)


@pytest.mark.proves("FRONT-RECORD", "A080", "A081", "A082", "A083")
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way[0])
async def test_each_way_of_not_approving_is_told_apart_in_text_and_record(tmp_path: Path, way: tuple[str, str]) -> None:
    person, options, words = WAYS[way]
    root = shop(tmp_path, turn(write("out/a.txt")))
    async with serving(root, HANDSHAKE, person, **options) as client:
        result = await client.call_tool("shop", {"input": "go"})
    assert text(result).startswith(f"files.write out/a.txt was not run: {words}")
    assert not (root / "out/a.txt").exists()
    shown = llm_do("trace", account(result)["id"], "--json", "--project", root)
    (turn_of_call, *_) = json.loads(shown.stdout)["items"][0]["children"]
    (call,) = turn_of_call["children"]
    (question,) = call["children"]
    assert (call["state"], question["state"]) == ("refused", "refused")
    assert (question["facts"]["decision"], question["facts"]["by"]) == way
