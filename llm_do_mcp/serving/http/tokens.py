"""Bearer tokens from a file: who may call a server, without any other service.

Each line is a name, what its token allows, and the SHA-256 of the token: whoever reads the file cannot call with it. A
token is 32 random bytes, which nobody can guess from its hash, so that no slow hash is needed. Several lines may have
one name: tokens are replaced by adding one, changing over, and taking the old line out. The file is read again when it
has changed.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

from mcp.server.auth.provider import AccessToken

from llm_do_mcp import regular
from llm_do_mcp.errors import UsageError
from llm_do_mcp.serving.caller import SCOPES
from llm_do_mcp.serving.trouble import Trouble

PREFIX = "llmdo_"
"""What a token begins with, so that scanners for secrets can know it."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")
_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_HEAD = "# name  scopes  sha256 of the token; made by: llm-do-mcp token\n"


class TokenFile:
    """The tokens of a file, as a verifier for the SDK.

    Args:
        path: The file.

    Raises:
        UsageError: It cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._state: tuple[int, ...] = ()
        self._known: dict[str, AccessToken] = {}
        self._trouble = Trouble()
        self._look()

    async def verify_token(self, token: str) -> AccessToken | None:
        """Who has this token; None for one that is not in the file, and for all where the file cannot be used."""
        try:
            self._look()
        except UsageError as error:
            self._trouble.is_now(f"{error}; until then nobody is let in")
            return None
        self._trouble.is_now("")
        return self._known.get(_hashed(token))

    def _look(self) -> None:
        try:
            if _state(self._path.stat()) == self._state:
                return
            data, status = regular.read(self._path)
            text = data.decode("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is no text"
            raise UsageError(
                f"--tokens {self._path}: {reason}; make it with: llm-do-mcp token NAME --tokens FILE"
            ) from None
        if sys.platform != "win32" and status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise UsageError(f"--tokens {self._path}: others can read or write it; chmod 600 it")
        self._known = _parsed(text, str(self._path))
        self._state = _state(status)


def _state(status: os.stat_result) -> tuple[int, ...]:
    """What is another after a change."""
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode


def _parsed(text: str, path: str) -> dict[str, AccessToken]:
    known: dict[str, AccessToken] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        where = f"{path}:{number}"
        if len(words) != 3 or not _NAME.fullmatch(words[0]) or not _HASH.fullmatch(words[2]):
            raise UsageError(f"{where}: not of the form: name  scopes  sha256:<64 hex digits>")
        scopes = checked_scopes(words[1], where)
        known[words[2]] = AccessToken(token="", client_id=words[0], scopes=scopes, subject=words[0])
    return known


def checked_scopes(text: str, where: str) -> list[str]:
    """Scopes, separated by commas.

    Raises:
        UsageError: One of them is none.
    """
    scopes = text.split(",")
    for scope in scopes:
        if scope not in SCOPES:
            raise UsageError(f"{where}: {scope!r} is no scope; there are: {', '.join(SCOPES)}")
    return scopes


def add(path: Path, name: str, scopes: Sequence[str]) -> str:
    """Add a token to a file, which is made where it is not there, for its owner alone.

    Returns:
        The token, which is kept nowhere.

    Raises:
        UsageError: The name cannot be one, or the file cannot be used.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"token {name!r}: a name has letters, digits and . _ @ + - only, and at most 64 of them")
    if path.exists():
        TokenFile(path)  # what is wrong with it is said before anything is added
    token = PREFIX + secrets.token_urlsafe(32)
    try:
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    except OSError as error:
        raise UsageError(f"--tokens {path}: {error.strerror}") from None
    with open(file, "rb+") as kept:
        before = kept.read()
        line = f"{name}  {','.join(scopes)}  {_hashed(token)}\n"
        head = "" if before.endswith(b"\n") else "\n" if before else _HEAD
        kept.write((head + line).encode())
    return token


def _hashed(token: str) -> str:
    return f"sha256:{hashlib.sha256(token.encode('utf-8', 'surrogateescape')).hexdigest()}"
