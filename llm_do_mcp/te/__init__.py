"""The tool envelope: a search command that models already know, answered within a budget of characters.

`te grep`, `te cat` and `te find` take the everyday flags of these commands and answer with a meta header (exact
totals, errors), then lines, the best first; what does not fit is kept behind a handle. It stands alone: it knows
nothing of workers or of MCP, and imports nothing of the rest of the project. It is both the `te` command and the
engine of the `te` tool.

Read `invocation.py` (a command from its words to its answer), `envelope.py` (what answers are like) and `grep.py` (how
one is found) first. Modules here import as little as they can, since the command pays for each import at every call:
no `re`, `json`, `argparse`, `dataclasses` or `pathlib` on the usual path.
"""

from __future__ import annotations

from llm_do_mcp.te.command import run

__all__ = ["run"]
