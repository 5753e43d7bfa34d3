"""Every place that can set the policy, in real projects: what it makes of a call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from llm_do_mcp.errors import ProjectError
from llm_do_mcp.project.load import load_project
from llm_do_mcp.runtime.engine import Done
from llm_do_mcp.runtime.policy import decide
from llm_do_mcp.runtime.question import Answer, Question
from llm_do_mcp.serving.surface import publish
from llm_do_mcp.toolsets.workbench import Workbench
from tests.project.conftest import worker
from tests.runtime.workshop import Workshop, calling

pytestmark = pytest.mark.anyio

TOOLS = """
from llm_do_mcp import tool


@tool(risk="read")
def look() -> str:
    "Looks."
    return "seen"


@tool
def change() -> str:
    "Changes."
    return "changed"


@tool(risk="network")
def fetch() -> str:
    "Fetches."
    return "fetched"
"""
TYPED = """
input_schema: {type: object, properties: {n: {type: integer}}, required: [n]}
"""
KEYS: dict[str, Any] = {
    "toolsets": {"filesystem": {}, "te": {}, "delegation": {"allow_workers": ["*"]}, "custom": "all"},
    "sandbox": {
        "paths": {"in": {"root": "./in", "mode": "ro"}, "out": {"root": "./out", "mode": "rw"}},
    },
}
CALLS: dict[str, tuple[str, Mapping[str, Any]]] = {
    "list": ("list_files", {"path": "in"}),
    "read": ("read_file", {"path": "in/notes.md"}),
    "write": ("write_file", {"path": "out/a.md", "content": "x"}),
    "deep": ("write_file", {"path": "out/deep/a.md", "content": "x"}),
    "worker": ("worker_call", {"worker": "typed", "input_data": {"n": 1}}),
    "typed": ("typed", {"n": 1}),
    "look": ("look", {}),
    "change": ("change", {}),
    "fetch": ("fetch", {}),
}
DEFAULT = {"list": "ran", "read": "ran", "write": "asked", "deep": "asked", "worker": "ran", "typed": "ran"}
DEFAULT |= {"look": "ran", "change": "asked", "fetch": "asked"}


def lay(over: Mapping[str, Any], below: Mapping[str, Any] = KEYS) -> dict[str, Any]:
    """Keys over the usual ones."""
    laid = dict(below)
    for key, value in over.items():
        laid[key] = lay(value, laid[key]) if isinstance(value, dict) and isinstance(laid.get(key), dict) else value
    return laid


def shop(root: Path, keys: Mapping[str, Any], manifest: Mapping[str, Any] | None = None, **files: str) -> Workshop:
    usual = {
        "main.worker": worker(json.dumps(lay(keys))),
        "project.yaml": json.dumps({"name": "shop", "model": "scripted:script.py", **(manifest or {})}),
        "tools.py": TOOLS,
        "workers/typed.worker": worker(TYPED),
    }
    return Workshop(root, {**usual, **files})


async def became(shop: Workshop, *names: str) -> dict[str, str]:
    """What became of calls: each ran, was asked about, or was denied without a question."""
    made = names or tuple(CALLS)
    asked: list[Question] = []

    def refuse(question: Question) -> Answer:
        asked.append(question)
        return Answer("deny")

    async with shop:
        done = await shop.run(calling(*(CALLS[name] for name in made)), refuse)
    return dict(zip(made, map(_fate, _results(done)), strict=True))


def _results(done: Done) -> list[str]:
    assert done.status == "done", done.error
    return [result["content"] for result in json.loads(done.output)["results"] if result["type"] == "tool_result"]


def _fate(told: str) -> str:
    if "was not run: refused by" in told:
        return "denied"
    return "asked" if "was not run: the person refused it" in told else "ran"


@pytest.mark.proves("POLICY-SOURCES", "POLICY-DEFAULT")
async def test_without_a_rule_the_risk_decides(tmp_path: Path) -> None:
    assert await became(shop(tmp_path, {})) == DEFAULT


@pytest.mark.proves("ASK-POSSIBLE")
@pytest.mark.parametrize(
    ("path", "content", "says"),
    [
        ("out/a.md", "é" * 6, "out/a.md: 12 bytes, allowed are 10"),
        ("out/wide.md", "é" * 5, "out/wide.md: 12 bytes, allowed are 10"),
        ("out/a.txt", "x", "out/a.txt: "),
        ("out/../a.md", "x", "out/"),
        ("in/a.md", "x", "in/a.md: "),
    ],
)
async def test_nobody_is_asked_about_a_write_that_could_only_be_refused(
    tmp_path: Path, path: str, content: str, says: str
) -> None:
    asked: list[Question] = []

    def approve(question: Question) -> Answer:
        asked.append(question)
        return Answer("once")

    made = shop(tmp_path, {"sandbox": {"paths": {"out": {"max_file_bytes": 10, "suffixes": [".md"]}}}})
    (tmp_path / "out").mkdir(exist_ok=True)
    (tmp_path / "out" / "wide.md").write_text("w", encoding="utf-16")
    async with made:
        done = await made.run(calling(("write_file", {"path": path, "content": content})), approve)
        assert _results(done)[0].startswith(says) and asked == []
        done = await made.run(calling(("write_file", {"path": "out/a.md", "content": "é" * 5})), approve)
        assert len(asked) == 1 and json.loads(_results(done)[0])["bytes"] == 10


PLACES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, str]]] = {
    "approvals of the manifest": (
        {},
        {"approvals": [{"function": "files.write", "decision": "allow", "subject": "out/*.md"}]},
        {"write": "ran"},
    ),
    "approvals of the worker": (
        {"approvals": [{"function": "custom.*", "decision": "deny"}, {"function": "read_file", "decision": "ask"}]},
        {},
        {"look": "denied", "change": "denied", "fetch": "denied", "read": "asked"},
    ),
    "deny in the manifest over allow in the worker": (
        {"approvals": [{"function": "files.write", "decision": "allow"}]},
        {"approvals": [{"function": "*", "decision": "deny", "subject": "out/deep/**"}]},
        {"write": "ran", "deep": "denied"},
    ),
    "rules for clients": ({"approvals": [{"function": "*", "decision": "deny", "caller": "client"}]}, {}, {}),
    "rules for workers": (
        {"approvals": [{"function": "files.*", "decision": "deny", "caller": "worker"}]},
        {},
        {"list": "denied", "read": "denied", "write": "denied", "deep": "denied"},
    ),
    "tool_rules by canonical name": (
        {
            "tool_rules": {
                "files.write": {"allowed": True, "approval_required": False},
                "custom.look": {"allowed": False},
            }
        },
        {},
        {"write": "ran", "deep": "ran", "look": "denied"},
    ),
    "tool_rules by the name that is shown": (
        {"tool_rules": {"write_file": {"approval_required": False}, "change": {"allowed": False}, "list_files": {}}},
        {},
        {"write": "ran", "deep": "ran", "change": "denied"},
    ),
    "tool_rules of a worker's own tool": (
        {"tool_rules": {"typed": {"allowed": False}}},
        {},
        {"typed": "denied", "worker": "denied"},
    ),
    "tool_rules of calls of workers": (
        {"tool_rules": {"worker.call": {"approval_required": True}}},
        {},
        {"typed": "asked", "worker": "asked"},
    ),
    "_approval_config of a toolset": (
        {
            "toolsets": {
                "filesystem": {"_approval_config": {"write_file": {"pre_approved": True}}},
                "te": {"_approval_config": {"look": {"pre_approved": False}}},
            }
        },
        {},
        {"write": "ran", "deep": "ran"},
    ),
    "pre_approved of a function": (
        {"toolsets": {"custom": {"look": {"pre_approved": False}, "change": {"pre_approved": True}, "fetch": {}}}},
        {},
        {"look": "asked", "change": "ran"},
    ),
    "_approval_config of custom": (
        {"toolsets": {"custom": {"look": {}, "fetch": {}, "_approval_config": {"change": {"pre_approved": True}}}}},
        {},
        {"change": "ran"},
    ),
    "write_approval": ({"sandbox": {"paths": {"out": {"write_approval": False}}}}, {}, {"write": "ran", "deep": "ran"}),
    "write_approval against an allowing rule": (
        {
            "sandbox": {"paths": {"out": {"write_approval": True}}},
            "approvals": [{"function": "files.write", "decision": "allow"}],
        },
        {},
        {},
    ),
    "read_approval": ({"sandbox": {"paths": {"in": {"read_approval": True}}}}, {}, {"list": "asked", "read": "asked"}),
    "approvals by the name that clients see": (
        {},
        {
            "approvals": [
                {"function": "files_out_write_text", "decision": "allow"},
                {"function": "Files_in_read_text", "decision": "deny"},
                {"function": "files_out_list", "decision": "deny"},
            ]
        },
        {"write": "ran", "deep": "ran", "read": "denied"},
    ),
    "tool_rules by the name that clients see": (
        {"tool_rules": {"Files_out_write_text": {"approval_required": False}, "files_in_list": {"allowed": False}}},
        {},
        {"write": "ran", "deep": "ran", "list": "denied"},
    ),
    "_approval_config by the name that clients see": (
        {"toolsets": {"filesystem": {"_approval_config": {"Files_out_write_text": {"pre_approved": True}}}}},
        {},
        {"write": "ran", "deep": "ran"},
    ),
    "network_enabled of the worker": ({"sandbox": {"network_enabled": False}}, {}, {"fetch": "denied"}),
    "network_enabled of the manifest": ({}, {"sandbox": {"network_enabled": False}}, {"fetch": "denied"}),
    "network_enabled is no permission": ({"sandbox": {"network_enabled": True}}, {}, {}),
}


@pytest.mark.proves("POLICY-SOURCES", "POLICY-NETWORK", "POLICY-ORDER", "A086")
@pytest.mark.parametrize(("keys", "manifest", "changes"), PLACES.values(), ids=PLACES)
async def test_each_place_that_sets_the_policy(
    tmp_path: Path, keys: dict[str, Any], manifest: dict[str, Any], changes: dict[str, str]
) -> None:
    assert await became(shop(tmp_path, keys, manifest)) == {**DEFAULT, **changes}


@pytest.mark.proves("POLICY-SOURCES")
async def test_a_refusal_names_where_the_rule_stands(tmp_path: Path) -> None:
    rules = [{"function": "files.list", "decision": "allow"}, {"function": "files.write", "decision": "deny"}]
    async with shop(tmp_path, {"tool_rules": {"change": {"allowed": False}}}, {"approvals": rules}) as made:
        told = await made.told(CALLS["write"], CALLS["change"])
    assert told == [
        ("write_file was not run: refused by approvals of the manifest, rule 2", True),
        ("change was not run: refused by tool_rules.change of worker main", True),
    ]


@pytest.mark.proves("POLICY-SOURCES")
@pytest.mark.parametrize("subject", ["/etc/**", "../out/*", "out/../*", ""])
def test_a_subject_that_can_match_no_path_is_refused_with_its_place(tmp_path: Path, subject: str) -> None:
    made = shop(tmp_path, {}, {"approvals": [{"function": "files.write", "decision": "deny", "subject": "out/**"}]})
    manifest = {"approvals": [{"function": "files.write", "decision": "deny", "subject": subject}]}
    (made.root / "project.yaml").write_text(json.dumps(manifest))
    with pytest.raises(ProjectError, match=r"project.yaml:1:\d+: .*write alias/pattern"):
        load_project(tmp_path)


@pytest.mark.proves("POLICY-SOURCES")
def test_the_name_that_clients_see_is_of_one_folder_and_needs_no_subject(tmp_path: Path) -> None:
    rule = {"function": "Files_out_write_text", "decision": "deny", "subject": "*.md"}
    says = r"project.yaml:1:\d+: .*write `function: files.write` and `subject: out/…`"
    with pytest.raises(ProjectError, match=says):
        load_project(shop(tmp_path, {}, {"approvals": [rule]}).root)


@pytest.mark.proves("POLICY-WORKERS")
@pytest.mark.parametrize("spelled", ["a", "reports/a", "workers/reports/a", "./workers/reports/a.worker"])
async def test_a_rule_about_a_worker_holds_for_every_reference_to_it(tmp_path: Path, spelled: str) -> None:
    rules = {"approvals": [{"function": "worker.call", "decision": "deny", "subject": "reports/a"}]}
    files = {"workers/reports/a.worker": worker()}
    async with shop(tmp_path, rules, **files) as made:
        ((told, failed),) = await made.told(("worker_call", {"worker": spelled, "input_data": "x"}))
    assert failed and told == "worker_call was not run: refused by approvals of worker main, rule 1"


# ---- listings and searches, which show many files at once

SECRET = {"in/secret/key.md": "three secrets\n", "in/secret.md": "no secret\n"}


@pytest.mark.proves("POLICY-LISTS")
@pytest.mark.parametrize("pattern", ["**/*", "secret/*", "secre?/*", "*/key.md"])
async def test_a_listing_does_not_show_what_a_rule_refuses_to_list(tmp_path: Path, pattern: str) -> None:
    rules = {"approvals": [{"function": "files.*", "decision": "deny", "subject": "in/secret/**"}]}
    async with shop(tmp_path, rules, **SECRET) as made:
        told = await made.told(
            ("list_files", {"path": "in", "pattern": pattern}), ("list_files", {"path": "in/secret"})
        )
    assert "key.md" not in told[0][0] and json.loads(told[0][0])["skipped"] == [
        "1 that the policy does not let you list with what is around them"
    ]
    assert told[1] == ("list_files was not run: refused by approvals of worker main, rule 1", True)


@pytest.mark.proves("POLICY-LISTS")
async def test_a_listing_that_was_approved_shows_what_was_asked_about(tmp_path: Path) -> None:
    rules = {"approvals": [{"function": "files.list", "decision": "ask", "subject": "in/secret/**"}]}
    async with shop(tmp_path, rules, **SECRET) as made:
        told = await made.told(
            ("list_files", {"path": "in/secret"}),
            ("list_files", {"path": "in"}),
            decide=lambda question: Answer("once"),
        )
    assert "key.md" in told[0][0] and "key.md" not in told[1][0]


@pytest.mark.proves("POLICY-SEARCH")
@pytest.mark.parametrize(("decision", "subject"), [("deny", "in/secret/*"), ("ask", "in/**"), ("deny", "**/key.md")])
async def test_a_search_leaves_out_folders_that_hold_what_may_not_be_read(
    tmp_path: Path, decision: str, subject: str
) -> None:
    rules = {"approvals": [{"function": "files.read", "decision": decision, "subject": subject}]}
    async with shop(tmp_path, {}, rules, **{**SECRET, "out/plain.md": "three pears\n"}) as made:
        ((told, _), (named, _)) = await made.told(
            ("te", {"command": "grep three"}), ("te", {"command": "grep three in/secret"})
        )
        published = publish(made.bench)
    if subject.startswith("**"):
        assert told.startswith("there is no function 'te' here") and "te" not in published
    else:
        assert "three pears" in told and "secrets" not in told
        why = "not all that is there may be read without asking (approvals of the manifest, rule 1)"
        assert f"in/secret is not searched: {why}" in named
        declaration = published["te"].declaration
        assert declaration is not None
        assert [root["alias"] for root in declaration.options["roots"]] == ["out"]


# ---- files with several names

LINKED = "a link on the way; links are followed only to read a file, and not where the policy tells single files apart"


@pytest.mark.proves("POLICY-LINKS")
@pytest.mark.parametrize(("function", "decision"), [("files.*", "deny"), ("files.read", "ask"), ("files.list", "deny")])
@pytest.mark.parametrize("path", ["in/alias/key.md", "in/linked.md"])
async def test_no_link_leads_to_what_a_rule_keeps_apart(
    tmp_path: Path, function: str, decision: str, path: str
) -> None:
    rules = {"approvals": [{"function": function, "decision": decision, "subject": "in/secret/**"}]}
    typed = worker(f"{TYPED}attachment_policy: {{max_attachments: 1}}\n")
    async with shop(tmp_path, rules, **{**SECRET, "workers/typed.worker": typed}) as made:
        (tmp_path / "in/alias").symlink_to("secret")
        (tmp_path / "in/linked.md").symlink_to("secret/key.md")
        attached = {"worker": "typed", "input_data": {"n": 1}, "attachments": [path]}
        told = await made.told(
            ("read_file", {"path": path}), ("worker_call", attached), ("list_files", {"path": "in", "pattern": "*"})
        )
    assert [text for text, _ in told[:2]] == [f"{path}: {LINKED}"] * 2
    listed = json.loads(told[2][0])
    assert [file["path"] for file in listed["files"]] == ["in/notes.md", "in/secret.md"]
    assert listed["skipped"] == [f"in/alias: {LINKED}", f"in/linked.md: {LINKED}"]


@pytest.mark.proves("POLICY-LINKS")
@pytest.mark.parametrize(
    "rules",
    [
        [],
        [{"function": "files.write", "decision": "deny", "subject": "in/secret/**"}],
        [{"function": "files.read", "decision": "allow", "subject": "in/secret/**"}],
        [{"function": "files.read", "decision": "deny", "subject": "out/x"}],
        [{"function": "files.read", "decision": "deny", "subject": "in/secret/**", "caller": "client"}],
    ],
)
async def test_other_links_are_followed(tmp_path: Path, rules: list[Any]) -> None:
    async with shop(tmp_path, {"approvals": rules}, **SECRET) as made:
        (tmp_path / "in/alias").symlink_to("secret")
        assert await made.told(("read_file", {"path": "in/alias/key.md"})) == [("three secrets\n", False)]


NESTED = {"all": {"root": ".", "mode": "rw"}, "docs": "ro:./in", "hr": {"root": "./in/secret", "read_approval": True}}


@pytest.mark.proves("POLICY-OVERLAP")
@pytest.mark.parametrize("path", ["hr/key.md", "docs/secret/key.md", "all/in/secret/key.md"])
async def test_what_asks_under_one_alias_asks_under_all_that_reach_the_file(tmp_path: Path, path: str) -> None:
    async with shop(tmp_path, {"sandbox": {"paths": NESTED}}, **SECRET) as made:
        told = await made.told(("read_file", {"path": path}), ("read_file", {"path": "docs/secret.md"}))
        assert told[0][0].endswith(" was not run: the person refused it") and told[1] == ("no secret\n", False)
        ((searched, _),) = await made.told(("te", {"command": "grep three docs"}))
        assert "three secrets" not in searched and "docs is not searched" in searched


@pytest.mark.proves("POLICY-OVERLAP")
@pytest.mark.parametrize(
    ("subject", "refused", "allowed"),
    [
        ("docs/secret/**", ["docs/secret/a", "hr/a", "all/in/secret/a", "hr/x/a"], ["docs/a", "all/in/a", "all/hr/a"]),
        ("docs/secret/*.md", ["hr/a.md", "all/in/secret/a.md"], ["hr/a.txt", "hr/x/a.md"]),
        ("docs/*/a", ["hr/a", "all/in/x/a"], ["hr/b", "hr/x/a"]),
        ("docs/**/a", ["hr/a", "hr/x/a", "all/in/a"], ["hr/b", "all/a"]),
        ("docs", ["hr/a", "docs/a", "all/in/x"], ["all/x"]),
        ("all/in/secret/x", ["hr/x", "hr/x/y", "docs/secret/x"], ["hr/a", "docs/x"]),
        ("hr/x", ["docs/secret/x/y", "all/in/secret/x"], ["docs/x", "hr/y"]),
    ],
)
def test_a_rule_holds_in_each_folder_that_overlaps(
    tmp_path: Path, subject: str, refused: list[str], allowed: list[str]
) -> None:
    paths = {**NESTED, "hr": "ro:./in/secret"}
    manifest = {
        "sandbox": {"paths": paths},
        "approvals": [{"function": "files.read", "decision": "deny", "subject": subject}],
    }
    made = shop(tmp_path, {}, manifest, **SECRET)
    project = load_project(made.root)
    bench = Workbench(project)
    client = publish(bench)["files_all_read_text"]
    own = next(one for one in bench.built_in(project.worker("main")) if one.name == "files.read")
    for path in (*refused, *allowed):
        expected = "deny" if path in refused else "allow"
        assert client.declaration is not None
        for_client = decide(client.rules, client.declaration, {"path": path}, "client")
        for_worker = decide(bench.rules_of(project.worker("main")), own, {"path": path}, "worker")
        assert (for_client[0], for_worker[0]) == (expected, expected), path


@pytest.mark.proves("POLICY-OVERLAP")
async def test_what_is_allowed_under_one_alias_is_not_allowed_under_others(tmp_path: Path) -> None:
    paths = {"all": {"root": ".", "mode": "rw", "write_approval": False}, "work": "rw:./work"}
    async with shop(tmp_path, {"sandbox": {"paths": paths}}) as made:
        told = await made.told(
            ("write_file", {"path": "work/a.md", "content": "x"}), ("write_file", {"path": "all/a.md", "content": "x"})
        )
    assert [failed for _, failed in told] == [True, False]


@pytest.mark.proves("POLICY-SOURCES")
def test_a_client_is_held_to_the_manifest_and_the_roots(tmp_path: Path) -> None:
    paths = {"out": {"root": "./out", "mode": "rw", "write_approval": False}}
    approvals = [
        {"function": "files.write", "decision": "deny", "subject": "out/*.lock", "caller": "client"},
        {"function": "files.read", "decision": "deny", "caller": "worker"},
    ]
    manifest = {"sandbox": {"paths": paths}, "approvals": approvals}
    made = shop(tmp_path, {"approvals": [{"function": "files.write", "decision": "deny"}]}, manifest)
    tool = publish(Workbench(load_project(made.root)))["files_out_write_text"]
    assert tool.declaration is not None
    answers = [decide(tool.rules, tool.declaration, {"path": path}, "client") for path in ("out/a.md", "out/a.lock")]
    assert [answer for answer, _ in answers] == ["allow", "deny"]
