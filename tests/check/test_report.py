"""What a report says of each worker, as data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llm_do_mcp.check.shapes import shape
from tests.check.looking import MODEL, look
from tests.project.conftest import worker

pytestmark = pytest.mark.anyio

SHOP = {
    "project.yaml": f"""\
        name: shop
        model: {MODEL}
        dependencies: [utils]
        exports: [main]
        sandbox: {{paths: {{in: 'ro:./in', out: 'rw:./out'}}}}
        approvals: [{{function: files.write, subject: "out/*.md", decision: allow}}]
        """,
    "main.worker": worker(
        """\
        description: Sells things.
        params: {tone: kind}
        input_schema: {type: object, properties: {item: {type: string}}, required: [item]}
        toolsets: {filesystem: {}}
        allow_workers: [helper, 'utils:clean']
        limits: {max_turns: 7}
        """
    ),
    "workers/helper.worker": worker("model: [anthropic:a, anthropic:b]\nlocked: true"),
    "in/x": "",
    "out/x": "",
}
UTILS = {"lib.yaml": "version: '2.0'\n", "workers/clean.worker": worker("output_schema: {type: object}")}


@pytest.mark.proves("CHECK-SHOWS")
async def test_each_worker_is_shown_as_it_will_be(tmp_path: Path) -> None:
    report = await look(tmp_path, SHOP, {"utils": UTILS})
    assert report.ok and report.verdict == "ok: 3 workers, 1 published; 1 warning"
    found = json.loads(json.dumps(report.to_json()))
    main, helper, clean = found["workers"]
    assert (main["id"], main["path"], main["entry"], main["published"]) == ("main", "main.worker", True, "shop")
    assert (main["model"], main["params"], main["limits"]) == ([MODEL], {"tone": "kind"}, {"max_turns": 7})
    assert main["input_schema"]["required"] == ["item"] and main["output_schema"] is None
    assert main["calls"] == ["helper", "utils:clean"] and main["toolsets"] == ["filesystem"]
    assert [(f["alias"], f["mode"], f["place"], f["exists"]) for f in main["sandbox"]] == [
        ("in", "ro", "./in", True),
        ("out", "rw", "./out", True),
    ]
    policy = {(one["shown"], one["subject"]): one for one in main["policy"]}
    assert policy["read_file", "in/**"]["decision"] == "allow"
    assert policy["write_file", "out/**"]["decision"] == "ask"
    assert policy["write_file", "out/**"]["exceptions"] == [
        {"subject": "out/*.md", "decision": "allow", "source": "approvals of the manifest, rule 1"}
    ]
    assert policy["worker_call", "utils:clean"]["decision"] == "allow"
    assert (helper["model"], helper["locked"], helper["reached"]) == (["anthropic:a", "anthropic:b"], True, True)
    assert (clean["id"], clean["path"], clean["library"]) == ("utils:clean", "utils:workers/clean.worker", "utils")
    project = found["project"]
    assert (project["name"], project["entry"], project["published"]) == ("shop", "main", {"shop": "main"})
    (library,) = project["libraries"]
    assert (library["name"], library["version"], library["locked"]) == ("utils", "2.0", False)
    assert {"name": "shop", "calls": "main"} in found["tools"]
    assert {one["shown"] for one in found["client"]} >= {"shop", "files_out_write_text", "te"}


@pytest.mark.proves("CHECK-JSON")
async def test_findings_are_data_with_their_places(tmp_path: Path) -> None:
    files = {**SHOP, "workers/helper.worker": worker("modle: x")}
    found = (await look(tmp_path, files, {"utils": UTILS})).to_json()
    assert set(found) == {"ok", "verdict", "findings", "project", "tools", "workers", "client"}
    assert found["ok"] is False and found["verdict"] == "1 error, 1 warning"
    error, warning = found["findings"]
    assert error == {
        "severity": "error",
        "message": "unknown key 'modle'; did you mean 'model'?",
        "path": "workers/helper.worker",
        "line": 2,
        "column": 1,
    }
    assert (warning["severity"], warning["path"], warning["line"]) == ("warning", "project.yaml", 3)
    assert [one["id"] for one in found["workers"]] == ["main", "utils:clean"]


@pytest.mark.proves("CHECK-JSON")
async def test_what_cannot_be_loaded_has_the_same_form(tmp_path: Path) -> None:
    found = (await look(tmp_path, {"project.yaml": "nmae: x"})).to_json()
    assert found["project"] is None and found["workers"] == [] and found["tools"] == [] and found["client"] == []
    assert [one["line"] for one in found["findings"]] == [1]


@pytest.mark.proves("CHECK-SHOWS")
@pytest.mark.parametrize(
    ("schema", "line"),
    [
        (None, "text"),
        ({"type": "object"}, "object"),
        (
            {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a"]},
            "{a: string, b?: integer}",
        ),
        ({"type": "array", "items": {"type": "number"}}, "[number]"),
        ({"type": "array"}, "[any]"),
        ({"enum": ["x", 1, None]}, '"x" | 1 | null'),
        ({"enum": list(range(8))}, "0 | 1 | 2 | 3 | 4 | 5 | …"),
        ({"const": "x"}, '"x"'),
        ({"type": ["string", "null"]}, "string | null"),
        ({"anyOf": [{"type": "string"}, {"type": "string"}, {"type": "null"}]}, "string | null"),
        ({"$ref": "#/$defs/Item", "$defs": {"Item": {"type": "object", "properties": {}}}}, "object"),
        (
            {"type": "object", "properties": {"next": {"$ref": "#/$defs/Item"}}, "$defs": {"Item": {}}},
            "{next?: Item}",
        ),
        (
            {"type": "array", "items": {"type": "array", "items": {"type": "array", "items": {"type": "array"}}}},
            "[[[[…]]]]",
        ),
        (True, "any"),
    ],
)
async def test_a_schema_is_one_line(schema: dict[str, object] | None, line: str) -> None:
    assert shape(schema) == line
