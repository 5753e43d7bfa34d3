"""What a project publishes: names, schemas, annotations, and what cannot be published."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from mcp import Client
from mcp.types import Tool

from llm_do_mcp.errors import ProjectError
from llm_do_mcp.project.load import load_project
from llm_do_mcp.serving.server import ProjectServer
from tests.serving.clients import FILES, served, serving, shop, worker

REPORT = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "pages": {"type": "integer", "minimum": 1}},
    "required": ["title"],
    "additionalProperties": False,
}
SEVERAL = {
    "workers/reports/summarizer.worker": worker({"description": "Sums up.", "output_schema": REPORT}),
    "workers/typed.worker": worker({"input_schema": REPORT, "params": {"tone": None, "copies": 1}}),
}


async def _tools(root: Path, mode: str) -> dict[str, Tool]:
    async with serving(root, mode) as client:
        return {tool.name: tool for tool in (await client.list_tools()).tools}


def _published(root: Path) -> set[str]:
    return set(ProjectServer(load_project(root)).tools)


@pytest.mark.proves("SURFACE-NAMES")
@pytest.mark.anyio
async def test_workers_folders_search_and_runs_are_tools(tmp_path: Path, mode: str) -> None:
    root = shop(tmp_path, files=SEVERAL, name="Müller's Shop", exports=["main", "reports/summarizer", "typed"])
    assert set(await _tools(root, mode)) == {
        "muller_s_shop",
        "reports_summarizer",
        "typed",
        "files_in_list",
        "files_in_read_text",
        "files_out_list",
        "files_out_read_text",
        "files_out_write_text",
        "te",
        "run_wait",
        "run_cancel",
    }


@pytest.mark.proves("SURFACE-NAMES")
def test_names_are_short_plain_and_their_own(tmp_path: Path) -> None:
    long = "a-folder-with-a-name-that-is-longer-than-any-host-takes"
    paths = {alias: {"root": f"./{alias}", "mode": "rw"} for alias in (f"{long}-1", f"{long}-2", "Ünder Score")}
    files = {f"workers/{long}/{name}.worker": worker() for name in ("one", "two")}
    root = shop(tmp_path, files=files, sandbox={"paths": paths}, exports=["main", f"{long}/*"], name=long * 2)
    names = _published(root)
    assert len(names) == 1 + 2 + 3 * 3 + 3
    assert all(re.fullmatch(r"[a-z0-9_]{1,40}", name) for name in names)
    assert {"files_under_score_list", "files_under_score_write_text"} <= names


@pytest.mark.proves("SURFACE-EXPORTS")
def test_what_is_not_exported_is_not_published(tmp_path: Path) -> None:
    exported = {"main": {"shop"}, "typed": {"typed"}, "reports/*": {"reports_summarizer"}, "t*": {"typed"}}
    for export, workers in exported.items():
        names = _published(shop(tmp_path, files=SEVERAL, exports=[export]))
        assert names & {"shop", "typed", "reports_summarizer"} == workers


@pytest.mark.proves("SURFACE-EXPORTS")
def test_publish_narrows_the_folders_and_the_search(tmp_path: Path) -> None:
    assert not any("out" in name for name in _published(shop(tmp_path, publish={"files": ["in"]})))
    assert not any(name.startswith("files") for name in _published(shop(tmp_path, publish={"files": []})))
    files, manifest, _ = COLLISIONS["two folders of one alias"]
    assert "files_in_list" not in _published(shop(tmp_path, files=files, publish={"files": ["out"]}, **manifest))
    assert "te" not in _published(shop(tmp_path, publish={"te": False}))
    alone = _published(shop(tmp_path, exports=[]))
    assert "shop" not in alone and {"files_out_write_text", "run_wait"} <= alone, "a write may wait for a person too"
    only_results = {"paths": {"out": {"root": "./out", "mode": "out"}}}
    assert "te" not in _published(shop(tmp_path, sandbox=only_results)), "there is nothing to search"


COLLISIONS: dict[str, tuple[dict[str, str], dict[str, Any], tuple[str, ...]]] = {
    "two workers": (
        {"workers/a/b.worker": worker(), "workers/a_b.worker": worker()},
        {"exports": ["a/b", "a_b"]},
        ("a_b", "a/b"),
    ),
    "a worker and the project": ({"workers/shop.worker": worker()}, {"exports": ["main", "shop"]}, ("main", "shop")),
    "a worker and the search": ({"workers/te.worker": worker()}, {"exports": ["te"]}, ("te",)),
    "a worker and run_wait": ({"workers/run_wait.worker": worker()}, {"exports": ["run_wait"]}, ("run_wait",)),
    "a worker and a folder": (
        {"workers/files/in/list.worker": worker()},
        {"exports": ["files/in/list"]},
        ("files/in/list", "files.list in"),
    ),
    "two folders of one alias": (
        {"workers/x.worker": worker({"sandbox": {"paths": {"in": {"root": "./elsewhere"}}}})},
        {"exports": ["main", "x"]},
        ("'in'", "two folders", "./in", "./elsewhere"),
    ),
    "a folder that there is not": ({}, {"publish": {"files": ["inn"]}}, ("'inn'", "in, out")),
}


@pytest.mark.proves("SURFACE-COLLISIONS", "A062")
@pytest.mark.parametrize(("files", "manifest", "named"), COLLISIONS.values(), ids=COLLISIONS)
def test_what_would_have_one_name_stops_the_start(
    tmp_path: Path, files: dict[str, str], manifest: dict[str, Any], named: tuple[str, ...]
) -> None:
    root = shop(tmp_path, files=files, **manifest)
    with pytest.raises(ProjectError) as refused:
        ProjectServer(load_project(root))
    assert all(name in str(refused.value) for name in named), refused.value
    assert "\n" not in str(refused.value)


@pytest.mark.proves("SURFACE-SCHEMAS")
@pytest.mark.anyio
async def test_every_schema_is_an_object_of_the_current_draft(tmp_path: Path, mode: str) -> None:
    root = shop(tmp_path, files=SEVERAL, exports=["main", "reports/summarizer", "typed"])
    for name, tool in (await _tools(root, mode)).items():
        assert tool.description, name
        for schema in filter(None, (tool.input_schema, tool.output_schema)):
            Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object", name
        assert tool.input_schema["additionalProperties"] is False, name


@pytest.mark.proves("SURFACE-SCHEMAS")
@pytest.mark.anyio
async def test_a_worker_takes_its_input_its_parameters_and_what_may_come_along(tmp_path: Path, mode: str) -> None:
    none = worker({"attachment_policy": {"max_attachments": 0}})
    root = shop(tmp_path, files={**SEVERAL, "workers/none.worker": none}, exports=["main", "typed", "none"])
    tools = await _tools(root, mode)
    plain, typed = tools["shop"].input_schema, tools["typed"].input_schema
    assert plain["properties"]["input"] == {"type": "string"} and plain["required"] == ["input"]
    assert set(plain["properties"]) == {"input", "attachments", "extra_context"}
    assert set(typed["properties"]) == {"title", "pages", "tone", "copies", "attachments", "extra_context"}
    assert sorted(typed["required"]) == ["title", "tone"]
    assert typed["properties"]["copies"] == {"type": "integer", "default": 1}
    assert "attachments" not in tools["none"].input_schema["properties"]
    assert tools["te"].input_schema["required"] == ["command"]
    assert tools["run_wait"].input_schema["required"] == tools["run_cancel"].input_schema["required"] == ["run_id"]


@pytest.mark.proves("SURFACE-SCHEMAS")
@pytest.mark.anyio
async def test_what_may_come_along_comes_only_with_the_whole(tmp_path: Path, mode: str) -> None:
    tree = {"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": False}
    root = shop(tmp_path, files={"workers/tree.worker": worker({"input_schema": tree})}, exports=["tree"])
    validator = Draft202012Validator((await _tools(root, mode))["tree"].input_schema)
    assert validator.is_valid({"next": {"next": {}}, "extra_context": "x"})
    assert not validator.is_valid({"next": {"extra_context": "x"}})


@pytest.mark.proves("SURFACE-STRUCTURED")
@pytest.mark.anyio
async def test_only_what_has_a_schema_promises_structured_output(tmp_path: Path, mode: str) -> None:
    root = shop(tmp_path, files=SEVERAL, exports=["main", "reports/summarizer"])
    tools = await _tools(root, mode)
    assert tools["reports_summarizer"].output_schema == REPORT
    assert {name for name, tool in tools.items() if tool.output_schema is not None} == {
        "reports_summarizer",
        "files_in_list",
        "files_out_list",
        "files_out_write_text",
    }


READER = worker({"toolsets": FILES, "sandbox": {"paths": {"out": {"root": "./out", "mode": "ro"}}}})
CHANGING: dict[str, tuple[dict[str, str], bool]] = {
    "nothing": ({"main.worker": worker()}, True),
    "reads": ({"main.worker": READER}, True),
    "writes": ({"main.worker": worker({"toolsets": FILES})}, False),
    "has its writes refused": (
        {"main.worker": worker({"toolsets": FILES, "approvals": [{"function": "files.write", "decision": "deny"}]})},
        True,
    ),
    "calls one that writes": (
        {
            "main.worker": worker({"allow_workers": ["a"]}),
            "workers/a.worker": worker({"allow_workers": ["b"]}),
            "workers/b.worker": worker({"allow_workers": ["a"], "toolsets": FILES}),
        },
        False,
    ),
    "calls Python": (
        {"main.worker": worker({"toolsets": {"custom": ["f"]}}), "tools.py": "def f() -> str:\n    return ''\n"},
        False,
    ),
}


@pytest.mark.proves("SURFACE-ANNOTATIONS")
@pytest.mark.anyio
@pytest.mark.parametrize(("files", "read_only"), CHANGING.values(), ids=CHANGING)
async def test_a_worker_is_read_only_where_policy_lets_it_change_nothing(
    tmp_path: Path, mode: str, files: dict[str, str], read_only: bool
) -> None:
    tools = await _tools(shop(tmp_path, files=files), mode)
    annotations = tools["shop"].annotations
    assert annotations is not None
    assert annotations.read_only_hint is read_only
    assert annotations.destructive_hint is not read_only
    assert annotations.open_world_hint is True and annotations.idempotent_hint is False


@pytest.mark.proves("SURFACE-ANNOTATIONS")
@pytest.mark.anyio
async def test_file_operations_say_what_they_do(tmp_path: Path, mode: str) -> None:
    tools = await _tools(shop(tmp_path), mode)
    hints = {name: tool.annotations for name, tool in tools.items()}
    read_only = {name for name, hint in hints.items() if hint is not None and hint.read_only_hint}
    assert read_only == {
        "files_in_list",
        "files_in_read_text",
        "files_out_list",
        "files_out_read_text",
        "te",
        "run_wait",
    }
    assert all(hint is not None and hint.open_world_hint is (name == "shop") for name, hint in hints.items())


@pytest.mark.proves("SURFACE-BROKEN")
@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_broken_worker_is_named_and_the_others_are_served(tmp_path: Path, mode: str) -> None:
    broken = {
        "workers/broken.worker": "---\nmodle: x\n---\nHi.\n",
        "workers/typed.worker": SEVERAL["workers/typed.worker"],
    }
    root = shop(tmp_path, files=broken, exports=["main", "broken", "typed"], description="A shop.")
    async with served(root) as server, Client(server, mode=mode) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        instructions = client.instructions
    assert {"shop", "typed"} <= names and "broken" not in names
    assert instructions is not None and instructions.startswith("A shop.\n")
    assert "workers/broken.worker:2:1" in instructions and "modle" in instructions


@pytest.mark.proves("SURFACE-NAMES")
def test_the_folders_of_exported_workers_are_published_too(tmp_path: Path) -> None:
    own = {"workers/own.worker": worker({"sandbox": {"paths": {"own": "ro:./own"}}})}
    assert "files_own_list" in _published(shop(tmp_path, files=own, exports=["own"]))
    assert "files_own_list" not in _published(shop(tmp_path, files=own, exports=["main"]))
