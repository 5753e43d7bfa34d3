"""What is made of data that does not change, kept for those that it was made of last.

Found by which object it is, not by what is in it: comparing that, or hashing it, would cost as much as making it anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

Made = TypeVar("Made")


class Recent(Generic[Made]):
    """Makes something of data, or gives what it made of the same objects before.

    Args:
        make: Makes it.
        most: How many are kept.
    """

    def __init__(self, make: Callable[..., Made], most: int) -> None:
        self._make, self._most = make, most
        self._kept: dict[tuple[int, ...], tuple[Any, Made]] = {}

    def of(self, *data: Any) -> Made:
        """What is made of objects, which nobody changes; no others have their ids while they are kept here."""
        key = tuple(map(id, data))
        known = self._kept.get(key)
        if known is None:
            if len(self._kept) >= self._most:
                self._kept.pop(next(iter(self._kept)))
            known = self._kept[key] = (data, self._make(*data))
        return known[1]
