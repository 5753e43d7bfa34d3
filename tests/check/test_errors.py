"""`check` tells all errors at once, each with its place."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

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
async def test_a_key_that_cannot_be_used_does_not_hide_what_is_wrong_elsewhere_in_the_file(tmp_path: Path) -> None:
    keys = """\
        fragments: 1
        toolsets: {custm: {}}
        attachment_policy: {max_attachments: -1}
        compatible_models: [x]
        model: {a: b}
        schema_in_ref: schemas/no.json
        imports: {workers: [nope]}
        input_schema: 1
        allow_workers: [zz]
        sandbox: {paths: {a: {root: ../x, mode: ro}}}
        params: {input: 1, a: null, "b c": 2}
        name: other
        system: [1]
        """
    files = {
        "main.worker": worker(keys, "{% if %}{{ file('nope.md') }}"),
        "workers/a.worker": worker("system: [1]", ""),
    }
    report = await look(tmp_path, files, default_model=MODEL)
    assert [error.partition(": ")[0] for error in said(report, "error")] == [
        "main.worker:2:12",
        "main.worker:3:12",
        "main.worker:4:38",
        "main.worker:6:8",
        "main.worker:7:16",
        "main.worker:8:21",
        "main.worker:9:1",
        "main.worker:9:15",
        "main.worker:11:29",
        "main.worker:12:10",
        "main.worker:12:29",
        "main.worker:13:7",
        "main.worker:14:9",
        "main.worker:16",
        "workers/a.worker:2:9",
    ]
    assert said(report, "warning") == [
        "main.worker:10:17: allow_workers: there is no worker 'zz'; known: a, main, pkg:summarizer"
    ]
    files = {"main.worker": worker("fragments: 1\nallow_workers: [zz]", "{% if %}"), "workers/a.worker": worker()}
    found = said(await look(tmp_path, files, default_model=MODEL), "error")
    assert [error.partition(": ")[0] for error in found] == ["main.worker:2:12", "main.worker:5"]


@pytest.mark.proves("CHECK-ALL-AT-ONCE", "PROJECT-ALL-PROBLEMS")
@pytest.mark.parametrize("place", ["worker", "manifest"])
async def test_one_wrong_key_does_not_hide_what_is_wrong_beside_it(tmp_path: Path, place: str) -> None:
    keys = """\
        sandbox:
          network: true
          paths:
            a: ro:../a
            c: zz:./c
            d: {root: 3, mode: rx}
            e f: {root: ../e}
            E-F: {root: ../f, suffixes: [md]}
            "***": ro:./x
        """
    imports = "imports: {workers: [nosuch, ../x], tools: [nosuch.py, ../t.py], worker: []}"
    files = {"main.worker": worker(imports if place == "manifest" else f"{dedent(keys)}{imports}")}
    if place == "manifest":
        files["project.yaml"] = keys
    errors = [error.partition(": ") for error in said(await look(tmp_path, files, default_model=MODEL), "error")]
    file, first = ("project.yaml", 2) if place == "manifest" else ("main.worker", 3)
    places = [(0, 3), (2, 8), (3, 8), (4, 15), (4, 24), (5, 17), (6, 5), (6, 17), (6, 34), (7, 5)]
    expected = [f"{file}:{first + line}:{column}" for line, column in places]
    if place == "worker":
        expected += [f"main.worker:11:{column}" for column in (21, 29, 44, 55, 65)]
    else:
        expected.insert(0, "main.worker:2:65")  # nothing but its own keys is known of a worker then
    assert [error[0] for error in errors] == expected


@pytest.mark.proves("CHECK-ALL-AT-ONCE")
@pytest.mark.parametrize(
    ("manifest", "first"),
    [
        ("nmae: x\nmodel: 1\n", ["project.yaml:1:1: unknown key 'nmae'", "project.yaml:2:8: model: must be"]),
        ("name: [", ["project.yaml:2:1: did not find"]),
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
@pytest.mark.parametrize("import_tools", [False, True])
async def test_a_library_that_cannot_be_had_hides_only_what_may_be_in_it(tmp_path: Path, import_tools: bool) -> None:
    manifest = """\
        exports: [main, maybe, ./workers/gone, 'utils:x', 'utils:*']
        dependencies: [utils@1.0]
        grants: {utils: [up], other: [up]}
        sandbox: {paths: {up: 'ro:../up'}}
        """
    keys = """\
        imports: {workers: [maybe, 'utils:x', './workers/gone', 'none:x']}
        allow_workers: [maybe, 'utils:x', 'utils:*', 'gone*']
        toolsets: {custom: [count]}
        """
    files = {
        "project.yaml": manifest,
        "main.worker": worker(keys, "{% include 'maybe' %}{% include 'utils:x' %}\n{{ 1 | uper }}"),
        "workers/a.worker": worker("modle: x"),
    }
    report = await look(tmp_path, files, {"other": {}}, default_model=MODEL, import_tools=import_tools)
    assert [error.partition(": ")[0] for error in said(report, "error")] == [
        "main.worker:2:39",
        "main.worker:2:57",
        "main.worker:7",
        "project.yaml:1:24",
        "project.yaml:2:15",
        "project.yaml:3:23",
        "project.yaml:4:23",
        "workers/a.worker:2:1",
    ]
    assert "no library 'utils@1.0'" in said(report, "error")[4]
    warnings = [warning.partition(": the")[0] for warning in said(report, "warning")]
    assert warnings == [
        "main.worker:3:46: allow_workers: 'gone*' matches no worker",
        "project.yaml:4:23: sandbox.paths.up",
    ]


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
@pytest.mark.parametrize(
    ("name", "path", "mended"),
    [
        ("shop", "workers/te.worker", "te and te; rename the worker te, or do not export it"),
        (
            "TE",
            "main.worker",
            "main and te; its worker has the project's name, so write another `name:` into llm-do.yaml",
        ),
        ("run_wait", "main.worker", "main and run_wait; its worker has the project's name, so write another `name:`"),
    ],
)
async def test_what_stops_the_start_of_a_server_is_an_error(tmp_path: Path, name: str, path: str, mended: str) -> None:
    files = {"llm-do.yaml": f"name: {name}\nsandbox: {{paths: {{in: 'ro:./in'}}}}", path: worker(), "in/x.md": ""}
    (error,) = said(await look(tmp_path, files, default_model=MODEL), "error")
    assert error.startswith("two tools would be called ") and mended in error


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
async def test_filters_and_tests_are_known_also_in_branches(tmp_path: Path) -> None:
    text = """\
        {% if input is strin %}{{ input | uper }}{% endif %}
        {{ input | upper | lowr if input is string else 1 is qqq }}
        {% if 'markdown' is filter %}{{ input | markdown }}{% endif %}
        {% filter xxxxx %}x{% endfilter %}{% include 'gone' %}"""
    errors = said(await look(tmp_path, {"main.worker": worker("", text)}, default_model=MODEL), "error")
    assert [error.partition("; did you")[0] for error in errors] == [
        "main.worker:4: there is no filter 'uper'",
        "main.worker:4: there is no test 'strin'",
        "main.worker:5: there is no filter 'lowr'",
        "main.worker:5: there is no test 'qqq'; there are Jinja's own",
        "main.worker:7: there is no 'gone' in templates/, prompts/, workers/, pkg:templates/",
        "main.worker:7: there is no filter 'xxxxx'; there are Jinja's own",
    ]


@pytest.mark.proves("CHECK-TEMPLATES")
async def test_a_template_that_always_includes_itself_is_an_error(tmp_path: Path) -> None:
    files = {
        "main.worker": worker("", "{% include 'x' %}"),
        "templates/x": "X\n{% if input %}{% include 'y' %}{% endif %}{% include 'x' %}",
        "templates/y": "{% include 'z' %}",
        "templates/z": "{% set a = 1 %}\n{% extends 'y' %}",
    }
    errors = said(await look(tmp_path, files, default_model=MODEL), "error")
    assert [error.partition(", so it")[0] for error in errors] == [
        "templates/x:2: the template always includes itself",
        "templates/y:1: the template always includes itself through templates/z",
        "templates/z:2: the template always includes itself through templates/y",
    ]
    for name in "xyz":
        text = "{% if input.more %}{% include 'x' %}{% endif %}{% for part in input %}{% include 'y' %}{% endfor %}"
        files[f"templates/{name}"] = text
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
@pytest.mark.parametrize("using", ["exports: [main, 'utils:*']", "exports: ['utils:caller']", "entry: main"])
async def test_a_pattern_that_covers_broken_workers_of_a_library_tells_of_all_of_them(
    tmp_path: Path, using: str
) -> None:
    files = {
        "project.yaml": f"model: {MODEL}\ndependencies: [utils]\n{using}\n",
        "main.worker": worker("allow_workers: ['utils:*']"),
    }
    library = {
        "workers/caller.worker": worker("allow_workers: ['*']"),
        "workers/a.worker": worker("modle: x"),
        "workers/b.worker": worker(),
        "workers/b/worker.worker": worker(),
        "workers/c.worker": worker("", "{% if %}"),
    }
    errors = said(await look(tmp_path, files, {"utils": library}), "error")
    assert [error.partition(": ")[0] for error in errors] == [
        "utils:workers/a.worker:2:1",
        "utils:workers/b.worker",
        "utils:workers/c.worker:4",
    ]
    assert "more than one file for worker 'b': workers/b.worker, workers/b/worker.worker; keep one" in errors[1]


@pytest.mark.proves("CHECK-LIBRARIES")
async def test_a_library_is_checked_by_its_own_manifest(tmp_path: Path) -> None:
    files = {
        "lib.yaml": "name: mine\nexports: [a, gone]\ndependencies: [utils]\n",
        "workers/a.worker": worker("allow_workers: ['utils:b']"),
    }
    report = await look(tmp_path, files, {"utils": {"workers/b.worker": worker()}}, default_model=MODEL)
    (error,) = said(report, "error")
    assert error.startswith("lib.yaml:2:14: no worker 'gone'")
