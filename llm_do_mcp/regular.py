"""Reading a file that a person named, without waiting for what is none.

Whoever opens a pipe waits until somebody writes into it, and a device may do anything. A server that met one while it
answers others would not answer anybody any more.
"""

from __future__ import annotations

import errno
import os
import stat


def read(path: str | os.PathLike[str]) -> tuple[bytes, os.stat_result]:
    """What is in a regular file, and what is known of it.

    Args:
        path: The file, or a link to it.

    Raises:
        OSError: It cannot be read, or is no regular file.
    """
    check(os.stat(path))  # before it is opened: for a device that alone can mean something
    with open(path, "rb", opener=_at_once) as file:
        status = os.fstat(file.fileno())
        check(status)  # something else may have taken its place
        return file.read(), status


def check(status: os.stat_result) -> None:
    """See to it that something is a regular file.

    Raises:
        OSError: It is none, which its `strerror` says.
    """
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is no regular file")


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
