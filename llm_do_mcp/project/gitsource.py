"""A library in a git repository: the URL that names it, and its files at one commit, fetched with the system's git.

A repository is as foreign as what a model reads. So git runs without hooks, filters and submodules, over the one
protocol that the URL names, without a terminal to ask for passwords at, and not for ever; and what it checks out is
then looked at like any other folder.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from urllib.parse import urlsplit

from llm_do_mcp.errors import ProjectError, UsageError
from llm_do_mcp.project.checked import quoted
from llm_do_mcp.project.paths import project_path
from llm_do_mcp.sandbox.names import one_line

PREFIX = "git+"
PROTOCOLS = ("https", "ssh", "file")
FORM = "git+https://HOST/REPOSITORY.git@COMMIT#subdir=FOLDER (also git+ssh:// and git+file://; @ and # may be left out)"
PATIENCE_S = 300.0
"""How long one git command may take."""

_REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/+-]*")
_HOST = re.compile(r"([A-Za-z0-9._-]+@)?[A-Za-z0-9\[][A-Za-z0-9.:\[\]-]*")
_PLAIN = re.compile(r"[!-~]+")
_FROM_OUTSIDE = ("GIT_", "SSH_ASKPASS")
"""How variables start that change what git does: inside a hook of git's they would lead it to another repository."""
_KEPT = ("GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_PROXY_COMMAND")
"""How the user's git reaches others."""


@dataclass(frozen=True)
class GitSource:
    """What a `git+` URL names.

    Args:
        url: What git is given.
        revision: A commit, tag or branch; None for the repository's default.
        folder: The library's folder in the repository; "" for all of it.
    """

    url: str
    revision: str | None
    folder: str

    @property
    def named(self) -> str:
        """The URL as it was given, without the revision."""
        return f"{PREFIX}{self.url}" + (f"#subdir={self.folder}" if self.folder else "")

    @classmethod
    def parse(cls, text: str) -> GitSource:
        """Read a URL.

        Raises:
            UsageError: It is not of the form that is allowed.
        """
        url, mark, fragment = text.removeprefix(PREFIX).partition("#")
        try:
            parts = urlsplit(url)
            folder = project_path(fragment.removeprefix("subdir=")) if mark else ""
        except ValueError as error:
            raise UsageError(f"{quoted(text)}: {error}") from None
        path, at, revision = parts.path.rpartition("@") if "@" in parts.path else (parts.path, "", "")
        if parts.password is not None or (parts.username is not None and parts.scheme != "ssh"):
            raise UsageError("a password or token in a URL would be kept; leave it to git's credential helper")
        fits = (
            text.startswith(PREFIX)
            and _PLAIN.fullmatch(text)
            and parts.scheme in PROTOCOLS
            and not parts.query
            and (_HOST.fullmatch(parts.netloc) if parts.scheme != "file" else not parts.netloc)
            and path.startswith("/")
            and not (at and not _REVISION.fullmatch(revision))
            and not (mark and not fragment.startswith("subdir="))
        )
        if not fits:
            raise UsageError(f"{quoted(text)} is not of the form {FORM}")
        return cls(f"{parts.scheme}://{parts.netloc}{path}", revision or None, folder)


def fetch(source: GitSource, private: str) -> tuple[str, str]:
    """Fetch a repository and check a commit out.

    Args:
        source: What to fetch.
        private: A folder for it.

    Returns:
        The library's folder, and the commit's whole id.

    Raises:
        ProjectError: There is no git, it failed or took too long, or the commit or folder does not exist.
    """
    repository, tree = os.path.join(private, "repository"), os.path.join(private, "tree")
    _git(
        "clone",
        *("--quiet", "--bare", "--template=", "--no-recurse-submodules", "--no-local", "--", source.url, repository),
        protocol=urlsplit(source.url).scheme,
    )
    # From here on git is told nothing by anyone: no filter, hook or alias of anybody's configuration can run.
    alone = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_DIR": repository, "GIT_WORK_TREE": tree}
    revision = source.revision or "HEAD"
    try:
        commit = _git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", added=alone)
    except ProjectError:
        raise ProjectError(f"{source.url} has no commit, tag or branch {quoted(revision)}") from None
    os.mkdir(tree)
    _git("checkout", "--quiet", "--force", commit, "--", ".", added=alone)
    folder = os.path.join(tree, *source.folder.split("/"))
    if os.path.realpath(folder) != os.path.join(os.path.realpath(tree), *filter(None, source.folder.split("/"))):
        raise ProjectError(f"subdir={source.folder} is a link; name the folder that it leads to")
    if not os.path.isdir(folder):
        raise ProjectError(f"{source.url} has no folder {source.folder!r} at {commit[:12]}")
    return folder, commit


def _git(*words: str, protocol: str = "", added: dict[str, str] | None = None) -> str:
    """Run git; what it printed, without the line end."""
    program = shutil.which("git")
    if program is None:
        raise ProjectError("there is no git on the PATH; install it, or install the library from a folder")
    kept = {n: v for n, v in os.environ.items() if not n.startswith(_FROM_OUTSIDE) or n in _KEPT}
    environment = {
        **kept,
        "GIT_ALLOW_PROTOCOL": protocol,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "GCM_INTERACTIVE": "never",
        "SSH_ASKPASS_REQUIRE": "never",
        "LC_ALL": "C",
        **(added or {}),
    }
    # A session of its own has no terminal, so that nothing below git can ask there either, and can be ended as a whole.
    process = subprocess.Popen(
        [program, "-c", f"core.hooksPath={os.devnull}", *words],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=sys.platform != "win32",
    )
    try:
        output, complaint = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        raise ProjectError(f"git {words[0]} took longer than {PATIENCE_S:g} s") from None
    finally:
        _end(process)
    if process.returncode:
        said = [line for line in complaint.decode("utf-8", "replace").splitlines() if line.strip()]
        raise ProjectError(f"git {words[0]}: {_reason(said) or f'exit status {process.returncode}'}")
    return output.decode("utf-8", "replace").strip()


def _reason(said: list[str]) -> str:
    """Of what git said, the line that tells why: the first fatal one. What follows is advice."""
    line = next((line for line in said if line.startswith(("fatal:", "error:"))), said[-1] if said else "")
    return one_line(line, 300)  # the other host may have written it


def _end(process: subprocess.Popen[bytes]) -> None:
    """End git and what it started, where it has not ended by itself."""
    if process.poll() is None:
        if sys.platform == "win32":
            process.kill()
        else:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
