"""What the clients of a server have not read yet, in all.

An answer that is on its way is held until its client has taken it, and can be as large as a whole file. Nothing says
beforehand that a client will not read, and none may keep the others waiting. So more is answered, and where all that
is held becomes too much, those lose their connections who read nothing, and then those who have been at it for longest.
"""

from __future__ import annotations

import asyncio

MOST_BYTES = 64 << 20
"""What a server holds for all of its clients."""


class Unread:
    """What is held for the connections on which a client does not read as fast as it is sent to."""

    def __init__(self) -> None:
        self._held: dict[asyncio.Transport, int] = {}

    def add(self, transport: asyncio.Transport) -> None:
        """Its client lags behind; whoever has to make room is cut off."""
        self._held[transport] = transport.get_write_buffer_size()
        sizes = {held: held.get_write_buffer_size() for held in self._held}
        most = sum(sizes.values())
        for held in sorted(sizes, key=lambda held: (held is transport, sizes[held] < self._held[held])):
            if most <= MOST_BYTES:
                return
            most -= sizes[held]
            held.abort()  # not closed: that would wait for the reader

    def reads(self, transport: asyncio.Transport) -> bool:
        """Whether its client has read anything since this was asked for the last time."""
        before, self._held[transport] = self._held[transport], transport.get_write_buffer_size()
        return self._held[transport] < before

    def discard(self, transport: asyncio.Transport) -> None:
        """Its client has caught up, or is gone."""
        self._held.pop(transport, None)
