"""Tokens of an OAuth authorization server: signed JWTs that were issued for this server.

The server is a resource server only: it says where tokens are to be had (RFC 9728), and checks those that come. The
keys come from the issuer's JWKS and are kept for some minutes; a key that is not known makes it look again, though not
more often than every half minute, whatever anybody sends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import anyio
import jwt
from mcp.server.auth.provider import AccessToken

from llm_do_mcp.errors import UsageError
from llm_do_mcp.runtime.threads import in_thread

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures with a public key only: a token that is signed with what everybody may read proves nothing."""
LEEWAY_S = 30
FETCHED_WITHIN_S = 10


@dataclass(frozen=True)
class Issuer:
    """Whose tokens are taken, and for whom they must be.

    Args:
        issuer: Its address, as tokens have it in `iss`.
        audience: What tokens must have in `aud`: usually the address of this server.
        jwks: The address of its keys.

    Raises:
        UsageError: One of them cannot be one.
    """

    issuer: str
    audience: str
    jwks: str

    def __post_init__(self) -> None:
        if not self.audience:
            raise UsageError("--oauth-audience: say for whom tokens must be issued, such as this server's address")
        for option, address in (("--oauth-issuer", self.issuer), ("--oauth-jwks", self.jwks)):
            parts = urlsplit(address)
            nearby = parts.hostname in ("127.0.0.1", "localhost", "::1")
            if not parts.hostname or (parts.scheme != "https" and not (parts.scheme == "http" and nearby)):
                raise UsageError(f"{option} {address}: give an https address")


class Tokens:
    """The tokens of an issuer, as a verifier for the SDK.

    Args:
        issuer: Whose.
    """

    def __init__(self, issuer: Issuer) -> None:
        self._issuer = issuer
        self._looking = anyio.Lock()
        self._keys = jwt.PyJWKClient(issuer.jwks, timeout=FETCHED_WITHIN_S)

    async def verify_token(self, token: str) -> AccessToken | None:
        """Who has this token; None for one that is not valid, or that cannot be checked now."""
        try:
            if jwt.get_unverified_header(token).get("alg") not in ALGORITHMS:
                return None  # before anything is fetched for it
            async with self._looking:  # a JWKS that is slow takes one thread, not all
                key = await in_thread(self._keys.get_signing_key_from_jwt, token)
            claims: dict[str, Any] = jwt.decode(
                token,
                key.key,
                algorithms=list(ALGORITHMS),
                audience=self._issuer.audience,
                issuer=self._issuer.issuer,
                leeway=LEEWAY_S,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except (jwt.PyJWTError, ValueError, TypeError):
            return None
        client = claims.get("client_id") or claims.get("azp") or ""
        return AccessToken(
            token="",
            client_id=str(client),
            scopes=_scopes(claims),
            expires_at=int(claims["exp"]) + LEEWAY_S,
            subject=claims["sub"],
            claims={"iss": self._issuer.issuer},
        )


def _scopes(claims: dict[str, Any]) -> list[str]:
    given = claims.get("scope") or claims.get("scp") or ()
    return given.split() if isinstance(given, str) else [scope for scope in given if isinstance(scope, str)]
