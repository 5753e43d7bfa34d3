"""How long a command may take. Whatever takes long asks now and then whether it is over."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Interrupted(Exception):
    """The search was stopped; `code` is `cancelled` or `timeout`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Patience:
    """How long a command may take: until a deadline, or until somebody cancels it."""

    def __init__(self, seconds: float, cancelled: Callable[[], bool] | None) -> None:
        self.seconds = seconds
        self.deadline = time.monotonic() + seconds
        self.cancelled = cancelled

    def at_most(self, seconds: float) -> Patience:
        """The same, but for so many seconds from now at most."""
        return Patience(max(min(seconds, self.deadline - time.monotonic()), 0.0), self.cancelled)

    def check(self) -> None:
        """Raises `Interrupted` when it is over."""
        if self.cancelled is not None and self.cancelled():
            raise Interrupted("cancelled")
        if time.monotonic() > self.deadline:
            raise Interrupted("timeout")
