"""Exit codes, the same for every command."""

from __future__ import annotations

import sys
from collections.abc import Callable

from llm_do_mcp.errors import LlmDoError, ProjectError, UsageError

DONE = 0
FAILED = 1
USAGE = 2
"""A command line or a project that cannot be used."""
REFUSED = 3
"""Done, but something was refused on the way."""
PAUSED = 4
"""Waits for a person."""
INTERRUPTED = 130


def guarded(command: Callable[[], int], program: str) -> int:
    """Run a command; an error that a person can meet becomes one line and an exit code."""
    try:
        return command()
    except (UsageError, ProjectError) as error:
        print(f"{program}: {error}", file=sys.stderr)
        return USAGE
    except LlmDoError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print(f"{program}: interrupted", file=sys.stderr)
        return INTERRUPTED
