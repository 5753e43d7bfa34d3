"""What the approval page answers: the list of questions, and a decision for one of them.

Every request must name the page's own host (a foreign name that resolves to this machine is refused), and a decision
must come from the page's own origin, with the session's cookie and the form's token. Whoever has no session is told
how to get one, and nothing else.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from llm_do_mcp.runtime.engine import Engine
from llm_do_mcp.runtime.question import Answer
from llm_do_mcp.serving.asking import NOTE_CHARS
from llm_do_mcp.serving.page import html

BY = "approval page"
MAX_BODY = 64 * 1024
NAMES = ("127.0.0.1", "localhost")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-src 'self'; img-src data:; "
_HEADERS = {
    "Content-Security-Policy": _POLICY + "frame-ancestors 'none'; base-uri 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_IN_OUR_FRAME = {
    "Content-Security-Policy": _POLICY + "frame-ancestors 'self'; base-uri 'none'",
    "X-Frame-Options": "SAMEORIGIN",
}
"""Of the piece of the page that looks for news: there is nothing in it to decide."""


@dataclass
class Visits:
    """When a page that somebody has open was last heard of, in seconds of the monotonic clock; None for never."""

    looked: float | None = None


class Doors:
    """Who may enter: tokens that work once, and the sessions that they opened. Sessions end with the process."""

    def __init__(self) -> None:
        self._tokens: set[str] = set()
        self._sessions: dict[str, str] = {}

    def token(self) -> str:
        """A new token for one visit."""
        token = secrets.token_urlsafe(24)
        self._tokens.add(token)
        return token

    def enter(self, token: str) -> str | None:
        """The session that a token opens, or None where it was used before or never given."""
        if token not in self._tokens:
            return None
        self._tokens.remove(token)
        session = secrets.token_urlsafe(24)
        self._sessions[session] = secrets.token_urlsafe(24)
        return session

    def form_token(self, session: str | None) -> str | None:
        """What a form of this session must carry; None where there is no such session."""
        return self._sessions.get(session or "")


def application(engine: Engine, doors: Doors, visits: Visits, port: int) -> Starlette:
    """The page.

    Args:
        engine: Has the questions and takes the answers.
        doors: Who may enter.
        visits: Kept up to date.
        port: Where it is served on the loopback interface.
    """
    hosts = {f"{name}:{port}" for name in NAMES}
    # Browsers keep cookies by host alone: another server's page on this machine must not push this one's out.
    cookie = f"llm-do-approvals-{port}"

    def guarded(answer: Callable[[Request, str], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        async def checked(request: Request) -> Response:
            if request.headers.get("host") not in hosts:
                return _refused("This page is not served under that name.", 421)
            form_token = doors.form_token(request.cookies.get(cookie))
            token = request.query_params.get("token")
            if request.method == "GET" and token is not None:
                if (session := doors.enter(token)) is not None:
                    return _entered(cookie, session)
                if form_token is None:
                    return _refused("This address was used before, or never given; llm-do-mcp gives a new one.", 403)
                return _to_page()
            if form_token is None:
                return _refused("Open the page with the address that llm-do-mcp gave you; it works once.", 403)
            visits.looked = time.monotonic()
            response = await answer(request, form_token)
            for name, value in _HEADERS.items():
                response.headers.setdefault(name, value)
            return response

        return checked

    async def show(request: Request, form_token: str) -> Response:
        waiting = await engine.waiting()
        traces = {run: await engine.trace(run) for run in {question.run for question in waiting}}
        said = html.SAID.get(request.query_params.get("said", ""), "")
        return HTMLResponse(html.page(waiting, traces, engine.hint, form_token, said))

    async def news(request: Request, _: str) -> Response:
        shown = html.standing(await engine.waiting()) == request.query_params.get("shown")
        return HTMLResponse(html.news(shown), headers=_IN_OUR_FRAME)

    async def decide(request: Request, form_token: str) -> Response:
        if request.headers.get("origin") not in {f"http://{host}" for host in hosts}:
            return _refused("A decision has to come from this page.", 403)
        fields = await _form(request)
        if fields is None or not hmac.compare_digest(fields.get("token", "").encode(), form_token.encode()):
            return _refused("A decision has to come from this page.", 403)
        run, key, decision = fields.get("run", ""), fields.get("key", ""), fields.get("decision", "")
        question = await engine.asked(run, key)
        if question is None:
            return _refused("There is no such question.", 404)
        if decision not in question.decisions:
            return _refused("That is none of the decisions that were offered.", 400)
        answer = Answer(decision, note=fields.get("note", "")[:NOTE_CHARS], by=BY)
        first = await engine.answer(run, key, answer)
        return RedirectResponse("/?said=done" if first else "/?said=late", status_code=303)

    return Starlette(
        routes=[
            Route("/", guarded(show), methods=["GET"]),
            Route("/news", guarded(news), methods=["GET"]),
            Route("/decide", guarded(decide), methods=["POST"]),
        ]
    )


def _entered(cookie: str, session: str) -> Response:
    response = _to_page()
    response.set_cookie(cookie, session, httponly=True, samesite="strict", path="/")
    return response


def _to_page() -> Response:
    # The page goes there by itself: behind a redirect, a browser that came from another site's link (a client that is
    # a web page) would withhold the cookie.
    return HTMLResponse(html.entrance(), headers=_HEADERS)


def _refused(reason: str, status: int) -> Response:
    return HTMLResponse(html.refusal(reason), status_code=status, headers=_HEADERS)


async def _form(request: Request) -> dict[str, str] | None:
    """The fields of a form, or None for a body that is none of ours."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        return None
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            return None
    try:
        fields = parse_qs(body.decode("ascii"), keep_blank_values=True, max_num_fields=20, errors="strict")
    except ValueError:
        return None
    return {name: values[0] for name, values in fields.items()}
