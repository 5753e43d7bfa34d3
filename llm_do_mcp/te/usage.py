"""What `te --help` and `te COMMAND --help` say. The options are those of the tables by which commands are read."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable

USAGE = """\
Search and read files, within a budget of characters.

Usage: te grep [FLAG]… PATTERN [PATH]…
       te cat [-n] FILE[:FROM-TO]…
       te find [PATH]… [EXPRESSION]
       te --handle H [--chunk N]
       te coach report

Commands:
  grep           search, with grep's flags: -i -w -x -v -o -l -L -c -h -E -F -P
                 -e -f -A -B -C -m --include --exclude --exclude-dir, and
                 ripgrep's: -g -t --hidden --no-ignore
  cat            read files: whole where they fit, else what they are like and
                 how they begin
  find           find paths: -name -iname -path -type -size -mtime -newer
                 -maxdepth -not -o …
  --handle H     show what was left out of an answer, piece by piece
  coach report   say which ways to answer do well

Options, before the command:
  --json         the answer as one JSON object
  -i             the tool's own output, untouched
  -h, --help     print this help
  --version      print the version

`te COMMAND --help` tells all that a command takes. Without a PATH the working
directory is searched. Standard input is not read, but with -i.

Examples:
  te grep -i 'release date' notes
  te cat notes/a.md:10-40
  te find . -name '*.md' -mtime -7

Environment:
  TE_AGENT_ID    whose budget holds, such as claude-dc
  TE_SESSION_ID  whose handles these are
  TE_RG          which ripgrep searches

Exit codes: 0 found; 1 nothing found; 2 an error, which the answer's header
names; 130 interrupted.

More: README, "te"
"""
_WIDTH = 80


def of_command(name: str) -> str:
    """The help of one command."""
    return {"grep": _grep, "cat": _cat, "find": _find, "coach": _coach}[name]()


def shortened(text: str, budget: int, written: Callable[[str], str] = str) -> str:
    """A help as it is written, without the last of its lines where all of them are over a budget."""
    lines = text.splitlines(keepends=True)
    while lines and len(written("".join(lines))) > budget:
        lines.pop()
    return written("".join(lines))


def _grep() -> str:
    from llm_do_mcp.te.options import REFUSED, SWITCHES, VALUES

    return f"""\
Search files: definitions first, then uses.

Usage: te grep [FLAG]… PATTERN [PATH]…

Folders are searched with all below them; hidden and ignored files only with
--hidden and --no-ignore. Patterns are basic ones unless -E, -F or -P is given.

Switches:
{_listed(SWITCHES)}

With a value:
{_listed(VALUES)}

Refused:
{_listed(REFUSED)}

Examples:
  te grep -w Parser src
  te grep -rn -E 'TODO|FIXME' --include '*.py'
"""


def _cat() -> str:
    return """\
Read files: whole where they fit, else what each is like, and how it begins.

Usage: te cat [-n] FILE[:FROM-TO]…

Lines:
  FILE:10-40, FILE:10-, FILE:-40, FILE:10
                   these of one file
  -n 50, -n -50, -n +100
                   of each file the first, the last, those from there on
  -n, -b           with numbers: those of the lines, as FILE:10-40 has them;
                   -b leaves blank lines without
  -E, -T, -A       ends of lines as $, tabs as ^I, both

Examples:
  te cat README.md
  te cat -n src/app.py:10-40
"""


def _find() -> str:
    from llm_do_mcp.te.expression import KNOWN

    return f"""\
Find paths.

Usage: te find [PATH]… [EXPRESSION]

Every path that the expression asks for is shown, hidden and ignored ones only
with --hidden and --no-ignore. For -path a path starts as it was typed
(./src/a.py), or as it is shown (src/a.py).

Expressions:
{_listed([*KNOWN, "!", "-a", "(", ")"])}

Examples:
  te find . -name '*.md' -mtime -7
  te find src -type f -size +100k
"""


def _coach() -> str:
    return """\
Say which ways to answer do well, as far as the log can tell.

Usage: te coach report

There is a log where [tool_envelope.telemetry] in llmc.toml switches it on, and
there are ways to compare where [tool_envelope.coach] does.
"""


def _listed(options: Iterable[str]) -> str:
    words = " ".join(options)
    return textwrap.fill(words, _WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
