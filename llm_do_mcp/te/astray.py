"""Finds the links that lead out of what may be searched, so that `grep -R` does not send ripgrep there.

ripgrep follows all links or none, but for those that a glob is against. What it finds behind such a link is left out in
any case, also where a glob cannot hold its name; but it may be much, and what cannot be read there is not to be told.
The look before a search takes a part of its time: only folders are read.
"""

from __future__ import annotations

from llm_do_mcp.te.ignore import Rules, decided
from llm_do_mcp.te.roots import Place, escaped_glob
from llm_do_mcp.te.text import is_text
from llm_do_mcp.te.walk import Walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from llm_do_mcp.te.options import Query
    from llm_do_mcp.te.patience import Patience
    from llm_do_mcp.te.roots import Workspace

MOST_CHARACTERS = 200_000
"""Of globs that ripgrep is given; what more links lead to is searched, for nothing."""


def globs_against(places: Sequence[Place], workspace: Workspace, query: Query, patience: Patience) -> list[str]:
    """Globs that keep ripgrep from following such links.

    Args:
        places: What is searched.
        workspace: Where that is, and where links may lead.
        query: What is asked for.
        patience: When to stop.

    Raises:
        Interrupted: It took too long, or was cancelled.
    """
    globs: list[str] = []
    room = MOST_CHARACTERS
    for place in places:
        if place.kind == "d" and place.root.contained:
            for path in _below(place, workspace, query, patience):
                globs.append("!" + escaped_glob(path))
                if (room := room - len(globs[-1])) < 0:
                    return globs[:-1]
    return globs


def _below(place: Place, workspace: Workspace, query: Query, patience: Patience) -> Iterator[str]:
    """The links below a folder, as the paths that ripgrep compares with its globs."""
    mount = (place.root.mount or "").removeprefix(".")
    start = mount.split("/")[1:]
    everything = workspace.all_of(place.root)
    given = (
        Rules([glob for one in query.caseless_globs for glob in workspace.anchored(one)], 0, start, ignore_case=True),
        Rules([glob for one in query.globs for glob in workspace.anchored(one)], 0, start),
    )
    walk = Walk(
        everything,
        patience,
        hidden=query.hidden,
        no_ignore=query.no_ignore,
        follows=True,
        files=False,
        wanted=lambda path, is_folder: decided(given, path, path.rpartition("/")[2], is_folder=is_folder),
        unhides=lambda _: bool(query.types),
    )
    try:
        for entry in walk.below(Place(everything.roots[0], place.relative)):
            if not entry.enter and entry.kind != "l" and is_text(entry.relative):
                yield f"{mount}/{entry.relative}"
    finally:
        everything.close()
