"""The examples as a whole: each passes `check` and its own tests, its README's commands run, and all keys are shown."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from llm_do_mcp.project.checked import Checked
from llm_do_mcp.project.manifest import Manifest, ToolEnvelope
from llm_do_mcp.project.settings import AttachmentPolicy, Delegation, Limits, PathSettings, Shell, ShellRule, Toolsets
from llm_do_mcp.project.strictyaml import Document, load
from llm_do_mcp.project.worker import WorkerFile, draft_worker
from llm_do_mcp.testing.suite import Asked, CaseKeys, Expected
from tests.cli.commands import llm_do
from tests.examples.scripts import REPOSITORY, copied
from tests.readme.document import blocks, commands

PROJECTS = (
    "calculator",
    "code_review",
    "greeter",
    "local_team",
    "notes",
    "pitchdeck_eval",
    "research",
    "whiteboard_planner",
)
WITH_MODEL = {"local_team"}
"""Those whose manifest names a model."""
LIBRARIES = {"research": ("--lib", "libs")}

SHOWN_ELSEWHERE: dict[type[Checked], dict[str, str]] = {
    WorkerFile: {
        "system": "an older name of instructions",
        "schema_object": "an older name of output_schema",
        "tools": "an older way to write toolsets.custom",
    },
    Delegation: {
        "allow_templates": "an older name of allow_workers",
        "lock_template": "an older name of lock_worker",
        "worker_call": "an older way to write what allow_workers says",
    },
    Shell: {"_approval_config": "an older way to write what rules and default say: approval_required"},
}
"""Keys that no example has, and why."""


def _libraries(root: Path) -> list[str]:
    option, *folders = LIBRARIES.get(root.name, ("",))
    return [word for folder in folders for word in (option, str(root / folder))]


# ---- each by itself


@pytest.mark.proves("EX-ALL")
def test_every_folder_of_projects_is_one_of_the_examples() -> None:
    assert sorted(path.name for path in (REPOSITORY / "projects").iterdir() if path.is_dir()) == list(PROJECTS)


@pytest.mark.proves("EX-CHECK")
@pytest.mark.parametrize("project", PROJECTS)
def test_an_example_has_nothing_odd_but_that_no_model_is_named_where_none_is(tmp_path: Path, project: str) -> None:
    root = copied(project, tmp_path / "projects")
    done = llm_do("check", root, "--import-tools", "--json", *_libraries(root))
    report = json.loads(done.stdout)
    assert (done.returncode, report["ok"]) == (0, True)
    odd = [finding["message"] for finding in report["findings"] if finding["severity"] != "note"]
    assert [message[:13] for message in odd] == ([] if project in WITH_MODEL else ["no model for "]), odd


@pytest.mark.proves("EX-TESTED")
@pytest.mark.parametrize("project", PROJECTS)
def test_an_example_passes_its_own_tests_without_a_model(tmp_path: Path, project: str) -> None:
    root = copied(project, tmp_path / "projects")
    done = llm_do("test", root, *_libraries(root))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("0 failed (no model was called)\n")


@pytest.mark.skipif(os.name == "nt", reason="the commands are those of a POSIX shell")
@pytest.mark.proves("EX-README")
@pytest.mark.parametrize("project", [project for project in PROJECTS if project != "pitchdeck_eval"])
def test_the_commands_of_an_examples_readme_run_as_they_stand(tmp_path: Path, project: str) -> None:
    readme = (copied(project, tmp_path / "projects") / "README.md").read_text(encoding="utf-8")
    found = [command for block in blocks(readme) if block.language == "console" for command in commands(block)]
    assert found
    program = f"{shlex.quote(sys.executable)} -m llm_do_mcp.cli.run"
    for command in found:
        line = re.sub(r"(?<!\S)llm-do(?= )", program, command.line)
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=tmp_path,
            env={name: value for name, value in os.environ.items() if not name.startswith(("LLM_DO_", "ANTHROPIC_"))},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
        assert done.returncode in ((3,) if "--approvals deny" in command.line else (0,)), f"{line}\n{done.stderr}"
        assert (command.shown or "") in done.stdout


@pytest.mark.proves("EX-README")
@pytest.mark.parametrize("project", PROJECTS)
def test_every_file_that_an_examples_readme_names_is_there(project: str) -> None:
    root = REPOSITORY / "projects" / project
    rows = re.findall(r"^\| (`.*?`) \|", (root / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert named and [name for name in named if not (root / name).exists()] == []


@pytest.mark.proves("EX-DRAWN")
def test_the_whiteboard_is_drawn_again_byte_for_byte(tmp_path: Path) -> None:
    root = copied("whiteboard_planner", tmp_path)
    board = root / "input" / "board.png"
    drawn = board.read_bytes()
    board.unlink()
    subprocess.run([sys.executable, root / "make_board.py"], check=True, timeout=30)
    assert board.read_bytes() == drawn


# ---- all together


def _documents() -> Iterator[tuple[str, str, Document]]:
    """Project, kind and data of each of the examples' files that has keys."""
    for project in PROJECTS:
        root = REPOSITORY / "projects" / project
        for path in sorted(root.rglob("*")):
            if path.suffix == ".worker" or (root / "workers" in path.parents and path.suffix == ".yaml"):
                yield project, "worker", draft_worker(path.read_text(encoding="utf-8"), path.name).document
            elif path.name == "project.yaml" or (path.parent == root / "tests" and path.suffix == ".yaml"):
                kind = "manifest" if path.name == "project.yaml" else "tests"
                yield project, kind, load(path.read_text(encoding="utf-8"), path=path.name)


def _shown() -> dict[type[Checked], dict[str, set[str]]]:
    """Of each kind of settings: key → the examples that have it. This is the list of which example shows what."""
    below: dict[str, tuple[tuple[type[Checked], str], ...]] = {
        "worker": ((WorkerFile, ""),),
        "manifest": ((Manifest, ""), (ToolEnvelope, "tool_envelope")),
        "tests": ((CaseKeys, "tests.*"), (Expected, "tests.*.expect"), (Asked, "tests.*.approvals.*")),
    }
    common: tuple[tuple[type[Checked], str], ...] = (
        (Toolsets, "toolsets"),
        (Delegation, "toolsets.delegation"),
        (Shell, "toolsets.shell"),
        (ShellRule, "toolsets.shell.rules.*"),
        (PathSettings, "sandbox.paths.*"),
        (AttachmentPolicy, "attachment_policy"),
        (Limits, "limits"),
    )
    found: dict[type[Checked], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for project, kind, document in _documents():
        for model, place in (*below[kind], *(common if kind != "tests" else ())):
            depth = len(place.split(".")) if place else 0
            for key in document.keys:
                parents = [*map(str, key[:-1])]
                fits = len(parents) == depth and all(
                    wanted in ("*", part)
                    for wanted, part in zip(place.split(".") if place else [], parents, strict=True)
                )
                if fits:
                    found[model][str(key[-1])].add(project)
    return found


@pytest.mark.proves("EX-FEATURES")
@pytest.mark.parametrize(
    "model",
    [
        WorkerFile,
        Manifest,
        Toolsets,
        Delegation,
        Shell,
        ShellRule,
        PathSettings,
        AttachmentPolicy,
        Limits,
        ToolEnvelope,
        CaseKeys,
        Expected,
        Asked,
    ],
    ids=lambda model: str(model.__name__),
)
def test_together_the_examples_show_every_key_that_there_is(model: type[Checked]) -> None:
    shown = _shown()[model]
    known = {field.alias or name for name, field in model.model_fields.items()}
    elsewhere = SHOWN_ELSEWHERE.get(model, {})
    assert known - set(shown) - set(elsewhere) == set(), "keys that no example has"
    assert set(elsewhere) & set(shown) == set(), "keys that an example has after all"
    assert set(shown) <= known


@pytest.mark.proves("EX-FEATURES")
@pytest.mark.parametrize(
    ("feature", "project", "file", "words"),
    [
        ("a function marked with @tool", "calculator", "tools.py", '@tool(risk="read")'),
        ("functions registered with an agent", "calculator", "workers/geometry/tools.py", "def register(agent"),
        ("functions named in __all__", "calculator", "functions/lengths.py", '__all__ = ["in_metres"]'),
        ("a worker that is YAML only", "calculator", "workers/units.yaml", "instructions: "),
        ("ToolContext", "calculator", "tools.py", "context: ToolContext"),
        ("a worker in a folder of its own", "calculator", "workers/geometry/worker.worker", "description"),
        ("template inheritance", "research", "workers/planner.worker", '{% extends "stage.jinja" %}'),
        ("a template of a library", "research", "templates/stage.jinja", '{% include "sources:honesty.jinja" %}'),
        ("a built-in template", "whiteboard_planner", "workers/planner.worker", "pkg:untrusted.jinja"),
        ("file()", "pitchdeck_eval", "main.worker", '{{ file("report.md") }}'),
        ("a class as a schema", "research", "workers/planner.worker", "schemas.py:Plan"),
        ("a schema in a file", "code_review", "main.worker", "schemas/findings.json"),
        ("a library that is locked", "research", "libs.lock", "sources"),
        ("a lock of approvals", "notes", "approvals.lock", "reports/weekly"),
        ("a chain of models", "whiteboard_planner", "workers/planner.worker", "model: [anthropic:"),
        ("search", "code_review", "main.worker", "te grep -n"),
        ("PDFs as attachments", "pitchdeck_eval", "workers/pitch_evaluator.worker", "[.pdf]"),
    ],
)
def test_what_is_no_key_is_shown_as_well(feature: str, project: str, file: str, words: str) -> None:
    assert words in (REPOSITORY / "projects" / project / file).read_text(encoding="utf-8"), feature
