"""Exit codes, the same for every command."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from llm_do_mcp.errors import LlmDoError, ProjectError, UsageError
from llm_do_mcp.runtime.redact import redactor

DONE = 0
FAILED = 1
USAGE = 2
"""A command line or a project that cannot be used."""
REFUSED = 3
"""Done, but something was refused on the way."""
PAUSED = 4
"""Waits for a person."""
INTERRUPTED = 130

MEANINGS = {
    DONE: "done",
    FAILED: "failed",
    USAGE: "the command line or the project cannot be used",
    REFUSED: "done, but something was refused",
    PAUSED: "waits for a person",
    INTERRUPTED: "interrupted",
}
"""What a help says of them."""


def guarded(command: Callable[[], int], program: str) -> int:
    """Run a command; an error that a person can meet becomes one line and an exit code."""
    try:
        code = command()
        sys.stdout.flush()
        return code
    except LlmDoError as error:
        # No project may be at hand: what the environment says must not be shown is known in any case.
        print(f"{program}: {redactor(os.environ).text(str(error))}", file=sys.stderr)
        return USAGE if isinstance(error, UsageError | ProjectError) else FAILED
    except BrokenPipeError:
        # Whoever read the output has seen enough; what is still buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OSError as error:
        print(f"{program}: {error.strerror or error}: {error.filename or 'while writing or reading'}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print(f"{program}: interrupted", file=sys.stderr)
        return INTERRUPTED
