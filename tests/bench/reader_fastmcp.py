"""The server of `reader_sdk.py`, made with `fastmcp`: `python reader_fastmcp.py FOLDER [PORT]`."""

from __future__ import annotations

import sys
from pathlib import Path

from fastmcp import FastMCP

mcp = FastMCP("reader")
folder = Path(sys.argv[1])


@mcp.tool
def read_text(path: str) -> str:
    """Read a text file of the notes."""
    return (folder / path).read_text(encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        mcp.run("http", port=int(sys.argv[2]), show_banner=False, log_level="WARNING")
    else:
        mcp.run("stdio", show_banner=False, log_level="WARNING")
