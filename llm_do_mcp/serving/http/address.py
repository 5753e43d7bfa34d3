"""Where a server listens, and under which names it may be asked for.

A browser lets any page send requests to any address, also to one that only this machine can reach, under a name that
was made to mean it. So every request has to name a host that is the server's own, and one that comes from a page has to
come from the server's own address. That holds wherever it listens.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from llm_do_mcp.errors import UsageError

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
MAX_PORT = 65535
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_LABEL = re.compile(r"[A-Za-z0-9_-]{1,63}")
"""A name between two dots. Clients send one in other letters in its `xn--` form."""


@dataclass(frozen=True)
class Address:
    """Where a server listens.

    Args:
        host: An IP address, or `localhost`.
        port: 0 for any free one.
    """

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback

    @property
    def is_everywhere(self) -> bool:
        """Whether it listens on all interfaces, so that its address is no name for it."""
        return self.host != "localhost" and ipaddress.ip_address(self.host).is_unspecified

    @property
    def family_is_6(self) -> bool:
        """Whether it is an IPv6 address."""
        return ":" in self.host

    @property
    def named(self) -> str:
        """As it stands in a URL."""
        return f"[{self.host}]:{self.port}" if self.family_is_6 else f"{self.host}:{self.port}"


def parse(text: str) -> Address:
    """An address as it is given with `--http`: `HOST:PORT`, `[IPV6]:PORT`, or `:PORT` or `PORT` for loopback.

    Raises:
        UsageError: It is none.
    """
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") and host.endswith("]") else host
    wrong = UsageError(
        f"--http {text}: give it as HOST:PORT, such as 127.0.0.1:8000; HOST is an IP address or localhost"
    )
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= MAX_PORT):
        raise wrong
    address = Address(host or LOOPBACK_NAMES[0], int(port))
    if address.host != "localhost":
        try:
            ipaddress.ip_address(address.host)
        except ValueError:
            raise wrong from None
    return address


@dataclass(frozen=True)
class HostNames:
    """The names that a server may be asked for by, in small letters: clients may write them in any.

    Args:
        whole: With the port, which has to be this one.
        hosts: Without: any port will do, and none.
    """

    whole: frozenset[str]
    hosts: frozenset[str]

    def have(self, host: str) -> bool:
        """Whether a Host header names the server."""
        name, _, _ = (host := host.lower()).rpartition(":")
        return host in self.whole or host in self.hosts or (_has_port(host) and name in self.hosts)

    def have_page(self, origin: str) -> bool:
        """Whether an Origin header names a page of the server's own."""
        scheme, _, host = origin.partition("://")
        return scheme.lower() in ("http", "https") and self.have(host)


def names(address: Address, allowed: Sequence[str]) -> HostNames:
    """The names that a server answers to.

    Args:
        address: Where it listens, with the port that it got.
        allowed: `--allowed-host`: further names, with any port where they have none.

    Raises:
        UsageError: It would answer to no name at all.
    """
    own = [] if address.is_everywhere else [address.named]
    if address.is_loopback:
        own += [f"{name}:{address.port}" for name in LOOPBACK_NAMES]
    if not own and not allowed:
        raise UsageError(f"--http {address.named}: say with --allowed-host under which names clients will reach it")
    known = {name.lower() for name in (*own, *map(_allowed, allowed))}
    whole = frozenset(name for name in known if _has_port(name))
    return HostNames(whole, frozenset(known - whole))


def _allowed(text: str) -> str:
    """A name as it is given with `--allowed-host`, as clients send it; raises `UsageError` for what none can send."""
    name = f"[{text}]" if _is_ip(text, 6) else text
    host, port = name.rsplit(":", 1) if _has_port(name) else (name, "1")
    if not _is_host(host) or not _PORT.fullmatch(port) or int(port) > MAX_PORT:
        raise UsageError(
            f"--allowed-host {text}: give a host as clients name it, such as workers.example.org, "
            "workers.example.org:8443 or [2001:db8::7]"
        )
    return name


def _is_host(text: str) -> bool:
    if text.startswith("["):
        return text.endswith("]") and _is_ip(text[1:-1], 6)
    labels = text.removesuffix(".").split(".")
    return all(map(_LABEL.fullmatch, labels)) and (not labels[-1].isdigit() or _is_ip(text, 4))


def _is_ip(text: str, version: Literal[4, 6]) -> bool:
    try:
        return ipaddress.ip_address(text).version == version and "%" not in text  # a zone is this machine's own
    except ValueError:
        return False


def _has_port(name: str) -> bool:
    host, colon, port = name.rpartition(":")
    return bool(colon) and port.isascii() and port.isdigit() and (":" not in host or host.endswith("]"))
