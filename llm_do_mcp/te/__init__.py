"""The tool envelope: a search command that models already know, answered within a budget of characters.

`te grep` takes grep's and ripgrep's everyday flags and answers with a meta header (exact totals, errors), then
one hit a line. It stands alone: it knows nothing of workers or of MCP, and imports nothing of the rest of the
project. It is both the `te` command and the engine of the `te` tool.

Read `command.py` (what may be asked) and `grep.py` (how it is answered) first. Modules here import as little as
they can, since the command pays for each import at every call: no `re`, `json`, `argparse`, `dataclasses` or
`pathlib` on the usual path.
"""

from __future__ import annotations

from llm_do_mcp.te.command import run

__all__ = ["run"]
