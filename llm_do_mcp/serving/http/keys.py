"""The public keys of an issuer, as they are found at its JWKS address.

Tokens come from anybody, and each may name any key. So the address is asked at most every half minute, whatever
anybody sends and whatever came of it (every two seconds as long as no key is known at all, since then nobody is let
in), and a key that is known is used without waiting for an answer: an address that hangs keeps out only those whose key
has not been seen. A key that the issuer takes out is used until keys are fetched again, which is after some minutes,
and where that fails, for an hour.

An address may lead on to another one that is https; one of this machine also to another one there. A key that is not a
public one is not used: whoever can read it can sign with it.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import math
import ssl
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import jwt

from llm_do_mcp.runtime.display import cut, escape
from llm_do_mcp.serving.trouble import Trouble

if TYPE_CHECKING:  # in use where tokens are checked only
    import httpx2

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


class Keys:
    """The keys at an address.

    Args:
        address: Of the JWKS.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._known: Mapping[str, jwt.PyJWK] = {}
        self._fetched = self._due = -math.inf
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
        if time.monotonic() >= self._due:
            self._due = math.inf
            # Apart from the request that happens to need it, which may go away meanwhile.
            self._fetching = asyncio.create_task(self._fetch(), context=contextvars.Context())

    async def _fetch(self) -> None:
        try:
            async with asyncio.timeout(FETCHED_WITHIN_S):
                self._known, private = _usable(await self._read())
        except Exception as error:
            late = isinstance(error, TimeoutError)
            reason = f"no whole answer in {FETCHED_WITHIN_S:.0f} s" if late else str(error) or type(error).__name__
            self._is_wrong(reason, "nobody with another key is let in")
        else:
            self._fetched = time.monotonic()
            self._is_wrong(private and f"no public key: {private}", "nobody with it is let in")
        finally:
            self._due = time.monotonic() + (FETCHED_EVERY_S if self._known else FIRST_EVERY_S)

    def _is_wrong(self, what: str, so: str) -> None:
        """Tell of it; "" where nothing is. The issuer may have said it, so it is shown escaped, and not all of it."""
        self._trouble.is_now(what and f"--oauth-jwks {self._address}: {cut(escape(what), 300)}; {so}")

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


def _usable(text: bytes) -> tuple[dict[str, jwt.PyJWK], str]:
    """The keys of a JWKS that signatures are checked with, by id, and the ids of those that are no public ones.

    Raises:
        ValueError, jwt.PyJWTError: It is none.
    """
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("not an object with keys")
    keys = {
        key.key_id: key
        for key in jwt.PyJWKSet.from_dict(found).keys
        if key.key_id and key.public_key_use in ("sig", None)
    }
    private = [kid for kid, key in keys.items() if not hasattr(key.key, "verify")]  # as only public ones have it
    return {kid: key for kid, key in keys.items() if kid not in private}, ", ".join(map(repr, private))
