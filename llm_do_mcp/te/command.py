"""Reads a command line and runs the command: the one entry of this package.

A command comes as a list of arguments, or as the line that a model typed. No shell is ever started: the line is
split by the shell's rules for quotes, and what only a shell could do (`|`, `>`, `;`, `$( )`) is an error that says so.
"""

from __future__ import annotations

from llm_do_mcp.te.envelope import TeError, failure
from llm_do_mcp.te.text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

DEFAULT_BUDGET = 16_000
DEFAULT_SECONDS = 30.0
DEFAULT_HIDDEN = (".llm-do",)
COMMANDS = ("grep",)

_SHELL_ONLY = "|&;<>()`"


def run(
    command: str | Sequence[str],
    *,
    roots: Mapping[str, str | int],
    budget: int = DEFAULT_BUDGET,
    hidden: Sequence[str] = DEFAULT_HIDDEN,
    suffixes: Mapping[str, Sequence[str]] | None = None,
    left_out: Mapping[str, str] | None = None,
    confine: bool = True,
    cancelled: Callable[[], bool] | None = None,
    seconds: float = DEFAULT_SECONDS,
) -> str:
    """Run one command and return its answer. Never raises for anything in the command or in the files.

    Args:
        command: The line that was typed, or its arguments; with or without a leading `te`.
        roots: What may be searched: alias → absolute path, or a handle on the folder that stays open (then a
            folder that is put in its place is never searched). The one alias "." stands for a plain working
            directory, whose paths have no alias.
        budget: Characters of the whole answer, never exceeded.
        hidden: Names of files and folders that are never found, whatever the flags say.
        suffixes: Alias → the only suffixes of files that may be found there.
        left_out: Alias → why that folder is not searched, for who names it all the same.
        confine: Nothing outside the roots is shown, even while folders are swapped for links. By Landlock where
            the kernel has it; else each line is compared with the file as our own handles reach it, links are not
            followed, text must be UTF-8, and only a total can be off while somebody is swapping folders.
        cancelled: Asked some 20 times a second, from this thread; once true, the search is killed at once and
            the answer is the error `cancelled`.
        seconds: After this time the search is killed, and the answer (error `timeout`) has what was found.

    Returns:
        The envelope (see `envelope.py`). Errors are in its header, with one line that explains.
    """
    return execute(
        command,
        roots=roots,
        budget=budget,
        hidden=hidden,
        suffixes=suffixes or {},
        left_out=left_out,
        confine=confine,
        cancelled=cancelled,
        seconds=seconds,
    )[0]


def execute(
    command: str | Sequence[str],
    *,
    roots: Mapping[str, str | int],
    budget: int,
    hidden: Sequence[str],
    suffixes: Mapping[str, Sequence[str]],
    confine: bool,
    cancelled: Callable[[], bool] | None,
    seconds: float,
    left_out: Mapping[str, str] | None = None,
    kernel: bool | None = None,
) -> tuple[str, int]:
    """As `run`, with grep's exit code (0 matches, 1 none, 2 an error).

    Args:
        kernel: Whether Landlock confines ripgrep; None: where the kernel has it.
    """
    name = "te"
    try:
        arguments = split(command) if isinstance(command, str) else list(command)
        if arguments[:1] == ["te"]:
            arguments = arguments[1:]
        if not arguments or arguments[0] not in COMMANDS:
            given = f"not {one_line(arguments[0], 40)}" if arguments else "and none was given"
            raise TeError("unknown_command", f"te knows the commands {', '.join(COMMANDS)}, {given}")
        name = arguments[0]
        from llm_do_mcp.te.grep import Grep
        from llm_do_mcp.te.ripgrep import Patience
        from llm_do_mcp.te.roots import Workspace

        workspace = Workspace(roots, hidden=hidden, suffixes=suffixes, left_out=left_out or {}, guarded=confine)
        try:
            confined = confine and (_kernel_confines() if kernel is None else kernel)
            return Grep(arguments[1:], workspace, Patience(seconds, cancelled), confined=confined).run(budget)
        finally:
            workspace.close()
    except TeError as error:
        return failure(name, error, budget), 2
    except Exception as error:  # a fault of ours: told as one, and the caller goes on
        return failure(name, _internal(error), budget), 2


def _kernel_confines() -> bool:
    from llm_do_mcp.te import confine

    return confine.available()


def _internal(error: Exception) -> TeError:
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f"{type(error).__name__}, line {place.tb_lineno}" if place is not None else type(error).__name__
    return TeError("internal", f"internal error, operator intervention required ({where})")


def split(line: str) -> list[str]:
    """The words of a command line, by the shell's rules for quotes and backslashes.

    Raises:
        TeError: `usage`: a quote is not closed, or the line holds what only a shell can do.
    """
    words: list[str] = []
    word: list[str] | None = None
    at = 0
    while at < len(line):
        character = line[at]
        at += 1
        if character in " \t\r\n":
            if word is not None:
                words.append("".join(word))
            word = None
            continue
        word = [] if word is None else word
        if character in "'\"":
            at = _quoted(line, at, character, word)
        elif character == "\\" and at < len(line):
            word.append(line[at])
            at += 1
        elif character in _SHELL_ONLY or (character == "$" and line.startswith("(", at)):
            raise TeError("usage", f"no shell runs this, so {character} does nothing here: put a pattern in quotes")
        else:
            word.append(character)
    if word is not None:
        words.append("".join(word))
    return words


def _quoted(line: str, at: int, quote: str, word: list[str]) -> int:
    """Read up to the closing quote; returns where to go on. In double quotes a backslash escapes a few characters."""
    while at < len(line):
        character = line[at]
        at += 1
        if character == quote:
            return at
        if character == "\\" and quote == '"' and line[at : at + 1] in ("\\", '"', "$", "`"):
            character = line[at]
            at += 1
        word.append(character)
    raise TeError("usage", f"the quote {quote} is not closed")
