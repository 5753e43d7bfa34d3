"""How long a call may take before its caller's clock runs out, by the name that the client gives itself.

A client that gives up has lost the result, so a call hands its run over before that. What is not listed here, and
hosts of which no clock is known, are held to the clock of the usual SDKs: 60 seconds for a request, which progress does
not extend. Hosts change fast: what is listed was read or measured in November 2026, and `--call-within` overrides it.
"""

from __future__ import annotations

from dataclasses import dataclass

SHARE = 0.8
"""How much of a host's time a call takes at most: the rest is for the way there and back."""
IN_SIGHT_S = 1800.0
"""Seconds that a call may take whose clock progress starts anew: no limit of the host's, but a person in front wants
to see the handle of a long run at some time."""


@dataclass(frozen=True)
class Clock:
    """A host's patience.

    Args:
        limit_s: Seconds after which it gives a call up.
        progress_resets: Progress starts its clock anew.
    """

    limit_s: float
    progress_resets: bool = False


USUAL = Clock(60.0)

HOSTS = {
    "claude-ai": USUAL,  # Claude Desktop: 60 to 180 s, and whether progress extends it is not known
    "claude-code": Clock(300.0, progress_resets=True),  # an idle clock
    "codex-mcp-client": USUAL,  # its `tool_timeout_sec`; progress is not even shown
    "cursor-vscode": USUAL,  # no clock of its own is known
    "goose": USUAL,  # 300 s are known for its forms, not for its calls
    "visual studio code": USUAL,  # shows progress; no clock of its own is known
    "zed": USUAL,  # no clock of its own is known
}
"""By the name in the client's info, in lower case."""


def call_within(client: str | None, *, progress: bool) -> float:
    """Seconds after which a call hands its run over.

    Args:
        client: The name in the client's info, if it gave any.
        progress: The call asked for progress, so that it comes every few seconds.
    """
    clock = HOSTS.get((client or "").lower(), USUAL)
    return IN_SIGHT_S if progress and clock.progress_resets else SHARE * clock.limit_s
