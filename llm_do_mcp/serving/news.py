"""Tells clients what has changed since they asked: lists of tools, prompts and resources, and traces that they watch.

Clients of the handshake revisions are told on their connection, as soon as they have listed something; those of
2026-07-28 on the stream that they opened with `subscriptions/listen`. Files are watched from the moment when there is
somebody to tell. What then has changed is found by listing again: an edit that changes no list is no news.

This is the one module that uses what the SDK calls provisional: middleware, and the subscription bus.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import dataclasses
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    EmptyResult,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    UnsubscribeRequestParams,
)
from pydantic import BaseModel

from llm_do_mcp.errors import RunError
from llm_do_mcp.serving.connection import MODERN
from llm_do_mcp.serving.present import still

T = TypeVar("T")

UPDATES_EVERY_S = 1.0
"""A trace that grows is told of at most this often."""

_EVENTS: Mapping[str, Callable[[], ServerEvent]] = {
    "tools": ToolsListChanged,
    "prompts": PromptsListChanged,
    "resources": ResourcesListChanged,
}
_LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
_LISTEN, _SUBSCRIBE, _UNSUBSCRIBE = "subscriptions/listen", "resources/subscribe", "resources/unsubscribe"

Lists = Mapping[str, Callable[[], Awaitable[Sequence[BaseModel]]]]


class Connection(Protocol):
    """The SDK's connection, as far as it is used here."""

    async def send_tool_list_changed(self) -> None: ...

    async def send_prompt_list_changed(self) -> None: ...

    async def send_resource_list_changed(self) -> None: ...

    async def send_resource_updated(self, uri: str) -> None: ...


class News:
    """What is told of one server.

    Args:
        lists: Kind ("tools", "prompts", "resources") → what looks at the files and gives the list as it is now.
        stirred: Waits until files may have changed.
        traced: The run whose trace is at a URI, None where there is another resource; raises `RunError` for a run that
            is not the caller's.
        grows: Waits until a run has come further; whether it still goes on.
    """

    def __init__(
        self,
        lists: Lists,
        stirred: Callable[[], Awaitable[None]],
        traced: Callable[[str], Awaitable[str | None]],
        grows: Callable[[str], Awaitable[bool]],
    ) -> None:
        self.bus = InMemorySubscriptionBus()
        self._listeners = ListenHandler(self.bus)
        self._lists, self._stirred, self._traced, self._grows = lists, stirred, traced, grows
        self._known: dict[str, Sequence[BaseModel]] = {}
        self._beginning = asyncio.Lock()
        self._connections: WeakKeyDictionary[Connection, set[str]] = WeakKeyDictionary()
        self._traces: dict[str, asyncio.Task[None]] = {}
        self._follower: asyncio.Task[None] | None = None

    def attach(self, server: Any) -> None:
        """Have a server (the SDK's low-level one) tell what is news, and say that it does."""
        server.middleware.append(self._see)
        server.add_request_handler(_LISTEN, SubscriptionsListenRequestParams, self._listeners)  # which can be ended
        server.add_request_handler(_SUBSCRIBE, SubscribeRequestParams, self._subscribe)
        server.add_request_handler(_UNSUBSCRIBE, UnsubscribeRequestParams, self._unsubscribe)

    def end(self) -> None:
        """Tell nothing any more; who listens is told that this is the end."""
        self._listeners.close()
        for task in self._tasks():
            task.cancel()

    async def aclose(self) -> None:
        """Wait until nothing is told any more. A look that is under way may have to be ended by who began it."""
        self.end()
        await asyncio.gather(*self._tasks(), return_exceptions=True)

    def _tasks(self) -> list[asyncio.Task[None]]:
        return [*self._traces.values(), *([] if self._follower is None else [self._follower])]

    # ---- who is told

    async def _see(self, context: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if context.method == _LISTEN:
            context = await self._listening(context)
        result = await call_next(context)
        if context.method in _LISTS and context.protocol_version != MODERN:
            self._connections.setdefault(_connection(context), set())
            await self._begin()
        if context.method == "initialize" and isinstance(result, dict):
            for kind in _EVENTS:
                if kind in result["capabilities"]:
                    result["capabilities"][kind]["listChanged"] = True
        return result

    async def _listening(self, context: ServerRequestContext[Any, Any]) -> ServerRequestContext[Any, Any]:
        """What a client listens for, without the traces that are not for it."""
        await self._begin()
        params = dict(context.params or {})
        wanted = params.get("notifications")
        if not isinstance(wanted, dict) or not isinstance(uris := wanted.get("resourceSubscriptions"), list):
            return context
        if not all(isinstance(uri, str) for uri in uris):
            return context  # as it is: the SDK refuses it
        granted = []
        for uri in uris:
            with contextlib.suppress(RunError):
                await self._follow(uri)
                granted.append(uri)
        return dataclasses.replace(
            context, params={**params, "notifications": {**wanted, "resourceSubscriptions": granted}}
        )

    async def _subscribe(self, context: ServerRequestContext[Any, Any], params: SubscribeRequestParams) -> EmptyResult:
        try:
            await self._follow(params.uri)
        except RunError as error:
            raise MCPError(code=INVALID_PARAMS, message=str(error)) from None
        self._connections.setdefault(_connection(context), set()).add(params.uri)
        return EmptyResult()

    async def _unsubscribe(
        self, context: ServerRequestContext[Any, Any], params: UnsubscribeRequestParams
    ) -> EmptyResult:
        self._connections.get(_connection(context), set()).discard(params.uri)
        return EmptyResult()

    # ---- lists

    async def _begin(self) -> None:
        """Know the lists as they were last given, and watch from now on."""
        async with self._beginning:
            if self._follower is None:
                self._known = await _apart(self._last_listed())
                self._follower = _apart(self._keep_telling())

    async def _listed(self) -> dict[str, Sequence[BaseModel]]:
        return {kind: await lists() for kind, lists in self._lists.items()}

    async def _last_listed(self) -> dict[str, Sequence[BaseModel]]:
        with still():
            return await self._listed()

    async def _keep_telling(self) -> None:
        while True:
            await self._stirred()
            listed = await self._listed()
            changed = [kind for kind in listed if listed[kind] != self._known[kind]]
            self._known = listed
            for kind in changed:
                await self.bus.publish(_EVENTS[kind]())
                for connection in tuple(self._connections):
                    await _list_changed(connection, kind)

    # ---- traces

    async def _follow(self, uri: str) -> None:
        run = await self._traced(uri)
        if run is not None and uri not in self._traces:
            self._traces[uri] = _apart(self._trace(uri, run))

    async def _trace(self, uri: str, run: str) -> None:
        try:
            goes_on = True
            while goes_on:
                goes_on = await self._grows(run)
                if goes_on:
                    await asyncio.sleep(UPDATES_EVERY_S)
                await self.bus.publish(ResourceUpdated(uri=uri))
                for connection, uris in tuple(self._connections.items()):
                    if uri in uris:
                        await connection.send_resource_updated(uri)
        finally:
            del self._traces[uri]


def _apart(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Work that is no one caller's: it sees what the server sees, not what the client may that was the first to ask."""
    return asyncio.create_task(work, context=contextvars.Context())


def _connection(context: ServerRequestContext[Any, Any]) -> Connection:
    connection: Connection = context.session._connection
    return connection


async def _list_changed(connection: Connection, kind: str) -> None:
    await {
        "tools": connection.send_tool_list_changed,
        "prompts": connection.send_prompt_list_changed,
        "resources": connection.send_resource_list_changed,
    }[kind]()
