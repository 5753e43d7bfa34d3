"""Changing a host's configuration file: one entry, nothing else, at once or not at all, with the old file kept.

The file belongs to a person and to a program that may be running. So it is replaced as a whole and only where it is
still the one that was read; a link to it (as people keep their configuration in a repository) stays a link.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llm_do_mcp import regular
from llm_do_mcp.cli.hosts import jsonc
from llm_do_mcp.cli.replacing import replacing
from llm_do_mcp.errors import UsageError

_MARK = b"\xef\xbb\xbf"


def read(path: Path) -> dict[str, Any]:
    """The data of a configuration file; `{}` where there is none.

    Raises:
        UsageError: It cannot be read; says where.
    """
    return _object(path, _text(path, _bytes(path)))


def servers(path: Path, section: str) -> dict[str, Any]:
    """The servers that a configuration file has, by their names.

    Raises:
        UsageError: It cannot be read; says where.
    """
    found = read(path).get(section)
    return found if isinstance(found, dict) else {}


def put(path: Path, keys: Sequence[str], value: Any) -> Path | bool | None:
    """Put one value into a configuration file, which is made where it is missing.

    Returns:
        The copy of the old file that was kept; None where there was no file; False where nothing had to be changed.

    Raises:
        UsageError: The file cannot be read, or somebody else changed it meanwhile. Nothing was changed.
    """
    path = Path(os.path.realpath(path))
    before = _bytes(path)
    text = _text(path, before)
    try:
        new = jsonc.put(text, keys, value)
    except jsonc.NotJson as error:
        raise UsageError(f"{path}:{error}") from None
    if new == text:
        return False
    mark = _MARK if before is not None and before.startswith(_MARK) else b""
    kept = None if before is None else _keep(path)
    _replace(path, mark + new.encode(), before)
    return kept


def _object(path: Path, text: str) -> dict[str, Any]:
    data = _parsed(path, text)
    if not isinstance(data, dict):
        raise UsageError(f"{path}: it is no JSON object")
    return data


def _bytes(path: Path) -> bytes | None:
    try:
        return regular.read(path)[0]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None


def _text(path: Path, data: bytes | None) -> str:
    try:
        return "" if data is None else data.removeprefix(_MARK).decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: byte {error.start} is not UTF-8") from None


def _parsed(path: Path, text: str) -> Any:
    try:
        return jsonc.read(text)
    except jsonc.NotJson as error:
        raise UsageError(f"{path}:{error}") from None


def _keep(path: Path) -> Path:
    """A copy of a file beside it, under a name that no other copy has.

    Raises:
        UsageError: There is no room for one.
    """
    stem = f"{path.name}.{time.strftime('%Y%m%d-%H%M%S')}"
    for number in range(1, 1000):
        kept = path.with_name(f"{stem}.bak" if number == 1 else f"{stem}-{number}.bak")
        try:
            os.close(os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            shutil.copy2(path, kept)
        except FileExistsError:
            continue
        except OSError as error:
            raise UsageError(f"{path}: no copy of it can be kept beside it: {error.strerror or error}") from None
        return kept
    raise UsageError(f"{path.parent}: too many copies of {path.name}; remove some")


def _replace(path: Path, data: bytes, before: bytes | None) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{path.parent}: the folder cannot be made: {error.strerror}") from None
    with replacing(path, mode=0o600 if before is None else stat.S_IMODE(path.stat().st_mode)) as file:
        file.write(data)
        if _bytes(path) != before:
            raise UsageError(f"{path} was changed by somebody else at this moment; try again")
