"""The `te` command: searches the working directory, and answers on standard output.

Exit codes are grep's: 0 matches, 1 none, 2 an error (which the answer's header names).
"""

from __future__ import annotations

import os
import sys

from llm_do_mcp.te.command import DEFAULT_HIDDEN, DEFAULT_SECONDS, execute
from llm_do_mcp.te.envelope import Frame, TeError, failure
from llm_do_mcp.te.settings import HUMAN, load

USAGE = """\
te grep [flags] PATTERN [PATH...]   search the working directory, answered within a budget of characters
  flags are grep's: -i -w -x -v -o -l -L -c -h -E -F -P -e -f -A -B -C -m --include --exclude --exclude-dir,
  and ripgrep's: -g -t --hidden --no-ignore
te cat [-n] FILE[:FROM-TO]...       read files: whole where they fit, else what they are like and their beginning
te find [PATH...] [EXPRESSION]      find paths: -name -iname -path -type -size -mtime -newer -maxdepth -not -o ...
te --handle H [--chunk N]           what was left out of an answer, piece by piece
te --json COMMAND ...               the answer as one JSON object
te -i COMMAND ...                   the tool's own output, untouched
te coach report                     which ways to answer do well
Environment: TE_AGENT_ID (whose budget holds), TE_SESSION_ID (whose handles these are), TE_RG (which ripgrep).
"""


def main() -> None:
    """Run the command in `sys.argv` and exit."""
    arguments = sys.argv[1:]
    try:
        if arguments[:1] == ["-i"]:
            from llm_do_mcp.te.raw import run_raw

            answer, code = run_raw(arguments[1:])
        else:
            answer, code = _answer(arguments)
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
    folder = os.getcwd()
    person = sys.stdout.isatty()
    agent = os.environ.get("TE_AGENT_ID") or (HUMAN if person else "")
    try:
        settings = load(folder)
    except TeError as error:
        return failure("te", error, Frame(16_000)), 2
    if not settings.enabled:
        from llm_do_mcp.te.raw import run_raw

        return run_raw(arguments)
    answer, code = execute(
        arguments,
        roots={".": folder},
        budget=None,
        hidden=DEFAULT_HIDDEN,
        suffixes={},
        confine=False,
        cancelled=None,
        seconds=DEFAULT_SECONDS,
        settings=settings,
        # Without an id of its own, a session is an agent at work in a folder.
        session=os.environ.get("TE_SESSION_ID") or f"{agent}@{folder}",
        agent=agent,
    )
    if agent == HUMAN and '"error":"internal"' in answer[:200]:
        from llm_do_mcp.te.raw import run_raw

        print("te: internal error; this is the tool's own output", file=sys.stderr, flush=True)
        return run_raw(arguments)
    return answer, code


if __name__ == "__main__":
    main()
