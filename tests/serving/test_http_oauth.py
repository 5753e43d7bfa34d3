"""Tokens of an OAuth authorization server, whose keys are served over HTTP."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
import time
import warnings
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from llm_do_mcp.errors import UsageError
from llm_do_mcp.serving.http import keys
from llm_do_mcp.serving.http.keys import Keys
from llm_do_mcp.serving.http.oauth import Issuer
from tests.serving.clients import ERAS, GO, PATIENCE_S, READ, account, shop, text, turn, write
from tests.serving.web import Serve, bearer, body, headers, visitor

pytestmark = pytest.mark.anyio

AUDIENCE = "https://workers.example.org/mcp"


class Authority:
    """An issuer with one key at a time."""

    def __init__(self) -> None:
        self.fetched = 0
        self.stuck: int | None = None
        """After how many bytes its answers stop, without an end."""
        self.status = 200
        self.moved = ""
        """Where its address leads on to."""
        self.further: list[dict[str, Any]] = []
        """Keys before its own."""
        self.asked, self.freed = threading.Semaphore(0), threading.Event()
        self.renew("first")
        authority = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                authority.fetched += 1
                text = json.dumps({"keys": [*authority.further, authority.jwk]}).encode()
                if authority.moved and self.path == "/jwks.json":
                    self.send_response(302)
                    self.send_header("Location", authority.moved)
                    self.end_headers()
                    return
                self.send_response(authority.status)
                self.end_headers()
                if authority.stuck is not None:
                    authority.asked.release()
                    self.wfile.write(text[: authority.stuck])
                    self.wfile.flush()
                    authority.freed.wait(PATIENCE_S)
                    return
                self.wfile.write(text)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def renew(self, kid: str) -> None:
        self.kid, self.key = kid, ec.generate_private_key(ec.SECP256R1())
        self.jwk = {**json.loads(ECAlgorithm.to_jwk(self.key.public_key())), "kid": kid, "use": "sig", "alg": "ES256"}

    def token(self, key: Any = None, algorithm: str = "ES256", kid: str | None = None, **claims: Any) -> str:
        """A token; claims that are None are left out, and so is a `kid` that is ""."""
        usual = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": "ann",
            "exp": time.time() + 600,
            "client_id": "desk",
            "scope": "call write approve",
        }
        kept = {name: value for name, value in {**usual, **claims}.items() if value is not None}
        named = {"kid": self.kid if kid is None else kid}
        return jwt.encode(kept, self.key if key is None else key, algorithm, headers=named if named["kid"] else {})

    @property
    def options(self) -> tuple[str, ...]:
        return (
            *("--oauth-issuer", self.url),
            *("--oauth-audience", AUDIENCE),
            *("--oauth-jwks", f"{self.url}/jwks.json"),
        )

    def close(self) -> None:
        self.freed.set()
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def authority() -> Iterator[Authority]:
    made = Authority()
    yield made
    made.close()


async def post(url: str, token: str | None) -> httpx2.Response:
    async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
        sent = {**headers("tools/call", READ["name"]), **bearer(token)}
        return await http.post(url, json=body("tools/call", READ), headers=sent)


@pytest.mark.proves("HTTP-OAUTH")
async def test_only_tokens_that_are_meant_are_taken(tmp_path: Path, serve: Serve, authority: Authority) -> None:
    service = serve(shop(tmp_path), *authority.options)
    good = authority.token()
    assert (await post(service.url, good)).status_code == 200
    assert (
        await post(service.url, authority.token(aud=["other", AUDIENCE], scope=None, scp=["call"]))
    ).status_code == 200
    public = authority.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    secret = base64.b64encode(public)
    head, payload, signature = good.split(".")
    refused = {
        "nothing": None,
        "no token": "nonsense",
        "another issuer": authority.token(iss="https://elsewhere.example"),
        "another server": authority.token(aud="https://other.example/mcp"),
        "expired": authority.token(exp=time.time() - 60),
        "without an end": authority.token(exp=None),
        "not yet": authority.token(nbf=time.time() + 600),
        "nobody": authority.token(sub=None),
        "nobody by name": authority.token(sub="", client_id="ann"),
        "nobody whose name can be written": authority.token(sub="a\ud800"),
        "a number of scopes": authority.token(scope=5),
        "scopes by name": authority.token(scope={"call": True}),
        "an end that is none": authority.token(exp=float("inf")),
        "a key without a name": _part({"alg": "ES256", "kid": 5}) + good[good.index(".") :],
        "too deep": "W3" * 20000 + good[good.index(".") :],
        "for nobody": authority.token(aud=None),
        "another key": authority.token(ec.generate_private_key(ec.SECP256R1())),
        "an unknown key": authority.token(kid="unknown"),
        "unsigned": f"{_part({'alg': 'none', 'kid': 'first'})}.{payload}.",
        "signed with what all may read": authority.token(secret, "HS256"),
        "cut": f"{head}.{payload}.{signature[:-2]}",
        "another payload": f"{head}.{_part({'iss': authority.url, 'sub': 'ann'})}.{signature}",
    }
    for why, token in refused.items():
        answer = await post(service.url, token)
        assert answer.status_code == 401, why
        metadata = "https://workers.example.org/.well-known/oauth-protected-resource/mcp"
        assert f'resource_metadata="{metadata}"' in answer.headers["www-authenticate"]
    assert (await post(service.url, authority.token(scope="openid"))).status_code == 403
    assert (await post(service.url, good)).status_code == 200


def _part(data: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(data).encode()).decode().rstrip("=")


@pytest.mark.proves("HTTP-OAUTH-KEYS")
@pytest.mark.parametrize("stuck", [0, 20])
async def test_who_has_a_known_key_does_not_wait_for_an_address_that_hangs(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, stuck: int
) -> None:
    monkeypatch.setattr(keys, "FETCHED_EVERY_S", 0.0)
    kept = Keys(f"{authority.url}/jwks.json")
    assert (await kept.find("first")) is not None
    authority.stuck = stuck
    waiting = [asyncio.create_task(kept.find(f"k{number}")) for number in range(3)]
    assert await asyncio.to_thread(authority.asked.acquire, timeout=PATIENCE_S)
    assert (await kept.find("first")) is not None
    assert not any(task.done() for task in waiting)
    for task in waiting:
        task.cancel()


@pytest.mark.proves("HTTP-OAUTH-KEYS")
async def test_an_answer_has_one_deadline_as_a_whole(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "FETCHED_WITHIN_S", 0.3)
    authority.stuck = 20
    with anyio.fail_after(PATIENCE_S):
        assert await Keys(f"{authority.url}/jwks.json").find("first") is None


@pytest.mark.proves("HTTP-OAUTH-KEYS", "HTTP-LOG")
async def test_an_address_that_fails_is_not_asked_for_each_token(
    tmp_path: Path, serve: Serve, authority: Authority
) -> None:
    good = authority.token()
    authority.jwk = {}  # what holds no key
    service = serve(shop(tmp_path), *authority.options)
    began = time.monotonic()
    for number in range(20):
        assert (await post(service.url, authority.token(kid=f"k{number}"))).status_code == 401
    assert (await post(service.url, good)).status_code == 401
    assert authority.fetched <= 1 + (time.monotonic() - began) / keys.FIRST_EVERY_S
    assert service.end() == 0
    (told,) = [line for line in service.said if "--oauth-jwks" in line]
    assert f"--oauth-jwks {authority.url}/jwks.json: " in told


@pytest.mark.proves("HTTP-OAUTH-KEYS")
async def test_as_long_as_there_are_no_keys_they_are_soon_looked_for_again(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "FIRST_EVERY_S", 0.0)
    kept = Keys(f"{authority.url}/jwks.json")
    authority.status = 503
    assert await kept.find("first") is None
    authority.status = 200
    assert await kept.find("first") is not None
    assert await kept.find("second") is None and authority.fetched == 2, "from then on they are not"


@pytest.mark.proves("HTTP-OAUTH-MOVED", "HTTP-LOG")
async def test_an_address_leads_on_to_what_is_as_safe(authority: Authority, capfd: pytest.CaptureFixture[str]) -> None:
    authority.moved = f"{authority.url}/keys"
    assert await Keys(f"{authority.url}/jwks.json").find("first") is not None
    assert authority.fetched == 2 and not capfd.readouterr().err
    authority.moved = "http://issuer.example/keys"
    assert await Keys(f"{authority.url}/jwks.json").find("first") is None
    said = capfd.readouterr().err
    assert "it leads on to http://issuer.example/keys, which is not https" in said and said.count("\n") == 1
    authority.moved = f"{authority.url}/jwks.json"
    assert await Keys(f"{authority.url}/jwks.json").find("first") is None
    assert authority.fetched < 20 and capfd.readouterr().err.count("\n") == 1


@pytest.mark.proves("HTTP-LOG")
async def test_an_answer_that_is_none_is_told_in_one_line(
    authority: Authority, capfd: pytest.CaptureFixture[str]
) -> None:
    authority.status = 404
    assert await Keys(f"{authority.url}/jwks.json").find("first") is None
    said = capfd.readouterr().err
    assert "it answers 404 Not Found; nobody with another key is let in" in said and said.count("\n") == 1


@pytest.mark.proves("HTTP-OAUTH", "HTTP-LOG")
async def test_a_key_that_is_no_public_one_lets_nobody_in(tmp_path: Path, serve: Serve, authority: Authority) -> None:
    leaked = rsa.generate_private_key(65537, 2048)
    authority.further = [{**json.loads(RSAAlgorithm.to_jwk(leaked)), "kid": "leaked"}]
    service = serve(shop(tmp_path), *authority.options)
    assert (await post(service.url, authority.token(leaked, "RS256", kid="leaked"))).status_code == 401
    assert (await post(service.url, authority.token())).status_code == 200
    assert service.end() == 0
    (told,) = service.said[1:]
    assert "--oauth-jwks" in told and "no public key: 'leaked'; nobody with it is let in" in told


@pytest.mark.proves("HTTP-OAUTH-UNNAMED", "HTTP-LOG")
async def test_a_token_that_names_no_key_is_checked_with_the_only_one(
    tmp_path: Path, serve: Serve, authority: Authority
) -> None:
    authority.further = [{**authority.jwk, "kid": "encrypts", "use": "enc"}]
    del authority.jwk["kid"]
    service = serve(shop(tmp_path), *authority.options)
    assert (await post(service.url, authority.token(kid=""))).status_code == 200
    other = ec.generate_private_key(ec.SECP256R1())
    for token in (authority.token(other, kid=""), authority.token(kid="encrypts"), authority.token(kid="first")):
        assert (await post(service.url, token)).status_code == 401
    assert service.end() == 0
    (told,) = service.said[1:]
    assert told.endswith("/jwks.json: no `kid`: 1 of 1 key; only tokens that name none are let in\n")


@pytest.mark.proves("HTTP-OAUTH-UNNAMED", "HTTP-LOG")
async def test_of_several_keys_a_token_has_to_name_one(authority: Authority, capfd: pytest.CaptureFixture[str]) -> None:
    nameless = {name: value for name, value in authority.jwk.items() if name != "kid"}
    authority.further = [nameless]
    mixed = Keys(f"{authority.url}/jwks.json")
    assert await mixed.find("first") is not None and await mixed.find(None) is None
    assert capfd.readouterr().err.endswith("/jwks.json: no `kid`: 1 of 2 keys; nobody with it is let in\n")
    authority.jwk = nameless
    assert await Keys(f"{authority.url}/jwks.json").find(None) is None
    assert capfd.readouterr().err.endswith("/jwks.json: no `kid`: 2 of 2 keys; nobody with it is let in\n")


@pytest.mark.proves("HTTP-OAUTH-ALGORITHM", "HTTP-LOG")
@pytest.mark.parametrize(
    "odd",
    [
        {"use": "enc"},
        {"use": 5},
        {"key_ops": ["encrypt"]},
        {"alg": "ECDH-ES"},
        {"alg": ["ES256"]},
        {"crv": "secp256k1"},
    ],
)
async def test_keys_for_something_else_than_signatures_are_none(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], odd: dict[str, Any]
) -> None:
    monkeypatch.setattr(keys, "FIRST_EVERY_S", 0.0)
    known = authority.jwk
    authority.jwk = {**known, **odd}
    kept = Keys(f"{authority.url}/jwks.json")
    assert await kept.find("first") is None and await kept.find(None) is None
    told = "/jwks.json: no key for signatures (RSA, EC or OKP, with the `use` sig or none); nobody is let in\n"
    said = capfd.readouterr().err
    assert said.endswith(told) and said.count("\n") == 1
    authority.further = [known]  # one that is of no use keeps no other one out
    assert await kept.find("first") is not None and not capfd.readouterr().err


@pytest.mark.proves("HTTP-OAUTH-ALGORITHM")
async def test_a_short_key_lets_nobody_in(tmp_path: Path, serve: Serve, authority: Authority) -> None:
    key = rsa.generate_private_key(65537, 1024)
    authority.further = [{**json.loads(RSAAlgorithm.to_jwk(key.public_key())), "kid": "short"}]
    service = serve(shop(tmp_path), *authority.options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the same, where the token is signed
        short = authority.token(key, "RS256", kid="short")
    assert (await post(service.url, short)).status_code == 401
    assert (await post(service.url, authority.token())).status_code == 200
    assert "RSA with less than 2,048 bits: 'short'; nobody with it is let in" in service.line("--oauth-jwks")


@pytest.mark.proves("HTTP-OAUTH-ALGORITHM")
async def test_a_key_is_used_with_its_own_algorithm(tmp_path: Path, serve: Serve, authority: Authority) -> None:
    key = rsa.generate_private_key(65537, 2048)
    public = json.loads(RSAAlgorithm.to_jwk(key.public_key()))
    authority.further = [{**public, "kid": "any"}, {**public, "kid": "one", "alg": "RS256"}]
    service = serve(shop(tmp_path), *authority.options)
    for kid, algorithm, status in (
        ("any", "RS256", 200),
        ("any", "PS512", 200),
        ("one", "RS256", 200),
        ("one", "RS512", 401),
        ("one", "PS256", 401),
    ):
        answer = await post(service.url, authority.token(key, algorithm, kid=kid))
        assert answer.status_code == status, (kid, algorithm)


@pytest.mark.proves("HTTP-OAUTH-KEYS")
async def test_a_key_that_the_issuer_takes_out_is_used_until_the_next_look(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "FETCHED_EVERY_S", 0.0)
    kept = Keys(f"{authority.url}/jwks.json")
    assert (await kept.find("first")) is not None
    authority.renew("second")
    assert (await kept.find("second")) is not None and (await kept.find("first")) is None
    monkeypatch.setattr(keys, "TRUSTED_S", 0.0)
    authority.jwk = {}
    assert (await kept.find("second")) is None, "too old, and there are no newer ones"


@pytest.mark.proves("HTTP-OAUTH-KEYS")
async def test_keys_are_kept_and_not_fetched_for_whoever_asks(
    tmp_path: Path, serve: Serve, authority: Authority
) -> None:
    service = serve(shop(tmp_path), *authority.options)
    for _ in range(5):
        assert (await post(service.url, authority.token())).status_code == 200
    for number in range(20):
        assert (await post(service.url, authority.token(kid=f"k{number}"))).status_code == 401
    assert authority.fetched <= 2


@pytest.mark.proves("HTTP-OAUTH")
async def test_clients_are_told_where_tokens_are_had(tmp_path: Path, serve: Serve, authority: Authority) -> None:
    service = serve(shop(tmp_path), *authority.options)
    address = service.url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp")
    async with httpx2.AsyncClient() as http:
        told = (await http.get(address)).json()
    assert told["resource"] == AUDIENCE and told["scopes_supported"] == ["call", "write", "approve"]
    assert told["authorization_servers"] == [authority.url], "as it stands in tokens, without another `/`"


@pytest.mark.proves("HTTP-OAUTH", "HTTP-PRINCIPALS")
async def test_a_person_is_one_principal_whatever_the_client(
    tmp_path: Path, serve: Serve, authority: Authority
) -> None:
    service = serve(shop(tmp_path, turn(write("out/a.txt"))), *authority.options)
    async with visitor(service.url, ERAS[1], token=authority.token()) as client:
        run = account(await client.call_tool("shop", GO))["id"]
    async with visitor(service.url, ERAS[1], token=authority.token(client_id="phone", azp="phone")) as client:
        assert text(await client.call_tool("run_cancel", {"run_id": run})).startswith(f"run {run} was cancelled")
    async with visitor(service.url, ERAS[1], token=authority.token(sub="bo")) as client:
        assert text(await client.call_tool("run_wait", {"run_id": run})) == f"there is no run {run}"


NO_ADDRESSES = ["http://a.example", "a.example", "ftp://a.example", "https://", "", "https://[a/b", "https://a:b"]


@pytest.mark.proves("HTTP-OAUTH", "HTTP-CLOSED")
@pytest.mark.parametrize("audience", ["api://x", "urn://x y", "://", "urn:workers", "https://[a"])
async def test_an_audience_may_be_any_text(tmp_path: Path, serve: Serve, authority: Authority, audience: str) -> None:
    options = [audience if option == AUDIENCE else option for option in authority.options]
    service = serve(shop(tmp_path), *options)
    assert (await post(service.url, authority.token(aud=audience))).status_code == 200
    refused = await post(service.url, authority.token())
    assert refused.status_code == 401 and "resource_metadata" not in refused.headers["www-authenticate"]


@pytest.mark.proves("HTTP-OAUTH", "HTTP-CLOSED")
@pytest.mark.parametrize("address", NO_ADDRESSES)
def test_an_issuer_that_could_be_anybody_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match=r"--oauth-issuer .*: give an https address"):
        Issuer(address, AUDIENCE, "https://issuer.example/jwks")
    with pytest.raises(UsageError, match=r"--oauth-jwks .*: give an https address"):
        Issuer("https://issuer.example", AUDIENCE, address)
    with pytest.raises(UsageError, match="--oauth-audience"):
        Issuer("https://issuer.example", "", "https://issuer.example/jwks")
