"""The breadcrumb of what was left out, by folder: its numbers always add up to the number at its start."""

from __future__ import annotations

from heapq import nlargest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    Folder = TypeVar("Folder", str, bytes)

MOST_FOLDERS = 3


def by_folder(told: str, folders: Mapping[Folder, int], shown: Callable[[Folder], str], room: int) -> str:
    """The breadcrumb, with as many folders as there is room for.

    Args:
        told: How it starts: the total, and of what.
        folders: How much was left out of each folder.
        shown: How a folder is shown; asked only of those that are.
        room: Characters that it may have; with no folder it may be longer.
    """
    told = f"# TE: {told}"
    elsewhere = sum(folders.values())
    longer, named = told, ": "
    for count, folder in nlargest(MOST_FOLDERS, zip(folders.values(), folders, strict=True)):
        if not count:
            break
        elsewhere -= count
        named += f"{shown(folder)} {count}"
        whole = f"{told}{named}{f', {elsewhere} elsewhere' if elsewhere else ''}"
        if len(whole) <= room:
            longer = whole
        named += ", "
    return longer
