"""What is made of data that does not change, kept for those that it was made of last.

Found by which object it is, not by what is in it: comparing that, or hashing it, would cost as much as making it anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Data = TypeVar("Data")
Made = TypeVar("Made")


class Recent(Generic[Data, Made]):
    """Makes something of data, or gives what it made of the same object before.

    Args:
        make: Makes it.
        most: How many are kept.
    """

    def __init__(self, make: Callable[[Data], Made], most: int) -> None:
        self._make, self._most = make, most
        self._kept: dict[int, tuple[Data, Made]] = {}

    def of(self, data: Data) -> Made:
        """What is made of an object, which nobody changes; as long as that is kept here, no other one has its id."""
        known = self._kept.get(id(data))
        if known is None:
            if len(self._kept) >= self._most:
                self._kept.pop(next(iter(self._kept)))
            known = self._kept[id(data)] = (data, self._make(data))
        return known[1]
