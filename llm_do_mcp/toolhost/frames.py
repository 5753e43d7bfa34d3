"""The messages between the server and a child process of ours: JSON objects, each behind its length in four bytes.

The tool host speaks so, and the process that renders templates. The tool host's standard input and output are not
used for it: a tool may print, read, and redirect them as it likes.
"""

from __future__ import annotations

import json
import os
from typing import IO, Any

MAX_BYTES = 256 * 1024 * 1024
"""More than any message of ours (a request with a 32 MB document takes 43 MB). Beyond it, the stream is garbage."""

Frame = dict[str, Any]


class BrokenStream(Exception):
    """The other side sent something that is no frame. The stream cannot be read any further."""


def encode(frame: Frame) -> bytes:
    """The bytes of a frame.

    Raises:
        ValueError, TypeError, RecursionError: It holds something that JSON does not have, or is too large or too deep.
    """
    body = json.dumps(frame, allow_nan=False).encode("ascii")
    if len(body) > MAX_BYTES:
        raise ValueError(f"a message of {len(body):,} bytes; at most {MAX_BYTES:,} are carried")
    return len(body).to_bytes(4, "big") + body


def write_all(descriptor: int, data: bytes) -> None:
    """Writes all of it, however many writes that takes. Raises OSError when the other side is gone."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def read(stream: IO[bytes]) -> Frame | None:
    """The next frame, or None at the end of the stream.

    Raises:
        BrokenStream: What comes is no frame.
    """
    head = stream.read(4)
    if not head:
        return None
    size = int.from_bytes(head, "big")
    if len(head) < 4 or size > MAX_BYTES:
        raise BrokenStream("not a frame")
    body = stream.read(size)
    if len(body) < size:
        raise BrokenStream("ended inside a frame")
    try:
        frame = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BrokenStream("a frame that is not JSON") from error
    if not isinstance(frame, dict):
        raise BrokenStream("a frame that is not an object")
    return frame
