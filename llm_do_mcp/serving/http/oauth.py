"""Tokens of an OAuth authorization server: signed JWTs that were issued for this server.

The server is a resource server only: it says where tokens are to be had (RFC 9728), and checks those that come, with
the issuer's keys (`keys.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jwt
from mcp.server.auth.provider import AccessToken
from pydantic import AnyHttpUrl, ConfigDict, TypeAdapter, ValidationError

from llm_do_mcp.errors import UsageError
from llm_do_mcp.serving.http.address import LOOPBACK_NAMES
from llm_do_mcp.serving.http.keys import ALGORITHMS, Keys

LEEWAY_S = 30
_ADDRESS = TypeAdapter(AnyHttpUrl, config=ConfigDict(url_preserve_empty_path=True))
"""As it was given: with a `/` at its end an issuer would be another one."""


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
        for option, text in (("--oauth-issuer", self.issuer), ("--oauth-jwks", self.jwks)):
            address = web_address(text)
            if address is None or (address.scheme != "https" and address.host not in LOOPBACK_NAMES):
                raise UsageError(f"{option} {text}: give an https address")


def web_address(text: str) -> AnyHttpUrl | None:
    """The http or https address that a text is; None for one that is none."""
    try:
        return _ADDRESS.validate_python(text)
    except ValidationError:
        return None


class Tokens:
    """The tokens of an issuer, as a verifier for the SDK.

    Args:
        issuer: Whose.
    """

    def __init__(self, issuer: Issuer) -> None:
        self._issuer = issuer
        self._keys = Keys(issuer.jwks)

    async def verify_token(self, token: str) -> AccessToken | None:
        """Who has this token; None for one that is not valid, or that cannot be checked now."""
        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") not in ALGORITHMS:
                return None  # before anything is fetched for it
            if (key := await self._keys.find(header.get("kid"))) is None:
                return None
            claims: dict[str, Any] = jwt.decode(
                token,
                key.key,
                algorithms=key.algorithms,
                audience=self._issuer.audience,
                issuer=self._issuer.issuer,
                leeway=LEEWAY_S,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
            return AccessToken(
                token="",
                client_id=str(claims.get("client_id") or claims.get("azp") or ""),
                scopes=_scopes(claims),
                expires_at=int(claims["exp"]) + LEEWAY_S,
                subject=_subject(claims),
                claims={"iss": self._issuer.issuer},
            )
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            return None


def _subject(claims: dict[str, Any]) -> str:
    """Who it is; raises `ValueError` where that is nobody."""
    subject = claims["sub"]
    if not isinstance(subject, str) or not subject.strip():
        raise ValueError("a token that is nobody's")
    subject.encode()  # half a surrogate pair is no text: nothing could be recorded as this principal's
    return subject


def _scopes(claims: dict[str, Any]) -> list[str]:
    """What it allows; raises `TypeError` where that is neither a text nor a list of texts."""
    given = claims.get("scope") or claims.get("scp") or ""
    scopes = given.split() if isinstance(given, str) else given
    if not isinstance(scopes, list) or not all(isinstance(scope, str) for scope in scopes):
        raise TypeError("scopes that are none")
    return scopes
