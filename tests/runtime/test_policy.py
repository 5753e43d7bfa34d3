"""Which calls run, which ask, which are refused."""

from __future__ import annotations

import pytest

from llm_do_mcp.runtime.function import Declaration
from llm_do_mcp.runtime.policy import Rule, decide

WRITE = Declaration("files.write", "write_file", "", {"type": "object"}, risk="write")
READ = Declaration("files.read", "read_file", "", {"type": "object"}, risk="read")
WORKER = Declaration("worker.call", "worker_call", "", {"type": "object"}, nested=True)
NOTES = {"path": "notes/a.md"}


@pytest.mark.proves("POLICY-DEFAULT")
@pytest.mark.parametrize(
    ("declaration", "expected"),
    [(READ, "allow"), (WRITE, "ask"), (WORKER, "allow")]
    + [(Declaration("custom.f", "f", "", {}, risk=risk), "ask") for risk in ("write", "network", "destructive")],
)
def test_without_rules_reading_and_workers_run_and_the_rest_asks(declaration: Declaration, expected: str) -> None:
    assert decide((), declaration, NOTES, "worker")[0] == expected


@pytest.mark.proves("POLICY-ORDER")
def test_deny_beats_ask_beats_allow_however_specific_and_in_any_order() -> None:
    allow = Rule("files.write", "allow", subject="notes/a.md")
    ask = Rule("files.*", "ask", subject="notes/*")
    deny = Rule("*", "deny")
    assert decide((allow,), WRITE, NOTES, "worker")[0] == "allow"
    assert decide((allow, ask), WRITE, NOTES, "worker")[0] == "ask"
    assert decide((allow, ask, deny), WRITE, NOTES, "worker")[0] == "deny"
    assert decide((deny, ask, allow), WRITE, NOTES, "worker")[0] == "deny"


@pytest.mark.proves("POLICY-ORDER")
def test_a_rule_speaks_only_of_the_subject_and_caller_that_it_names() -> None:
    rule = Rule("files.write", "deny", subject="notes/*", caller="client")
    assert decide((rule,), WRITE, NOTES, "client")[0] == "deny"
    assert decide((rule,), WRITE, NOTES, "worker")[0] == "ask"
    assert decide((rule,), WRITE, {"path": "other/a.md"}, "client")[0] == "ask"
    assert decide((rule,), READ, NOTES, "client")[0] == "allow"
