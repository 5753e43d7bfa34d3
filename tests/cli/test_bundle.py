"""`llm-do-mcp bundle`: one file that holds all a host needs, and a project that stays its person's own."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from llm_do_mcp.cli import bundled, packed
from llm_do_mcp.cli.hosts import probe, start
from llm_do_mcp.errors import SandboxError
from tests.cli.commands import llm_do_mcp
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


@pytest.mark.proves("BUNDLE-WHOLE")
def test_a_bundle_that_is_made_inside_its_project_does_not_hold_itself(tmp_path: Path) -> None:
    project = shop(tmp_path / "shop")
    made = []
    for name in ("shop.mcpb", "shop.mcpb", "shop.zip", "shop.zip"):
        done = llm_do_mcp("bundle", ".", "--output", name, home=tmp_path, cwd=project)
        assert done.returncode == 0, done.stderr
        made.append((project / name).read_bytes())
    assert len(set(made)) == 1


@pytest.mark.proves("BUNDLE-TOLD")
def test_what_is_packed_is_told_and_what_has_a_secret_in_it_can_be_left_out(tmp_path: Path) -> None:
    files = dict.fromkeys(("in/tls.pem", "prod.env", "secrets/a.txt", "secrets/b.txt", "old.mcpb"), "x")
    project = shop(tmp_path / "shop", files=files)
    (project / os.fsdecode(b"\xff.txt")).write_text("x")
    bundle = tmp_path / "shop.mcpb"

    def pack() -> tuple[str, list[str]]:
        done = llm_do_mcp("bundle", project, "--output", bundle, home=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()[1], done.stderr.splitlines()

    packed, left_out = pack()
    assert packed.startswith("8 files of the project: in/ (1 file), main.worker, ") and "secrets/ (2 files)" in packed
    assert left_out == [
        "left out: in/tls.pem: keys are no part of a bundle",
        "left out: old.mcpb: a bundle",
        "left out: prod.env: keys are no part of a bundle",
        "left out: \\xff.txt: not a file name on every system",
    ]
    (project / ".mcpbignore").write_text("secrets/\n*.env\n")
    packed, left_out = pack()
    assert packed.startswith("6 files") and "secrets" not in packed and not any("prod.env" in line for line in left_out)
    with zipfile.ZipFile(bundle) as archive:
        names = [name.removeprefix("project/") for name in archive.namelist() if name.startswith("project/")]
    assert names == ["in/stock.txt", "main.worker", "model.py", "out/ledger.txt", "project.yaml", "turns.json"]


@pytest.mark.proves("BUNDLE-WHOLE", "BUNDLE-TOLD")
def test_keys_are_left_out_whatever_the_case_of_their_names(tmp_path: Path) -> None:
    kept = ("server.PEM", "ID.Key", "id_rsa", "ID_ED25519", "store.JKS", "prod.ENV", "old.MCPB")
    project = shop(tmp_path / "shop", files={f"in/{name}": "x" for name in kept})
    (project / "in" / "deploy").write_text("\n-----BEGIN OPENSSH PRIVATE KEY-----\nx\n")
    (project / "in" / "putty.txt").write_text("PuTTY-User-Key-File-3: ssh-rsa\n")
    (project / "in" / "about.md").write_text("A key begins with -----BEGIN RSA PRIVATE KEY-----\n")
    done = llm_do_mcp("bundle", project, "--output", tmp_path / "shop.mcpb", home=tmp_path)
    left_out = [line.split(": ")[1] for line in done.stderr.splitlines()]
    assert left_out == sorted(f"in/{name}" for name in (*kept, "deploy", "putty.txt")), done.stderr
    with zipfile.ZipFile(tmp_path / "shop.mcpb") as archive:
        inside = [name for name in archive.namelist() if name.startswith("project/in/")]
    assert inside == ["project/in/about.md", "project/in/stock.txt"]


KEY = "-----BEGIN PRIVATE KEY-----\nMII\n"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n"


@pytest.mark.proves("BUNDLE-KEYS")
@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (KEY, "utf-8-sig"),
        (KEY, "utf-16"),
        (KEY, "utf-16-be"),
        (f"Bag Attributes\r\n    localKeyID: 01\r\nKey Attributes: <No Attributes>\r\n{KEY}", "utf-8"),
        (f"Bag Attributes\n    localKeyID: 01\n{CERTIFICATE * 50}Bag Attributes\n{KEY}", "utf-8"),
        (f"{CERTIFICATE}{KEY}", "utf-8"),
        (f"-----BEGIN EC PARAMETERS-----\nBg\n-----END EC PARAMETERS-----\n{KEY}", "utf-8"),
        ("---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nP2\n", "utf-8"),
        ("PuTTY-User-Key-File-3: ssh-rsa\nEncryption: none\n", "utf-8"),
    ],
)
def test_a_key_is_known_by_how_it_begins(text: str, encoding: str) -> None:
    assert packed._is_key(text.encode(encoding))


@pytest.mark.proves("BUNDLE-KEYS")
@pytest.mark.parametrize(
    "text", [CERTIFICATE, f"# How keys look\n{KEY}", f"Bag Attributes\nare no {KEY}", "About PuTTY-User-Key-File-3"]
)
def test_what_only_speaks_of_keys_is_none(text: str) -> None:
    assert not packed._is_key(text.encode())


@pytest.mark.proves("BUNDLE-REFUSED")
@pytest.mark.parametrize("words", [["--author", "\udcff"], ["--", "--model", "\udcff"]])
@pytest.mark.skipif(sys.platform == "win32", reason="words are always Unicode there")
def test_what_is_no_unicode_is_not_bundled(tmp_path: Path, words: list[str]) -> None:
    done = llm_do_mcp("bundle", shop(tmp_path / "shop"), *words, home=tmp_path, cwd=tmp_path)
    assert done.returncode == 2 and "it has bytes that are no UTF-8" in done.stderr and done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["shop"]


@pytest.mark.proves("BUNDLE-REFUSED")
@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("here", "--output here: that is a folder; name a file"),
        ("gone/x.mcpb", "--output gone/x.mcpb: there is no folder gone"),
        ("x" * 300, f"{'x' * 300} cannot be written: "),
        ("", "--output: it is empty"),
    ],
)
def test_where_no_bundle_can_be_made_is_named_as_it_was_given(tmp_path: Path, output: str, said: str) -> None:
    (tmp_path / "here").mkdir()
    done = llm_do_mcp("bundle", shop(tmp_path / "shop"), "--output", output, home=tmp_path, cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1
    assert sorted(path.name for path in tmp_path.rglob("*.mcpb*")) == []


@pytest.mark.proves("BUNDLE-PLACE")
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a pipe with a name")
def test_what_is_no_file_stays_what_it_is(tmp_path: Path) -> None:
    project = shop(tmp_path / "shop")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "leads").symlink_to("pipe")
    (tmp_path / "loop").symlink_to("loop")
    before = sorted(os.listdir(tmp_path))
    for name in ("pipe", "leads", "loop"):
        done = llm_do_mcp("bundle", project, "--output", name, home=tmp_path, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"llm-do-mcp bundle: {name} cannot be written: it is no regular file\n"
    assert sorted(os.listdir(tmp_path)) == before
    assert (tmp_path / "pipe").is_fifo() and os.readlink(tmp_path / "leads") == "pipe"
    assert os.readlink(tmp_path / "loop") == "loop"


@pytest.mark.proves("BUNDLE-PLACE")
@pytest.mark.parametrize("there", ["a bundle", "an empty file", ""])
def test_a_link_stays_and_the_bundle_is_what_it_leads_to(tmp_path: Path, there: str) -> None:
    project = shop(tmp_path / "shop")
    real = tmp_path / "releases" / "real.mcpb"
    real.parent.mkdir()
    if there:
        earlier(real) if there == "a bundle" else real.touch()
    (tmp_path / "link.mcpb").symlink_to(real)
    done = llm_do_mcp("bundle", project, "--output", "link.mcpb", home=tmp_path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert os.readlink(tmp_path / "link.mcpb") == str(real) and zipfile.is_zipfile(real)


@pytest.mark.proves("BUNDLE-OVER")
@pytest.mark.parametrize("name", ["tools.py", "main.worker", "cut.mcpb", "other.zip", "leads"])
def test_what_is_no_bundle_is_not_replaced_by_one(tmp_path: Path, name: str) -> None:
    project = shop(tmp_path / "shop", files={"tools.py": "X = 1\n"})
    (project / "cut.mcpb").write_bytes(earlier(tmp_path / "earlier.mcpb").read_bytes()[:-1])
    with zipfile.ZipFile(project / "other.zip", "w") as archive:
        archive.writestr("manifest.json", "{}")
    (project / "leads").symlink_to("tools.py")
    before = (project / name).read_bytes()
    done = llm_do_mcp("bundle", project, "--output", project / name, home=tmp_path)
    said = f"--output {project / name}: that is there and no bundle of ours; remove it, or name another file\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"llm-do-mcp bundle: {said}")
    assert (project / name).read_bytes() == before and (project / "leads").is_symlink()


def earlier(file: Path) -> Path:
    """A bundle, as far as it is looked at before it is replaced."""
    with zipfile.ZipFile(file, "w") as archive:
        for name in ("manifest.json", "project.json"):
            archive.writestr(name, "{}")
    return file


@pytest.mark.proves("BUNDLE-REFUSED")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--state-dir", "/var/runs"], "no --state-dir, no other project"),
        (["../den"], "no --state-dir, no other project"),
        (["--lib", "libs"], "--lib: give it before the `--`"),
        (["--tokens", "tokens"], "belong to --http"),
    ],
)
def test_what_holds_on_this_machine_only_is_not_handed_on(tmp_path: Path, words: list[str], said: str) -> None:
    project = shop(tmp_path / "shop")
    done = llm_do_mcp("bundle", project, "--", *words, home=tmp_path, cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["shop"]


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
        heard = probe.speak(start.Start(command, env), era)
        assert heard.problem == "", heard.errors
        assert "shop" in [tool["name"] for tool in heard.lists["tools"]]
    assert (chosen / "main.worker").read_bytes() == (tmp_path / "shop" / "main.worker").read_bytes()
    unset = probe.speak(start.Start(command), probe.HANDSHAKE)
    assert unset.errors == ["llm-do-mcp: no folder was chosen for the project; choose one in the extension's settings"]


@pytest.mark.proves("BUNDLE-STARTS")
def test_the_libraries_of_a_project_are_in_its_bundle(tmp_path: Path) -> None:
    library = tmp_path / "libs" / "fruit"
    (library / "workers").mkdir(parents=True)
    (library / "lib.yaml").write_text("name: fruit\n")
    (library / "workers" / "peel.worker").write_text(worker())
    project = shop(tmp_path / "shop", dependencies=["fruit"], exports=["main", "fruit:peel"])
    bundle = tmp_path / "shop.mcpb"
    done = llm_do_mcp("bundle", project, "--output", bundle, "--lib", "libs", home=tmp_path, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(tmp_path / "installed")
    command = [sys.executable, str(tmp_path / "installed" / "server" / "main.py")]
    heard = probe.speak(start.Start(command, {bundled.HERE: str(tmp_path / "mine")}), probe.MODERN)
    assert heard.problem == "" and "fruit_peel" in [tool["name"] for tool in heard.lists["tools"]], heard.errors


@pytest.mark.proves("BUNDLE-UPDATE")
def test_a_new_version_keeps_what_the_person_changed(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    bundled.bring(release(tmp_path / "1", a="1", b="1"), mine)
    (mine / "in" / "b").write_text("my own")
    (mine / "in" / "notes").write_text("mine")
    bundled.bring(release(tmp_path / "2", a="2", b="2", c="2"), mine)
    found = texts_in(mine / "in")
    assert found == {"a": "2", "b": "my own", "c": "2", "notes": "mine"}
    bundled.bring(release(tmp_path / "3", a="3", b="3", c="3"), mine)
    assert texts_in(mine / "in") == {**found, "a": "3", "c": "3"}


@pytest.mark.proves("BUNDLE-UPDATE-GONE")
def test_a_new_version_takes_away_what_it_has_no_more(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    bundled.bring(release(tmp_path / "1", **{"a": "1", "b": "1", "c": "1", "sub/d": "1", "e": "1"}), mine)
    (mine / "in" / "b").write_text("my own")
    (mine / "in" / "c").unlink()
    bundled.bring(release(tmp_path / "2", **{"c": "2", "e/f": "2", "g": "2"}), mine)
    assert texts_in(mine / "in") == {"b": "my own", "e/f": "2", "g": "2"}, "a file may become a folder"
    assert not (mine / "in" / "sub").exists()
    bundled.bring(release(tmp_path / "3", b="3", c="3", e="3", g="3"), mine)
    assert texts_in(mine / "in") == {"b": "my own", "e": "3", "g": "3"}, "and a folder a file"


@pytest.mark.proves("BUNDLE-UPDATE-GONE")
def test_a_folder_that_a_person_has_emptied_is_filled_anew(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    for version in ("1", "1", "2"):
        bundled.bring(release(tmp_path / version, a=version, b=version), mine)
        assert texts_in(mine / "in") == {"a": version, "b": version}
        shutil.rmtree(mine / "in")


@pytest.mark.proves("BUNDLE-UPDATE-GONE", "BUNDLE-CONFINED")
def test_nothing_is_removed_that_a_bundle_did_not_leave_there(tmp_path: Path) -> None:
    mine, outside = tmp_path / "mine", tmp_path / "outside"
    bundled.bring(release(tmp_path / "1", **{"a": "1", "sub/b": "1"}), mine)
    outside.mkdir()
    (outside / "b").write_text("1")
    (mine / "in" / "sub" / "b").unlink()
    (mine / "in" / "sub").rmdir()
    (mine / "in" / "sub").symlink_to(outside)
    record = json.loads((mine / bundled.RECORD).read_text())
    (mine / bundled.RECORD).write_text(json.dumps({**record, "../outside/b": record["in/sub/b"]}))
    bundled.bring(release(tmp_path / "2", a="2"), mine)
    assert texts_in(outside) == {"b": "1"} and (mine / "in" / "a").read_text() == "2"


@pytest.mark.proves("BUNDLE-UPDATE-GONE")
def test_several_copies_that_a_host_starts_at_once_update_one_folder(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    old = {f"{number % 7}/{number}": "1" for number in range(100)}
    bundled.bring(release(tmp_path / "1", **old), mine)
    update = release(tmp_path / "2", **{f"{number}": "2" for number in range(20)})
    together = threading.Barrier(6)

    def bring() -> None:
        together.wait()
        bundled.bring(update, mine)

    with ThreadPoolExecutor(6) as threads:
        for begun in [threads.submit(bring) for _ in range(6)]:
            begun.result()
    assert texts_in(mine / "in") == {f"{number}": "2" for number in range(20)}


@pytest.mark.proves("BUNDLE-UPDATE-GONE")
def test_where_a_file_cannot_be_removed_nothing_is_changed(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    bundled.bring(release(tmp_path / "1", a="1", b="1"), mine)
    (mine / "in" / "b").chmod(0o444)
    with pytest.raises(SandboxError, match="in/b: the file is read-only"):
        bundled.bring(release(tmp_path / "2", a="2"), mine)
    assert texts_in(mine / "in") == {"a": "1", "b": "1"}
    (mine / "in" / "b").chmod(0o644)
    bundled.bring(tmp_path / "2", mine)
    assert texts_in(mine / "in") == {"a": "2"}


@pytest.mark.proves("BUNDLE-UPDATE")
@pytest.mark.parametrize("record", ["{", "[1]", '{"in/a": 5}', '{".": "", "in": "", "": "x"}', "\xff"])
def test_where_the_record_of_a_bundle_is_broken_all_that_is_there_stays(tmp_path: Path, record: str) -> None:
    mine = tmp_path / "mine"
    bundled.bring(release(tmp_path / "1", a="1"), mine)
    (mine / bundled.RECORD).write_bytes(record.encode("latin-1"))
    bundled.bring(release(tmp_path / "2", a="2", b="2"), mine)
    assert texts_in(mine / "in") == {"a": "1", "b": "2"}
    assert json.loads((mine / bundled.RECORD).read_text()), "from now on it is known again"


@pytest.mark.proves("BUNDLE-CONFINED")
def test_a_bundle_writes_nothing_outside_the_folder_that_was_chosen(tmp_path: Path) -> None:
    mine, outside = tmp_path / "mine", tmp_path / "outside"
    for folder in (mine, outside):
        folder.mkdir()
    (mine / "in").symlink_to(outside)
    (mine / "main.worker").mkdir()
    (outside / "b").write_text("theirs")
    bundled.bring(release(tmp_path / "1", a="1", b="1"), mine)
    assert texts_in(outside) == {"b": "theirs"} and (mine / bundled.RECORD).exists()


@pytest.mark.proves("BUNDLE-CONFINED")
def test_a_state_folder_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    mine, outside = tmp_path / "mine", tmp_path / "outside"
    for folder in (mine, outside):
        folder.mkdir()
    (mine / ".llm-do").symlink_to(outside)
    with pytest.raises(SandboxError, match="link"):
        bundled.bring(release(tmp_path / "1", a="1"), mine)
    assert list(outside.iterdir()) == [] and [path.name for path in mine.iterdir()] == [".llm-do"]


@pytest.mark.proves("BUNDLE-CONFINED")
def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    mine, outside = tmp_path / "mine", tmp_path / "outside"
    (mine / ".llm-do").mkdir(parents=True)
    (mine / bundled.LOCK).symlink_to(outside)
    with pytest.raises(SandboxError, match="link"):
        bundled.bring(release(tmp_path / "1", a="1"), mine)
    assert not outside.exists() and not (mine / "in").exists()


def release(folder: Path, **texts: str) -> Path:
    """A bundle, unpacked, of a project with these files in `in/`."""
    for name, text in texts.items():
        file = folder / "project" / "in" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    digests = {f"in/{name}": hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
    (folder / "project.json").write_text(json.dumps(digests))
    return folder


def texts_in(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.proves("BUNDLE-REFUSED", "BUNDLE-TOLD")
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
