"""Libraries from git: real repositories, the system's git."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from llm_do_mcp.errors import ProjectError, UsageError
from llm_do_mcp.project import gitsource
from llm_do_mcp.project.gitsource import GitSource, fetch
from llm_do_mcp.project.installing import folders, install
from tests.cli.commands import PATIENCE_S
from tests.project.conftest import write

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git here")
posix = pytest.mark.skipif(sys.platform == "win32", reason="needs a shell script")


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "protocol.file.allow=always")
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


@pytest.fixture(autouse=True)
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's home, with nothing that this machine's configuration says."""
    home = tmp_path / "home"
    home.mkdir()
    for name in ("HOME", "USERPROFILE", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return home


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Version 1 (tag v1) with a library in a folder, version 2 on top, and a branch with a slash."""
    root = tmp_path / "repository"
    write(root, {"lib.yaml": "name: utils\nversion: '1'\n", "more/sub/lib.yaml": "name: sub\n"})
    git(root, "init", "--quiet")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "-m", "1")
    git(root, "tag", "v1")
    write(root, {"lib.yaml": "name: utils\nversion: '2'\n"})
    git(root, "commit", "--quiet", "-am", "2")
    git(root, "branch", "topic/x")
    return root


@pytest.fixture
def libs(tmp_path: Path) -> Path:
    return tmp_path / "libs"


def url(repository: Path, rest: str = "") -> str:
    return f"git+{repository.as_uri()}{rest}"


@pytest.mark.proves("LIB-GIT")
def test_a_library_is_installed_at_a_commit_which_is_recorded(repository: Path, libs: Path) -> None:
    first, second = git(repository, "rev-parse", "v1"), git(repository, "rev-parse", "HEAD")
    for revision, commit, version in (
        ("", second, "2"),
        ("@v1", first, "1"),
        ("@topic/x", second, "2"),
        (f"@{first}", first, "1"),
        (f"@{first[:10]}", first, "1"),
    ):
        done = install(url(repository, revision), str(libs))
        assert (done.library.version, done.record.commit) == (version, commit), revision
        assert done.record.source == url(repository) and done.record.shown == url(repository, f"@{commit}")
    assert not (libs / "utils" / ".git").exists() and sorted(os.listdir(libs)) == [".lock", "utils"]
    sub = install(url(repository, "@v1#subdir=more/sub"), str(libs))
    assert (sub.folder, sub.files) == ("sub", 1)
    assert sub.record.shown == url(repository, f"@{first}#subdir=more/sub")
    again = install(sub.record.shown, str(libs))
    assert again.record.commit == first, "what is shown installs the same again"


@pytest.mark.proves("LIB-GIT", "LIB-GIT-REFUSED")
@pytest.mark.parametrize(
    ("rest", "words"),
    [
        ("@nope", r"has no commit, tag or branch 'nope'$"),
        ("@v1#subdir=none", r"has no folder 'none' at \w{12}$"),
        ("@v1#subdir=lib.yaml", r"has no folder 'lib.yaml'"),
        ("@v1#subdir=more", r"^no lib.yaml and no project.yaml in 'git\+file:"),
        ("x", r"^git clone: fatal: "),
    ],
)
def test_what_is_not_in_the_repository_is_one_line(repository: Path, libs: Path, rest: str, words: str) -> None:
    with pytest.raises(ProjectError, match=words) as caught:
        install(url(repository, rest), str(libs))
    assert "\n" not in str(caught.value) and ".changing-" not in str(caught.value).replace(str(libs), "")
    assert folders(str(libs)) == () and os.listdir(libs) == [".lock"]


@pytest.mark.proves("LIB-GIT-REFUSED")
@pytest.mark.parametrize(
    "text",
    [
        "git+",
        "git+--upload-pack=touch x",
        "git+ext::sh -c 'touch x'",
        "git+ext::sh",
        "git+fd::17/foo",
        "git+http://example.com/r.git",
        "git+git://example.com/r.git",
        "git+git@example.com:r.git",
        "git+file:relative",
        "git+file://-x/r",
        "git+file:-x",
        "git+-x",
        "git+ssh://-oProxyCommand=touch/r.git",
        "git+ssh://git@-oProxyCommand=touch/r.git",
        "git+https:///r.git",
        "git+https://[::1/r.git",
        "git+https://example.com",
        "git+https://example.com/r.git?x=1",
        "git+https://example.com/r.git@",
        "git+https://example.com/r.git@--upload-pack=x",
        "git+https://example.com/r.git@HEAD~1",
        "git+https://example.com/r.git@a:b",
        "git+https://example.com/r.git#sub",
        "git+https://example.com/r.git#subdir=../x",
        "git+https://example.com/r.git#subdir=/x",
        "git+https://example.com/r.git\n",
        "git+https://example.com/r .git",
    ],
)
def test_a_url_that_could_mean_something_else_is_refused(text: str, libs: Path) -> None:
    with pytest.raises(UsageError) as caught:
        install(text, str(libs))
    assert "\n" not in str(caught.value) and not libs.exists()


@pytest.mark.proves("LIB-GIT-REFUSED")
@pytest.mark.parametrize("who", ["user:secret@", "secret@", ":secret@"])
def test_a_secret_in_a_url_is_neither_kept_nor_said(who: str) -> None:
    with pytest.raises(UsageError, match="a password or token in a URL would be kept") as caught:
        GitSource.parse(f"git+https://{who}example.com/r.git")
    assert "secret" not in str(caught.value)
    assert GitSource.parse("git+ssh://git@example.com/r.git@v1") == GitSource("ssh://git@example.com/r.git", "v1", "")


@posix
@pytest.mark.proves("LIB-GIT-HARMLESS")
def test_no_hook_filter_or_submodule_of_anybody_runs(
    repository: Path, libs: Path, person: Path, tmp_path: Path
) -> None:
    """What a repository brings, and what the person's own configuration would have git do with it."""
    mark = tmp_path / "ran"
    script = f"#!/bin/sh\ntouch {mark}\ncat\n"
    hooks = person / "template" / "hooks"
    for folder in (hooks, person / "hooks"):
        write(folder, {"post-checkout": script, "reference-transaction": script})
        for hook in folder.iterdir():
            hook.chmod(0o755)
    write(person, {"filter": script})
    (person / "filter").chmod(0o755)
    inner = tmp_path / "inner"
    shutil.copytree(repository, inner)
    git(repository, "submodule", "--quiet", "add", inner.as_uri(), "inner")
    write(repository, {".gitattributes": "*.yaml filter=evil\n"})
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-m", "3")
    config = f"""
        [init]
            templateDir = {person / "template"}
        [core]
            hooksPath = {person / "hooks"}
        [filter "evil"]
            smudge = {person / "filter"}
            required = true
        [submodule]
            recurse = true
        """
    write(person, {".gitconfig": config})
    install(url(repository), str(libs))
    assert not mark.exists() and not (libs / "utils" / "inner" / "lib.yaml").exists()
    subprocess.run(["git", "clone", "--quiet", repository.as_uri(), str(tmp_path / "plain")], capture_output=True)
    assert mark.exists(), "a plain clone runs them: the test would see it"


@posix
@pytest.mark.proves("LIB-GIT-HARMLESS")
def test_a_link_in_a_repository_leads_nowhere(repository: Path, libs: Path) -> None:
    (repository / "out").symlink_to("/etc")
    (repository / "in").symlink_to("more/sub")
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-m", "links")
    with pytest.raises(ProjectError, match=r"^in: a link to a folder; .* \(and 1 more\)$"):
        install(url(repository), str(libs))
    with pytest.raises(ProjectError, match=r"^subdir=in is a link; name the folder that it leads to$"):
        install(url(repository, "#subdir=in"), str(libs))
    assert folders(str(libs)) == ()


@posix
@pytest.mark.proves("LIB-GIT-NO-PROMPT")
def test_nobody_is_asked_for_a_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program that git starts to reach a host has no terminal to ask at, and is told not to ask."""
    script = (
        '#!/bin/sh\n(exec 3</dev/tty) 2>/dev/null && echo "a terminal" >&2\nprintenv | grep -E "PROMPT|ASKPASS" >&2\n'
    )
    write(tmp_path, {"ssh": script})
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(tmp_path / "ssh"))
    monkeypatch.setenv("SSH_ASKPASS", "/bin/true")
    monkeypatch.setattr(gitsource, "_reason", lambda lines: " ".join(lines))
    (tmp_path / "private").mkdir()
    with pytest.raises(ProjectError) as caught:
        fetch(GitSource.parse("git+ssh://git@example.com/r.git"), str(tmp_path / "private"))
    said = str(caught.value)
    assert "GIT_TERMINAL_PROMPT=0" in said and "SSH_ASKPASS_REQUIRE=never" in said and "GIT_ASKPASS= " in said
    assert "a terminal" not in said and "SSH_ASKPASS=/bin/true" not in said


@pytest.mark.proves("LIB-GIT-PATIENCE")
def test_a_host_that_never_answers_is_given_up(libs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gitsource, "PATIENCE_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(ProjectError, match=r"^git clone took longer than 0\.3 s$"):
            install(f"git+https://127.0.0.1:{port}/r.git", str(libs))
        silent.settimeout(PATIENCE_S)
        connection, _ = silent.accept()
        with connection:
            connection.settimeout(PATIENCE_S)
            while connection.recv(4096):
                pass  # ends when the last process that git had started is gone
    assert os.listdir(libs) == [".lock"]


@pytest.mark.proves("LIB-GIT-NO-GIT")
def test_without_git_one_line_says_what_to_do(libs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProjectError, match=r"^there is no git on the PATH; install it, or install the library from a"):
        install("git+https://example.com/r.git", str(libs))


@pytest.mark.proves("LIB-GIT")
def test_the_form_that_is_named_is_one_that_is_allowed() -> None:
    form = re.sub(r" \(.*", "", gitsource.FORM).replace("HOST", "example.com").replace("COMMIT", "v1")
    assert GitSource.parse(form) == GitSource("https://example.com/REPOSITORY.git", "v1", "FOLDER")
