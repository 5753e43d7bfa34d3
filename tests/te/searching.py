"""What the tests of `te` share: a way to search, and to read the envelope."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import llm_do_mcp
from llm_do_mcp.te import confine
from llm_do_mcp.te.command import execute

GUARDS = ("kernel", "verify", "none")
"""Landlock; handles and verified lines where there is no Landlock; the plain command."""

BEGIN, END = "# TE_BEGIN_META", "# TE_END_META"


@dataclass(frozen=True)
class Answer:
    """An envelope, taken apart."""

    text: str
    code: int
    meta: Mapping[str, Any]
    notes: Sequence[str]
    hits: Sequence[str]
    breadcrumb: str

    @property
    def left_out(self) -> int:
        """What the breadcrumbs say in sum."""
        return sum(int(number) for number in re.findall(r"# TE: (\d+) more", self.breadcrumb))


def search(
    command: str | Sequence[str],
    roots: Mapping[str, Any] | Path,
    *,
    guard: str = "kernel",
    budget: int = 16_000,
    **options: Any,
) -> Answer:
    """Run a command. `roots` may be one folder, which is then a plain working directory."""
    if guard == "kernel" and not confine.available():
        pytest.skip("this kernel has no Landlock")
    settings: dict[str, Any] = {"hidden": (".llm-do",), "suffixes": {}, "cancelled": None, "seconds": 30.0}
    given = {".": roots} if isinstance(roots, Path) else roots
    folders = {alias: root if isinstance(root, int) else str(root) for alias, root in given.items()}
    text, code = execute(
        command,
        roots=folders,
        budget=budget,
        confine=guard != "none",
        kernel=guard == "kernel",
        **{**settings, **options},
    )
    return read(text, code)


def read(text: str, code: int = 0) -> Answer:
    """Take an answer apart as a program would: by its lines, the header by its two markers."""
    lines = text.split("\n")
    assert lines[0] == BEGIN, text[:200]
    assert lines[2] == END, text[:200]
    meta = json.loads(lines[1])
    if not meta.get("continues"):
        assert lines.pop() == "", "the last line ends"
    assert lines == text.splitlines(), "nothing that was found breaks a line"
    rest = lines[3:]
    return Answer(
        text=text,
        code=code,
        meta=meta,
        notes=[line for line in rest if line.startswith("[TE] ")],
        hits=[line for line in rest if not line.startswith(("[TE] ", "# TE: "))],
        breadcrumb="".join(line for line in rest if line.startswith("# TE: ")),
    )


def te(
    *arguments: str, folder: Path, start: str = "", python: Sequence[str] = (), stdout: int = subprocess.PIPE
) -> subprocess.CompletedProcess[bytes]:
    """Run the `te` command. `start` is Python that runs first, `python` the interpreter's own flags."""
    home = str(Path(llm_do_mcp.__file__).parents[1])
    program = f"import sys; sys.path.insert(0, {home!r}); {start}\nfrom llm_do_mcp.te.__main__ import main; main()"
    command = [sys.executable, *python, "-c", program, *arguments]
    return subprocess.run(
        command, cwd=folder, stdout=stdout, stderr=subprocess.PIPE, check=False, env=dict(os.environ), timeout=60
    )


def next_handle() -> int:
    """The number that the next handle will have: as before, where none has been left open."""
    handle = os.dup(0)
    os.close(handle)
    return handle


def write(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files, with the folders they lie in."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder
