"""The state folder of a project: private to the user, ignored by git, never read by workers.

It holds the record of runs, the leases of the processes that drive them, and the keys of request states.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from llm_do_mcp import regular
from llm_do_mcp.errors import UsageError

STATE = ".llm-do"
"""The state folder's name in a project."""
RECORD = "runs.sqlite3"
"""The name of the record of runs in it."""
KEYS = "request-state.key"
"""The name of the file with the keys of request states in it."""
_KEY = re.compile(rb"[0-9a-f]{64}")


def state_folder(project: Path, chosen: str | None = None) -> Path:
    """Where a project's state lies.

    Args:
        project: The project's root.
        chosen: `--state-dir`, or None.

    Returns:
        The chosen folder, else `.llm-do/` in the project, else, where the project cannot be written, a folder of
        its own in the user's state folder.

    Raises:
        UsageError: Nothing can be kept there.
    """
    if chosen is not None:
        if not chosen:
            raise UsageError("--state-dir: name a folder")
        return _usable(Path(chosen).expanduser().absolute())
    inside = project / STATE
    if os.access(inside if os.path.lexists(inside) else project, os.W_OK):
        return _usable(inside)
    name = f"{project.name}-{hashlib.sha256(os.fsencode(project)).hexdigest()[:12]}"
    return _usable(_user_state() / "llm-do" / name)


def nearest(folder: Path) -> Path:
    """What there is of a folder: itself, or the nearest one above it."""
    return next(path for path in (folder, *folder.parents) if os.path.lexists(path))


def _usable(folder: Path) -> Path:
    there = nearest(folder)
    if not there.is_dir():
        raise unusable(folder, f"{there} is no folder")
    if not os.access(there, os.W_OK):
        raise unusable(folder, f"{there} cannot be written")
    if os.path.lexists(keys := folder / KEYS) and not (keys.is_file() and os.access(keys, os.R_OK)):
        raise unusable(folder, f"{keys} is no file that can be read")
    return folder


def unusable(folder: Path, why: str) -> UsageError:
    """What is said of a folder in which nothing can be kept."""
    return UsageError(f"runs cannot be recorded in {folder}: {why}; name another folder with --state-dir")


def _user_state() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")


def make_private(folder: Path) -> None:
    """Make the state folder, readable by the user alone and ignored by git.

    Raises:
        UsageError: It cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        ignore = folder / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="ascii")
    except OSError as error:
        raise unusable(folder, error.strerror or str(error)) from None


def request_state_keys(folder: Path) -> list[bytes]:
    """The keys of request states, the one that seals first; kept, so that a late answer survives a restart.

    They are read whenever they are needed: all servers of a project take up a new one at once. A file without a key,
    cut off or written over, opens nothing: it is replaced by a new one.
    """
    path = folder / KEYS
    if not path.exists():
        make_private(folder)
        with contextlib.suppress(FileExistsError), _draft(folder, [_new_key()]) as draft:
            # Written aside and linked into place: of two processes that start at once, both read the same key.
            os.link(draft, path)
    if not (kept := kept_keys(folder)):
        with _draft(folder, [_new_key()]) as draft:
            draft.replace(path)
        kept = kept_keys(folder)
    return kept


def kept_keys(folder: Path) -> list[bytes]:
    """The keys of request states that there are, the one that seals first; none where no state was sealed yet.

    Raises:
        OSError: They cannot be read.
    """
    try:
        return [word for word in regular.read(folder / KEYS)[0].split() if _KEY.fullmatch(word)]
    except FileNotFoundError:
        return []


def exposed_keys(folder: Path) -> str:
    """What is to be said where others than their owner can read the keys; "" where they cannot, or there are none."""
    path = folder / KEYS
    if sys.platform == "win32" or not path.exists() or not path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        return ""
    return f"{path}: others can read or write the key of request states; chmod 600 it, and rotate the key twice"


def rotate_request_state_key(folder: Path) -> bool:
    """Seal request states with a new key. The one before it still opens them; those before that no longer do.

    Returns:
        Whether there is a key in place of which there is a new one now.
    """
    if not (kept := kept_keys(folder)):
        return False
    with _draft(folder, [_new_key(), kept[0]]) as draft:
        draft.replace(folder / KEYS)
    return True


def _new_key() -> bytes:
    return secrets.token_hex(32).encode("ascii")


@contextlib.contextmanager
def _draft(folder: Path, keys: Sequence[bytes]) -> Iterator[Path]:
    draft = folder / f".request-state.{secrets.token_hex(6)}"
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(file, b"\n".join(keys))
        os.fsync(file)
    finally:
        os.close(file)
    try:
        yield draft
    finally:
        draft.unlink(missing_ok=True)
