"""The codec of request states, with the keys that are kept beside the record of runs.

Starting a server writes nothing to disk: a host may start one only to look at its tools. The keys are read when a state
is sealed or opened, and made when one is first sealed, so that all instances on one store seal with a new key as soon
as there is one.

The states of a project's runs are sealed with the project's own keys, also where it is served beside others: whichever
server has the project opens them, and new keys of the project close them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from pathlib import Path

from mcp.server.request_state import AESGCMRequestStateCodec, InvalidRequestState

from llm_do_mcp.errors import UsageError
from llm_do_mcp.runtime.state import KEYS, exposed_keys, kept_keys, request_state_keys
from llm_do_mcp.serving.trouble import Trouble


class LazyCodec:
    """The SDK's AES-GCM codec, of one project.

    Args:
        folder: The state folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: Sequence[bytes] = ()
        self._codec: AESGCMRequestStateCodec
        self._trouble = Trouble()

    def _with(self, keys: Sequence[bytes]) -> AESGCMRequestStateCodec:
        if keys != self._known:
            self._known, self._codec = keys, AESGCMRequestStateCodec(keys)
        self._trouble.is_now(exposed_keys(self._folder))
        return self._codec

    def seal(self, payload: bytes) -> str:
        """An opaque token for a state; raises `OSError` or `UsageError` where there is no key, which the SDK hides."""
        try:
            keys = request_state_keys(self._folder)
        except (OSError, UsageError) as error:
            why = getattr(error, "strerror", None) or error
            self._trouble.is_now(f"{self._folder / KEYS}: {why}; until then nothing can be asked")
            raise
        return self._with(keys).seal(payload)

    def unseal(self, token: str) -> bytes:
        """The state of a token; raises `InvalidRequestState` for one that was not made here."""
        try:
            keys = kept_keys(self._folder)
        except OSError as error:
            raise InvalidRequestState(f"keys cannot be read: {error}") from None
        if not keys:
            raise InvalidRequestState("no key")
        return self._with(keys).unseal(token)


class CodecOfSeveral:
    """The codecs of projects that are served together, as one.

    Args:
        codecs: Of the projects; at least one.
    """

    def __init__(self, codecs: Sequence[LazyCodec]) -> None:
        self._codecs = tuple(codecs)

    def seals_with(self, codec: LazyCodec) -> None:
        """Have the state in the answer to the request in front, if there is one, sealed with one of them."""
        _SEALING.set(codec)

    def seal(self, payload: bytes) -> str:
        """An opaque token for a state."""
        return _SEALING.get().seal(payload)

    def unseal(self, token: str) -> bytes:
        """The state of a token; raises `InvalidRequestState` for one that was made with the keys of none of them."""
        *others, last = self._codecs
        for codec in others:
            try:
                return codec.unseal(token)
            except InvalidRequestState:
                continue
        return last.unseal(token)


_SEALING: ContextVar[LazyCodec] = ContextVar("sealing")
"""Of the request in front: the SDK seals, in the same task, what the tool that was called has returned."""
