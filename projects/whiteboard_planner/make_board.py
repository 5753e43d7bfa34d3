"""Draws `input/board.png` again, byte for byte: `python make_board.py`. A photograph would do as well."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

LETTERS = {
    "A": "010101111101101",
    "B": "110101110101110",
    "D": "110101101101110",
    "E": "111100110100111",
    "H": "101101111101101",
    "I": "111010010010111",
    "L": "100100100100111",
    "N": "111101101101101",
    "O": "010101101101010",
    "P": "110101110100100",
    "S": "011100010001110",
    "T": "111010010010010",
    "U": "101101101101111",
    " ": "000000000000000",
}
"""Each letter as five rows of three dots."""
LINES = ("PLAN", "BUILD", "TEST", "SHIP")
DOT, MARGIN = 6, 18


def picture(lines: tuple[str, ...]) -> bytes:
    """The lines as a PNG of one byte for each pixel, dark on light."""
    width = 2 * MARGIN + 4 * DOT * max(map(len, lines))
    rows: list[bytes] = [b"\xf4" * width] * MARGIN
    for line in lines:
        for row in range(5):
            dots = "".join(LETTERS[letter][3 * row : 3 * row + 3] + "0" for letter in line)
            inked = b"".join((b"\x22" if dot == "1" else b"\xf4") * DOT for dot in dots)
            rows += [(b"\xf4" * MARGIN + inked).ljust(width, b"\xf4")] * DOT
        rows += [b"\xf4" * width] * MARGIN
    header = struct.pack(">IIBBBBB", width, len(rows), 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows), 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", pixels) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


if __name__ == "__main__":
    (Path(__file__).parent / "input" / "board.png").write_bytes(picture(LINES))
