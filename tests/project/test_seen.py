"""Whether a project would be loaded as something else by now: told from a look at the places that loading looked at."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from llm_do_mcp.project import seen
from llm_do_mcp.project.load import Project, load_project
from tests.project.conftest import worker, write

FILES = {
    "project.yaml": "name: p\nmodel: m:1\n",
    "main.worker": worker("output_schema_ref: schemas/s.json"),
    "workers/a.worker": worker("description: aaa"),
    "workers/b/worker.worker": worker(),
    "workers/b/tools.py": "x = 1\n",
    "workers/p.yaml": "description: has a prompt",
    "prompts/p.md": "Prompt.",
    "templates/t.jinja": "text",
    "schemas/s.json": '{"type": "object", "properties": {"a": {"$ref": "part.json"}}}',
    "schemas/part.json": '{"type": "string"}',
    "toolsets/t.py": "",
    "data/x.txt": "x",
}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The files, long since written, as far as their time stamps say."""
    write(tmp_path, FILES)
    _age(tmp_path)
    return tmp_path


def _age(root: Path) -> None:
    """Make sure that no time stamp is of just now: changes of one tick could not be told apart, and count as such."""
    newest = max(os.stat(path).st_ctime_ns for path in (root, *root.rglob("*")))
    while time.time_ns() - newest <= 2 * seen._TICK_NS:
        pass


def _loaded(root: Path) -> Project:
    project = load_project(root)
    assert project.broken == () and not project.changed()
    return project


def _in_place(path: Path, before: bytes, after: bytes) -> None:
    """Edit a file so that its size and its own time stamp stay what they were."""
    found = path.stat()
    with path.open("r+b") as file:
        content = file.read()
        assert before in content and len(before) == len(after)
        file.seek(0)
        file.write(content.replace(before, after))
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def _move(path: Path, to: str) -> None:
    path.rename(path.parent / to)


CHANGES: dict[str, Callable[[Path], object]] = {
    "a worker in place": lambda root: _in_place(root / "workers/a.worker", b"aaa", b"bbb"),
    "a worker renamed": lambda root: _move(root / "workers/a.worker", "c.worker"),
    "a worker removed": lambda root: (root / "workers/a.worker").unlink(),
    "a new worker": lambda root: write(root, {"workers/new.worker": worker()}),
    "a new worker below": lambda root: write(root, {"workers/deep/er/new.worker": worker()}),
    "a second file for a worker": lambda root: write(root, {"workers/b.yml": "instructions: x"}),
    "the manifest": lambda root: _in_place(root / "project.yaml", b"m:1", b"m:2"),
    "the manifest removed": lambda root: (root / "project.yaml").unlink(),
    "the manifest's other name": lambda root: write(root, {"llm-do.yaml": ""}),
    "a schema": lambda root: _in_place(root / "schemas/s.json", b'"a"', b'"b"'),
    "a schema that another takes in": lambda root: _in_place(root / "schemas/part.json", b"string", b"number"),
    "a schema that comes before": lambda root: write(root, {"workers/schemas/s.json": "{}", "workers/x": ""}),
    "a prompt": lambda root: _in_place(root / "prompts/p.md", b"Prompt", b"Pardon"),
    "a second prompt": lambda root: write(root, {"prompts/p.txt": "x"}),
    "the project's first tools": lambda root: write(root, {"tools.py": ""}),
    "a worker's tools removed": lambda root: (root / "workers/b/tools.py").unlink(),
    "a new toolset": lambda root: write(root, {"toolsets/u.py": ""}),
    "the first list of what is ignored": lambda root: write(root, {".llm-doignore": "x"}),
    "the main worker removed": lambda root: (root / "main.worker").unlink(),
}


@pytest.mark.proves("EDIT-SEEN")
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_what_would_be_loaded_is_seen(old: Path, change: str) -> None:
    project = _loaded(old)
    CHANGES[change](old)
    assert project.changed()


@pytest.mark.proves("EDIT-SEEN")
@pytest.mark.parametrize(
    "files",
    [
        {"data/y.txt": "y"},
        {"output/r.md": "r"},
        {".llm-do/runs": "x"},
        {"templates/t.jinja": "tex2"},
        {"notes.md": "n"},
    ],
)
def test_a_change_of_anything_else_is_not(old: Path, files: dict[str, str]) -> None:
    project = _loaded(old)
    write(old, files)
    assert not project.changed()


@pytest.mark.proves("EDIT-SEEN")
def test_two_changes_of_one_moment_are_not_mistaken_for_one(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    project = load_project(tmp_path)
    project.worker("a")
    _in_place(tmp_path / "workers/a.worker", b"aaa", b"bbb")
    assert project.changed()
    assert project.again().worker("a").description == "bbb"


@pytest.mark.proves("EDIT-SEEN")
def test_a_look_at_25_workers_takes_less_than_a_millisecond(tmp_path: Path) -> None:
    write(tmp_path, {f"workers/w{number}.worker": worker(f"description: w{number}") for number in range(25)})
    _age(tmp_path)
    project = _loaded(tmp_path)
    took = []
    for _ in range(50):
        began = time.perf_counter()
        assert not project.changed()
        took.append(time.perf_counter() - began)
    assert min(took) < 0.001


@pytest.mark.proves("EDIT-SEEN")
def test_it_is_loaded_again_as_it_was_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"p/project.yaml": "model: m:1", "p/workers/x.worker": worker()})
    monkeypatch.chdir(tmp_path)
    project = load_project("p/workers/x.worker", no_project=True, default_model="d:1")
    monkeypatch.chdir("/")
    again = project.again()
    assert (again.root, again.entry, again.worker("x").model) == (project.root, "x", ("d:1",))
