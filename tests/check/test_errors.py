"""`check` tells all errors at once, each with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.check.looking import MAIN, MODEL, look, said
from tests.project.conftest import worker

pytestmark = pytest.mark.anyio


@pytest.mark.proves("CHECK-ALL-AT-ONCE")
async def test_errors_of_the_manifest_do_not_hide_those_of_workers(tmp_path: Path) -> None:
    manifest = """\
        entry: nobody
        exports: [main, gone, 'reports/*']
        sandbox:
          paths:
            up: ro:../up
            file: ro:./main.worker
        tools:
          modules: [missing.py]
        """
    files = {
        "project.yaml": manifest,
        "main.worker": MAIN,
        "workers/a.worker": worker("modle: x\nlimits: {max_turns: 0}"),
        "workers/b.worker": worker("name: c"),
        "workers/c d.worker": worker(),
    }
    report = await look(tmp_path, files)
    assert [message.partition(": ")[0] for message in said(report, "error")] == [
        "project.yaml:1:8",
        "project.yaml:2:17",
        "project.yaml:2:23",
        "project.yaml:5:9",
        "project.yaml:6:11",
        "project.yaml:8:13",
        "workers/a.worker:2:1",
        "workers/a.worker:3:21",
        "workers/b.worker:2:7",
        "workers/c d.worker",
    ]
    assert not report.ok and report.verdict.startswith("10 errors")
    assert {described.worker.id for described in report.workers} == {"main"}


@pytest.mark.proves("CHECK-ALL-AT-ONCE")
@pytest.mark.parametrize(
    ("manifest", "first"),
    [
        ("nmae: x\nmodel: 1\n", ["project.yaml:1:1: unknown key 'nmae'", "project.yaml:2:8: model: must be"]),
        ("name: [", ["project.yaml:2:1: did not find"]),
        ("dependencies: [utils]", ["project.yaml:1:15: no library 'utils'"]),
    ],
)
async def test_where_nothing_can_be_loaded_each_worker_is_still_read(
    tmp_path: Path, manifest: str, first: list[str]
) -> None:
    files = {
        "project.yaml": manifest,
        "main.worker": worker("allow_workers: ['utils:clean']"),
        "workers/a.worker": worker("modle: x"),
        "workers/b.worker": "no front matter",
    }
    report = await look(tmp_path, files, {"other": {}})
    expected = [*first, "workers/a.worker:2:1: unknown key 'modle'", "workers/b.worker:1:1: a worker's file starts"]
    errors = said(report, "error")
    assert len(errors) == len(expected)
    assert all(error.startswith(words) for error, words in zip(errors, expected, strict=True)), errors
    assert report.project is None and not report.ok


@pytest.mark.proves("CHECK-ALL-AT-ONCE")
async def test_what_is_no_project_is_an_error_like_any_other(tmp_path: Path) -> None:
    report = await look(tmp_path, {"notes.md": ""})
    (error,) = said(report, "error")
    assert error.startswith("no project in ") and report.verdict == "1 error"
    report = await look(tmp_path, {"project.yaml": "", "llm-do.yaml": ""})
    assert said(report, "error") == [
        "llm-do.yaml: project.yaml and llm-do.yaml are two names of one file, the manifest; keep one"
    ]


@pytest.mark.proves("CHECK-ALL-AT-ONCE")
async def test_an_error_that_workers_share_is_told_once(tmp_path: Path) -> None:
    reference = worker("output_schema_ref: schemas/x.json")
    files = {"workers/a.worker": reference, "workers/b.worker": reference, "schemas/x.json": '{"type": "strin"}'}
    (error,) = said(await look(tmp_path, files, default_model=MODEL), "error")
    assert error.startswith("schemas/x.json: ")


@pytest.mark.proves("CHECK-ALL-AT-ONCE")
async def test_what_stops_the_start_of_a_server_is_an_error(tmp_path: Path) -> None:
    files = {"workers/te.worker": worker("sandbox: {paths: {in: 'ro:./in'}}"), "in/x.md": ""}
    (error,) = said(await look(tmp_path, files, default_model=MODEL), "error")
    assert "two tools would be called 'te'" in error


@pytest.mark.proves("CHECK-ALL-AT-ONCE")
async def test_settings_of_a_toolset_that_cannot_be_used_are_errors(tmp_path: Path) -> None:
    shell = "toolsets: {shell: {rules: [{pattern: ls, sandbox_paths: [nowhere]}]}}"
    (error,) = said(await look(tmp_path, {"main.worker": worker(shell)}, default_model=MODEL), "error")
    assert error.startswith("main.worker: toolsets.shell, rule 1: sandbox_paths")


@pytest.mark.proves("CHECK-TEMPLATES")
async def test_templates_are_looked_at_without_being_rendered(tmp_path: Path) -> None:
    files = {
        "main.worker": worker(f"model: {MODEL}\nprompt: '{{{{ input | uper }}}}'", "One\n{% if x %}"),
        "workers/a.worker": worker("", "{% include 'part.jinja' %}\n{{ file('gone.md') }}\n{{ 1 / 0 }}"),
        "workers/b.worker": worker("", "{% include 'no' ignore missing %}{% include input %}{{ file(input) }}"),
        "workers/c.worker": worker("", "{% include '../x' %}"),
        "templates/part.jinja": "fine\n{% include 'deeper.jinja' %}",
        "templates/deeper.jinja": "{{ broken",
        "project.yaml": "exports: ['*']\n",
    }
    errors = said(await look(tmp_path, files, default_model=MODEL), "error")
    assert [error.partition(": ")[0] for error in errors] == [
        "main.worker:3",
        "main.worker:6",
        "templates/deeper.jinja:1",
        "workers/a.worker:5",
        "workers/c.worker:4",
    ]
    assert "'uper'" in errors[0] and "there is no 'gone.md' in templates/" in errors[3]
    assert "'../x' is not inside the template folders" in errors[4]


@pytest.mark.proves("CHECK-TEMPLATES")
async def test_a_template_that_includes_itself_ends(tmp_path: Path) -> None:
    files = {"main.worker": worker("", "{% include 'x' %}"), "templates/x": "{% include 'x' %}"}
    assert (await look(tmp_path, files, default_model=MODEL)).findings == ()


@pytest.mark.proves("CHECK-MODEL")
async def test_a_model_that_can_never_be_had_is_an_error(tmp_path: Path) -> None:
    files = {
        "project.yaml": "model: [openai:x, 'scripted:script.yaml']\nexports: ['*']\n",
        "main.worker": worker(),
        "workers/a.worker": worker("model: scripted:gone.yaml"),
        "workers/b.worker": worker(),
        "script.yaml": "workers: {}",
    }
    errors = said(await look(tmp_path, files), "error")
    assert [error.partition(": ")[0] for error in errors] == ["project.yaml:1:8", "workers/a.worker:2:8"]
    assert "model 'openai:x' cannot be opened; allowed: anthropic:<model>" in errors[0]
    assert errors[1].endswith("there is no script gone.yaml")


@pytest.mark.proves("CHECK-LIBRARIES")
async def test_a_broken_worker_of_a_library_counts_where_it_can_be_reached(tmp_path: Path) -> None:
    files = {
        "project.yaml": f"model: {MODEL}\ndependencies: [utils]\n",
        "main.worker": worker("allow_workers: ['utils:a']"),
    }
    library = {
        "workers/a.worker": worker("allow_workers: [b]"),
        "workers/b.worker": worker("modle: x"),
        "workers/unused.worker": worker("modle: x"),
    }
    report = await look(tmp_path, files, {"utils": library})
    (error,) = said(report, "error")
    assert error.startswith("utils:workers/b.worker:2:1: unknown key 'modle'")
    assert [described.worker.id for described in report.workers] == ["main", "utils:a"]


@pytest.mark.proves("CHECK-LIBRARIES")
async def test_a_library_is_checked_by_its_own_manifest(tmp_path: Path) -> None:
    files = {
        "lib.yaml": "name: mine\nexports: [a, gone]\ndependencies: [utils]\n",
        "workers/a.worker": worker("allow_workers: ['utils:b']"),
    }
    report = await look(tmp_path, files, {"utils": {"workers/b.worker": worker()}}, default_model=MODEL)
    (error,) = said(report, "error")
    assert error.startswith("lib.yaml:2:14: no worker 'gone'")
