"""The hash that approvals are bound to: it changes with all that makes a worker what it is, and with nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from llm_do_mcp.project.identity import code_hash
from llm_do_mcp.project.load import load_project
from llm_do_mcp.project.render import Renderer
from tests.project.conftest import worker, write

pytestmark = pytest.mark.anyio

MANIFEST = """
name: small
model: scripted:model.py
toolsets: {filesystem: {}}
sandbox: {paths: {out: {root: ./out, mode: rw}}}
approvals: [{function: files.write, subject: "out/*.md", decision: allow}]
"""
KEYS = """
model: scripted:model.py
schema_in_ref: schemas/input.json
prompt: Go. {% include "prompt.md" %}
"""
BODY = """
{% include "rules.md" %}
{% if field == "rare" %}{{ file("rare.md") }}{% endif %}
{% include "optional.md" ignore missing %}
"""
COMPUTES = {"": BODY, "include": '{% include "styles/" ~ field %}', "file": "{% set f = file %}{{ f(field) }}"}
FILES = {
    "project.yaml": MANIFEST,
    "workers/one/worker.worker": worker(KEYS, BODY),
    "workers/other.worker": worker(),
    "schemas/input.json": '{"type": "object", "properties": {"field": {"type": "string"}}}',
    "templates/rules.md": '{% include "deeper.md" %}',
    "templates/deeper.md": "deep {# the end #}",
    "templates/prompt.md": "prompt",
    "templates/rare.md": "rare",
    "templates/styles/plain": "plain",
    "templates/unrelated.md": "unrelated",
}


async def identity(renderer: Renderer, folder: Path, files: dict[str, str], *, field: str = "usual") -> str:
    """The hash of the worker `one`, in a project of these files."""
    shutil.rmtree(folder, ignore_errors=True)
    write(folder, files)
    project = load_project(folder)
    one = project.worker("one")
    return code_hash(one, (await renderer.render(project, one, {"field": field})).included)


CHANGED = {
    "its instructions": {"workers/one/worker.worker": worker(KEYS, f"{BODY}More.")},
    "its keys": {"workers/one/worker.worker": worker(f"{KEYS}allow_workers: [other]\n", BODY)},
    "its schema": {"schemas/input.json": '{"type": "object"}'},
    "what it includes": {"templates/rules.md": "{# other #}"},
    "what that includes": {"templates/deeper.md": "deeper"},
    "what its prompt includes": {"templates/prompt.md": "other"},
    "what it includes for other inputs": {"templates/rare.md": "rarer"},
    "what it would include if it were there": {"templates/optional.md": "there"},
    "what is nearer": {"workers/one/templates/rules.md": '{% include "deeper.md" %}'},
    "the manifest's toolsets": {"project.yaml": MANIFEST.replace("filesystem: {}", "filesystem: {}, te: {}")},
    "the manifest's sandbox": {"project.yaml": MANIFEST.replace("rw", "ro")},
    "the manifest's folder": {"project.yaml": MANIFEST.replace("./out", "./elsewhere")},
    "the manifest's approvals": {"project.yaml": MANIFEST.replace("*.md", "*")},
}
UNCHANGED = {
    "nothing": {},
    "another worker": {"workers/other.worker": worker("", "Other.")},
    "a template of others": {"templates/unrelated.md": "changed"},
    "the model": {"project.yaml": MANIFEST.replace("model.py", "other.py")},
    "a comment": {"workers/one/worker.worker": worker(f"# a comment\n{KEYS}", BODY)},
    "the manifest's name": {"project.yaml": MANIFEST.replace("small", "large")},
}


@pytest.mark.proves("WORKER-IDENTITY")
@pytest.mark.parametrize(
    ("files", "same"),
    [*((files, False) for files in CHANGED.values()), *((files, True) for files in UNCHANGED.values())],
    ids=[*CHANGED, *UNCHANGED],
)
async def test_it_changes_with_what_takes_effect_and_with_nothing_else(
    renderer: Renderer, tmp_path: Path, files: dict[str, str], same: bool
) -> None:
    before = await identity(renderer, tmp_path / "here", FILES)
    after = await identity(renderer, tmp_path / "there", {**FILES, **files}, field="rare")
    assert (before == after) is same


@pytest.mark.proves("WORKER-IDENTITY")
@pytest.mark.parametrize("how", COMPUTES)
async def test_where_a_name_is_computed_all_that_it_could_be_count(
    renderer: Renderer, tmp_path: Path, how: str
) -> None:
    files = {**FILES, "workers/one/worker.worker": worker(KEYS, COMPUTES[how])}
    changed = {**files, "templates/unrelated.md": "changed"}
    field = "plain" if how == "include" else "styles/plain"
    hashes = {await identity(renderer, tmp_path, made, field=field) for made in (files, changed)}
    assert len(hashes) == (2 if how else 1)
