"""The public keys of an issuer, as they are found at its JWKS address.

Tokens come from anybody, and each may name any key. So the address is asked at most every half minute, whatever
anybody sends and whatever came of it, and a key that is known is used without waiting for an answer: an address that
hangs keeps out only those whose key has not been seen. A key that the issuer takes out is used until keys are fetched
again, which is after some minutes, and where that fails, for an hour.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import math
import ssl
import time
from collections.abc import Mapping

import jwt

from llm_do_mcp.serving.http.trouble import Trouble

FETCHED_WITHIN_S = 10.0
"""An answer that is not there as a whole after this is none."""
FETCHED_EVERY_S = 30.0
"""Keys are fetched at most this often."""
FRESH_S = 300.0
"""Keys that are older are fetched again."""
TRUSTED_S = 3600.0
"""Keys that are older, since they could not be fetched again, are not used."""
MOST_BYTES = 1 << 20
"""What an answer may have."""


class Keys:
    """The keys at an address.

    Args:
        address: Of the JWKS.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._known: Mapping[str, jwt.PyJWK] = {}
        self._fetched = self._begun = -math.inf
        self._fetching: asyncio.Task[None] | None = None
        self._trouble = Trouble()

    async def find(self, kid: str) -> jwt.PyJWK | None:
        """The key of this id; None where there is none, or none can be had now."""
        if (known := self._current(kid)) is None or time.monotonic() - self._fetched > FRESH_S:
            self._look()
        if known is None and self._fetching is not None:
            await asyncio.wait((self._fetching,))
            known = self._current(kid)
        return known

    def _current(self, kid: str) -> jwt.PyJWK | None:
        return self._known.get(kid) if time.monotonic() - self._fetched <= TRUSTED_S else None

    def _look(self) -> None:
        """See to it that keys are being fetched, unless that was a moment ago."""
        if time.monotonic() - self._begun >= FETCHED_EVERY_S:
            self._begun = time.monotonic()
            # Apart from the request that happens to need it, which may go away meanwhile.
            self._fetching = asyncio.create_task(self._fetch(), context=contextvars.Context())

    async def _fetch(self) -> None:
        try:
            async with asyncio.timeout(FETCHED_WITHIN_S):
                self._known = _usable(await self._read())
        except Exception as error:
            late = isinstance(error, TimeoutError)
            reason = f"no whole answer in {FETCHED_WITHIN_S:.0f} s" if late else str(error) or type(error).__name__
            self._trouble.is_now(f"--oauth-jwks {self._address}: {reason}; nobody with another key is let in")
        else:
            self._fetched = time.monotonic()
            self._trouble.is_now("")

    async def _read(self) -> bytes:
        import httpx2  # here: needed where tokens are checked only

        read = bytearray()
        trusted = ssl.create_default_context()  # the machine's: an issuer may be the company's own
        async with (
            httpx2.AsyncClient(timeout=None, verify=trusted) as client,
            client.stream("GET", self._address) as answer,
        ):
            answer.raise_for_status()
            async for chunk in answer.aiter_bytes():
                read += chunk
                if len(read) > MOST_BYTES:
                    raise ValueError(f"more than {MOST_BYTES:,} bytes")
        return bytes(read)


def _usable(text: bytes) -> dict[str, jwt.PyJWK]:
    """The keys of a JWKS that sign, by id; raises `ValueError` or `jwt.PyJWTError` where it is none."""
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("not an object with keys")
    keys = jwt.PyJWKSet.from_dict(found).keys
    return {key.key_id: key for key in keys if key.key_id and key.public_key_use in ("sig", None)}
