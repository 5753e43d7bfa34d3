"""`llm-do my-worker`: workers and projects by name, from the folders of `LLM_DO_PATH`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.commands import llm_do
from tests.project.conftest import worker, write

SAYS = "model: scripted:model.yaml\n"


def named(place: Path, name: str, says: str) -> dict[str, str]:
    """The files of a project of that name, whose only worker says something."""
    return {
        f"{place}/{name}/main.worker": worker(SAYS),
        f"{place}/{name}/model.yaml": f"workers: {{main: ['{says}']}}\n",
    }


@pytest.mark.proves("CLI-NAMED")
def test_a_worker_of_the_usual_place_is_called_by_its_name(tmp_path: Path) -> None:
    home = tmp_path / "home"
    write(
        home / ".llm-do",
        {
            "workers/my-worker.worker": worker(SAYS + "allow_workers: [helper]"),
            "workers/helper.worker": worker(SAYS),
            "workers/broken.worker": worker("modle: x"),
            "workers/model.yaml": """
                workers:
                  my-worker: [{tool_calls: [{name: worker_call, input: {worker: helper}}]}, hello]
                  helper: [help]
            """,
        },
    )
    env = {"HOME": str(home), "USERPROFILE": str(home)}
    done = llm_do("my-worker", "input", cwd=tmp_path, env=env)
    assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr
    assert "my-worker > helper" in done.stderr, "it can call those beside it"
    assert sorted(path.name for path in (home / ".llm-do").iterdir()) == ["workers"], "its folder is its project"
    report = json.loads(llm_do("check", "my-worker", "--json", cwd=tmp_path, env=env).stdout)
    assert report["ok"] and report["project"]["root"] == os.path.realpath(home / ".llm-do" / "workers")
    assert [one["id"] for one in report["workers"]] == ["my-worker", "helper"], "what it cannot reach is another's"


@pytest.mark.proves("CLI-NAMED")
def test_the_first_folder_that_has_the_name_counts(tmp_path: Path) -> None:
    write(tmp_path, {**named(Path("b"), "greeter", "b"), **named(Path("c"), "greeter", "c")})
    folders = [tmp_path / name for name in ("a", "b", "c")]
    path = os.pathsep.join(["", *map(str, folders), ""])
    done = llm_do("greeter", cwd=tmp_path, env={"LLM_DO_PATH": path})
    assert (done.returncode, done.stdout) == (0, "b\n"), done.stderr
    assert '"main"' in llm_do("list", "greeter", "--json", cwd=tmp_path, env={"LLM_DO_PATH": path}).stdout


@pytest.mark.proves("CLI-NAMED")
def test_a_path_wins_over_a_name(tmp_path: Path) -> None:
    write(tmp_path, {**named(Path("."), "greeter", "here"), **named(Path("b"), "greeter", "there")})
    done = llm_do("greeter", cwd=tmp_path, env={"LLM_DO_PATH": str(tmp_path / "b")})
    assert (done.returncode, done.stdout) == (0, "here\n"), done.stderr


@pytest.mark.proves("CLI-NAMED")
@pytest.mark.parametrize(
    ("given", "path", "says"),
    [
        ("nobody", "{root}/a{sep}{root}/b", "looked for it and for nobody.worker in {root}/a, {root}/b"),
        ("nobody", "", "in no folder"),
        ("nobody", "relative/folder", "LLM_DO_PATH: 'relative/folder' is not absolute"),
        ("twice", "{root}/b", "'twice' may be {root}/b/twice.worker or {root}/b/twice; name one by its path"),
        ("../b/twice", "{root}/a", "there is no '../b/twice'"),
        ("twice.worker", "{root}/b", "there is no 'twice.worker'"),
    ],
)
def test_what_is_not_found_says_where_was_looked(tmp_path: Path, given: str, path: str, says: str) -> None:
    write(tmp_path, {"b/twice.worker": worker(), "b/twice/main.worker": worker(), "a/empty/x.txt": ""})
    places = {"root": str(tmp_path), "sep": os.pathsep}
    done = llm_do(given, cwd=tmp_path, env={"LLM_DO_PATH": path.format(**places)})
    assert (done.returncode, done.stdout) == (2, "")
    assert says.format(**places).replace("/", os.sep) in done.stderr.replace("/", os.sep), done.stderr
    assert len(done.stderr.splitlines()) == 1
