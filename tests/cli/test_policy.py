"""`llm-do list --policy`: the effective answers, where they come from, and the rules that mean nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import llm_do
from tests.project.conftest import worker, write

TOOLS = """
from llm_do_mcp import tool


@tool(risk="network")
def fetch() -> str:
    "Fetches."
    return ""
"""
MAIN: dict[str, Any] = {
    "toolsets": {"filesystem": {}, "custom": ["fetch"], "delegation": {"allow_workers": ["reports/*"]}},
    "sandbox": {"network_enabled": False},
    "tool_rules": {"frobnicate": {"allowed": False}, "worker_call": {"approval_required": True}},
    "approvals": [
        {"function": "files.write", "decision": "allow", "subject": "out/*.md"},
        {"function": "files.write", "decision": "deny", "subject": "nowhere/**"},
        {"function": "custom.fetch", "decision": "ask", "subject": "x"},
        {"function": "files.write", "decision": "allow", "subject": "out/"},
    ],
}
MANIFEST: dict[str, Any] = {
    "name": "shop",
    "exports": ["main"],
    "sandbox": {"paths": {"in": "ro:./in", "out": {"root": "./out", "mode": "rw"}}},
    "approvals": [
        {"function": "files.read", "decision": "deny", "subject": "in/secret/**"},
        {"function": "files.write", "decision": "deny", "caller": "client"},
        {"function": "shell", "decision": "deny"},
        {"function": "files.list", "decision": "deny", "subject": "out"},
    ],
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {
        "project.yaml": json.dumps(MANIFEST),
        "main.worker": worker(json.dumps(MAIN)),
        "tools.py": TOOLS,
        "workers/reports/a.worker": worker(),
        "workers/broken.worker": worker("toolsets: {custom: [nothing]}"),
    }
    write(tmp_path, files)
    return tmp_path


def _answers(functions: list[dict[str, Any]]) -> dict[tuple[str, str], tuple[str, str]]:
    return {(one["function"], one["subject"]): (one["decision"], one["source"]) for one in functions}


@pytest.mark.proves("POLICY-SHOWN")
def test_each_function_of_each_worker_has_its_answer_and_where_it_comes_from(project: Path) -> None:
    ran = llm_do("list", project, "--policy", "--json")
    assert ran.returncode == 2, "one of the workers is broken"
    found = json.loads(ran.stdout)
    workers = {one["id"]: one for one in found["workers"]}
    assert _answers(workers["main"]["functions"]) == {
        ("files.list", "in/**"): ("allow", "default for risk read"),
        ("files.list", "out/**"): ("deny", "approvals of the manifest, rule 4"),
        ("files.read", "in/**"): ("allow", "default for risk read"),
        ("files.read", "out/**"): ("allow", "default for risk read"),
        ("files.write", "out/**"): ("ask", "default for risk write"),
        ("worker.call", "reports/a"): ("ask", "tool_rules.worker_call of worker main"),
        ("custom.fetch", ""): ("deny", "sandbox.network_enabled: false of worker main"),
    }
    exceptions = {
        (one["function"], said["subject"]): (said["decision"], said["source"])
        for one in workers["main"]["functions"]
        for said in one["exceptions"]
    }
    assert exceptions == {
        ("files.read", "in/secret/**"): ("deny", "approvals of the manifest, rule 1"),
        ("files.write", "out/*.md"): ("allow", "approvals of worker main, rule 1"),
    }
    assert workers["reports/a"]["functions"] == []
    assert "nothing" in workers["broken"]["error"]
    client = _answers(found["client"])
    assert client["files.write", "out/**"] == ("deny", "approvals of the manifest, rule 2")
    assert client["worker.call", "main"] == ("allow", "default for calls of workers")


@pytest.mark.proves("POLICY-SHOWN", "POLICY-SEARCH")
def test_a_search_names_the_folders_that_it_leaves_out(project: Path) -> None:
    keys = {**MAIN, "toolsets": {**MAIN["toolsets"], "te": {}}}
    write(project, {"main.worker": worker(json.dumps(keys))})
    found = json.loads(llm_do("list", project, "--policy", "--json").stdout)["workers"]
    (search,) = [one for worker in found for one in worker["functions"] if one["function"] == "te"]
    assert search["decision"] == "allow"
    assert [(said["subject"], said["decision"], said["source"]) for said in search["exceptions"]] == [
        ("in/**", "deny", "left out: approvals of the manifest, rule 1")
    ]


@pytest.mark.proves("POLICY-SHOWN", "A086")
def test_rules_that_match_nothing_are_named(project: Path) -> None:
    found = json.loads(llm_do("list", project, "--policy", "--json").stdout)["idle"]
    assert {one["source"]: one["rule"] for one in found} == {
        "approvals of the manifest, rule 3": "deny shell",
        "approvals of worker main, rule 2": "deny files.write nowhere/**",
        "approvals of worker main, rule 3": "ask custom.fetch x",
        "approvals of worker main, rule 4": "allow files.write out/",
        "tool_rules.frobnicate of worker main": "deny custom.frobnicate",
    }


@pytest.mark.proves("POLICY-SHOWN")
def test_for_people_it_is_a_table(project: Path) -> None:
    lines = llm_do("list", project, "--policy").stdout.splitlines()
    ask = next(line for line in lines if "files.write (write_file) out/**" in line)
    assert " ".join(ask.split()) == "ask files.write (write_file) out/** default for risk write"
    assert " ".join(lines[lines.index(ask) + 1].split()) == "allow out/*.md approvals of worker main, rule 1"
    assert "worker main" in lines and "client" in lines
    idle = lines[lines.index("rules that match nothing") + 1 :]
    assert "  approvals of the manifest, rule 3: deny shell" in idle


@pytest.mark.proves("POLICY-SHOWN")
def test_looking_at_the_policy_begins_no_run(project: Path) -> None:
    llm_do("list", project, "--policy")
    assert not (project / ".llm-do").exists()
