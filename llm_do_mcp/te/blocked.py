"""Finds the ignore file that ripgrep would read for ever: one that is no regular file, such as a FIFO.

It opens whatever has the name of one, also where nothing that lies there may be seen. Nothing keeps it from that but a
look at every folder, which takes longer than most searches: so it is looked for only where a search has come to no end.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from llm_do_mcp.te.ignore import EXCLUDED, IGNORE_FILES
from llm_do_mcp.te.ripgrep import Blocked
from llm_do_mcp.te.roots import Place, Workspace
from llm_do_mcp.te.walk import Walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from llm_do_mcp.te.patience import Patience

_READ = {**dict.fromkeys(IGNORE_FILES, ""), ".git": EXCLUDED}
"""What ripgrep reads in each folder: names, and what it reads below them."""


def check(
    places: Iterable[Place], workspace: Workspace, patience: Patience, *, follows: bool, beyond_root: bool
) -> None:
    """Look for such a file in what is searched, and in the folders above, where ripgrep reads even what does not count.

    Args:
        places: What is searched.
        workspace: Where that is.
        patience: When to stop.
        follows: Whether ripgrep follows links.
        beyond_root: Whether it can open files above the root.

    Raises:
        Blocked: There is one.
        Interrupted: It took too long.
    """
    for place in places:
        if place.kind == "d":
            root = os.path.realpath(place.root.reached)
            _check_above(os.path.realpath(f"{root}/{place.relative}"), os.sep if beyond_root else root)
            _check_below(place, workspace, patience, follows=follows)


def _check_above(folder: str, top: str) -> None:
    while folder != top and (above := os.path.dirname(folder)) != folder:
        folder = above
        for name, below in _READ.items():
            with suppress(OSError):
                _check(os.stat(f"{folder}/{name}{below}"), f"a {name}{below} in a folder above")


def _check_below(place: Place, workspace: Workspace, patience: Patience, *, follows: bool) -> None:
    root = place.root
    everything = workspace.all_of(root)
    try:
        walk = Walk(everything, patience, hidden=True, no_ignore=True, follows=follows, files=False)
        for entry in walk.below(Place(everything.roots[0], place.relative)):
            if (below := _READ.get(entry.name)) is not None:
                with suppress(OSError):
                    _check(entry.stat(itself=False, below=below), workspace.shown(root, f"{entry.relative}{below}"))
    finally:
        everything.close()


def _check(found: os.stat_result, shown: str) -> None:
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        raise Blocked(f"ripgrep comes to no end at {shown}, which is no regular file")
