"""`llm-do-mcp rotate-key PROJECT…`: replace the keys that seal the request states of projects' servers."""

from __future__ import annotations

import sys

from llm_do_mcp.cli.exits import DONE, guarded
from llm_do_mcp.cli.options import PROJECT, add_loading, add_state_dir
from llm_do_mcp.cli.parser import Parser
from llm_do_mcp.errors import UsageError


def parser() -> Parser:
    """The command line."""
    made = Parser(
        "llm-do-mcp rotate-key",
        "Replace the key that seals a project's request states.",
        usage="[PROJECT]… [OPTION]…",
        notes=(
            "Name the projects, and --state-dir, as the server is given them: each project has a key of its own.",
            "Servers that run take the new one up by themselves. What the key before it sealed still holds, what is "
            "older does not: rotate twice to open none of it.",
        ),
        examples={"llm-do-mcp rotate-key my-notes": ""},
        environment=("LLM_DO_PROJECT",),
        more="Over HTTP",
    )
    made.add_argument("projects", nargs="*", metavar="PROJECT", help=PROJECT)
    add_state_dir(made)
    add_loading(made)
    return made


def main(argv: list[str]) -> int:
    """Entry point of `llm-do-mcp rotate-key`."""
    from llm_do_mcp.cli.projects import kept_in, state_of, together
    from llm_do_mcp.runtime.state import KEYS, rotate_request_state_key

    made = parser()
    options = made.parse_args(argv)

    def rotate() -> int:
        projects = together(options.projects, options)
        several = len(projects) > 1
        folders = [state_of(one, kept_in(options.state_dir, one, several=several)) for one in projects]
        rotated = {folder / KEYS: rotate_request_state_key(folder) for folder in folders}
        if not any(rotated.values()):
            none = "there is no key to replace; name the projects, and --state-dir, as the server is given them"
            raise UsageError(f"{', '.join(map(str, rotated))}: {none}")
        for path, replaced in rotated.items():
            done = "a new key seals request states; the one before it still opens them"
            print(f"llm-do-mcp: {path}: {done if replaced else 'there is no key to replace'}", file=sys.stderr)
        return DONE

    return guarded(rotate, made.prog)
