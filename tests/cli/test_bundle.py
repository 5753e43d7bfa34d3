"""`llm-do-mcp bundle`: one file that holds all a host needs, and a project that stays its person's own."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from llm_do_mcp.cli import bundled
from llm_do_mcp.cli.hosts import probe, start
from tests.cli.test_install import llm_do_mcp
from tests.javascript import program, unavailable
from tests.serving.clients import PATHS, shop, worker


def made(tmp_path: Path, **manifest: object) -> Path:
    """A bundle of a shop, and of all that is about it."""
    files = {".env": "KEY=secret", "node_modules/x.js": "", "in/deep/ä b.txt": "ä", "results/old.md": "old"}
    paths = {"sandbox": {"paths": {**PATHS, "results": {"root": "./results", "mode": "out"}}}}
    project = shop(tmp_path / "shop", {"text": "hello"}, files=files, **{**paths, **manifest})
    done = llm_do_mcp("bundle", project, "--output", tmp_path / "shop.mcpb", home=tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return tmp_path / "shop.mcpb"


@pytest.mark.proves("BUNDLE-WHOLE")
def test_what_is_in_a_bundle_is_the_project_and_the_program_and_no_secret(tmp_path: Path) -> None:
    bundle = made(tmp_path)
    first = bundle.read_bytes()
    with zipfile.ZipFile(bundle) as archive:
        names = set(archive.namelist())
        manifest = json.loads(archive.read("manifest.json"))
    wanted = {"project/main.worker", "project/in/deep/ä b.txt", "server/main.py", "server/llm_do_mcp/cli/serve.py"}
    assert wanted <= names
    assert not any(".env" in name or "node_modules" in name or "old.md" in name or "pycache" in name for name in names)
    assert "shop" in [tool["name"] for tool in manifest["tools"]]
    assert manifest["user_config"]["key"]["sensitive"] is True
    assert made(tmp_path).read_bytes() == first, "the same project makes the same bytes"


@pytest.mark.proves("BUNDLE-VALID")
@pytest.mark.skipif(unavailable() is not None, reason=str(unavailable()))
def test_its_makers_own_program_takes_it(tmp_path: Path) -> None:
    with zipfile.ZipFile(made(tmp_path, version="2.1.0", description="ä")) as archive:
        archive.extractall(tmp_path / "out")
    command = [*program("mcpb"), "validate", str(tmp_path / "out" / "manifest.json")]
    judged = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert judged.returncode == 0, judged.stdout + judged.stderr


@pytest.mark.proves("BUNDLE-STARTS")
def test_an_installed_bundle_serves_a_folder_of_the_persons_own(tmp_path: Path) -> None:
    with zipfile.ZipFile(made(tmp_path)) as archive:
        archive.extractall(tmp_path / "installed")
    chosen = tmp_path / "Documents" / "shop"
    env = {bundled.HERE: str(chosen), "LLM_DO_MODEL": "${user_config.model}"}
    command = [sys.executable, str(tmp_path / "installed" / "server" / "main.py")]
    for era in probe.ERAS:
        heard = probe.speak(command, start.bare(env), era)
        assert heard.problem == "", heard.errors
        assert "shop" in [tool["name"] for tool in heard.lists["tools"]]
    assert (chosen / "main.worker").read_bytes() == (tmp_path / "shop" / "main.worker").read_bytes()
    unset = probe.speak(command, start.bare({}), probe.HANDSHAKE)
    assert unset.errors == ["llm-do-mcp: no folder was chosen for the project; choose one in the extension's settings"]


@pytest.mark.proves("BUNDLE-UPDATE")
def test_a_new_version_keeps_what_the_person_changed(tmp_path: Path) -> None:
    def release(**texts: str) -> Path:
        folder = tmp_path / f"bundle-{len(list(tmp_path.iterdir()))}"
        for name, text in texts.items():
            (folder / "project" / "in").mkdir(parents=True, exist_ok=True)
            (folder / "project" / "in" / name).write_text(text)
        digests = {f"in/{name}": bundled._digest(folder / "project" / "in" / name) for name in texts}
        (folder / "project.json").write_text(json.dumps(digests))
        return folder

    mine = tmp_path / "mine"
    bundled.bring(release(a="1", b="1"), mine)
    (mine / "in" / "b").write_text("my own")
    (mine / "in" / "notes").write_text("mine")
    bundled.bring(release(a="2", b="2", c="2"), mine)
    found = {path.name: path.read_text() for path in (mine / "in").iterdir()}
    assert found == {"a": "2", "b": "my own", "c": "2", "notes": "mine"}
    bundled.bring(release(a="3", b="3", c="3"), mine)
    assert {path.name: path.read_text() for path in (mine / "in").iterdir()} == {**found, "a": "3", "c": "3"}


@pytest.mark.proves("BUNDLE-REFUSED")
def test_a_broken_project_is_not_bundled_and_what_is_left_out_is_told(tmp_path: Path) -> None:
    project = shop(tmp_path / "shop")
    (project / "in" / "link").symlink_to("/etc/passwd")
    output = tmp_path / "x.mcpb"
    done = llm_do_mcp("bundle", project, "--output", output, home=tmp_path)
    assert done.returncode == 0 and done.stderr.startswith("left out: in/link: ")
    output.unlink()
    (project / "main.worker").write_text(worker({"nope": 1}))
    done = llm_do_mcp("bundle", project, "--output", output, home=tmp_path)
    assert done.returncode == 2 and "main.worker:2:2: " in done.stderr and not output.exists()
