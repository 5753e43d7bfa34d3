"""What a command prints, as far as it is kept: the beginning and the end, and the exact size of what lay between."""

from __future__ import annotations

import codecs


class Capture:
    """Takes any number of bytes in the room of a few.

    Args:
        most: How many bytes are kept: half of them from the beginning, half from the end.

    Attributes:
        total: How many bytes were printed.
    """

    def __init__(self, most: int) -> None:
        self._half = most // 2
        self._head, self._tail = bytearray(), bytearray()
        self.total = 0

    def take(self, data: bytes) -> None:
        """Take what was printed next."""
        self.total += len(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        del self._tail[: -self._half]

    def text(self) -> tuple[str, int]:
        """What was kept, cut between characters, with a line in place of what was not, and how many bytes that is.

        Bytes that are no UTF-8 are shown as U+FFFD.
        """
        head, tail = bytes(self._head), bytes(self._tail)
        if self.total == len(head) + len(tail):
            return (head + tail).decode("utf-8", "replace"), 0
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        begins = decoder.decode(head)
        cut = len(decoder.getstate()[0])
        while cut < len(head) + len(tail) and tail and tail[0] & 0xC0 == 0x80:
            tail = tail[1:]
        left_out = self.total - (len(head) - cut) - len(tail)
        return f"{begins}\n[… {left_out} bytes left out …]\n{tail.decode('utf-8', 'replace')}", left_out
