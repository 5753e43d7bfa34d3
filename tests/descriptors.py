"""Waiting for what is open, whatever its number: `select` itself refuses the numbers of a process with many files."""

from __future__ import annotations

import select


def is_readable_within(file: int, seconds: float) -> bool:
    """Whether a descriptor can be read, or a process of which it is one has ended, within so many seconds."""
    return _is_ready(file, select.POLLIN, seconds)


def is_writable_within(file: int, seconds: float) -> bool:
    """Whether a descriptor takes something within so many seconds."""
    return _is_ready(file, select.POLLOUT, seconds)


def _is_ready(file: int, event: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(file, event)
    return bool(poll.poll(seconds * 1000))
