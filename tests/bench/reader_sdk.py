"""A bare server of the SDK's with one tool that reads a text file: `python reader_sdk.py FOLDER [PORT]`.

It does the same work as ours, and no more: the file is read in a thread, so that a slow disk holds up nobody else. It
neither keeps to the folder nor records what it did, and logs nothing. So it is with `reader_fastmcp.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer

mcp = MCPServer("reader", log_level="WARNING")
folder = Path(sys.argv[1])


@mcp.tool()
def read_text(path: str) -> str:
    """Read a text file of the notes."""
    return (folder / path).read_text(encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        mcp.run("streamable-http", port=int(sys.argv[2]))
    else:
        mcp.run("stdio")
