"""What a server does before anything is called in it: as little as it can."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.wire import ERAS, Era, Wire
from tests.bench.workload import READ, READ_ARGUMENTS, WORKERS, write_project

LATER = (
    *("anthropic", "jinja2", "jsonschema", "sqlite3", "difflib"),
    *("llm_do_mcp.toolhost.client", "llm_do_mcp.toolhost.trials", "llm_do_mcp.project.render", "llm_do_mcp.te"),
)
"""What only a call needs."""

MARKING = """
from pathlib import Path

Path("imported").touch()


def mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)
"""


def _server(project: Path, *options: str) -> list[str]:
    return [sys.executable, *options, "-m", "llm_do_mcp.cli.serve", str(project)]


def _imported(trace: Path) -> set[str]:
    """The modules that `-X importtime` told of, and the packages they are in."""
    lines = [line for line in trace.read_text().splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


@pytest.mark.proves("START-UP-IMPORTS")
@pytest.mark.parametrize("era", ERAS)
def test_listing_tools_imports_nothing_that_only_a_call_needs(tmp_path: Path, era: Era) -> None:
    project = write_project(tmp_path)
    trace = tmp_path / "imports"
    with trace.open("wb") as errors, Wire(_server(project, "-X", "importtime"), era, errors) as wire:
        assert len(wire.tools()) > WORKERS
        listed = _imported(trace)
        assert {"mcp", "yaml", "llm_do_mcp.serving.server"} <= listed, "the trace is not one of imports"
        assert sorted(name for name in listed if name.startswith(LATER)) == []
        wire.call(READ, READ_ARGUMENTS)
        with pytest.raises(RuntimeError, match="path is missing"):
            wire.call(READ, {})  # what does not fit is put into words
    assert {"sqlite3", "jsonschema"} <= _imported(trace)


@pytest.mark.proves("START-UP-TOOL-HOST")
def test_listing_tools_does_not_run_the_projects_python(tmp_path: Path) -> None:
    project = write_project(tmp_path)
    (project / "tools.py").write_text(MARKING)
    (project / "model.yaml").write_text("workers:\n  group_0/w0: [{text: '{}'}]\n")
    manifest = project / "project.yaml"
    manifest.write_text(manifest.read_text().replace("anthropic:claude-haiku-4-5", "scripted:model.yaml"))
    with Wire(_server(project), "2025-11-25") as wire:
        assert "group_0_w0" in wire.tools()
        assert not (project / "imported").exists()
        wire.request("tools/call", {"name": "group_0_w0", "arguments": {"topic": "tea"}})
        assert (project / "imported").exists()


@pytest.mark.proves("START-UP-IMPORTS")
def test_the_collector_that_rests_during_the_start_runs_while_serving(tmp_path: Path) -> None:
    program = """
import gc, sys
from llm_do_mcp.cli import serve
from llm_do_mcp.serving.server import ProjectServer

ProjectServer.run = lambda self, transport: print(transport, gc.isenabled(), gc.get_freeze_count() > 0, file=sys.stderr)
serve.main([sys.argv[1]])
"""
    project = write_project(tmp_path)
    done = subprocess.run([sys.executable, "-c", program, project], capture_output=True, text=True, timeout=30)
    assert done.stderr.split() == ["stdio", "True", "True"]
