"""Two folders change places in one step, so that a folder with content can be replaced as a whole.

No call that Python offers replaces a folder that is not empty. Linux (`renameat2`) and macOS (`renamex_np`) can
exchange two names; elsewhere, and on file systems that cannot, the caller has to do it in two steps.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys

_HERE = -100  # AT_FDCWD: the paths are absolute, so nothing is taken from there
_EXCHANGE = 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS
_CANNOT = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM)
"""What a kernel, a file system or a container says that does not have the call."""


def exchange(first: str, second: str) -> bool:
    """Let two folders change places.

    Args:
        first, second: Absolute paths on one file system; both exist.

    Returns:
        Whether it was done. False where this system cannot; nothing was changed then.

    Raises:
        OSError: It could, and failed.
    """
    if sys.platform not in ("linux", "darwin"):
        return False
    library = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(first), os.fsencode(second)
    if sys.platform == "linux" and hasattr(library, "renameat2"):
        failed = library.renameat2(_HERE, names[0], _HERE, names[1], _EXCHANGE)
    elif sys.platform == "darwin" and hasattr(library, "renamex_np"):
        failed = library.renamex_np(*names, _EXCHANGE)
    else:
        return False
    if not failed:
        return True
    error = ctypes.get_errno()
    if error in _CANNOT:
        return False
    raise OSError(error, os.strerror(error), second)
