"""The codec of request states, with a key that is read or made when first needed.

Starting a server writes nothing to disk: a host may start one only to look at its tools.
"""

from __future__ import annotations

from collections.abc import Callable

from mcp.server.request_state import AESGCMRequestStateCodec


class LazyCodec:
    """The SDK's AES-GCM codec.

    Args:
        key: Gives the key.
    """

    def __init__(self, key: Callable[[], bytes]) -> None:
        self._key = key
        self._codec: AESGCMRequestStateCodec | None = None

    def _opened(self) -> AESGCMRequestStateCodec:
        if self._codec is None:
            self._codec = AESGCMRequestStateCodec([self._key()])
        return self._codec

    def seal(self, payload: bytes) -> str:
        """An opaque token for a state."""
        return self._opened().seal(payload)

    def unseal(self, token: str) -> bytes:
        """The state of a token; raises `InvalidRequestState` for one that was not made here."""
        return self._opened().unseal(token)
