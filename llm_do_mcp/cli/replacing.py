"""A file of a person's that is replaced as a whole, or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from llm_do_mcp.errors import UsageError


@contextlib.contextmanager
def replacing(path: Path, *, mode: int) -> Iterator[BinaryIO]:
    """What is written in the block takes the place of a file when the block ends, and is gone where it fails.

    Args:
        path: The file; its folder is there.
        mode: Its permission bits. Until all is written only its owner can read it, as keys may stand in it.

    Raises:
        UsageError: It cannot be written; names the file itself, and not the one that would have become it.
    """
    try:
        handle, draft = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.chmod(draft, mode)
            os.replace(draft, path)
        except BaseException:
            os.unlink(draft)
            raise
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from None
