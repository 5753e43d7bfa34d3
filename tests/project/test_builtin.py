"""The built-in library `pkg`: there for every project, behind all that the project has itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_do_mcp.errors import ProjectError
from llm_do_mcp.project import builtin
from llm_do_mcp.project.render import Renderer
from tests.project.conftest import Make, problems, worker
from tests.project.shelf import load_with


@pytest.mark.proves("PROJECT-BUILT-IN")
def test_a_built_in_worker_is_found_after_the_projects_and_the_libraries(tmp_path: Path, make: Make) -> None:
    assert make({"main.worker": worker()}).worker("summarizer").id == "pkg:summarizer"
    assert make({"workers/summarizer.worker": worker()}).worker("summarizer").id == "summarizer"
    files = {"main.worker": worker(), "project.yaml": "dependencies: [utils]"}
    utils = {"lib.yaml": "exports: [summarizer]", "workers/summarizer.worker": worker()}
    project = load_with(tmp_path / "other", files, {"utils": utils})
    assert project.worker("summarizer").id == "utils:summarizer"
    assert project.worker("pkg:summarizer").id == "pkg:summarizer"


@pytest.mark.anyio
@pytest.mark.proves("PROJECT-BUILT-IN")
async def test_its_templates_are_included_by_name_and_its_workers_render(make: Make, renderer: Renderer) -> None:
    project = make({"main.worker": worker(body="{% include 'untrusted.jinja' %}|{% include 'pkg:untrusted.jinja' %}")})
    one, other = (await renderer.render(project, project.worker("main"), "x")).instructions.split("|")
    assert one.strip() == other.strip() != ""
    own = await renderer.render(project, project.worker("pkg:summarizer"), "x", {"words": 7})
    assert "at most 7 words" in own.instructions and one.strip() in own.instructions


@pytest.mark.anyio
@pytest.mark.proves("PROJECT-BUILT-IN")
async def test_a_template_of_the_project_goes_before_a_built_in_one(make: Make, renderer: Renderer) -> None:
    files = {"main.worker": worker(body="{% include 'untrusted.jinja' %}"), "templates/untrusted.jinja": "ours"}
    project = make(files)
    assert (await renderer.render(project, project.worker("main"), "x")).instructions.strip() == "ours"


@pytest.mark.proves("PROJECT-BUILT-IN")
def test_every_built_in_worker_is_whole_and_a_bare_star_does_not_permit_it(make: Make) -> None:
    project = make({"main.worker": worker("allow_workers: '*'")})
    identifiers = [f"pkg:{name}" for name in builtin.library().exports]
    assert identifiers and [project.worker(identifier).id for identifier in identifiers] == identifiers
    assert not any(project.worker("main").may_call(identifier) for identifier in identifiers)


@pytest.mark.proves("PROJECT-BUILT-IN")
def test_nobody_depends_on_it(make: Make) -> None:
    with pytest.raises(ProjectError) as caught:
        make({"main.worker": worker(), "project.yaml": "dependencies: [pkg]"})
    assert "built-in" in problems(caught.value)[0]
