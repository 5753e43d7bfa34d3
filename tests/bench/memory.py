"""What a process takes of the machine's memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def megabytes(pid: int) -> float | None:
    """The memory of a process in MB, or None where this system does not tell.

    On Linux its proportional share (PSS): pages that several processes share count once in all. Elsewhere on POSIX
    what is resident.
    """
    rollup = Path(f"/proc/{pid}/smaps_rollup")
    if rollup.exists():
        line = next(line for line in rollup.read_text().splitlines() if line.startswith("Pss:"))
        return int(line.split()[1]) / 1024
    if sys.platform == "win32":
        return None
    shown = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True)
    return int(shown.stdout) / 1024


def peak_megabytes(pid: int) -> float | None:
    """The most that a process has had resident so far, in MB, or None where this system does not tell."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return None
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024
