"""Serves a folder of workers over MCP. For the author of a project's tools: `from llm_do_mcp import tool, ToolContext`.

Importing this package costs nothing and needs nothing but the standard library: it is imported in the server, by the
`te` command, and in the tool host, under whatever interpreter a project names. Its names are fetched when asked for.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as type checkers understand it, without the cost of importing `typing`
if TYPE_CHECKING:
    from llm_do_mcp.toolhost.authoring import ToolContext, tool

    __version__: str

__all__ = ["ToolContext", "__version__", "tool"]


def __getattr__(name: str) -> object:
    if name in ("tool", "ToolContext"):
        from llm_do_mcp.toolhost import authoring

        return getattr(authoring, name)
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("llm-do-mcp")
        except PackageNotFoundError:
            raise AttributeError("llm_do_mcp has no version here: it is not installed, only its files are") from None
    raise AttributeError(f"module 'llm_do_mcp' has no attribute {name!r}")
