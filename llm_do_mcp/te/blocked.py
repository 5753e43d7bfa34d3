"""Finds the ignore file that ripgrep would read for ever: one that is no regular file, such as a FIFO.

It opens whatever has the name of one. Nothing keeps it from that but a look at every folder, which takes longer than
most searches: so it is looked for only where a search has come to no end.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from llm_do_mcp.te.ignore import IGNORE_FILES
from llm_do_mcp.te.ripgrep import Blocked
from llm_do_mcp.te.walk import Walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from llm_do_mcp.te.patience import Patience
    from llm_do_mcp.te.roots import Place, Workspace


def check(places: Iterable[Place], workspace: Workspace, patience: Patience, *, above: bool) -> None:
    """Look for such a file in what is searched.

    Args:
        places: What is searched.
        workspace: Where that is.
        patience: When to stop.
        above: Whether ripgrep can open files in the folders above; it does so even where they do not count.

    Raises:
        Blocked: There is one.
        Interrupted: It took too long.
    """
    walk = Walk(workspace, patience, hidden=True, no_ignore=True)
    for place in places:
        if place.kind != "d":
            continue
        if above:
            _check_above(os.path.realpath(f"{place.root.reached}/{place.relative}"))
        for entry in walk.below(place):
            if entry.name in IGNORE_FILES and entry.kind in "lo":
                with suppress(OSError):
                    _check(entry.stat(itself=False), workspace.shown(entry.root, entry.relative))


def _check_above(folder: str) -> None:
    while (above := os.path.dirname(folder)) != folder:
        folder = above
        for name in IGNORE_FILES:
            with suppress(OSError):
                _check(os.stat(os.path.join(folder, name)), f"a {name} in a folder above")


def _check(found: os.stat_result, shown: str) -> None:
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        raise Blocked(f"ripgrep comes to no end at {shown}, which is no regular file")
