"""`llm-do-mcp rotate-key PROJECT`: replace the key that seals the request states of a project's servers."""

from __future__ import annotations

import sys

from llm_do_mcp.cli.exits import DONE, guarded
from llm_do_mcp.cli.options import PROJECT, add_loading, add_state_dir
from llm_do_mcp.cli.parser import Parser


def parser() -> Parser:
    """The command line."""
    made = Parser(
        "llm-do-mcp rotate-key",
        "Replace the key that seals a project's request states.",
        usage="[PROJECT] [OPTION]…",
        notes=(
            "Servers that run take the new one up by themselves. What the key before it sealed still holds, what is "
            "older does not: rotate twice to open none of it.",
        ),
        examples={"llm-do-mcp rotate-key my-notes": ""},
        environment=("LLM_DO_PROJECT",),
        more="Over HTTP",
    )
    made.add_argument("project", nargs="?", metavar="PROJECT", help=PROJECT)
    add_state_dir(made)
    add_loading(made)
    return made


def main(argv: list[str]) -> int:
    """Entry point of `llm-do-mcp rotate-key`."""
    from llm_do_mcp.cli.projects import opened, state_of
    from llm_do_mcp.runtime.state import rotate_request_state_key

    made = parser()
    options = made.parse_args(argv)

    def rotate() -> int:
        folder = state_of(opened(options.project, options), options.state_dir)
        rotate_request_state_key(folder)
        print("llm-do-mcp: a new key seals request states; the one before it still opens them", file=sys.stderr)
        return DONE

    return guarded(rotate, made.prog)
