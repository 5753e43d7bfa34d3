"""The codec of request states, with the keys that are kept beside the record of runs.

Starting a server writes nothing to disk: a host may start one only to look at its tools. The keys are read, or made,
when a state is sealed or opened, so that all instances on one store seal with a new key as soon as there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mcp.server.request_state import AESGCMRequestStateCodec


class LazyCodec:
    """The SDK's AES-GCM codec.

    Args:
        keys: Gives the keys as they are now, the one that seals first.
    """

    def __init__(self, keys: Callable[[], Sequence[bytes]]) -> None:
        self._keys = keys
        self._known: Sequence[bytes] = ()
        self._codec: AESGCMRequestStateCodec

    def _opened(self) -> AESGCMRequestStateCodec:
        if (keys := self._keys()) != self._known:
            self._known, self._codec = keys, AESGCMRequestStateCodec(keys)
        return self._codec

    def seal(self, payload: bytes) -> str:
        """An opaque token for a state."""
        return self._opened().seal(payload)

    def unseal(self, token: str) -> bytes:
        """The state of a token; raises `InvalidRequestState` for one that was not made here."""
        return self._opened().unseal(token)
