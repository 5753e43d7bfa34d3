"""A project as a whole: what it publishes, what disables a worker, what stops the loading, and what loading costs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from llm_do_mcp.errors import ProjectError
from llm_do_mcp.project.load import load_project
from tests.project.conftest import Make, problems, worker, write


@pytest.mark.proves("PROJECT-EXPORTS")
@pytest.mark.parametrize(
    ("manifest", "main", "exports"),
    [
        ("name: My Project", True, {"my_project": "main"}),
        ("name: p", False, {"a": "a", "reports_b": "reports/b"}),
        ("name: p\nentry: reports/b", True, {"p": "reports/b"}),
        ("name: p\nexports: [main, workers/a]", True, {"p": "main", "a": "a"}),
        ("name: p\nexports: ['*', 'reports/*', a]", False, {"a": "a", "reports_b": "reports/b"}),
        ("name: p\nexports: [./workers/a.worker]", True, {"a": "a"}),
        ("name: p\nexports: [./workers/reports/*.worker]", True, {"reports_b": "reports/b"}),
        ("name: p\nexports: []", True, {}),
    ],
)
def test_what_is_published_and_under_which_name(make: Make, manifest: str, main: bool, exports: dict[str, str]) -> None:
    files = {"workers/a.worker": worker(), "workers/reports/b.worker": worker(), "project.yaml": manifest}
    project = make(files | ({"main.worker": worker()} if main else {}))
    assert project.exports == exports
    assert [exported.id for exported in project.exported()] == list(exports.values())


@pytest.mark.proves("A062")
def test_two_workers_with_one_published_name_stop_the_loading(make: Make) -> None:
    files = {"workers/a-b.worker": worker(), "workers/a/b.worker": worker()}
    with pytest.raises(ProjectError, match=r"workers 'a-b' and 'a/b' would both be published as 'a_b'; rename one"):
        make(files)
    with pytest.raises(ProjectError, match="'main' and 'a' would both be published as 'a'"):
        make({"main.worker": worker(), "workers/a.worker": worker(), "project.yaml": "name: a\nexports: [main, a]"})


@pytest.mark.proves("PROJECT-EXPORTS")
def test_a_published_name_is_short_and_its_own(make: Make) -> None:
    long = "x" * 60
    project = make({f"workers/{long}.worker": worker(), f"workers/{long}y.worker": worker()})
    assert len(project.exports) == 2 and all(len(name) == 40 for name in project.exports)


@pytest.mark.proves("PROJECT-BROKEN-WORKER")
def test_a_broken_worker_is_named_and_the_others_are_served(make: Make) -> None:
    project = make(
        {
            "project.yaml": "exports: [good, bad]",
            "workers/good.worker": worker(),
            "workers/bad.worker": worker("nam: x\nlocked: no"),
            "workers/hidden.worker": "no front matter",
        }
    )
    assert [exported.id for exported in project.exported()] == ["good"]
    assert [str(error).split(": ")[0] for error in project.broken] == [
        "workers/bad.worker:2:1", "workers/bad.worker:3:9", "workers/hidden.worker:1:1",
    ]  # fmt: skip
    for _ in range(2):
        with pytest.raises(ProjectError, match="unknown key 'nam'"):
            project.worker("bad")
    assert project.worker("good").id == "good"


@pytest.mark.proves("PROJECT-BROKEN-WORKER")
def test_a_broken_entry_does_not_stop_the_others(make: Make) -> None:
    project = make({"main.worker": "broken", "workers/a.worker": worker()})
    assert project.entry == "main" and project.exported() == () and project.worker("a").id == "a"


@pytest.mark.proves("A024")
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this platform has no FIFOs")
@pytest.mark.parametrize(
    ("place", "stops"),
    [
        ("project.yaml", True),
        ("llm-do.yaml", True),
        ("tools.py", True),
        ("main.worker", True),
        ("workers/w.worker", False),
        ("workers/w.yaml", False),
        ("workers/d/worker.worker", False),
        (".llm-doignore", False),
        ("schemas/s.json", False),
        ("prompts/p.md", False),
    ],
)
def test_a_fifo_is_refused_without_waiting(make: Make, tmp_path: Path, place: str, stops: bool) -> None:
    files = {
        "workers/ok.worker": worker(),
        "workers/s.worker": worker("output_schema_ref: schemas/s.json"),
        "workers/p.yaml": "description: x",
    }
    write(tmp_path, files)
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(tmp_path / place)
    started = time.perf_counter()
    told = []
    try:
        project = load_project(tmp_path)
        assert project.worker("ok").id == "ok"
        told = [str(error) for error in project.broken]
    except ProjectError as error:
        assert stops or place == ".llm-doignore"
        told = problems(error)
    assert any(place in line and "not a regular file" in line for line in told), told
    assert time.perf_counter() - started < 1


@pytest.mark.proves("A006", "A007")
@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
@pytest.mark.parametrize("place", ["main.worker", "project.yaml", "tools.py", "workers/w.worker", "schemas/s.json"])
def test_nothing_is_loaded_through_a_link_that_leads_outside(tmp_path: Path, place: str) -> None:
    outside = tmp_path / "outside"
    write(outside, {"main.worker": worker(), "any": '{"type": "object"}'})
    inside = tmp_path / "p"
    write(inside, {"workers/s.worker": worker("output_schema_ref: schemas/s.json"), "workers/ok.worker": worker()})
    (inside / place).parent.mkdir(parents=True, exist_ok=True)
    (inside / place).symlink_to(outside / ("main.worker" if place.endswith(".worker") else "any"))
    try:
        told = [str(error) for error in load_project(inside).broken]
    except ProjectError as error:
        told = problems(error)
    assert any("a link that leads outside" in line and str(tmp_path) not in line for line in told), told


@pytest.mark.proves("A042")
def test_a_huge_worker_is_refused_and_many_workers_load_fast(make: Make) -> None:
    count = 300
    files = {f"workers/w{number}.worker": worker(f"description: number {number}") for number in range(count)}
    files["workers/huge.worker"] = worker("description: x", "x" * 2_000_000)
    started = time.perf_counter()
    project = make(files)
    (error,) = project.broken
    assert str(error) == "workers/huge.worker: larger than 1,000,000 bytes, the most that is loaded"
    assert len(project.scan().workers) == count + 1
    assert time.perf_counter() - started < 2


@pytest.mark.proves("PROJECT-LAZY")
def test_loading_imports_neither_jinja_nor_a_validator_and_reads_only_what_is_asked_for(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "main.worker": worker("output_schema: {type: object}", "Hello {{ input }}"),
            "workers/unread.worker": "broken",
            "project.yaml": "sandbox: {paths: {out: rw:./out}}",
        },
    )
    script = (
        "import sys; from llm_do_mcp.project.load import load_project; from llm_do_mcp.project import render\n"
        f"p = load_project({str(tmp_path)!r}); p.exported()\n"
        "heavy = ('jinja2', 'jsonschema', 'pathspec', 'difflib', 'anthropic', 'sqlite3')\n"
        "print([name for name in heavy if name in sys.modules], sorted(p._loaded))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] ['main']"
    assert not (tmp_path / "out").exists(), "a writable root is made when it is used"


@pytest.mark.proves("PROJECT-TOOL-MODULES")
def test_tool_modules_are_found_nearest_first(make: Make) -> None:
    project = make(
        {
            "main.worker": worker(),
            "tools.py": "",
            "toolsets/b.py": "",
            "toolsets/a.py": "",
            "toolsets/_private.py": "",
            "toolsets/notes.txt": "",
            "more.py": "",
            "project.yaml": "tools: {modules: [more.py]}",
            "workers/single.worker": worker("imports: {tools: [toolsets/b.py]}"),
            "workers/own/worker.worker": worker(),
            "workers/own/tools.py": "",
            "workers/kit/worker.worker": worker(),
            "workers/kit/tools/__init__.py": "",
        }
    )
    common = ("tools.py", "more.py", "toolsets/a.py", "toolsets/b.py")
    assert project.worker("main").tool_modules == common
    assert project.worker("main").own_tool_modules == ("tools.py",)
    single = project.worker("single")
    assert single.tool_modules == ("toolsets/b.py", "tools.py", "more.py", "toolsets/a.py")
    assert (single.own_tool_modules, single.imported_tool_modules) == ((), ("toolsets/b.py",))
    assert project.worker("own").tool_modules == ("workers/own/tools.py", *common)
    assert project.worker("kit").own_tool_modules == ("workers/kit/tools",)


@pytest.mark.proves("PROJECT-TOOL-MODULES", "A063", "A006")
@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("data/tools.py", "'data/tools.py' is not where tools are loaded from"),
        ("../x.py", "has '..'"),
        ("/x.py", "is not relative to the project"),
        ("toolsets/none.py", "there is no tool module 'toolsets/none.py'"),
        ("os:system", "module imports such as 'os:system' are not allowed; allow them with `tools: {allow_module_imp"),
        ("tools.py:add", "'tools.py:add' is no tool module; write toolsets/formatting.py, or my_project"),
        (":register", "':register' is no tool module"),
    ],
)
def test_tools_are_loaded_only_from_where_no_worker_can_write(make: Make, reference: str, says: str) -> None:
    project = make({"data/tools.py": "", "main.worker": worker(f"imports: {{tools: ['{reference}']}}")})
    with pytest.raises(ProjectError) as caught:
        project.worker("main")
    assert str(caught.value).startswith("main.worker:2:19: ") and says in str(caught.value)
