"""The breadcrumb of what was left out, by folder: its numbers always add up to the number at its start."""

from __future__ import annotations

from heapq import nlargest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_FOLDERS = 3


def by_folder(told: str, folders: Mapping[str, int], room: int) -> str:
    """The breadcrumb, with as many folders as there is room for.

    Args:
        told: How it starts: the total, and of what.
        folders: How much was left out of each folder, as it is shown.
        room: Characters that it may have; with no folder it may be longer.
    """
    told = f"# TE: {told}"
    total = sum(folders.values())
    for number in range(MOST_FOLDERS, 0, -1):
        largest = nlargest(number, ((count, folder) for folder, count in folders.items() if count))
        elsewhere = total - sum(count for count, _ in largest)
        named = [f"{folder} {count}" for count, folder in largest]
        longer = f"{told}: {', '.join([*named, *([f'{elsewhere} elsewhere'] if elsewhere else [])])}"
        if len(longer) <= room:
            return longer
    return told
