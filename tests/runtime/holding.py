"""Other processes that hold what those that open a record of runs need."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

LOCK = """
import sys
from llm_do_mcp.filelock import held
with held(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""
DATABASE = """
import sqlite3, sys
sqlite3.connect(sys.argv[1], isolation_level=None).execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def holding(path: Path, script: str = LOCK) -> Iterator[None]:
    """While the block runs, another process has the lock on a file, or with `DATABASE` keeps others from writing it."""
    command = [sys.executable, "-c", script, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stdout.readline().strip() == b"held"
        try:
            yield
        finally:
            holder.kill()
