"""Trees of source that searches are measured on, fetched once from the indexes that this machine uses anyway.

Each is fetched by the index's own client (pip, apt, npm), verified by it, and kept in the cache folder of the system.
What cannot be fetched here (no Debian, no npm) is told and left out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "llm-do-bench"


@dataclass(frozen=True)
class Corpus:
    """A tree of source, and how its definitions are known.

    Each of `truths` is `ast` (Python's parser), `typescript` (its compiler's), or the language and kinds for which
    `ctags` is asked. `fetch` puts archives into a folder, or the `tree` itself. `parts` are the parts of the archives
    that are kept.
    """

    name: str
    truths: tuple[str, ...]
    fetch: Callable[[Path], None]
    parts: tuple[str, ...] = ("",)

    def folder(self) -> Path | None:
        """The tree, fetched if need be; None if that is not possible here."""
        folder = CACHE / self.name
        if folder.exists():
            return folder
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as work:
            try:
                self.fetch(Path(work))
            except (OSError, subprocess.CalledProcessError) as error:
                print(f"{self.name} cannot be fetched here: {error}", file=sys.stderr)
                return None
            _unpack(Path(work), self.parts)
            shutil.move(Path(work) / "tree", folder)
        return folder


def _unpack(work: Path, parts: tuple[str, ...]) -> None:
    tree = work / "tree"
    for archive in sorted(work.iterdir()):
        if not archive.name.endswith((".tgz", ".tar.gz", ".orig.tar.xz")):
            continue
        with tarfile.open(archive) as opened:
            for member in opened:
                _, _, inner = member.name.removeprefix("./").partition("/")
                if member.isfile() and inner.startswith(parts):
                    member.name = f"{archive.name.partition('_')[0].partition('-')[0]}/{inner}"
                    opened.extract(member, tree, filter="data")


def sdist(*names: str) -> Callable[[Path], None]:
    """Source distributions from the Python package index."""

    def fetch(work: Path) -> None:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary=:all:", *names]
        subprocess.run(command, cwd=work, check=True)

    return fetch


def standard_library(work: Path) -> None:
    """The library of the running interpreter, without what was installed into it."""
    shutil.copytree(
        sysconfig.get_path("stdlib"),
        work / "tree",
        ignore=shutil.ignore_patterns("site-packages", "__pycache__", "*.so", "*.a", "config-*"),
    )


def debian(name: str) -> Callable[[Path], None]:
    """A Debian source package, from the mirror that this machine's own packages come from."""

    def fetch(work: Path) -> None:
        listed = subprocess.run(
            ["apt-get", "indextargets", "--format=$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages"],
            capture_output=True,
            text=True,
            check=True,
        )
        # the release itself: what updates hold may be gone from the mirror that this machine knows
        wanted = sorted({line for line in listed.stdout.splitlines() if line.endswith(" main") and "-" not in line})
        (work / "sources.list").write_text("".join(f"deb-src {line}\n" for line in wanted))
        (work / "lists/partial").mkdir(parents=True)
        options = {"Dir::Etc::SourceList": "sources.list", "Dir::Etc::SourceParts": "-", "Dir::State::Lists": "lists"}
        apt = ["apt-get", "-qq"]
        for option, path in options.items():
            apt += ["-o", f"{option}={work / path}"]
        apt += ["-o", f"Dir::Cache={work}"]
        for verb in (("update",), ("source", "--download-only", name)):
            subprocess.run([*apt, *verb], cwd=work, check=True, stderr=subprocess.DEVNULL)

    return fetch


def npm(*names: str) -> Callable[[Path], None]:
    """Packages from the npm registry, of which nothing is run."""

    def fetch(work: Path) -> None:
        command = ["npm", "pack", "--silent", "--ignore-scripts", *names]
        subprocess.run(command, cwd=work, check=True, stdout=subprocess.DEVNULL)

    return fetch


CORPORA = (
    Corpus("django", ("ast",), sdist("django==5.2")),
    Corpus("stdlib", ("ast",), standard_library),
    Corpus("cpython", ("C:fsugtd",), debian("python3.11"), ("Include/", "Modules/", "Objects/", "Parser/", "Python/")),
    Corpus("typescript", ("typescript", "TypeScript:fcgia"), npm("effect", "rxjs", "zod"), ("src/",)),
    Corpus("go", ("Go:ftsi",), debian("golang-1.19"), ("src/",)),
    Corpus("rust", ("Rust:fPsgitMn",), debian("rustc"), ("compiler/", "library/", "src/tools/")),
)
TYPESCRIPT = Corpus("typescript-compiler", (), npm("typescript@5.9"), ("lib/typescript.js",))
"""Tells what is defined in TypeScript, of which ctags misses a seventh."""
LINUX = Corpus("linux", (), debian("linux"))
