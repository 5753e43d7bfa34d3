"""The codec of request states, with the keys that are kept beside the record of runs.

Starting a server writes nothing to disk: a host may start one only to look at its tools. The keys are read, or made,
when a state is sealed or opened, so that all instances on one store seal with a new key as soon as there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mcp.server.request_state import AESGCMRequestStateCodec

from llm_do_mcp.runtime.state import exposed_keys, request_state_keys
from llm_do_mcp.serving.trouble import Trouble


class LazyCodec:
    """The SDK's AES-GCM codec.

    Args:
        folder: The state folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: Sequence[bytes] = ()
        self._codec: AESGCMRequestStateCodec
        self._trouble = Trouble()

    def _opened(self) -> AESGCMRequestStateCodec:
        if (keys := request_state_keys(self._folder)) != self._known:
            self._known, self._codec = keys, AESGCMRequestStateCodec(keys)
        self._trouble.is_now(exposed_keys(self._folder))
        return self._codec

    def seal(self, payload: bytes) -> str:
        """An opaque token for a state."""
        return self._opened().seal(payload)

    def unseal(self, token: str) -> bytes:
        """The state of a token; raises `InvalidRequestState` for one that was not made here."""
        return self._opened().unseal(token)
