"""`llm-do-mcp rotate-key PROJECT`: replace the key that seals the request states of a project's servers."""

from __future__ import annotations

import sys

from llm_do_mcp.cli.exits import DONE, guarded
from llm_do_mcp.cli.options import Parser, add_loading, add_state_dir


def main(argv: list[str]) -> int:
    """Entry point of `llm-do-mcp rotate-key`."""
    from llm_do_mcp.cli.projects import opened, state_of
    from llm_do_mcp.runtime.state import rotate_request_state_key

    parser = Parser(
        prog="llm-do-mcp rotate-key",
        description="Make a new key for the request states of a project. Servers that run take it up by themselves; "
        "what was sealed with the key before it still holds, what is older does not.",
    )
    parser.add_argument("project", nargs="?", metavar="PROJECT", help="the project's folder")
    add_loading(parser)
    add_state_dir(parser)
    options = parser.parse_args(argv)

    def rotate() -> int:
        folder = state_of(opened(options.project, options), options.state_dir)
        rotate_request_state_key(folder)
        print("llm-do-mcp: a new key seals request states; the one before it still opens them", file=sys.stderr)
        return DONE

    return guarded(rotate, parser.prog)
