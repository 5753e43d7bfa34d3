"""Reads a command line and runs the command: the one entry of this package.

A command comes as a list of arguments, or as the line that a model typed. No shell is ever started: the line is
split by the shell's rules for quotes, and what only a shell could do (`|`, `>`, `;`, `$( )`) is an error that says so.
"""

from __future__ import annotations

from llm_do_mcp.te.envelope import Frame, TeError, failure
from llm_do_mcp.te.invocation import Invocation, Terms
from llm_do_mcp.te.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

DEFAULT_SECONDS = 30.0
DEFAULT_HIDDEN = (".llm-do", ".llmc")
_SHELL_ONLY = "|&;<>()`"


def run(
    command: str | Sequence[str],
    *,
    roots: Mapping[str, str | int],
    budget: int | None = None,
    hidden: Sequence[str] = DEFAULT_HIDDEN,
    suffixes: Mapping[str, Sequence[str]] | None = None,
    left_out: Mapping[str, str] | None = None,
    confine: bool = True,
    cancelled: Callable[[], bool] | None = None,
    seconds: float = DEFAULT_SECONDS,
    settings: Settings | None = None,
    session: str = "",
    agent: str = "",
    unlisted: Mapping[str, tuple[str, str]] | None = None,
) -> str:
    """Run one command and return its answer. Never raises for anything in the command or in the files.

    Args:
        command: The line that was typed, or its arguments; with or without a leading `te`.
        roots: What may be searched: alias → absolute path, or a handle on the folder that stays open (then a
            folder that is put in its place is never searched). The one alias "." stands for a plain working
            directory, whose paths have no alias.
        budget: Characters of the whole answer, never exceeded; None for what the agent has by the settings.
        hidden: Names of files and folders that are never found, whatever the flags say.
        suffixes: Alias → the only suffixes of files that may be found there.
        left_out: Alias → why that folder is not searched, for who names it all the same.
        confine: Nothing outside the roots is shown, even while folders are swapped for links. By Landlock where
            the kernel has it; else each line is compared with the file as our own handles reach it, links are not
            followed, text must be UTF-8, and only a total can be off while somebody is swapping folders.
        cancelled: Asked some 20 times a second, from whatever thread; once true, the search is killed at once and
            the answer is the error `cancelled`.
        seconds: After this time the search is killed, and the answer (error `timeout`) has what was found.
        settings: What was set; they can make budget and time smaller.
        session: Who may ask for what was left out of the answer, by its handle; "" if nothing is to be kept.
        agent: Who asks, for the budget and the log.
        unlisted: Alias → the text of a `.llm-doignore` that holds there besides the root's own, and the path from
            that file's folder to the root.

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
        settings=settings,
        session=session,
        agent=agent,
        unlisted=unlisted,
    )[0]


def execute(
    command: str | Sequence[str],
    *,
    roots: Mapping[str, str | int],
    budget: int | None,
    hidden: Sequence[str],
    suffixes: Mapping[str, Sequence[str]],
    confine: bool,
    cancelled: Callable[[], bool] | None,
    seconds: float,
    left_out: Mapping[str, str] | None = None,
    settings: Settings | None = None,
    session: str = "",
    agent: str = "",
    unlisted: Mapping[str, tuple[str, str]] | None = None,
    kernel: bool | None = None,
    folder: str | None = None,
) -> tuple[str, int]:
    """As `run`, with grep's exit code (0 matches, 1 none, 2 an error).

    Args:
        kernel: Whether Landlock confines ripgrep; None: where the kernel has it.
        folder: Where sessions keep what was left out; None for the usual place.
    """
    terms = Terms(
        roots=roots,
        budget=budget,
        hidden=hidden,
        suffixes=suffixes,
        confine=confine,
        kernel=kernel,
        cancelled=cancelled,
        seconds=seconds,
        settings=settings or Settings(),
        session=session,
        agent=agent,
        unlisted=unlisted,
        left_out=left_out,
        folder=folder,
    )
    try:
        arguments = split(command) if isinstance(command, str) else list(command)
    except TeError as error:
        return failure("te", error, Frame(terms.budget, terms.form)), 2
    return Invocation(terms).answer(arguments[1:] if arguments[:1] == ["te"] else arguments)


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
