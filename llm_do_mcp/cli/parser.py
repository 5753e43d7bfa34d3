"""How commands read their command lines: what is wrong is one line, and every help has the same form.

A help says what the command is for, how it is called, its commands, arguments and options in groups, examples, the
environment variables that count, what its exit codes mean, and which part of the README tells more. It is laid out
here, not by `argparse`, so that it reads the same under every Python, in the width of the terminal.
"""

from __future__ import annotations

import argparse
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn

from llm_do_mcp.cli.exits import DONE, FAILED, MEANINGS, USAGE

ENVIRONMENT = {
    "ANTHROPIC_API_KEY": "your key, for models named anthropic:…",
    "ANTHROPIC_BASE_URL": "another server that speaks the Messages API, such as a local one",
    "LLM_DO_MODEL": "the model where neither a worker nor the manifest names one",
    "LLM_DO_PROJECT": "the project where none is given",
    "LLM_DO_PATH": "folders with projects to call by name (default: ~/.llm-do/workers)",
    "LLM_DO_LIBS": "more folders of libraries, searched after ~/.llm-do/libs",
    "LLM_DO_DEBUG": "1 also shows tracebacks of tools, and what models are sent and answer",
    "CI": "where it is set, what would wait for a person is refused",
}
MAX_WIDTH = 100
"""Longer lines are hard to read, however wide the terminal."""
MAX_LEFT = 22
"""What is longer than this has its explanation on the next line."""

Rows = Mapping[str, str]
"""What is named, and what is said of it."""


class Parser(argparse.ArgumentParser):
    """A command line.

    Args:
        prog: The command.
        purpose: What it is for, in one sentence.
        usage: How it is called, without the command itself; one line for each form.
        notes: More about it, a paragraph each.
        commands: By the title of their group, the commands below it.
        examples: Command lines, and what they do.
        environment: Those of `ENVIRONMENT` that count.
        exits: Exit codes, with what they mean where that is not what they always mean.
        more: The heading of the README under which more is said.
        kept: What `argparse` itself gives a command of a command.
    """

    def __init__(
        self,
        prog: str,
        purpose: str,
        *,
        usage: str | Iterable[str] = "[OPTION]…",
        notes: Iterable[str] = (),
        commands: Mapping[str, Rows] | None = None,
        examples: Rows | None = None,
        environment: Iterable[str] = (),
        exits: Iterable[int] | Mapping[int, str] = (DONE, FAILED, USAGE),
        more: str = "",
        **kept: Any,
    ) -> None:
        forms = [usage] if isinstance(usage, str) else list(usage)
        told = "\n".join(f"{prog} {form}" for form in forms)
        super().__init__(prog, usage=told, description=purpose, add_help=False, **kept)
        self._positionals.title, self._optionals.title = "Arguments", "Options"
        self.add_argument("-h", "--help", action="help", help="print this help")
        self.notes, self.commands, self.examples = tuple(notes), dict(commands or {}), dict(examples or {})
        self.environment, self.more = tuple(environment), more
        self.exits = dict(exits) if isinstance(exits, Mapping) else {code: MEANINGS[code] for code in exits}

    def error(self, message: str) -> NoReturn:
        """Print the line and exit."""
        self.exit(USAGE, f"{self.prog}: {message}; see {self.prog} --help\n")

    def format_usage(self) -> str:
        """The forms of the command, below each other."""
        return "Usage: " + str(self.usage).replace("\n", "\n       ") + "\n"

    def format_help(self) -> str:
        """The whole help, in the width of the terminal."""
        width = min(shutil.get_terminal_size().columns, MAX_WIDTH)
        groups = [*self.commands.items(), *self._options()]
        environment = {name: ENVIRONMENT[name] for name in self.environment}
        names = [*environment, *(name for _, rows in groups for name in rows)]
        left = max(len(name) for name in names if len(name) <= MAX_LEFT)
        parts = [_wrapped(self.description or "", width), self.format_usage().rstrip("\n")]
        parts += [_table(title, rows, left, width) for title, rows in groups]
        parts += [_wrapped(note, width) for note in self.notes]
        if self.examples:
            parts.append(_examples(self.examples, width))
        if environment:
            parts.append(_table("Environment", environment, left, width))
        codes = "; ".join(f"{code} {meaning}" for code, meaning in self.exits.items())
        parts.append(_wrapped(f"Exit codes: {codes}.", width))
        if self.more:
            parts.append(f'More: README, "{self.more}"')
        return "\n\n".join(part for part in parts if part) + "\n"

    def _options(self) -> Iterator[tuple[str, Rows]]:
        for group in self._action_groups:
            rows: dict[str, str] = {}
            for action in group._group_actions:
                if isinstance(action, argparse._SubParsersAction):
                    continue  # these are among `commands`
                rows[_named(action)] = action.help or ""
            if rows:
                yield group.title or "", rows


def _named(action: argparse.Action) -> str:
    """An argument or option as it is written."""
    name = action.metavar or "|".join(map(str, action.choices or ())) or action.dest.upper()
    value = " ".join(name) if isinstance(name, tuple) else name
    if not action.option_strings:
        return value
    names = ", ".join(action.option_strings)
    if action.nargs == 0:
        return names
    return f"{names} [{value}]" if action.nargs == "?" else f"{names} {value}"


def _wrapped(text: str, width: int, first: str = "", rest: str = "") -> str:
    """A paragraph; a name with a hyphen in it, such as a model's or an option's, stays whole."""
    return textwrap.fill(text, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def _table(title: str, rows: Rows, left: int, width: int) -> str:
    lines = [f"{title}:"]
    margin = " " * (left + 4)
    for name, text in rows.items():
        if len(name) > left:
            lines += [f"  {name}", _wrapped(text, width, margin, margin)]
        else:
            lines.append(_wrapped(text, width, f"  {name:{left}}  ", margin))
    return "\n".join(lines)


def _examples(examples: Rows, width: int) -> str:
    """Each on a line with what it does behind it, as far as all fit; else that stands above."""
    left = max(map(len, examples))
    beside = all(left + len(text) + 6 <= width for text in examples.values())
    lines = ["Examples:"]
    for line, text in examples.items():
        if beside:
            lines.append(f"  {line:{left}}  # {text}" if text else f"  {line}")
        else:
            lines += [*([f"  # {text}"] if text else []), f"  {line}"]
    return "\n".join(lines)
