"""Who calls, and what they may do: what a bearer token says, where a server asks for one.

Without authentication (over a pipe, or on the loopback interface) the caller is whoever runs the server: nobody by
name, who may do everything and use every run. With it, each run belongs to the principal who began it: to all others
it is as if it did not exist.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from mcp.server.auth.provider import AccessToken

Scope = Literal["call", "write", "approve"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
"""What a token may allow: to call what only reads; to call what can change something; to answer its runs' questions."""
LETS_IN: Scope = "call"
"""Without it a token allows nothing else either."""


@dataclass(frozen=True)
class Caller:
    """Who a request comes from.

    Args:
        principal: Whose runs it may use; "" for whoever runs the server.
        scopes: What it may do.
    """

    principal: str
    scopes: Collection[str]

    def may(self, scope: Scope) -> bool:
        """Whether it may do something."""
        return scope in self.scopes

    @property
    def is_remote(self) -> bool:
        """Whether somebody else than whoever runs the server calls: they have no terminal and no browser there."""
        return bool(self.principal)


OWNER = Caller("", SCOPES)


def caller() -> Caller:
    """Who the request that is being answered comes from."""
    token = _get_access_token()()
    return OWNER if token is None else Caller(principal_of(token), token.scopes)


@functools.cache
def _get_access_token() -> Callable[[], AccessToken | None]:
    # Here, since `check` uses this module's table and has no other use for the SDK.
    from mcp.server.auth.middleware.auth_context import get_access_token

    return get_access_token


def principal_of(token: AccessToken) -> str:
    """The person, or program, that a token stands for, whichever client has it.

    A subject is unique for its issuer only; an issuer is an address, so the space between the two is the first one.
    """
    issuer = (token.claims or {}).get("iss")
    assert token.subject, "a token without one is not taken"
    return token.subject if issuer is None else f"{issuer} {token.subject}"
