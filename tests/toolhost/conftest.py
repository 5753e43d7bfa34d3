"""Projects made for one test, each with a real tool host."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from llm_do_mcp.toolhost.client import ToolHost
from tests.descriptors import is_readable_within


class Serve(Protocol):
    def __call__(self, files: dict[str, str], **options: Any) -> ToolHost: ...


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """`serve({"tools.py": "..."})` writes the files into `tmp_path` and gives the tool host of that project."""
    hosts: list[ToolHost] = []

    def start(files: dict[str, str], **options: Any) -> ToolHost:
        write(tmp_path, files)
        host = ToolHost(tmp_path, **options)
        hosts.append(host)
        return host

    yield start
    for host in hosts:
        host.kill()


def is_gone_within(pid: int, seconds: float) -> bool:
    """Whether a process that need not be our child has ended, or ends within so many seconds."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return is_readable_within(handle, seconds)
    finally:
        os.close(handle)
