"""How long a call may take before its caller's clock runs out, by the name that the client gives itself.

A client that gives up has lost the result, so a call hands its run over before that. What is not listed here is held to
the clock of the usual SDKs: 60 seconds for a request, which progress does not extend.
"""

from __future__ import annotations

from dataclasses import dataclass

USUAL_S = 48.0
"""Where nothing better is known; also for Claude Desktop (60 to 180 s) and Codex (60 s)."""


@dataclass(frozen=True)
class Clock:
    """A host's patience.

    Args:
        call_s: Seconds that a call may take.
        progress_s: Seconds that it may take while progress comes, which starts the clock anew each time: no limit of
            the host's, but a person in front wants to see the handle of a long run at some time.
    """

    call_s: float
    progress_s: float


HOSTS = {
    "claude-code": Clock(call_s=240.0, progress_s=1800.0),  # an idle clock of about 300 s, reset by progress
}


def call_within(client: str | None, *, progress: bool) -> float:
    """Seconds after which a call hands its run over.

    Args:
        client: The name in the client's info, if it gave any.
        progress: The call asked for progress, so that it comes every few seconds.
    """
    clock = HOSTS.get((client or "").lower())
    if clock is None:
        return USUAL_S
    return clock.progress_s if progress else clock.call_s
