"""Sandbox roots: where they lie, who may name what, and what cannot be written in them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from llm_do_mcp.errors import ProjectError
from llm_do_mcp.sandbox.patterns import is_protected
from llm_do_mcp.sandbox.root import Root
from tests.project.conftest import Make, worker


def roots_of(make: Make, paths: str, manifest: str = "") -> dict[str, Root]:
    files = {"main.worker": worker(f"sandbox: {{paths: {paths}}}"), "project.yaml": manifest}
    return {root.alias: root for root in make(files).worker("main").roots}


@pytest.mark.proves("PROJECT-ROOTS")
def test_relative_roots_start_at_the_project_whatever_the_working_directory(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    roots = roots_of(make, "{in: ro:./input, Out Put: out:out/deep, all: {root: .}}")
    home = os.path.realpath(tmp_path)
    assert {alias: (root.path, root.mode) for alias, root in roots.items()} == {
        "in": (f"{home}/input", "ro"),
        "out_put": (f"{home}/out/deep", "out"),
        "all": (home, "ro"),
    }
    assert not (tmp_path / "out").exists()


@pytest.mark.proves("PROJECT-ROOTS")
def test_absolute_roots_are_the_manifests_privilege(make: Make, tmp_path: Path) -> None:
    elsewhere = os.path.realpath(tmp_path.parent)
    roots = roots_of(make, "{}", f"sandbox: {{paths: {{a: {{root: {elsewhere}}}, b: {{root: '~'}}}}}}")
    assert roots["a"].path == elsewhere and roots["b"].path == os.path.realpath(os.path.expanduser("~"))
    with pytest.raises(ProjectError, match=r"main\.worker:2:29: .* only the manifest can name such a folder"):
        roots_of(make, f"{{a: {{root: {elsewhere}}}}}")


@pytest.mark.proves("PROJECT-ROOTS")
@pytest.mark.parametrize(
    ("paths", "says"),
    [
        ("{a: ro:../x}", "has '..'"),
        ("{a: ro:x/../../y}", "has '..'"),
        ("{a: {root: ''}}", "is not a path"),
        ("{a: {root: $HOME/x}}", "is not relative to the project"),
        ("{a: {root: main.worker}}", "'main.worker' is not a folder"),
        ("{'***': ro:x}", "alias '***' has no letter or digit"),
        ("{attachments: ro:x}", "alias 'attachments' is where a worker finds its attachments"),
        ("{a b: ro:x, a_b: ro:y}", "aliases 'a b' and 'a_b' are both 'a_b' in tool names; rename one"),
    ],
)
def test_a_root_that_cannot_be_used_is_refused(make: Make, paths: str, says: str) -> None:
    with pytest.raises(ProjectError) as caught:
        roots_of(make, paths)
    assert str(caught.value).startswith("main.worker:2:") and says in str(caught.value)


@pytest.mark.proves("PROJECT-ROOTS")
@pytest.mark.parametrize("folder", [".llm-do", ".git", ".git/hooks", "vendored/.git", ".GIT"])
@pytest.mark.parametrize("mode", ["ro", "rw", "out"])
def test_the_record_of_runs_and_the_history_are_no_roots(make: Make, tmp_path: Path, folder: str, mode: str) -> None:
    with pytest.raises(ProjectError, match=r"^main\.worker:2:.* lies in \.git or \.llm-do, which no worker can reach"):
        roots_of(make, f"{{a: {mode}:./{folder}}}")
    with pytest.raises(ProjectError, match=r"^project\.yaml:1:.* lies in \.git or \.llm-do"):
        roots_of(make, "{}", f"sandbox: {{paths: {{a: {{root: {tmp_path / folder}, mode: {mode}}}}}}}")
    assert roots_of(make, f"{{a: {mode}:./.github}}")


@pytest.mark.proves("PROJECT-ROOTS")
@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_a_relative_root_does_not_lead_out_through_a_link(make: Make, tmp_path: Path) -> None:
    (tmp_path / "input").symlink_to(tmp_path.parent)
    with pytest.raises(ProjectError, match="'input' is a link out of the project; name the folder itself"):
        roots_of(make, "{a: ro:input}")


LOADED = [
    "main.worker", "project.yaml", "llm-do.yaml", "workers/a/b.worker", "workers/a.yaml", "workers/x/tools.py",
    "templates/t.jinja", "prompts/p.md", "schemas/s.json", "schemas.py", "tools.py", "tools/a.py", "toolsets/a.py",
    "kit/a.py", "special/more.py", ".llm-doignore", "approvals.lock", "libs.lock", ".git/config", ".llm-do/x",
    "deep/x.worker", "report.json", ".GIT/config", "Workers/a.worker", "helper.py", "kit/a/b.py", "ujson/__init__.py",
    "helper.abi3.so", "helper.pyd", "env/bin/python", ".venv/bin/python", ".venv/lib/python3.11/site-packages/a.pth",
]  # fmt: skip
FREE = ["notes.md", "output/report.md", "output/data.json", "special/other.txt"]


@pytest.mark.proves("PROJECT-PROTECTED", "A063")
@pytest.mark.parametrize("mode", ["rw", "out"])
def test_what_the_loader_would_read_cannot_be_written(make: Make, mode: str) -> None:
    manifest = "tools: {roots: [kit], modules: [special/more.py], python: ./env/bin/python}"
    files = {"special/more.py": "", "project.yaml": manifest}
    make({"main.worker": worker(), **files})
    root = roots_of(make, f"{{all: {mode}:.}}", manifest)["all"]
    assert [path for path in LOADED if not is_protected(root.protected, path.split("/"))] == []
    assert [path for path in FREE if is_protected(root.protected, path.split("/"))] == []


@pytest.mark.proves("PROJECT-PROTECTED")
def test_protection_holds_in_roots_inside_and_around_the_project(make: Make, tmp_path: Path) -> None:
    above = os.path.realpath(tmp_path.parent)
    manifest = f"sandbox: {{paths: {{above: {{root: {above}, mode: rw}}, inner: rw:./workers/a, data: rw:./data}}}}"
    roots = roots_of(make, "{}", manifest)
    name = tmp_path.name
    assert is_protected(roots["above"].protected, [name, "tools.py"])
    assert not is_protected(roots["above"].protected, ["other", "tools.py"])
    assert is_protected(roots["inner"].protected, ["anything.txt"])
    assert is_protected(roots["data"].protected, ["x.worker"])
    assert not is_protected(roots["data"].protected, ["x.txt"])
    assert not is_protected(roots["data"].protected, ["script.py"]), "a folder that is named for it may have Python"
    assert is_protected(roots["above"].protected, [name, "data", "script.py"])
    assert not is_protected(roots["above"].protected, ["other", "data", "script.py"])
