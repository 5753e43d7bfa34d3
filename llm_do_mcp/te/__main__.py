"""The `te` command: searches the working directory, and answers on standard output.

Exit codes are grep's: 0 matches, 1 none, 2 an error (which the answer's header names).
"""

from __future__ import annotations

import os
import sys

from llm_do_mcp.te.command import DEFAULT_BUDGET, DEFAULT_HIDDEN, DEFAULT_SECONDS, execute

USAGE = """\
te grep [flags] PATTERN [PATH...]   search the working directory, answered within a budget of characters
  flags are grep's: -i -w -x -v -o -l -L -c -h -E -F -P -e -f -A -B -C -m --include --exclude --exclude-dir,
  and ripgrep's: -g -t --hidden --no-ignore. The environment's TE_RG names the ripgrep to use.
"""


def main() -> None:
    """Run the command in `sys.argv` and exit."""
    try:
        answer, code = _answer(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(130)
    try:
        sys.stdout.buffer.write(answer.encode())
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough; without this, Python complains once more at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(code)


def _answer(arguments: list[str]) -> tuple[str, int]:
    if arguments in ([], ["-h"], ["--help"], ["help"]):
        return USAGE, 0 if arguments else 2
    if arguments == ["--version"]:
        import llm_do_mcp

        return f"te {llm_do_mcp.__version__}\n", 0
    return execute(
        arguments,
        roots={".": os.getcwd()},
        budget=DEFAULT_BUDGET,
        hidden=DEFAULT_HIDDEN,
        suffixes={},
        confine=False,
        cancelled=None,
        seconds=DEFAULT_SECONDS,
    )


if __name__ == "__main__":
    main()
