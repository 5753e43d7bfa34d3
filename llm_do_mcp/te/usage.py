"""What `te --help` and `te COMMAND --help` say. The options are those of the tables by which commands are read."""

from __future__ import annotations

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
te COMMAND --help tells more. Standard input is not read, but with -i.
"""


def of_command(name: str) -> str:
    """The help of one command."""
    return {"grep": _grep, "cat": _cat, "find": _find}[name]()


def _grep() -> str:
    from llm_do_mcp.te.options import REFUSED, SWITCHES, VALUES

    return f"""\
te grep [flags] PATTERN [PATH...]
  Folders are searched with all below them, and without a PATH the working folder; hidden and ignored files only with
  --hidden and --no-ignore. Patterns are basic ones unless -E, -F or -P is given.
switches: {" ".join(SWITCHES)}
with a value: {" ".join(VALUES)}
refused: {" ".join(REFUSED)}
"""


def _cat() -> str:
    return """\
te cat [-n] FILE...
  Whole files where they fit, else what each is like, and how it begins.
FILE:10-40 FILE:10- FILE:-40 FILE:10   lines of one file
-n 50, -n -50, -n +100                 of each file the first, the last, those from there on
-n -b -s -E -T -A                      as those of cat
"""


def _find() -> str:
    from llm_do_mcp.te.expression import KNOWN

    return f"""\
te find [PATH...] [EXPRESSION]
  Every path that the expression asks for; hidden and ignored ones only with --hidden and --no-ignore. For -path a path
  starts as it was typed (./src/a.py), or as it is shown (src/a.py).
expressions: {" ".join(KNOWN)} ! -a ( )
"""
