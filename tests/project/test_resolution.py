"""References to workers: every form, the order, and what is refused."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from llm_do_mcp.errors import AmbiguousWorker, InvalidFile, InvalidReference, ProjectError, WorkerNotFound
from llm_do_mcp.project.load import load_project
from tests.project.conftest import Make, problems, worker, write

TREE = {
    "main.worker": worker("name: main"),
    "workers/evaluator.worker": worker("name: evaluator"),
    "workers/reports/summarizer.worker": worker("name: reports/summarizer"),
    "workers/specialist/worker.worker": worker("name: specialist"),
    "workers/specialist/templates/x.yaml": "not: a worker",
    "workers/specialist/notes.yaml": "not: a worker",
    "workers/specialist/helper.worker": worker(),
    "workers/plain.yaml": "name: plain\ninstructions: Do it.",
    "workers/prompted.yml": "description: has a prompt file",
    "prompts/prompted.jinja2": "Prompt of {{ input }}",
}


@pytest.mark.proves("PROJECT-REFERENCES", "PROJECT-LAYOUTS")
@pytest.mark.parametrize(
    ("reference", "identifier", "path"),
    [
        ("main", "main", "main.worker"),
        ("./main.worker", "main", "main.worker"),
        ("evaluator", "evaluator", "workers/evaluator.worker"),
        ("workers/evaluator", "evaluator", "workers/evaluator.worker"),
        ("./workers/evaluator", "evaluator", "workers/evaluator.worker"),
        ("./workers/evaluator.worker", "evaluator", "workers/evaluator.worker"),
        ("workers/evaluator.worker", "evaluator", "workers/evaluator.worker"),
        ("reports/summarizer", "reports/summarizer", "workers/reports/summarizer.worker"),
        ("summarizer", "reports/summarizer", "workers/reports/summarizer.worker"),
        ("specialist", "specialist", "workers/specialist/worker.worker"),
        ("./workers/specialist/worker.worker", "specialist", "workers/specialist/worker.worker"),
        ("specialist/helper", "specialist/helper", "workers/specialist/helper.worker"),
        ("plain", "plain", "workers/plain.yaml"),
        ("./workers/plain.yaml", "plain", "workers/plain.yaml"),
        ("prompted", "prompted", "workers/prompted.yml"),
    ],
)
def test_every_form_of_reference_leads_to_its_worker(make: Make, reference: str, identifier: str, path: str) -> None:
    found = make(TREE).worker(reference)
    assert (found.id, found.path) == (identifier, path)


@pytest.mark.proves("PROJECT-LAYOUTS")
def test_instructions_may_lie_in_a_prompt_file(make: Make) -> None:
    project = make(TREE)
    template = project.worker("prompted").instructions
    assert (template.text, template.path, template.line) == ("Prompt of {{ input }}", "prompts/prompted.jinja2", 1)
    make({"prompts/prompted.md": "again"})
    with pytest.raises(ProjectError, match="more than one prompt file"):
        make({}).worker("prompted")


@pytest.mark.proves("PROJECT-LAYOUTS")
@pytest.mark.parametrize(("path", "text"), [("workers/x.yaml", "name: x"), ("workers/x.worker", worker("name: x", ""))])
def test_a_worker_without_instructions_says_where_to_write_them(make: Make, path: str, text: str) -> None:
    with pytest.raises(ProjectError, match=r"no instructions; write them .* or in prompts/x\.md"):
        make({path: text}).worker("x")


@pytest.mark.proves("PROJECT-SCAN")
def test_a_scan_lists_workers_and_nothing_else(make: Make) -> None:
    scanned = make(TREE).scan()
    assert list(scanned.workers) == [
        "main", "evaluator", "plain", "prompted", "reports/summarizer", "specialist", "specialist/helper",
    ]  # fmt: skip
    assert scanned.problems == ()


@pytest.mark.proves("PROJECT-SCAN")
def test_what_a_list_does_not_show_can_still_be_called(make: Make) -> None:
    hidden = {
        ".llm-doignore": "# generated\nworkers/old/\n*.tmp.worker\n",
        "project.yaml": "workers: {exclude: ['**/drafts/**', 'x*']}",
        "workers/old/a.worker": worker(),
        "workers/drafts/b.worker": worker(),
        "workers/x1.worker": worker(),
        "workers/node_modules/c.worker": worker(),
        "workers/__pycache__/d.worker": worker(),
        "workers/shown.worker": worker(),
    }
    project = make(hidden)
    assert list(project.scan().workers) == ["shown"]
    assert [project.worker(name).id for name in ("old/a", "drafts/b", "x1")] == ["old/a", "drafts/b", "x1"]


@pytest.mark.proves("PROJECT-SCAN")
def test_a_bad_ignore_file_and_a_bad_name_are_told(make: Make) -> None:
    project = make({"workers/a b.worker": worker(), "workers/ok.worker": worker()})
    assert [str(error) for error in project.broken] == [
        "workers/a b.worker: 'a b.worker': names of workers have letters, digits, _ and -"
    ]
    project = make({"workers/two.worker": worker(), "workers/two/worker.worker": worker()})
    assert list(project.scan().workers) == ["ok", "two"] and project.scan().problems == project.broken[:1]
    assert str(project.broken[1]).startswith("workers/two.worker: more than one file for worker 'two': ")
    with pytest.raises(WorkerNotFound, match="known: ok, two"):
        project.worker("nobody")
    with pytest.raises(ProjectError, match=r"\.llm-doignore:2: '!' is no pattern"):
        make({".llm-doignore": "ok\n!\n"}).scan()


@pytest.mark.proves("A050", "A006")
@pytest.mark.parametrize(
    "reference",
    [
        "", "../w", "./../w", "workers/../w", "/w", "/etc/passwd", "~/w", "w.worker.worker", "lib:", ":w", "a:b:c",
        "lib:../x", "Lib:x", "a//b", "a/", "a\\b", "a\0", "a\nb", "x" * 1_000_000, "input/data.worker", "./data.worker",
        "w w", "-w", ".w",
    ],
)  # fmt: skip
def test_what_is_no_reference_is_refused_in_one_short_line(make: Make, reference: str) -> None:
    project = make({"main.worker": worker(), "input/data.worker": worker(), "data.worker": worker()})
    with pytest.raises(InvalidReference) as caught:
        project.worker(reference)
    assert len(str(caught.value)) < 300 and "\n" not in str(caught.value)


@pytest.mark.proves("A050")
@pytest.mark.parametrize(
    ("reference", "says"),
    [
        (
            "evaluater",
            "no worker 'evaluater' (looked for workers/evaluater.worker, workers/evaluater.yaml, "
            "workers/evaluater.yml, workers/evaluater/worker.worker, workers/evaluater/worker.yaml, "
            "workers/evaluater/worker.yml); did you mean 'evaluator'?",
        ),
        ("./workers/none.worker", "no worker './workers/none.worker' (looked for workers/none.worker); known: "),
        ("./workers/evaluator.yaml", "no worker './workers/evaluator.yaml' (looked for workers/evaluator.yaml)"),
        ("utils:summarizer", "no worker 'utils:summarizer': 'utils' is not among the dependencies"),
    ],
)
def test_a_worker_that_is_not_there_says_what_was_searched(make: Make, reference: str, says: str) -> None:
    with pytest.raises(WorkerNotFound) as caught:
        make(TREE).worker(reference)
    assert str(caught.value).startswith(says)


@pytest.mark.proves("A051")
@pytest.mark.parametrize(
    "others",
    [
        ("workers/w/worker.worker",),
        ("workers/w.yaml",),
        ("workers/w.yml",),
        ("workers/w.yaml", "workers/w/worker.worker"),
        ("workers/w/worker.yaml",),
        ("workers/w/worker.yaml", "workers/w/worker.yml", "workers/w/worker.worker"),
    ],
)
@pytest.mark.parametrize("reference", ["w", "./workers/w.worker"])
def test_two_files_for_one_id_are_ambiguous(make: Make, others: tuple[str, ...], reference: str) -> None:
    project = make({"workers/w.worker": worker(), **dict.fromkeys(others, "instructions: x")})
    with pytest.raises(AmbiguousWorker, match=r"more than one file for worker 'w': workers/w\.worker, "):
        project.worker(reference)
    assert any(isinstance(error, AmbiguousWorker) for error in project.broken)


@pytest.mark.proves("PROJECT-LAYOUTS", "PROJECT-SCAN")
@pytest.mark.parametrize("suffix", ["yaml", "yml"])
def test_the_file_of_a_workers_folder_may_be_yaml(make: Make, suffix: str) -> None:
    files = {
        f"workers/x/worker.{suffix}": "name: x\ninstructions: Do it.\n",
        "workers/x/notes.yaml": "is: no worker",
        "workers/x/tools.py": "def f() -> str: return ''",
        "workers/deep/y/worker.yaml": "name: deep/y\n",
        "prompts/deep/y.md": "Prompted.",
    }
    project = make(files)
    assert project.broken == () and list(project.scan().workers) == ["deep/y", "x"]
    for reference in ("x", "workers/x", f"./workers/x/worker.{suffix}"):
        found = project.worker(reference)
        assert (found.id, found.folder, found.own_tool_modules) == ("x", "workers/x", ("workers/x/tools.py",))
    assert project.worker("y").instructions.text == "Prompted."


@pytest.mark.proves("A051")
def test_an_exact_id_wins_over_a_last_segment_and_two_last_segments_are_ambiguous(make: Make) -> None:
    project = make({"workers/a/x.worker": worker(), "workers/b/x.worker": worker()})
    with pytest.raises(AmbiguousWorker, match="'x' may be a/x or b/x; write the whole id"):
        project.worker("x")
    make({"workers/x.worker": worker()})
    assert make({}).worker("x").id == "x"


@pytest.mark.proves("A022")
@pytest.mark.skipif(sys.platform != "linux", reason="needs a file system that tells upper from lower case")
def test_ids_that_differ_in_case_only_are_refused(make: Make) -> None:
    project = make({"workers/Helper.worker": worker(), "workers/helper.worker": worker()})
    (error,) = project.broken
    assert "workers/Helper.worker, workers/helper.worker" in str(error)
    assert project.exports == {}


@pytest.mark.proves("A052")
@pytest.mark.parametrize(
    ("path", "identifier"),
    [("main.worker", "main"), ("workers/a/b.worker", "a/b"), ("workers/c/worker.worker", "c")],
)
def test_a_name_that_is_not_the_id_is_refused_with_both(make: Make, path: str, identifier: str) -> None:
    project = make({path: worker("description: x\nname: other")})
    with pytest.raises(InvalidFile) as caught:
        project.worker(identifier)
    (line,) = problems(caught.value)
    assert line == f"{path}:3:7: name 'other' is not the id that the file's place gives, {identifier!r}"


@pytest.mark.proves("A053")
def test_imports_may_be_cyclic_and_are_no_permission(make: Make) -> None:
    project = make(
        {
            "workers/a.worker": worker("imports: {workers: [b, ./workers/a.worker]}"),
            "workers/b.worker": worker("imports: {workers: [workers/a]}"),
        }
    )
    first = project.worker("a")
    assert first.imports == ("b", "a") and project.worker("b").imports == ("a",)
    assert first.allow_workers is None and not first.may_call("b")


@pytest.mark.proves("A053", "PROJECT-CLOSURE")
def test_a_worker_is_loaded_with_what_it_imports_and_calls_and_nothing_else_is_read(make: Make, tmp_path: Path) -> None:
    others = {f"workers/other{number}.worker": "broken" for number in range(50)}
    files = {
        "main.worker": worker("imports: {workers: [./workers/a.worker]}"),
        "workers/a.worker": worker("allow_workers: [deep/b, 'o*']"),
        "workers/deep/b/worker.worker": worker("imports: {workers: [main, c, broken]}"),
        "workers/c.yaml": "description: has a prompt",
        "prompts/c.md": "Prompt.",
        "workers/broken.worker": "broken",
    }
    write(tmp_path, {**others, **files})
    project = load_project(tmp_path / "main.worker")
    closure = project.closure(project.worker("main"))
    assert {each.id for each in closure} == {"main", "a", "deep/b", "c"}
    assert {*project.levels[0].files.seen.contents} == files.keys(), "files read, folders listed"


@pytest.mark.proves("A053")
def test_an_import_that_does_not_exist_is_told_with_its_place(make: Make) -> None:
    project = make({"main.worker": worker("imports:\n  workers:\n    - nobody")})
    with pytest.raises(ProjectError, match=r"main\.worker:4:7: no worker 'nobody'"):
        project.worker("main")


@pytest.mark.proves("PROJECT-ALLOWED")
def test_allow_lists_hold_ids_and_globs_however_they_are_written(make: Make) -> None:
    keys = "allow_workers: [./workers/evaluator.worker, summarizer, 'workers/sp*', not_yet]"
    main = make({**TREE, "main.worker": worker(keys)}).worker("main")
    assert main.allow_workers == ("evaluator", "reports/summarizer", "sp*", "not_yet")
    assert main.may_call("specialist") and not main.may_call("plain")
    bad = make({"main.worker": worker("toolsets: {delegation: {allow_workers: [../x]}}")})
    with pytest.raises(ProjectError, match=r"main\.worker:2:40: '\.\./x' is not a reference"):
        bad.worker("main")


@pytest.mark.proves("PROJECT-ROOT-OF-FILE")
@pytest.mark.parametrize(
    ("files", "given", "root", "entry"),
    [
        ({"p/project.yaml": "", "p/workers/a/x.worker": worker()}, "p/workers/a/x.worker", "p", "a/x"),
        ({"p/main.worker": worker(), "p/workers/x.worker": worker()}, "p/workers/x.worker", "p", "x"),
        ({"p/main.worker": worker()}, "p/main.worker", "p", "main"),
        ({"p/workers/a/x.worker": worker()}, "p/workers/a/x.worker", "p", "a/x"),
        ({"p/workers/x.yaml": "instructions: x"}, "p/workers/x.yaml", "p", "x"),
        ({"p/task.worker": worker()}, "p/task.worker", "p", "task"),
        ({"p/main.worker": worker(), "p/more/task.worker": worker()}, "p/more/task.worker", "p", "more/task"),
    ],
)
def test_a_workers_file_has_a_project_around_it(
    tmp_path: Path, files: dict[str, str], given: str, root: str, entry: str
) -> None:
    write(tmp_path, files)
    project = load_project(tmp_path / given)
    assert project.root == str((tmp_path / root).resolve())
    assert project.entry == entry and project.worker(entry).path == given.removeprefix(f"{root}/")
    assert list(project.exports.values()) == [entry]


@pytest.mark.proves("PROJECT-ROOT-OF-FILE")
@pytest.mark.parametrize(
    ("folder", "main", "identifiers"),
    [
        ("home/.llm-do/workers", None, ("x", "y")),
        ("tasks", None, ("x", "y")),
        ("p/tasks", "p/main.worker", ("tasks/x", "tasks/y")),
    ],
)
def test_a_file_outside_a_projects_workers_knows_those_beside_it(
    tmp_path: Path, folder: str, main: str | None, identifiers: tuple[str, str]
) -> None:
    names = ("x.worker", "y.worker", "z.yaml", "deep/w.worker")
    write(tmp_path, {**{f"{folder}/{name}": worker() for name in names}, **({main: worker()} if main else {})})
    project = load_project(tmp_path / folder / "x.worker")
    assert project.root == str((tmp_path / (main or f"{folder}/x")).resolve().parent)
    first, second = identifiers
    assert (project.entry, project.worker(first).id, project.worker(second).id) == (first, first, second)
    assert second not in project.scan().workers
    for name in ("z", "deep/w"):
        with pytest.raises(WorkerNotFound):
            project.worker(first.replace("x", name))


@pytest.mark.proves("PROJECT-ROOT-OF-FILE")
def test_no_project_takes_the_file_by_itself(tmp_path: Path) -> None:
    write(tmp_path, {"p/project.yaml": "model: m:1", "p/workers/x.worker": worker(), "p/workers/y.worker": worker()})
    project = load_project(tmp_path / "p/workers/x.worker", no_project=True)
    assert project.root == str((tmp_path / "p/workers").resolve())
    assert project.entry == "x" and project.worker("x").model == ()
    with pytest.raises(WorkerNotFound):
        project.worker("y")
    with pytest.raises(ProjectError, match="--no-project takes a worker's file"):
        load_project(tmp_path / "p", no_project=True)


@pytest.mark.proves("PROJECT-ROOT-OF-FILE")
def test_a_path_without_a_project_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match=r"no main\.worker, no project\.yaml and no workers/"):
        load_project(tmp_path)
    with pytest.raises(ProjectError, match="there is no "):
        load_project(tmp_path / "none")
    write(tmp_path, {"x.txt": ""})
    with pytest.raises(ProjectError, match="neither a folder nor a worker's file"):
        load_project(tmp_path / "x.txt")
