"""What a bundle holds of a folder: what can be told from names to be no part of it is left out.

That is what begins with a dot, bundles, private keys, what runs wrote into folders of the mode `out`, and what the
folder's `.mcpbignore` names, the file that the makers of the format have for it. What is left out without having been
asked for is told, and so is what is packed: a secret may have any name.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from llm_do_mcp.cli.bundled import MAX_FILE
from llm_do_mcp.leftovers import SKIPPED
from llm_do_mcp.project.files import ProjectFiles
from llm_do_mcp.project.scan import ignored
from llm_do_mcp.runtime.display import counted
from llm_do_mcp.sandbox import names
from llm_do_mcp.sandbox.opener import Directory, Found

if TYPE_CHECKING:
    from llm_do_mcp.project.load import Project

IGNORE_FILE = ".mcpbignore"
BUNDLE = ".mcpb"
KEPT = (".llm-doignore",)
"""Names that begin with a dot and are packed all the same."""
KEYS = (".env", ".jks", ".kdbx", ".key", ".keystore", ".p12", ".pem", ".pfx", ".ppk")
"""How the names of files end in which keys are kept, in small letters."""
KEY_NAMES = ("id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk", "id_rsa")
"""What such files are called that have no suffix."""
PRIVATE_KEY = re.compile(
    rb"(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff)?\s*"
    rb"(?:PuTTY-User-Key-File-"
    rb"|(?:(?:(?:Bag|Key) Attributes|-----BEGIN ).*?[\r\n])?----[- ]BEGIN [A-Z0-9 ]*PRIVATE KEY)",
    re.DOTALL,
)
"""How they begin, whatever they are called: also behind a byte order mark, certificates, or what OpenSSL says first."""
BEGINNING = 64_000
"""Bytes in which that is looked for."""
_A_KEY = "keys are no part of a bundle"

Path = tuple[str, ...]


@dataclass(frozen=True)
class Packed:
    """Of one folder.

    Args:
        files: What is in its files, by their paths.
        left_out: What is not packed though nobody said so, and why, a line each.
    """

    files: Mapping[str, bytes]
    left_out: tuple[str, ...]

    def __str__(self) -> str:
        """What lies at its top, with the number of files in each folder."""
        tops = Counter(path.partition("/")[0] + ("/" if "/" in path else "") for path in self.files)
        return ", ".join(f"{top} ({counted(tops[top], 'file')})" if top.endswith("/") else top for top in sorted(tops))


def of_project(project: Project, output: str) -> Packed:
    """The files of a project.

    Args:
        project: Of what.
        output: The file that is being made, which may lie in it.
    """
    roots = (*project.roots, *(root for worker in project.exported() for root in worker.roots))
    made = [os.path.realpath(output), *(root.path for root in roots if root.mode == "out")]
    own = [os.path.relpath(path, project.root) for path in made if names.is_below(path, project.root)]
    return packed(project.root, without=frozenset(tuple(path.split(os.sep)) for path in own))


def packed(root: str, *, without: frozenset[Path] = frozenset()) -> Packed:
    """The files of a folder.

    Args:
        root: Where it is.
        without: What else is no part of it.

    Raises:
        LlmDoError: Something cannot be read.
    """
    files: dict[str, bytes] = {}
    left_out: list[str] = []
    unwanted = ignored(ProjectFiles(root), IGNORE_FILE)

    def belongs(path: Path) -> bool:
        return is_part(path[-1]) and path not in without

    with Directory.open(root, label=os.path.basename(root)) as directory:
        for found in sorted(directory.walk(descend=belongs), key=lambda one: one.parts):
            name = "/".join(found.parts)
            if found.kind == "directory" or not belongs(found.parts) or unwanted(name):
                continue
            reason = _reason(found)
            data = b"" if reason else directory.read_whole(found.parts, MAX_FILE)
            if _is_key(data):
                reason = _A_KEY
            if reason is not None:
                left_out.append(f"{names.shown_path(found.parts)}: {reason}")
            else:
                files[name] = data
    return Packed(files, tuple(left_out))


def is_part(name: str) -> bool:
    """Whether a file or folder of this name can be a part of a project."""
    return name in KEPT or (name not in SKIPPED and not name.startswith("."))


def _reason(found: Found) -> str | None:
    """Why something is left out; None where it is not."""
    path = "/".join(found.parts)
    if found.kind != "file":
        return found.reason or "a link, or no regular file"
    if names.shown_path(found.parts) != path or not _is_portable(path):
        return "not a file name on every system"
    name = found.parts[-1].lower()
    if name.endswith(BUNDLE):
        return "a bundle"
    return _A_KEY if name.endswith(KEYS) or name in KEY_NAMES else None


def _is_key(data: bytes) -> bool:
    """Whether a file begins as private keys do, in UTF-8 or in UTF-16, which has a zero at each of their letters."""
    return PRIVATE_KEY.match(data[:BEGINNING].replace(b"\0", b"")) is not None


def _is_portable(path: str) -> bool:
    try:
        names.components(path, windows=True)
    except names.BadName:
        return False
    return True
