"""`anthropic:<model>`: one turn through the Messages API, by the SDK's client.

The SDK retries what is worth it (connections, 408, 409, 429, 5xx) before an answer begins; here one thing is
added, that it never waits past our deadline. An answer that breaks off is asked for once more: a turn has no effects.

The SDK is imported with the first turn, in a thread: it takes a second, in which a server must go on answering.
"""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from llm_do_mcp.errors import ModelError
from llm_do_mcp.models import address
from llm_do_mcp.models.capabilities import capabilities_of
from llm_do_mcp.models.documents import Documents
from llm_do_mcp.models.failures import ELSEWHERE, NO_KEY, broke_off, explained, shown_address, unavailable
from llm_do_mcp.models.payload import stream_arguments
from llm_do_mcp.models.stream import BrokenReply, read_reply
from llm_do_mcp.models.turn import Reply, Request, Usage
from llm_do_mcp.project.manifest import web_address

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

RETRIES = 2
"""How often the SDK repeats a request that was not answered."""

_UNUSED_KEY = "unused"  # local servers want none, the SDK insists on one

_deadline: ContextVar[float] = ContextVar("deadline of the turn that is being asked")


class AnthropicModel:
    """A model behind the Messages API.

    Args:
        model: Its name there, `claude-haiku-4-5`.
        base_url: Address of the server as the project gives it; None for the user's own (`ANTHROPIC_BASE_URL`,
            else Anthropic's). The user's key is sent only to the user's own address: a project that somebody
            downloaded must not be able to collect keys.
        capabilities: The manifest's `model_capabilities`.
    """

    calls_model = True

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        capabilities: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self.name = f"anthropic:{model}"
        self._model = model
        self._base_url = base_url
        self._can = capabilities_of(model, capabilities)
        self._documents = Documents()
        self._client: AsyncAnthropic | None = None
        self._connecting = anyio.Lock()

    async def reply(self, request: Request, *, deadline: float) -> Reply:
        """See `Model.reply`."""
        lost: list[Usage] = []
        try:
            reply = await self._reply_within(request, deadline, lost)
        except ModelError as error:
            error.lost = tuple(lost)
            raise
        return replace(reply, lost=tuple(lost))

    async def aclose(self) -> None:
        """See `Model.aclose`."""
        if self._client is not None:
            await self._client.close()

    async def _reply_within(self, request: Request, deadline: float, lost: list[Usage]) -> Reply:
        started = anyio.current_time()
        with anyio.CancelScope(deadline=deadline):
            client = await self._connect(request)
            _deadline.set(deadline)
            return await self._ask(client, request, lost)
        waited = f"no answer within {max(deadline - started, 0):.3g} s"
        raise unavailable(request, waited, "try again, or raise limits.timeout_s")

    async def _ask(self, client: AsyncAnthropic, request: Request, lost: list[Usage]) -> Reply:
        where = shown_address(str(client.base_url))
        if self._can.documents:
            await self._documents.check(request)
        else:
            request = await self._documents.as_texts(request)
        arguments = stream_arguments(request, self._model, self._can)
        for last in (False, True):
            try:
                async with await client.messages.create(**arguments, stream=True) as stream:
                    return await read_reply(stream, lost)
            except BrokenReply as error:
                if last:
                    what = f"the answer from {where} was unusable, twice: {error}"
                    raise unavailable(request, what, "try again, or check that it speaks the Messages API") from error
            except Exception as error:  # besides its own errors, the SDK raises what building a request trips over
                if last or not broke_off(error):
                    raise explained(request, error, where, self._base_url) from error
        raise AssertionError("unreachable")

    async def _connect(self, request: Request) -> AsyncAnthropic:
        async with self._connecting:
            if self._client is None:
                try:
                    self._client = await anyio.to_thread.run_sync(self._build_client)
                except Exception as error:  # a profile that cannot be read, an address that is no URL
                    to_do = "correct the ANTHROPIC_* variables, or base_url in project.yaml"
                    raise unavailable(request, f"no connection can be set up: {error}", to_do) from error
            if self._client is None:
                raise unavailable(request, *NO_KEY)
            return self._client

    def _build_client(self) -> AsyncAnthropic | None:
        """A client, or None where no key can be found. Blocks: the import alone takes about a second."""
        from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient

        options: dict[str, Any] = {
            "max_retries": RETRIES,
            "middleware": [_no_wait_past_deadline],
            "http_client": DefaultAsyncHttpxClient(event_hooks={"response": [_stays_at_its_address]}),
        }
        if address.is_foreign(self._base_url):
            # Headers that the user's environment adds to every request may be credentials too.
            blank = dict.fromkeys(address.custom_headers(os.environ), "")
            return AsyncAnthropic(base_url=self._base_url, api_key=_UNUSED_KEY, default_headers=blank, **options)
        web_address(address.own())
        client = AsyncAnthropic(**options)
        for variable, key in (("ANTHROPIC_API_KEY", client.api_key), ("ANTHROPIC_AUTH_TOKEN", client.auth_token)):
            if key and not (key.strip() == key and key.isascii() and key.isprintable()):
                raise ValueError(f"{variable} is no key: it is blank, has white space at an end, or is not ASCII")
        if client.api_key or client.auth_token or client.credentials:
            return client
        if os.environ.get(address.VARIABLE):
            return AsyncAnthropic(api_key=_UNUSED_KEY, **options)
        return None


async def _stays_at_its_address(response: Any) -> None:
    """Hook of the HTTP client: a redirect is followed only within the address that was asked.

    It would take along the conversation, and what the user's environment adds to every request.
    """
    if response.has_redirect_location:
        there = response.request.url.join(response.headers["location"])
        if any(getattr(there, part) != getattr(response.request.url, part) for part in ("scheme", "host", "port")):
            del response.headers["location"]  # without it there is no redirect, but an error's status
            response.extensions[ELSEWHERE] = str(there)


async def _no_wait_past_deadline(request: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
    """SDK middleware: an answer "try again in an hour" fails now, if the turn's deadline is before that.

    The SDK waits as long as `retry-after` says; `x-should-retry` is its own header to be told not to.
    """
    response = await call_next(request)
    headers = response.http_response.headers
    if anyio.current_time() + _asked_to_wait_s(headers) > _deadline.get():
        headers["x-should-retry"] = "false"
    return response


def _asked_to_wait_s(headers: Mapping[str, str]) -> float:
    """How long the SDK will wait, in seconds, by all forms that it knows: milliseconds, seconds, a date."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return float(headers.get(name, "")) * unit
        except ValueError:
            continue
    try:
        return parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - time.time()
    except (ValueError, OverflowError):
        return 0.0
