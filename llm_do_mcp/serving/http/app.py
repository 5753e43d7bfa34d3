"""The application: the SDK's own Streamable HTTP for both protocol eras at `/mcp`, behind what asks callers who they
are, and `/health` for whatever watches the server.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.provider import TokenVerifier
from mcp.server.auth.routes import build_resource_metadata_url, create_protected_resource_routes
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from pydantic import AnyHttpUrl, TypeAdapter
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from llm_do_mcp.serving.caller import SCOPES
from llm_do_mcp.serving.hardened import HardenedServer
from llm_do_mcp.serving.stdio import clean

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
    issuer: str | None = None
    resource: str | None = None


def application(
    server: HardenedServer,
    security: TransportSecuritySettings,
    authentication: Authentication | None,
    is_ending: Callable[[], bool],
) -> Starlette:
    """The application.

    Args:
        server: What is served.
        security: The Host and Origin headers that it takes.
        authentication: None where everybody who can reach it may do everything.
        is_ending: Whether the server is about to end.
    """
    server._lowlevel_server.middleware.append(_cleaned)
    server.streamable_http_app(streamable_http_path=PATH, transport_security=security)
    manager = server.session_manager
    endpoint: ASGIApp = StreamableHTTPASGIApp(manager)
    routes: list[Route] = []
    middleware: list[Middleware] = []
    if authentication is not None:
        metadata = None
        if authentication.issuer is not None and authentication.resource is not None:
            resource, issuer = (_url(address) for address in (authentication.resource, authentication.issuer))
            metadata = build_resource_metadata_url(resource)
            routes += create_protected_resource_routes(resource, [issuer], scopes_supported=list(SCOPES))
        endpoint = RequireAuthMiddleware(endpoint, ["call"], metadata)
        middleware = [
            Middleware(AuthenticationMiddleware, backend=BearerAuthBackend(authentication.verifier)),
            Middleware(AuthContextMiddleware),
        ]

    async def health(_: Request) -> Response:
        # A balancer sends nothing more to what is about to end. Whoever asks may name any Host, and learns nothing.
        ending = is_ending()
        return JSONResponse({"status": "ending" if ending else "ok"}, status_code=503 if ending else 200)

    routes += [Route(PATH, endpoint=endpoint), Route(HEALTH, health, methods=["GET"])]
    return Starlette(routes=routes, middleware=middleware, lifespan=lambda _: manager.run())


async def _cleaned(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    # A lone surrogate in an answer cannot be written, and whoever waits for it would wait for ever.
    try:
        return clean(await call_next(ctx))  # type: ignore[no-any-return]
    except MCPError as error:
        error.error.message = clean(error.error.message)
        raise


def _url(address: str) -> AnyHttpUrl:
    return TypeAdapter(AnyHttpUrl).validate_python(address)
