"""The application: the SDK's own Streamable HTTP for both protocol eras at `/mcp`, behind what asks callers who they
are, and `/health` for whatever watches the server.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.provider import TokenVerifier
from mcp.server.auth.routes import build_resource_metadata_url, create_protected_resource_routes
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.streamable_http import CONTENT_TYPE_SSE
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from pydantic import AnyHttpUrl
from sse_starlette.sse import AppStatus
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from llm_do_mcp.serving.caller import LETS_IN, SCOPES
from llm_do_mcp.serving.connection import MODERN
from llm_do_mcp.serving.hardened import HardenedServer
from llm_do_mcp.serving.http.address import HostNames
from llm_do_mcp.serving.http.revoked import Revocable
from llm_do_mcp.serving.http.sessions import spare_streams
from llm_do_mcp.serving.room import Room
from llm_do_mcp.toolhost.results import clean

PATH, HEALTH = "/mcp", "/health"


@dataclass(frozen=True)
class Authentication:
    """How callers are asked who they are.

    Args:
        verifier: Knows tokens.
        issuer: The authorization server that gives them out; None for tokens of a file.
        resource: The address that its tokens are issued for, which clients look up; None where that is no address.
    """

    verifier: TokenVerifier
    issuer: AnyHttpUrl | None = None
    resource: AnyHttpUrl | None = None


def application(server: HardenedServer, names: HostNames, authentication: Authentication | None) -> ASGIApp:
    """The application.

    Args:
        server: What is served.
        names: What it may be asked for by.
        authentication: None where everybody who can reach it may do everything.
    """
    # Else what sends a session's answers ends them all at a signal, also those that are about to come.
    AppStatus.enable_automatic_graceful_drain = False
    server._lowlevel_server.middleware += (_cleaned, Room(server.lasts).gate)
    at_our_door = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    server.streamable_http_app(streamable_http_path=PATH, transport_security=at_our_door)
    manager = server.session_manager
    spare_streams(manager)
    direct = StreamableHTTPSessionManager(
        server._lowlevel_server, json_response=True, stateless=True, security_settings=at_our_door
    )
    endpoint: ASGIApp = _Reads(manager, direct, server.just_reads)
    routes: list[Route] = []
    middleware: list[Middleware] = []
    if authentication is not None:
        metadata = None
        if authentication.issuer is not None and authentication.resource is not None:
            resource, issuers = authentication.resource, [authentication.issuer]
            metadata = build_resource_metadata_url(resource)
            routes += create_protected_resource_routes(resource, issuers, scopes_supported=list(SCOPES))
        backend = BearerAuthBackend(authentication.verifier)
        endpoint = RequireAuthMiddleware(Revocable(endpoint, backend), [LETS_IN], metadata)
        middleware = [
            Middleware(AuthenticationMiddleware, backend=backend),
            Middleware(AuthContextMiddleware),
        ]

    door = _Door(endpoint, names)
    routes += [Route(path, endpoint=door) for path in (PATH, f"{PATH}/")]
    routes += [Route(HEALTH, _health, methods=["GET"])]

    @contextlib.asynccontextmanager
    async def running(_: Any) -> AsyncIterator[None]:
        async with manager.run(), direct.run():
            yield

    # Not Starlette's whole application: what that adds, pages of errors, uvicorn has too. And nobody is sent elsewhere:
    # that would be to a name that was not checked.
    return Router(routes, middleware=middleware, lifespan=running, redirect_slashes=False)


def end(server: HardenedServer) -> None:
    """The server is about to end: calls in flight return now, and streams on which only news would come end."""
    server.end()
    for session in server.session_manager._server_instances.values():
        session.close_standalone_sse_stream()


class _Reads:
    """Has reads answered directly.

    In 2026-07-28 the SDK answers a request in a task of its own, beside one that sees whether the client leaves, so
    that it can say how far it is. A read that asks nobody is over before that could matter, and takes a sixth less time
    in the task that brings it (`tests/bench/peers.py`).

    Args:
        usual: Answers all other requests.
        direct: Answers such reads; it is asked in 2026-07-28 only.
        just_reads: Whether calls of a tool read one file and ask nobody.
    """

    def __init__(
        self,
        usual: StreamableHTTPSessionManager,
        direct: StreamableHTTPSessionManager,
        just_reads: Callable[[str], bool],
    ) -> None:
        self._usual, self._direct, self._just_reads = usual, direct, just_reads

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. That its headers are true, the SDK sees to."""
        headers = Headers(scope=scope)
        is_call = headers.get("mcp-protocol-version") == MODERN and headers.get("mcp-method") == "tools/call"
        takes_streams = CONTENT_TYPE_SSE in headers.get("accept", "")  # as whoever calls any other tool has to
        directly = is_call and takes_streams and self._just_reads(headers.get("mcp-name", ""))
        await (self._direct if directly else self._usual).handle_request(scope, receive, send)


class _Door:
    """Lets in what names the server, and comes from no other page.

    Args:
        inside: What is behind it.
        names: Of the server.
    """

    def __init__(self, inside: ASGIApp, names: HostNames) -> None:
        self._inside, self._names = inside, names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        headers = Headers(scope=scope)
        answer = self._inside
        if not self._names.have(headers.get("host", "")):
            answer = Response("The Host header does not name this server; see --allowed-host", 421)
        elif (origin := headers.get("origin")) and not self._names.have_page(origin):
            answer = Response("The Origin header names a page that is not this server's; see --allowed-host", 403)
        with contextlib.suppress(ClientDisconnect):  # who leaves in the middle of a request waits for no answer
            await answer(scope, receive, send)


async def _health(_: Request) -> Response:
    # Whoever asks may name any Host, and learns nothing. What is about to end does not listen any more.
    return JSONResponse({"status": "ok"})


async def _cleaned(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    # A lone surrogate in an answer cannot be written, and whoever waits for it would wait for ever.
    try:
        return clean(await call_next(ctx))  # type: ignore[no-any-return]
    except MCPError as error:
        error.error.message = clean(error.error.message)
        raise
