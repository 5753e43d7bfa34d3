"""Visitors of the approval page who speak plain HTTP: well behaved, or not."""

from __future__ import annotations

import html
import http.client
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

import anyio.to_thread

PATIENCE_S = 20.0


@dataclass(frozen=True)
class Reply:
    """What came back."""

    status: int
    headers: dict[str, str]
    text: str


class Visitor:
    """A browser that has been given an address, as far as plain HTTP goes.

    Args:
        address: Of the page, with a token; or without one, for somebody who was given none.
    """

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        assert parts.hostname is not None and parts.port is not None
        self.host, self.port = parts.hostname, parts.port
        self.origin = f"http://{self.host}:{self.port}"
        self.way_in = f"{parts.path}?{parts.query}" if parts.query else parts.path
        self.cookie = ""

    def request(self, method: str, path: str, body: bytes | str | None = None, **headers: str | None) -> Reply:
        """One request. Headers by their names with `_` for `-`; None leaves out what would be there."""
        usual: dict[str, str | None] = {"host": f"{self.host}:{self.port}", "cookie": self.cookie or None}
        told = {**usual, **{name.replace("_", "-"): value for name, value in headers.items()}}
        data = body.encode() if isinstance(body, str) else body
        connection = http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE_S)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in told.items():
                if value is not None:
                    connection.putheader(name, value)
            if data is not None:
                connection.putheader("content-length", str(len(data)))
            connection.endheaders(data)
            answer = connection.getresponse()
            return Reply(
                answer.status,
                {name.lower(): value for name, value in answer.getheaders()},
                answer.read().decode(),
            )
        finally:
            connection.close()

    def enter(self) -> Reply:
        """Use the address; keep the session where it gives one."""
        reply = self.request("GET", self.way_in)
        self.cookie = reply.headers.get("set-cookie", "").partition(";")[0] or self.cookie
        return reply

    def look(self) -> str:
        """The list of questions."""
        reply = self.request("GET", "/")
        assert reply.status == 200, reply
        return reply.text

    def forms(self) -> list[dict[str, str]]:
        """The hidden fields of each question's form."""
        found = re.findall(r"<form.*?</form>", self.look(), re.DOTALL)
        field = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)">')
        return [{name: html.unescape(value) for name, value in field.findall(form)} for form in found]

    def post(self, fields: dict[str, str], **headers: str | None) -> Reply:
        """Send a form."""
        usual: dict[str, Any] = {"origin": self.origin, "content_type": "application/x-www-form-urlencoded"}
        return self.request("POST", "/decide", urlencode(fields), **{**usual, **headers})

    def decide(self, decision: str, note: str = "", index: int = 0) -> Reply:
        """Press a button of a question that is shown."""
        return self.post({**self.forms()[index], "decision": decision, "note": note})


async def decide(address: str, decision: str, note: str = "") -> str:
    """What a person does who was given the address: goes in and decides the first question. Returns the page then."""

    def visit() -> str:
        visitor = Visitor(address)
        assert visitor.enter().status == 200
        reply = visitor.decide(decision, note)
        assert reply.status == 303, reply
        return visitor.request("GET", reply.headers["location"]).text

    return await anyio.to_thread.run_sync(visit)
