"""Classes as schemas: which may be named, what is published of them, and when Python is started for it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from llm_do_mcp.errors import ProjectError
from llm_do_mcp.project.classes import CACHE_FILE
from llm_do_mcp.project.hosting import NO_IMPORT_TOOLS, PythonOptions
from llm_do_mcp.project.load import Project, load_project
from tests.project.conftest import Make, worker, write

SCHEMAS = """
from __future__ import annotations
from pydantic import BaseModel, Field
from helper import MOST

class Deck(BaseModel):
    name: str
    pages: int = Field(default=1, le=MOST)

class Tree(BaseModel):
    below: list[Tree] = []

class Backtracking(BaseModel):
    name: str = Field(json_schema_extra={"pattern": "(a)(?=b)"})

class Lenient(BaseModel):
    note: str = None
    pages: int = "x"

class Plain: ...
"""
FILES = {"schemas.py": SCHEMAS, "helper.py": "MOST = 600\n"}


def referring(reference: str) -> dict[str, str]:
    return {**FILES, "main.worker": worker(f"schema_in_ref: {reference}")}


class Kept:
    """A project with a state folder, whose interpreter notes each of its starts."""

    def __init__(self, root: Path, files: dict[str, str]) -> None:
        self.root, self.state = root / "project", root / "state"
        self.starts = root / "starts"
        write(root, {"python": f'#!/bin/sh\necho started >> "{self.starts}"\nexec "{sys.executable}" "$@"\n'})
        (root / "python").chmod(0o755)
        write(self.root, {"project.yaml": f"tools: {{python: {root}/python}}", **files})

    def load(self, *, imported: bool = True) -> Project:
        return load_project(
            self.root, python=PythonOptions(imported=imported, state_folder=lambda root: str(self.state))
        )

    def most(self, **options: Any) -> int:
        schema = self.load(**options).worker("main").input_schema
        assert schema is not None
        most: int = schema["properties"]["pages"]["maximum"]
        return most

    @property
    def started(self) -> int:
        return len(self.starts.read_text().splitlines()) if self.starts.exists() else 0


@pytest.mark.proves("PROJECT-CLASS-SCHEMAS", "A067")
def test_a_class_in_a_file_is_a_schema(make: Make) -> None:
    files = {
        **FILES,
        "workers/a/worker.worker": worker("schema_in_ref: forms.py:Near\noutput_schema_ref: schemas.py:Tree"),
        "workers/a/forms.py": "from ...schemas import Deck\n\nclass Near(Deck):\n    tone: str\n",
        "workers/b.worker": worker("schema_in_ref: schemas.py:Deck"),
    }
    project = make(files)
    near, deck, tree = (
        project.worker("a").input_schema,
        project.worker("b").input_schema,
        project.worker("a").output_schema,
    )
    assert near is not None and deck is not None and tree is not None
    assert list(near["properties"]) == ["name", "pages", "tone"]
    assert near["required"] == ["name", "tone"]
    assert deck["properties"]["pages"] == {"default": 1, "maximum": 600, "title": "Pages", "type": "integer"}
    assert tree["type"] == "object" and tree["properties"]["below"]["items"] == {"$ref": "#/$defs/Tree"}


@pytest.mark.proves("PROJECT-CLASS-SCHEMAS")
def test_a_default_that_does_not_fit_is_left_out_of_a_class_and_a_mistake_in_a_file(make: Make) -> None:
    written = worker("input_schema: {properties: {note: {type: string, default: null}}}")
    project = make({**referring("schemas.py:Lenient"), "workers/a.worker": written})
    lenient = project.worker("main").input_schema
    assert lenient is not None and lenient["properties"]["note"] == {"title": "Note", "type": "string"}
    assert "default" not in lenient["properties"]["pages"]
    with pytest.raises(ProjectError, match="default: 'None' is not of type string"):
        project.worker("a")


@pytest.mark.proves("PROJECT-CLASS-SCHEMAS", "A067", "A068")
@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("schemas.py:None_", "schemas.py: there is no class 'None_'; there are: Deck, Tree, Backtracking, Lenient"),
        ("schemas.py:Plain", "the class 'Plain' cannot be a schema: it is no pydantic model, dataclass or TypedDict"),
        ("schemas.py:Backtracking", "the class 'Backtracking' cannot be a schema: pattern: '(a)(?=b)' is no regular"),
        ("none.py:Deck", "no schema file 'none.py' (looked for none.py)"),
        ("data/x.py:Deck", "data/x.py: schemas are not loaded from here, where a worker may write"),
        ("broken.py:Deck", "no schema 'Deck': broken.py:2: ZeroDivisionError: division by zero"),
        ("../x.py:Deck", "has '..'"),
        ("schemas.py", "modules such as that of 'schemas.py' are not allowed; allow them with `tools:"),
        ("schemas.Deck", "modules such as that of 'schemas.Deck' are not allowed; allow them with `tools:"),
        ("schemas", "'schemas' names no schema; write schemas/report.json, schemas.py:Report, or my_project"),
        ("a b.Deck", "'a b.Deck' names no schema"),
    ],
)
def test_a_class_that_cannot_be_a_schema_says_why(make: Make, reference: str, says: str) -> None:
    project = make({**referring(reference), "broken.py": "x = 1\n1 / 0\n", "data/x.py": SCHEMAS})
    with pytest.raises(ProjectError) as caught:
        project.worker("main")
    assert str(caught.value).startswith(("main.worker:2:16: ", "data/x.py")) and says in str(caught.value)


@pytest.mark.proves("PROJECT-MODULE-IMPORTS", "PROJECT-CLASS-SCHEMAS")
@pytest.mark.parametrize("by_manifest", [True, False])
def test_where_it_is_allowed_a_class_is_named_as_python_names_it(tmp_path: Path, by_manifest: bool) -> None:
    manifest = f"tools: {{allow_module_imports: {str(by_manifest).lower()}}}"
    files = {
        **referring("my_project.schemas.Deck"),
        "my_project/schemas.py": SCHEMAS,
        "project.yaml": f"{manifest}\nsandbox: {{paths: {{all: 'rw:.'}}}}\n",
    }
    write(tmp_path, files)
    main = load_project(tmp_path, python=PythonOptions(module_imports=not by_manifest)).worker("main")
    assert main.input_schema is not None and "pages" in main.input_schema["properties"]
    (root,) = main.roots
    assert "**/*.py" in root.protected, "what may be imported, no worker writes"


@pytest.mark.proves("PROJECT-CLASS-CACHE")
def test_a_schema_is_fetched_once_and_again_when_a_file_changes_that_the_import_loaded(tmp_path: Path) -> None:
    kept = Kept(tmp_path, referring("schemas.py:Deck"))
    assert kept.most() == 600 and kept.started == 1
    assert not kept.state.exists(), "loading makes no state folder"
    kept.state.mkdir()
    assert kept.most() == 600 and kept.started == 2
    assert kept.most() == 600 and kept.started == 2
    write(kept.root, {"unrelated.py": "N = 1\n"})
    assert kept.most() == 600 and kept.started == 2
    write(kept.root, {"helper.py": "MOST = 700\n"})
    assert kept.most() == 700 and kept.started == 3
    assert kept.most() == 700 and kept.started == 3
    assert [path.name for path in kept.state.iterdir()] == [CACHE_FILE]


@pytest.mark.proves("PROJECT-CLASS-CACHE")
@pytest.mark.parametrize(
    "damage",
    ["", "{", "[]", '{"for": ["0", "x"], "modules": {}}', '{"modules": 3}'],
)
def test_a_cache_that_cannot_be_read_is_as_good_as_none(tmp_path: Path, damage: str) -> None:
    kept = Kept(tmp_path, referring("schemas.py:Deck"))
    kept.state.mkdir()
    (kept.state / CACHE_FILE).write_text(damage)
    assert kept.most() == 600 and kept.started == 1
    assert kept.most() == 600 and kept.started == 1
    for starts, entry in enumerate((3, {"path": "schemas.py"}, {"path": "schemas.py", "colour": "red"}), start=2):
        entries = json.loads((kept.state / CACHE_FILE).read_text())
        entries["modules"]["schemas.py"] = entry
        (kept.state / CACHE_FILE).write_text(json.dumps(entries))
        assert kept.most() == 600 and kept.started == starts


@pytest.mark.proves("PROJECT-NO-PYTHON", "PROJECT-CLASS-CACHE")
def test_without_python_a_class_is_known_only_from_before(tmp_path: Path) -> None:
    kept = Kept(tmp_path, referring("schemas.py:Deck"))
    with pytest.raises(ProjectError) as caught:
        kept.load(imported=False).worker("main")
    assert str(caught.value) == f"main.worker:2:16: no schema 'Deck': schemas.py: {NO_IMPORT_TOOLS}"
    assert kept.started == 0
    kept.state.mkdir()
    kept.most()
    assert kept.most(imported=False) == 600 and kept.started == 1


@pytest.mark.proves("PROJECT-CLASS-SCHEMAS")
def test_all_classes_of_a_file_take_one_import(tmp_path: Path) -> None:
    files = {f"workers/{n}.worker": worker(f"schema_in_ref: schemas.py:{n}") for n in ("Deck", "Tree")}
    kept = Kept(tmp_path, {**referring("schemas.py:Deck"), **files})
    project = kept.load()
    assert [project.worker(name).input_schema is not None for name in ("main", "Deck", "Tree")] == [True] * 3
    assert kept.started == 1
    assert project.broken == ()
