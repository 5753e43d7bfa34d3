"""The public keys of an issuer, as they are found at its JWKS address.

Tokens come from anybody, and each may name any key. So the address is asked at most every half minute, whatever
anybody sends and whatever came of it (every two seconds as long as no key is known at all, since then nobody is let
in), and a key that is known is used without waiting for an answer: an address that hangs keeps out only those whose key
has not been seen. A key that the issuer takes out is used until keys are fetched again, which is after some minutes,
and where that fails, for an hour.

An address may lead on to another one that is https; one of this machine also to another one there. A key that is not a
public one is not used: whoever can read it can sign with it. Each is used for signatures only, and with the algorithm
that it is for (RFC 7517, RFC 8725). A token that names no key is checked with the only one there is, never with several
in turn (OpenID Connect Core, 10.1).
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import math
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import jwt

from llm_do_mcp.runtime.display import counted, cut, escape
from llm_do_mcp.serving.trouble import Trouble

if TYPE_CHECKING:  # in use where tokens are checked only
    import httpx2

RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
RSA_BITS = 2048
ALGORITHMS = (*RSA, "ES256", "ES384", "ES512", "EdDSA")
"""Signatures with a public key only: a token that is signed with what everybody may read proves nothing."""
FETCHED_WITHIN_S = 10.0
"""An answer that is not there as a whole after this is none."""
FETCHED_EVERY_S = 30.0
"""Keys are fetched at most this often."""
FIRST_EVERY_S = 2.0
"""The same, as long as there are none."""
FRESH_S = 300.0
"""Keys that are older are fetched again."""
TRUSTED_S = 3600.0
"""Keys that are older, since they could not be fetched again, are not used."""
MOST_BYTES = 1 << 20
"""What an answer may have."""
MOST_MOVES = 5
"""How often an address may lead on to another one."""


@dataclass(frozen=True)
class Key:
    """What signatures are checked with.

    Args:
        kid: Its id; None where it has none.
        key: The key itself.
        algorithms: Those it is for: the one that it says, or that goes with its curve; of RSA, where it says none, all.
    """

    kid: str | None
    key: Any
    algorithms: Sequence[str]

    @property
    def is_public(self) -> bool:
        """Whether it can only check signatures, and make none."""
        return hasattr(self.key, "verify")

    @property
    def is_long(self) -> bool:
        """Whether it is as long as keys of RSA have to be (RFC 7518, 3.3)."""
        return self.algorithms[0] not in RSA or self.key.key_size >= RSA_BITS


class Keys:
    """The keys at an address.

    Args:
        address: Of the JWKS.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._known: Mapping[str | None, Key] = {}
        self._fetched = self._due = -math.inf
        self._fetching: asyncio.Task[None] | None = None
        self._trouble = Trouble()

    async def find(self, kid: str | None) -> Key | None:
        """The key of this id, or the only one; None where there is none, or none can be had now."""
        if (known := self._current(kid)) is None or time.monotonic() - self._fetched > FRESH_S:
            self._look()
        if known is None and self._fetching is not None:
            await asyncio.wait((self._fetching,))
            known = self._current(kid)
        return known

    def _current(self, kid: str | None) -> Key | None:
        return self._known.get(kid) if time.monotonic() - self._fetched <= TRUSTED_S else None

    def _look(self) -> None:
        """See to it that keys are being fetched, unless that was a moment ago."""
        if time.monotonic() >= self._due:
            self._due = math.inf
            # Apart from the request that happens to need it, which may go away meanwhile.
            self._fetching = asyncio.create_task(self._fetch(), context=contextvars.Context())

    async def _fetch(self) -> None:
        try:
            async with asyncio.timeout(FETCHED_WITHIN_S):
                self._known, wrong = _usable(await self._read())
        except Exception as error:
            late = isinstance(error, TimeoutError)
            reason = f"no whole answer in {FETCHED_WITHIN_S:.0f} s" if late else str(error) or type(error).__name__
            self._is_wrong({reason: "nobody with another key is let in"})
        else:
            self._fetched = time.monotonic()
            self._is_wrong(wrong)
        finally:
            self._due = time.monotonic() + (FETCHED_EVERY_S if self._known else FIRST_EVERY_S)

    def _is_wrong(self, wrong: Mapping[str, str]) -> None:
        """Tell of it. The issuer may have said it, so it is shown escaped, and not all of it.

        Args:
            wrong: What, and whom that keeps out; empty where nothing is.
        """
        told = "; ".join(f"{cut(escape(what), 300)}; {so}" for what, so in wrong.items())
        self._trouble.is_now(told and f"--oauth-jwks {self._address}: {told}")

    async def _read(self) -> bytes:
        import httpx2

        read = bytearray()
        trusted = ssl.create_default_context()  # the machine's: an issuer may be the company's own
        async with (
            httpx2.AsyncClient(
                timeout=None,
                verify=trusted,
                follow_redirects=True,
                max_redirects=MOST_MOVES,
                event_hooks={"request": [self._allow]},
            ) as client,
            client.stream("GET", self._address) as answer,
        ):
            if not answer.is_success:
                raise ValueError(f"it answers {answer.status_code} {answer.reason_phrase}".rstrip())
            async for chunk in answer.aiter_bytes():
                read += chunk
                if len(read) > MOST_BYTES:
                    raise ValueError(f"more than {MOST_BYTES:,} bytes")
        return bytes(read)

    async def _allow(self, request: httpx2.Request) -> None:
        """Let through what is asked of the address itself, and of where that leads to if that is as safe."""
        given = urlsplit(self._address)
        if request.url.scheme != "https" and (request.url.scheme, request.url.host) != (given.scheme, given.hostname):
            raise ValueError(f"it leads on to {request.url}, which is not https")


def _usable(text: bytes) -> tuple[dict[str | None, Key], dict[str, str]]:
    """The keys of a JWKS that signatures are checked with, by id; where there is just one, it is also that of no id.

    Returns:
        The keys; and what keeps callers out, as `_is_wrong` tells it.

    Raises:
        ValueError: It is none.
    """
    found = json.loads(text)
    if not isinstance(found, dict) or not isinstance(listed := found.get("keys"), list):
        raise ValueError("not an object with keys")
    signing = [key for one in listed if (key := _signing(one)) is not None]
    public = [key for key in signing if key.is_public and key.is_long]
    keys: dict[str | None, Key] = {key.kid: key for key in public if key.kid is not None}
    if is_only := len(public) == 1:
        keys[None] = public[0]
    wrong: dict[str, str] = {}
    if private := [repr(key.kid or "") for key in signing if not key.is_public]:
        wrong[f"no public key: {', '.join(private)}"] = "nobody with it is let in"
    if short := [repr(key.kid or "") for key in signing if key.is_public and not key.is_long]:
        wrong[f"RSA with less than {RSA_BITS:,} bits: {', '.join(short)}"] = "nobody with it is let in"
    if nameless := sum(key.kid is None for key in public):
        so = "only tokens that name none are let in" if is_only else "nobody with it is let in"
        wrong[f"no `kid`: {nameless} of {counted(len(public), 'key')}"] = so
    if not signing:
        wrong["no key for signatures (RSA, EC or OKP, with the `use` sig or none)"] = "nobody is let in"
    return keys, wrong


def _signing(found: Any) -> Key | None:
    """A member of a JWKS that is for signatures; None for one that is not, or that is of no kind that is known."""
    try:
        if found.get("use") not in ("sig", None) or {"sign", "verify"}.isdisjoint(found.get("key_ops") or ("verify",)):
            return None
        key = jwt.PyJWK(found)
    except (jwt.PyJWTError, ValueError, TypeError, AttributeError):
        return None
    if key.algorithm_name not in ALGORITHMS:
        return None
    kid = key.key_id if isinstance(key.key_id, str) and key.key_id else None
    is_open = key.key_type == "RSA" and not found.get("alg")
    return Key(kid, key.key, RSA if is_open else (key.algorithm_name,))
