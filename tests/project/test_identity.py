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


LIBRARY = {
    "project.yaml": "model: m:x\ndependencies: [utils]\nsandbox: {paths: {in: ro:./in, out: rw:./out}}\n"
    "grants: {utils: [in]}\n",
    "main.worker": worker(),
    "libs/utils/lib.yaml": "name: utils\n",
    "libs/utils/workers/one.worker": worker("", '{% include "rules.md" %}{% include "pkg:untrusted.jinja" %}'),
    "libs/utils/templates/rules.md": '{% include "deeper.md" %}',
    "libs/utils/templates/deeper.md": "deep",
    "libs/utils/templates/unrelated.md": "unrelated",
    "templates/deeper.md": "the project's own, which a library does not reach",
}
GRANTING = LIBRARY["project.yaml"]
LIBRARY_CHANGED = {
    "its instructions": {"libs/utils/workers/one.worker": worker("", "Other.")},
    "what it includes": {"libs/utils/templates/rules.md": "other"},
    "what that includes": {"libs/utils/templates/deeper.md": "deeper"},
    "what is granted": {"project.yaml": GRANTING.replace("[in]", "[in, out]")},
    "the folder that is granted": {"project.yaml": GRANTING.replace("./in", "./elsewhere")},
    "how it is granted": {"project.yaml": GRANTING.replace("ro:./in", "{root: ./in, suffixes: [.md]}")},
    "the network": {"project.yaml": GRANTING.replace("sandbox: {", "sandbox: {network_enabled: false, ")},
    "the project's approvals": {"project.yaml": f"{GRANTING}approvals: [{{function: files.read, decision: ask}}]\n"},
}
LIBRARY_UNCHANGED = {
    "a template of others": {"libs/utils/templates/unrelated.md": "changed"},
    "a folder that is not granted": {"project.yaml": GRANTING.replace("./out", "./elsewhere")},
}


async def library_identity(renderer: Renderer, folder: Path, files: dict[str, str]) -> str:
    """The hash of the library's worker `one`, in a project of these files."""
    write(folder, files)
    project = load_project(folder, libs=[str(folder / "libs")])
    one = project.worker("utils:one")
    return code_hash(one, (await renderer.render(project, one, "x")).included)


@pytest.mark.proves("WORKER-IDENTITY")
@pytest.mark.parametrize(
    ("files", "same"),
    [
        *((files, False) for files in LIBRARY_CHANGED.values()),
        *((files, True) for files in LIBRARY_UNCHANGED.values()),
    ],
    ids=[*LIBRARY_CHANGED, *LIBRARY_UNCHANGED],
)
async def test_that_of_a_librarys_worker_changes_with_what_it_is_and_what_it_is_granted(
    renderer: Renderer, tmp_path: Path, files: dict[str, str], same: bool
) -> None:
    before = await library_identity(renderer, tmp_path / "here", LIBRARY)
    after = await library_identity(renderer, tmp_path / "there", {**LIBRARY, **files})
    assert (before == after) is same


@pytest.mark.proves("WORKER-IDENTITY")
async def test_what_is_included_from_libraries_counts_also_where_its_name_is_computed(
    renderer: Renderer, tmp_path: Path
) -> None:
    files = {**LIBRARY, "main.worker": worker("", "{{ file(input) }}")}
    hashes = []
    for changed in (files, {**files, "libs/utils/templates/deeper.md": "shadowed by the project's"}):
        write(tmp_path, changed)
        project = load_project(tmp_path, libs=[str(tmp_path / "libs")])
        rendered = await renderer.render(project, project.worker("main"), "unrelated.md")
        assert {"templates/deeper.md", "utils:templates/deeper.md", "pkg:templates/untrusted.jinja"} < {
            *rendered.included
        }
        hashes.append(code_hash(project.worker("main"), rendered.included))
    assert hashes[0] != hashes[1], "`utils:deeper.md` is a name that the input could be"
