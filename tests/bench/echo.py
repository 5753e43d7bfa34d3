"""The bare server that ours is measured against: the SDK's `MCPServer` with one echo tool.

It is as cheap as such a server can be: its tool is a coroutine, so that no thread is needed for a call, and it logs
nothing for a call. Both make it the harder peer.
"""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer

mcp = MCPServer("echo", log_level="WARNING")


@mcp.tool()
async def echo(text: str) -> str:
    """Give back what was given."""
    return text


if __name__ == "__main__":
    mcp.run("stdio")
