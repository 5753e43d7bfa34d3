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


# ---- subjects

LIST = Declaration("files.list", "list_files", "", {"type": "object"}, risk="read")
TE = Declaration("te", "te", "", {"type": "object"}, risk="read")


def _answer(rule: Rule, declaration: Declaration, **value: str) -> str:
    return decide((rule,), declaration, value, "worker")[0]


@pytest.mark.proves("POLICY-PATHS")
@pytest.mark.parametrize(
    ("pattern", "fits", "does_not"),
    [
        ("notes/*.md", ["notes/a.md"], ["notes/a/b.md", "notes/a.txt", "notes", "other/a.md"]),
        ("notes/**", ["notes", "notes/a.md", "notes/a/b/c.md"], ["notes2/a.md", "other/notes/a.md"]),
        ("notes/**/x.md", ["notes/x.md", "notes/a/b/x.md"], ["notes/x.md.bak"]),
        ("notes:*.md", ["notes/a.md"], ["notes/a/b.md"]),
        ("*/a.md", ["notes/a.md", "other/a.md"], ["notes/b/a.md"]),
        ("**", ["notes", "notes/a/b.md"], []),
        ("*", ["notes", "notes/a/b.md"], []),
        ("notes/a[bc].md", ["notes/ab.md"], ["notes/ad.md", "notes/a[bc].md"]),
        ("notes", ["notes"], ["notes.md", "other/notes"]),
        ("../notes/a.md", [], ["notes/a.md"]),
    ],
)
def test_a_path_rule_is_a_pattern_of_names_under_an_alias(pattern: str, fits: list[str], does_not: list[str]) -> None:
    for decision, otherwise in (("deny", "ask"), ("allow", "ask")):
        rule = Rule("files.write", decision, pattern)  # type: ignore[arg-type]
        assert [_answer(rule, WRITE, path=path) for path in fits] == [decision] * len(fits)
        assert [_answer(rule, WRITE, path=path) for path in does_not] == [otherwise] * len(does_not)


@pytest.mark.proves("POLICY-PATHS", "A086")
@pytest.mark.parametrize(
    "path",
    [
        "notes/a b.md",
        "notes:a b.md",
        "notes/./a b.md",
        "notes//a b.md",
        "notes:.//a b.md",
        "notes/a b.md/",
        "notes/A B.MD",
        "notes/a b.md.",
        "notes/a\u200b b.md",
        "notes/a\\u200b b.md",
    ],
)
def test_no_spelling_of_a_path_slips_past_what_refuses_or_asks(path: str) -> None:
    assert _answer(Rule("files.*", "deny", "notes/a b.md"), READ, path=path) == "deny"
    assert _answer(Rule("files.*", "ask", "notes/a *"), READ, path=path) == "ask"


@pytest.mark.proves("POLICY-PATHS")
def test_what_allows_holds_for_the_very_name_only() -> None:
    rule = Rule("files.write", "allow", "notes/a.md")
    assert [_answer(rule, WRITE, path=path) for path in ("notes/a.md", "notes:./a.md")] == ["allow", "allow"]
    assert [_answer(rule, WRITE, path=path) for path in ("notes/A.md", "notes/a\u200b.md", "notes/a.md.")] == [
        "ask"
    ] * 3


@pytest.mark.proves("POLICY-PATHS")
@pytest.mark.parametrize("folder", ["notes", "notes/", "notes:", "notes/private", "notes/private/", "**/private"])
def test_a_folder_that_is_written_out_is_refused_with_all_that_is_in_it_and_never_allowed_so(folder: str) -> None:
    for decision in ("deny", "ask"):
        for path in ("notes/private/a.md", "notes/Private/b/c.md"):
            assert _answer(Rule("files.*", decision, folder), READ, path=path) == decision  # type: ignore[arg-type]
        assert _answer(Rule("files.*", decision, folder), READ, path="other/a.md") == "allow"  # type: ignore[arg-type]
    assert _answer(Rule("files.*", "allow", folder), WRITE, path="notes/private/a.md") == "ask"


@pytest.mark.proves("POLICY-PATHS")
def test_an_alias_may_be_written_as_in_the_manifest() -> None:
    rule = Rule("files.read", "deny", "Müller Notes/**")
    assert _answer(rule, READ, path="muller_notes/a.md") == "deny"
    assert _answer(rule, READ, path="muller/a.md") == "allow"


@pytest.mark.proves("POLICY-WORKERS")
def test_a_rule_about_a_worker_holds_for_its_own_tool_and_whatever_its_case() -> None:
    rule = Rule("worker.call", "deny", "reports/*")
    own_tool = Declaration("worker.call", "reports_a", "", {}, nested=True, options={"lock": "reports/a"})
    assert decide((rule,), own_tool, {"title": "x"}, "worker")[0] == "deny"
    assert decide((rule,), WORKER, {"worker": "Reports/A"}, "worker")[0] == "deny"
    assert decide((rule,), WORKER, {"worker": "other"}, "worker")[0] == "allow"
    assert decide((rule,), WORKER, {"worker": "./workers/reports/a.worker"}, "worker", subject="reports/a")[0] == "deny"


@pytest.mark.proves("A086")
def test_blanks_and_quotes_are_no_way_around_a_rule_about_a_search() -> None:
    rule = Rule("te", "deny", "grep secret*")
    for command in ("grep secret in", "grep   secret in", "grep 'secret' in", ' grep "secret" in'):
        assert _answer(rule, TE, command=command) == "deny"
    assert _answer(rule, TE, command="grep public in") == "allow"


@pytest.mark.proves("POLICY-RISK")
def test_a_rule_may_be_about_one_risk_only() -> None:
    rule = Rule("*", "deny", risk="network")
    found = {risk: Declaration("custom.f", "f", "", {}, risk=risk) for risk in ("read", "write", "network")}
    answers = {risk: decide((rule,), declaration, {}, "worker")[0] for risk, declaration in found.items()}
    assert answers == {"read": "allow", "write": "ask", "network": "deny"}
