"""Libraries in a project: what can be called in them, what their workers are given, and what they can include."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_do_mcp.errors import InvalidFile, NotExported, ProjectError, TemplateFailed, WorkerNotFound
from llm_do_mcp.project.files import ProjectFiles
from llm_do_mcp.project.load import Project, load_project
from llm_do_mcp.project.render import Renderer
from tests.project.conftest import problems, worker, write
from tests.project.shelf import load_with

UTILS = {
    "lib.yaml": "name: utils\nversion: 2.1.0\nexports: [summarizer, text/fixer]\ndependencies: [legal]",
    "workers/summarizer.worker": worker("name: summarizer\nallow_workers: [helper, './workers/text/*', 'legal:*']"),
    "workers/text/fixer.worker": worker("imports: {workers: [helper, legal:disclaimer]}"),
    "workers/helper.worker": worker(),
}
LEGAL = {
    "lib.yaml": "exports: [disclaimer]",
    "workers/disclaimer.worker": worker(),
    "workers/helper.worker": worker(),
}
PROJECT = {
    "project.yaml": "dependencies: [utils]",
    "main.worker": worker("allow_workers: [helper, 'utils:*', utils:summarizer, utils:helper, summarizer]"),
    "workers/own.worker": worker(),
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project that depends on `utils`, which depends on `legal`."""
    return load_with(tmp_path, PROJECT, {"utils": UTILS, "legal": LEGAL})


# ---- resolution


@pytest.mark.proves("LIB-RESOLUTION")
@pytest.mark.parametrize(
    ("reference", "identifier"),
    [
        ("utils:summarizer", "utils:summarizer"),
        ("utils:text/fixer", "utils:text/fixer"),
        ("utils:fixer", "utils:text/fixer"),
        ("utils:workers/summarizer", "utils:summarizer"),
        ("utils:./workers/summarizer.worker", "utils:summarizer"),
        ("summarizer", "utils:summarizer"),
        ("fixer", "utils:text/fixer"),
        ("own", "own"),
    ],
)
def test_a_worker_of_a_library_has_one_id_however_it_is_named(
    project: Project, reference: str, identifier: str
) -> None:
    found = project.worker(reference)
    assert found.id == identifier and found.library == (identifier.partition(":")[0] if ":" in identifier else None)
    assert project.worker(identifier) is found


@pytest.mark.proves("LIB-RESOLUTION")
@pytest.mark.parametrize(
    ("reference", "identifier"),
    [
        ("helper", "utils:helper"),
        ("./workers/helper.worker", "utils:helper"),
        ("utils:helper", "utils:helper"),
        ("fixer", "utils:text/fixer"),
        ("disclaimer", "legal:disclaimer"),
        ("legal:disclaimer", "legal:disclaimer"),
    ],
)
def test_in_a_library_names_start_at_the_library(project: Project, reference: str, identifier: str) -> None:
    assert project.worker(reference, from_library="utils").id == identifier


@pytest.mark.proves("LIB-RESOLUTION")
@pytest.mark.parametrize(
    ("reference", "library", "says"),
    [
        ("own", "utils", "no worker 'own' (looked for utils:workers/own.worker, "),
        ("utils:summarizer", "legal", "'utils' is not among the dependencies"),
        ("legal:disclaimer", None, "'legal' is not among the dependencies"),
        ("./workers/summarizer", None, "no worker './workers/summarizer' (looked for workers/summarizer.worker, "),
        ("./workers/summarizer.worker", None, "(looked for workers/summarizer.worker)"),
        ("utils:sumarizer", None, "did you mean 'utils:summarizer'?"),
        ("nobody", None, "workers/nobody/worker.yml, and in utils)"),
    ],
)
def test_a_path_or_another_library_is_not_fallen_back_on(
    project: Project, reference: str, library: str | None, says: str
) -> None:
    with pytest.raises(WorkerNotFound) as caught:
        project.worker(reference, from_library=library)
    assert says in str(caught.value)


@pytest.mark.proves("LIB-RESOLUTION", "A051")
def test_the_project_comes_before_its_libraries_and_those_in_the_order_of_dependencies(tmp_path: Path) -> None:
    libraries = {name: {"workers/same.worker": worker(), f"workers/{name}.worker": worker()} for name in "xyz"}
    files = {"main.worker": worker(), "project.yaml": "dependencies: [y, x, z]"}
    assert load_with(tmp_path, files, libraries).worker("same").id == "y:same"
    assert load_with(tmp_path, {**files, "workers/same.worker": worker()}, {}).worker("same").id == "same"


@pytest.mark.proves("LIB-RESOLUTION")
@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("x:othr", r"^no worker 'x:othr' \(looked for x:workers/othr\.worker, .*\); did you mean 'x:other'\?$"),
        ("x:", "^'x:' is not a reference to a worker"),
        ("x:../other", r"^'x:\.\./other' is not a reference to a worker"),
        ("x:workers/a b.worker", r"^'x:workers/a b\.worker' is not a reference to a worker"),
    ],
)
def test_what_is_not_in_a_library_is_told_as_it_was_written(tmp_path: Path, reference: str, words: str) -> None:
    files = {"main.worker": worker(), "project.yaml": "dependencies: [x]"}
    with pytest.raises(ProjectError, match=words):
        load_with(tmp_path, files, {"x": {"workers/other.worker": worker()}}).worker(reference)


@pytest.mark.proves("LIB-RESOLUTION", "A051")
def test_two_files_for_one_id_in_a_library_are_named_with_the_library(tmp_path: Path) -> None:
    files = {"main.worker": worker(), "project.yaml": "dependencies: [x]"}
    libraries = {"x": {"lib.yaml": "exports: ['*']", "workers/a.worker": worker(), "workers/a.yaml": "instructions: b"}}
    words = r"more than one file for worker 'a': workers/a\.worker, workers/a\.yaml"
    with pytest.raises(ProjectError, match=rf"^x:workers/a\.worker: {words}"):
        load_with(tmp_path, files, libraries).worker("x:a")
    libraries["x"]["lib.yaml"] = "exports: [a]"
    with pytest.raises(ProjectError, match=words):
        load_with(tmp_path, files, libraries)


@pytest.mark.proves("LIB-ERRORS")
def test_what_is_wrong_in_a_library_is_told_with_the_library(tmp_path: Path) -> None:
    broken = {"workers/a.worker": worker("nmae: a"), "workers/b.worker": worker("name: b", "")}
    files = {"project.yaml": "dependencies: [x]\nexports: [own, x:a, x:b]", "workers/own.worker": worker()}
    project = load_with(tmp_path, files, {"x": broken})
    assert [worker.id for worker in project.exported()] == ["own"]
    first, second = map(str, project.broken)
    assert first.startswith("x:workers/a.worker:2:1: unknown key 'nmae'")
    assert second.startswith("x:workers/b.worker:4:1: no instructions")
    badly = {"project.yaml": "tools: {modules: [../x.py]}", "workers/a.worker": worker()}
    with pytest.raises(ProjectError, match=r"y:project\.yaml:1:19: '\.\./x\.py' has '\.\.'"):
        load_with(tmp_path, {"project.yaml": "dependencies: [y]", "workers/own.worker": worker()}, {"y": badly})


# ---- exports


@pytest.mark.proves("A055", "LIB-EXPORTS")
def test_what_a_library_does_not_export_cannot_be_called_from_outside(project: Project) -> None:
    with pytest.raises(NotExported) as caught:
        project.worker("utils:helper")
    says = "worker 'utils:helper' is internal to the library utils, which exports summarizer, text/fixer"
    assert str(caught.value) == says
    with pytest.raises(NotExported):
        project.worker("helper")
    with pytest.raises(NotExported):
        project.worker("legal:helper", from_library="utils")


@pytest.mark.proves("A055", "LIB-EXPORTS")
@pytest.mark.parametrize(("export", "says"), [("nobody", "no worker 'nobody'"), ("'x*'", "'x*' matches no worker")])
def test_an_export_that_means_no_worker_stops_the_start(tmp_path: Path, export: str, says: str) -> None:
    library = {"lib.yaml": f"exports:\n  - a\n  - {export}", "workers/a.worker": worker()}
    with pytest.raises(ProjectError) as caught:
        load_with(tmp_path, {"main.worker": worker(), "project.yaml": "dependencies: [x]"}, {"x": library})
    assert str(caught.value).startswith(f"x:lib.yaml:3:5: {says}")


@pytest.mark.proves("LIB-EXPORTS")
@pytest.mark.parametrize(
    ("files", "exported"),
    [
        ({}, ("a", "b/c")),
        ({"lib.yaml": "exports: [workers/a, ./workers/b/c.worker]"}, ("a", "b/c")),
        ({"lib.yaml": "exports: ['b/*']"}, ("b/c",)),
        ({"lib.yaml": "exports: []"}, ()),
        ({"main.worker": worker()}, ("main",)),
        ({"project.yaml": "entry: a"}, ("a",)),
    ],
)
def test_a_library_offers_its_exports_else_its_entry_else_every_worker(
    tmp_path: Path, files: dict[str, str], exported: tuple[str, ...]
) -> None:
    library = {"workers/a.worker": worker(), "workers/b/c.worker": worker(), **files}
    project = load_with(tmp_path, {"main.worker": worker(), "project.yaml": "dependencies: [x]"}, {"x": library})
    assert project.libraries["x"].exports == exported


@pytest.mark.proves("LIB-ALLOWED")
def test_allow_lists_hold_whole_ids_and_a_glob_stays_where_it_is_written(project: Project) -> None:
    main = project.worker("main")
    assert main.allow_workers == ("helper", "utils:*", "utils:summarizer", "utils:helper")
    assert main.may_call("utils:text/fixer") and not main.may_call("legal:disclaimer")
    summarizer = project.worker("utils:summarizer")
    assert summarizer.allow_workers == ("utils:helper", "utils:text/*", "legal:*")
    assert summarizer.may_call("utils:text/fixer") and not summarizer.may_call("text/fixer")
    assert project.worker("utils:text/fixer").imports == ("utils:helper", "legal:disclaimer")


@pytest.mark.proves("LIB-ALLOWED")
def test_a_star_alone_permits_no_worker_of_a_library(tmp_path: Path) -> None:
    files = {**PROJECT, "main.worker": worker("allow_workers: '*'")}
    project = load_with(tmp_path, files, {"utils": UTILS, "legal": LEGAL})
    assert [name for name in project.within_reach(None) if project.worker("main").may_call(name)] == ["main", "own"]
    assert set(project.within_reach(None)) == {"main", "own", "utils:summarizer", "utils:text/fixer", "pkg:summarizer"}


@pytest.mark.proves("LIB-PUBLISHED")
def test_a_project_can_publish_workers_of_its_libraries(tmp_path: Path) -> None:
    files = {**PROJECT, "project.yaml": "dependencies: [utils]\nexports: [own, 'utils:**']"}
    project = load_with(tmp_path, files, {"utils": UTILS, "legal": LEGAL})
    assert project.exports == {
        "own": "own",
        "utils_summarizer": "utils:summarizer",
        "utils_text_fixer": "utils:text/fixer",
    }
    with pytest.raises(ProjectError, match=r"project\.yaml:2:11: worker 'utils:helper' is internal to the library"):
        load_with(tmp_path, {"project.yaml": "dependencies: [utils]\nexports: [utils:helper]"}, {})


# ---- what a library's worker is given


def first(tmp_path: Path, manifest: str, keys: str, **library: str) -> Project:
    """A project with a library `x` that has one worker, `a`."""
    files = {"main.worker": worker(), "project.yaml": f"dependencies: [x]\n{manifest}"}
    return load_with(tmp_path, files, {"x": {"workers/a.worker": worker(keys), **library}})


FOLDERS = "sandbox: {paths: {in: ro:./in, out: {root: ./out, mode: rw, suffixes: [.md, .txt]}}}"


@pytest.mark.proves("LIB-GRANTS", "A056")
def test_a_librarys_worker_has_of_the_projects_folders_what_is_granted(tmp_path: Path) -> None:
    project = first(tmp_path, FOLDERS, "toolsets: {filesystem: {}}")
    assert project.worker("x:a").roots == ()
    project = first(tmp_path, f"{FOLDERS}\ngrants: {{x: [out]}}", "toolsets: {filesystem: {}}")
    (root,) = project.worker("x:a").roots
    assert (root.alias, root.path, root.mode) == ("out", str(tmp_path / "project" / "out"), "rw")
    assert root in project.roots


@pytest.mark.proves("LIB-GRANTS", "A056")
def test_a_librarys_worker_can_ask_for_less_than_was_granted_and_never_for_more(tmp_path: Path) -> None:
    less = "sandbox: {paths: {out: {root: ./out, suffixes: [.md, .exe], read_approval: true, max_file_bytes: 10}}}"
    (root,) = first(tmp_path, f"{FOLDERS}\ngrants: {{x: [out]}}", less).worker("x:a").roots
    assert (root.path, root.mode, root.suffixes) == (str(tmp_path / "project" / "out"), "ro", (".md",))
    assert root.read_approval and root.max_file_bytes == 10
    more = first(tmp_path, f"{FOLDERS}\ngrants: {{x: [in]}}", "sandbox: {paths: {in: rw:./in}}")
    with pytest.raises(ProjectError, match=r"sandbox\.paths\.in: asks for rw, and the project grants ro"):
        more.worker("x:a")


@pytest.mark.proves("LIB-GRANTS", "A056")
@pytest.mark.parametrize("root", ["rw:./out", "out:./out", "ro:/etc", "ro:~/notes", "ro:../x", "ro:./away"])
def test_a_library_can_name_no_folder_but_to_read_its_own(tmp_path: Path, root: str) -> None:
    project = first(tmp_path, FOLDERS, f"sandbox: {{paths: {{mine: {root}}}}}")
    (tmp_path / "shelf/x/away").symlink_to("/etc")
    with pytest.raises(InvalidFile) as caught:
        project.worker("x:a")
    (line,) = problems(caught.value)
    assert line.startswith("x:workers/a.worker:2:25: sandbox.paths.mine: ")
    assert line.endswith("; the project can grant it: `grants: {x: [mine]}`")


@pytest.mark.proves("LIB-GRANTS")
def test_a_library_reads_data_of_its_own(tmp_path: Path) -> None:
    (root,) = first(tmp_path, FOLDERS, "sandbox: {paths: {data: ro:./data}}").worker("x:a").roots
    assert (root.path, root.mode) == (str(tmp_path / "shelf" / "x" / "data"), "ro")


@pytest.mark.proves("LIB-GRANTS")
@pytest.mark.parametrize(
    ("grants", "says"),
    [
        ("{y: [in]}", "project.yaml:3:10: 'y' is not a library of this project; known: x"),
        ("{x: [inn]}", "project.yaml:3:14: 'inn' is not in the manifest's sandbox.paths; did you mean 'in'?"),
    ],
)
def test_a_grant_of_what_is_not_there_stops_the_start(tmp_path: Path, grants: str, says: str) -> None:
    with pytest.raises(ProjectError) as caught:
        first(tmp_path, f"{FOLDERS}\ngrants: {grants}", "")
    assert str(caught.value) == says


@pytest.mark.proves("LIB-NOT-WRITTEN", "A056")
@pytest.mark.parametrize("folder", ["{}/shelf", "{}/shelf/x", "{}/shelf/x/data", "{}"])
def test_a_folder_through_which_a_library_could_be_written_is_refused(tmp_path: Path, folder: str) -> None:
    paths = f"sandbox: {{paths: {{wide: {{root: '{folder.format(tmp_path)}', mode: %s}}}}}}"
    with pytest.raises(ProjectError, match=r"sandbox\.paths\.wide: through it the library x could be written"):
        first(tmp_path, paths % "rw", "")
    assert first(tmp_path, paths % "ro", "").worker("x:a").roots == ()


@pytest.mark.proves("LIB-NOT-WRITTEN", "A056")
def test_a_worker_that_could_write_a_library_inside_the_project_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"libs/x/lib.yaml": "", "project.yaml": "dependencies: [x]"})
    write(tmp_path, {"main.worker": worker("sandbox: {paths: {all: rw:.}}")})
    project = load_project(tmp_path, libs=[str(tmp_path / "libs")])
    with pytest.raises(ProjectError, match=r"main\.worker:2:24: sandbox\.paths\.all: through it the library x"):
        project.worker("main")


@pytest.mark.proves("LIB-INHERITS")
def test_a_librarys_worker_has_the_projects_model_limits_and_policy_and_none_of_its_toolsets(tmp_path: Path) -> None:
    manifest = (
        "model: m:project\nlimits: {max_turns: 3, max_depth: 2}\ntoolsets: {filesystem: {}}\n"
        "approvals: [{function: files.write, decision: deny}]\nsandbox: {network_enabled: false}"
    )
    project = first(tmp_path, manifest, "model: m:own\nsandbox: {network_enabled: true}")
    found = project.worker("x:a")
    assert found.model == ("m:project",) and (found.limits.max_turns, found.limits.max_depth) == (3, 2)
    assert found.toolsets.filesystem is None and not found.network_enabled
    assert [rule.decision for rule in found.approvals] == ["deny"]


@pytest.mark.proves("LIB-NEVER-MORE")
@pytest.mark.parametrize(
    ("manifest", "keys", "most"),
    [
        ("limits: {max_turns: 3}", "limits: {max_turns: 9}", {"max_turns": 3}),
        ("limits: {max_turns: 9}", "limits: {max_turns: 3}", {"max_turns": 3}),
        ("limits: {max_turns: 900}", "limits: {max_turns: 500}", {"max_turns": 500}),
        ("limits: {max_depth: 2}", "limits: {max_turns: 500, timeout_s: 1.5}", {"max_turns": 200, "timeout_s": 1.5}),
        ("", "limits: {timeout_s: 9000.5, max_cost: 1.0}", {"timeout_s": 3600, "max_cost": 1.0}),
        ("limits: {max_cost: 0.5}", "limits: {max_cost: 1.0}", {"max_cost": 0.5}),
    ],
)
def test_a_library_asks_for_less_of_the_limits_and_never_for_more(
    tmp_path: Path, manifest: str, keys: str, most: dict[str, float]
) -> None:
    worker_of = first(tmp_path, manifest, keys).worker("x:a")
    assert {key: getattr(worker_of.limits, key) for key in most} == most
    as_project = {"project.yaml": f"name: y\n{keys}", "main.worker": worker()}
    files = {"project.yaml": f"dependencies: [y]\n{manifest}"}
    project = load_with(tmp_path, files, {"y": as_project})
    assert {key: getattr(project.worker("y:main").limits, key) for key in most} == most


@pytest.mark.proves("LIB-NEVER-MORE")
def test_the_model_of_a_library_counts_where_the_project_has_none(tmp_path: Path) -> None:
    assert first(tmp_path, "model: m:1", "model: m:own").worker("x:a").model == ("m:1",)
    assert first(tmp_path, "", "model: [m:own, m:next]").worker("x:a").model == ("m:own", "m:next")
    files = {"main.worker": worker(), "project.yaml": "dependencies: [x]"}
    libraries = {"x": {"workers/a.worker": worker("model: m:own")}}
    assert load_with(tmp_path, files, libraries, default_model="m:usual").worker("x:a").model == ("m:usual",)
    project = first(tmp_path, "model: m:1", "model: m:own\ncompatible_models: ['m:own']")
    with pytest.raises(ProjectError, match=r"^x:workers/a\.worker:3:20: model 'm:1' is not among the comp"):
        project.worker("x:a")


@pytest.mark.proves("LIB-PROJECT")
def test_a_project_is_a_library_with_its_own_manifest(tmp_path: Path) -> None:
    other = {
        "project.yaml": """
            name: decks
            version: 1.2.0
            exports: [main, flows/judge]
            model: m:decks
            toolsets: {filesystem: {}}
            workers: {root: flows}
            sandbox: {paths: {notes: ro:./notes, reports: rw:./reports}}
        """,
        "main.worker": worker(),
        "flows/judge.worker": worker(),
    }
    files = {"main.worker": worker(), "project.yaml": "name: shop\ndependencies: [decks]\n%s"}
    granted = "sandbox: {paths: {reports: rw:./out}}\ngrants: {decks: [reports]}"
    project = load_with(tmp_path, {**files, "project.yaml": files["project.yaml"] % granted}, {"decks": other})
    judge = project.worker("decks:judge")
    assert judge.model == ("m:decks",) and judge.toolsets.filesystem is not None
    places = {root.alias: (root.path, root.mode) for root in judge.roots}
    own = str(tmp_path / "shelf" / "decks" / "notes")
    assert places == {"notes": (own, "ro"), "reports": (str(tmp_path / "project" / "out"), "rw")}
    project = load_with(tmp_path, {**files, "project.yaml": files["project.yaml"] % ""}, {})
    with pytest.raises(ProjectError, match=r"^decks:project\.yaml:8:47: sandbox\.paths\.reports: rw './reports'"):
        project.worker("decks:judge")


@pytest.mark.proves("LIB-TOOLS")
def test_tool_modules_of_libraries_come_after_the_nearer_ones(tmp_path: Path) -> None:
    utils = {
        **UTILS,
        "tools.py": "",
        "tools/__init__.py": "",
        "toolsets/more.py": "",
        "workers/summarizer.worker": "",
        "workers/summarizer/worker.worker": worker(),
        "workers/summarizer/tools.py": "",
    }
    del utils["workers/summarizer.worker"]
    legal = {**LEGAL, "tools.py": ""}
    files = {**PROJECT, "tools.py": ""}
    project = load_with(tmp_path, files, {"utils": utils, "legal": legal})
    shared = ("utils:tools.py", "utils:tools/", "utils:toolsets/more.py")
    assert project.worker("main").tool_modules == ("tools.py", *shared)
    found = project.worker("utils:summarizer")
    assert found.tool_modules == ("utils:workers/summarizer/tools.py", *shared, "legal:tools.py")
    assert found.own_tool_modules == ("utils:workers/summarizer/tools.py",)


@pytest.mark.proves("LIB-LAZY")
def test_resolving_reads_only_the_files_that_it_leads_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    real = ProjectFiles.read_bytes

    def noting(files: ProjectFiles, path: str) -> bytes:
        read.append(files.shown(path))
        return real(files, path)

    monkeypatch.setattr(ProjectFiles, "read_bytes", noting)
    many = {f"workers/w{number}.worker": worker() for number in range(20)}
    utils, legal = {**many, **UTILS}, {**many, **LEGAL}
    project = load_with(tmp_path, {**many, **PROJECT}, {"utils": utils, "legal": legal})
    assert read == ["project.yaml", "utils:lib.yaml", "legal:lib.yaml"]
    read.clear()
    project.worker("utils:text/fixer")
    assert read == ["utils:workers/text/fixer.worker"]


# ---- templates


DISCLAIMER = "No advice: {{ year }}. {% include 'footer.jinja' %}"


async def rendered(renderer: Renderer, project: Project, identifier: str = "main", **fields: str) -> str:
    return (await renderer.render(project, project.worker(identifier), {"year": "2026", **fields})).instructions


def with_template(tmp_path: Path, body: str, library: dict[str, str], **more: str) -> Project:
    files = {"project.yaml": "dependencies: [legal]", "main.worker": worker("description: x", body), **more}
    return load_with(tmp_path, files, {"legal": library})


@pytest.mark.anyio
@pytest.mark.proves("LIB-TEMPLATES")
async def test_a_template_includes_from_a_library_and_what_that_includes_is_the_librarys(
    tmp_path: Path, renderer: Renderer
) -> None:
    library = {"templates/disclaimer.jinja": DISCLAIMER, "templates/footer.jinja": "(legal)"}
    own = {"templates/footer.jinja": "(project)"}
    body = "{% include 'legal:disclaimer.jinja' %} {% include 'footer.jinja' %} {% include 'disclaimer.jinja' %}"
    project = with_template(tmp_path, body, library, **own)
    said = "No advice: 2026. (legal)"
    assert await rendered(renderer, project) == f"{said} (project) {said}\n"


@pytest.mark.anyio
@pytest.mark.proves("LIB-TEMPLATES")
async def test_a_template_extends_one_of_a_library_and_imports_its_macros(tmp_path: Path, renderer: Renderer) -> None:
    library = {
        "templates/base.jinja": "# {% block title %}{% endblock %}\n{% include 'footer.jinja' %}",
        "templates/footer.jinja": "(legal)",
        "templates/kit.jinja": "{% macro sign(name) %}{{ name }}, {{ file('seal.txt') }}{% endmacro %}",
        "templates/seal.txt": "{{ sealed }}",
    }
    body = "{% extends 'legal:base.jinja' %}{% import 'legal:kit.jinja' as kit %}"
    body += "{% block title %}{{ kit.sign('Ada') }}{% endblock %}"
    assert await rendered(renderer, with_template(tmp_path, body, library)) == "# Ada, {{ sealed }}\n(legal)"


@pytest.mark.anyio
@pytest.mark.proves("LIB-TEMPLATES")
async def test_a_librarys_worker_includes_from_its_own_folders_and_never_from_the_project(
    tmp_path: Path, renderer: Renderer
) -> None:
    all_three = "{% include 'near.jinja' %} {% include 'far.jinja' %} {{ file('p.md') }}"
    library = {
        "workers/a/worker.worker": worker("", all_three),
        "workers/a/templates/near.jinja": "near",
        "templates/far.jinja": "far",
        "prompts/p.md": "prompt",
        "workers/b.worker": worker("", "{% include 'only.jinja' %}"),
    }
    own = {"templates/far.jinja": "project", "templates/only.jinja": "project"}
    project = with_template(tmp_path, "x", library, **own)
    assert await rendered(renderer, project, "legal:a") == "near far prompt\n"
    with pytest.raises(TemplateFailed, match=r"^legal:workers/b\.worker:4: there is no 'only\.jinja' in legal:"):
        await rendered(renderer, project, "legal:b")


@pytest.mark.anyio
@pytest.mark.proves("LIB-TEMPLATES", "A046")
@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("{% include 'legal:none.jinja' %}", "there is no 'legal:none.jinja' in legal:templates/"),
        ("{% include 'legal:../lib.yaml' %}", "is not inside the template folders"),
        ("{% include 'legal:/etc/passwd' %}", "is not inside the template folders"),
        ("{% include 'legal:.hidden' %}", "is hidden"),
        ("{% include 'legal:away.jinja' %}", "legal:templates/away.jinja: a link that leads outside"),
        ("{{ file('legal:../workers/a.worker') }}", "is not inside the template folders"),
        ("{{ file('legal:a.worker') }}", "there is no 'legal:a.worker' in legal:templates/"),
        ("{% include 'other:x.jinja' %}", "'other:x.jinja' names a library that is not among the dependencies"),
        ("{% include name %}", "names a library that is not among the dependencies"),
        ("{% extends 5 %}", "5 is not the name of a file"),
    ],
)
async def test_a_template_reaches_of_a_library_only_its_templates(
    tmp_path: Path, renderer: Renderer, body: str, says: str
) -> None:
    library = {"workers/a.worker": worker(), "templates/x.jinja": "", "templates/.hidden": ""}
    project = with_template(tmp_path, body, library)
    (tmp_path / "shelf/legal/templates/away.jinja").symlink_to("/etc/passwd")
    with pytest.raises(TemplateFailed) as caught:
        await rendered(renderer, project, name="other|x:y.jinja")
    assert says in str(caught.value) and str(caught.value).startswith("main.worker:4: ")


@pytest.mark.anyio
@pytest.mark.proves("LIB-TEMPLATES", "A047")
async def test_an_error_in_a_librarys_template_names_the_library(tmp_path: Path, renderer: Renderer) -> None:
    library = {"templates/bad.jinja": "fine\n{{ nothing }}"}
    project = with_template(tmp_path, "{% include 'legal:bad.jinja' %}", library)
    with pytest.raises(TemplateFailed, match=r"^legal:templates/bad\.jinja:2: 'nothing' is undefined"):
        await rendered(renderer, project)
