"""Whether runs can be recorded in a state folder: tried out as a server would do it, and nothing of that is left.

A record that is there is opened. Where there is none a server makes one when something first runs, not when it starts:
so none is made here either, but one in a folder beside it that is gone afterwards.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

from llm_do_mcp.errors import RunError
from llm_do_mcp.filelock import held
from llm_do_mcp.runtime.state import RECORD, STATE, nearest, unusable
from llm_do_mcp.runtime.store import Store, cannot_be_opened, turn_at

WITHIN_S = 3.0
"""How long other processes are waited for. A server waits longer, but nobody looks on."""


def try_out(folder: Path) -> frozenset[str]:
    """See that runs can be recorded in a state folder that is there, or will be.

    Returns:
        The ids of those that are.

    Raises:
        RunError: Its record cannot be opened, or written.
        UsageError: Nothing can be kept there, whatever the permissions say.
    """
    record = folder / RECORD
    try:
        if record.exists() or os.path.islink(os.path.realpath(record)):  # one that leads in a circle
            return _recorded(record)
        _have(record)
    except RunError as error:
        raise RunError(f"{folder}{os.sep}{error}, or name another folder with --state-dir") from None
    there = Path(os.path.realpath(record)).parent if record.is_symlink() else nearest(folder)
    try:
        with tempfile.TemporaryDirectory(prefix=f"{STATE}-", dir=there) as made:
            return _recorded(Path(made) / RECORD)
    except (OSError, RunError) as error:
        why = getattr(error, "strerror", None) or error
        raise unusable(folder, f"nothing can be made in {there} ({why})") from None


def _have(record: Path) -> None:
    """Have the turn to make a record, where there is something at which others have it."""
    turn = turn_at(record)
    if not os.path.lexists(turn):
        return
    try:
        with held(turn, within_s=WITHIN_S):
            pass
    except OSError as error:
        raise cannot_be_opened(record, error) from None


def _recorded(record: Path) -> frozenset[str]:
    """The ids of the runs in a record."""
    store = Store(record, within_s=WITHIN_S)
    try:
        return frozenset(run.id for run in asyncio.run(store.runs()))
    finally:
        store.close()
