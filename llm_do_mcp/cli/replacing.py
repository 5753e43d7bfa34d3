"""A file of a person's that is replaced as a whole, or not at all.

What is written takes a name, not what is there under it. So a link is followed first, and stays; and what is no regular
file (a pipe, a device such as /dev/null) is refused, as it would be gone for everybody who uses it.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from llm_do_mcp import regular
from llm_do_mcp.errors import UsageError


@contextlib.contextmanager
def replacing(path: Path, *, mode: int) -> Iterator[BinaryIO]:
    """What is written in the block takes the place of a file when the block ends, and is gone where it fails.

    Args:
        path: The file, or a link to it; its folder is there.
        mode: Its permission bits. Until all is written only its owner can read it, as keys may stand in it.

    Raises:
        UsageError: It cannot be written, or is no regular file; names it, and not what would have become it.
    """
    try:
        place = Path(os.path.realpath(path))
        with contextlib.suppress(FileNotFoundError):
            regular.check(place.lstat())
        handle, draft = tempfile.mkstemp(prefix=f".{place.name}.", dir=place.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.chmod(draft, mode)
            os.replace(draft, place)
        except BaseException:
            os.unlink(draft)
            raise
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from None
