"""Opens regular files, and nothing else: whoever opened a FIFO in the place of one would wait for its other end."""

from __future__ import annotations

import os
import stat

_AT_ONCE = sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
NO_LINKS = getattr(os, "O_NOFOLLOW", 0)


def opened(path: str, flags: int = os.O_RDONLY, *, folder: int | None = None, links: bool = True) -> int:
    """A handle on a regular file.

    Args:
        path: The file.
        flags: What it is opened for; one that is made is its owner's alone.
        folder: A handle on the folder that the path starts in; None for the working folder.
        links: Whether the file may be a link (POSIX).

    Raises:
        OSError: It cannot be opened, or is none.
    """
    handle = os.open(path, flags | _AT_ONCE | (0 if links else NO_LINKS), 0o600, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError("not a regular file")
    return handle
