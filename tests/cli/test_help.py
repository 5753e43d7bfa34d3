"""What `--help` prints: the same form for every command, in the width of the terminal, and true."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import llm_do_mcp
from llm_do_mcp.cli import exits, lib, run, serve
from llm_do_mcp.cli.bundled import HERE
from llm_do_mcp.cli.exits import MEANINGS
from llm_do_mcp.cli.parser import ENVIRONMENT, MAX_WIDTH, Parser
from llm_do_mcp.te import usage
from tests.cli.commands import llm_do
from tests.readme.document import TEXT as README

PACKAGE = Path(llm_do_mcp.__file__).parent
SOURCE = "\n".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
CODES = {name: code for name, code in vars(exits).items() if name.isupper() and isinstance(code, int)}
TE_COMMANDS = ("grep", "cat", "find")


def _parsers() -> dict[str, Parser]:
    """Every command that has a help of its own, and its parser."""
    found = {"llm-do": run.parser(), "llm-do-mcp": serve.parser()}
    for program, commands in (("llm-do", run.COMMANDS), ("llm-do-mcp", serve.COMMANDS)):
        for name, module in commands.items():
            found[f"{program} {name}"] = import_module(f"llm_do_mcp.cli.{module}").parser()
    found["llm-do runs prune"] = import_module("llm_do_mcp.cli.prune").parser()
    libraries = next(action for action in found["llm-do lib"]._actions if action.dest == "command")
    assert isinstance(libraries.choices, dict)
    return found | {f"llm-do lib {name}": libraries.choices[name] for name in lib.HELP}


PARSERS = _parsers()


def _help(command: str) -> str:
    """The help of any of the three programs' commands."""
    if not command.startswith("te"):
        return PARSERS[command].format_help()
    return usage.of_command(command[3:]) if command[3:] in TE_COMMANDS else usage.USAGE


@pytest.mark.proves("CLI-HELP")
@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("command", [*PARSERS, "te", *(f"te {name}" for name in TE_COMMANDS)])
def test_a_help_has_the_form_that_all_have(command: str, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = _help(command).splitlines()
    assert lines[0].endswith(".") and lines[1] == "" and lines[2].startswith(f"Usage: {command}")
    assert [line for line in lines if line != line.rstrip() or len(line) > min(columns, MAX_WIDTH)] == []
    titles = [line.rstrip(":") for line in lines if re.fullmatch(r"[A-Z][^.]*:", line)]
    assert titles.index("Examples") > len(titles) - 3, "these come behind what there is to choose"
    if command not in (f"te {name}" for name in TE_COMMANDS):
        assert re.search(r"^Exit codes: 0 ", "\n".join(lines), re.MULTILINE) and lines[-1].startswith("More: README, ")


@pytest.mark.proves("CLI-HELP")
@pytest.mark.parametrize("command", PARSERS)
def test_every_option_is_told_and_every_code_means_what_it_always_means(command: str) -> None:
    made = PARSERS[command]
    assert [action.dest for action in made._actions if not action.help and action.dest != "command"] == []
    assert set(made.exits) <= set(MEANINGS) and {0, 2} <= set(made.exits)


@pytest.mark.proves("CLI-HELP-TRUE")
@pytest.mark.parametrize("name", run.COMMANDS)
def test_every_code_that_a_command_returns_is_told(name: str) -> None:
    source = (PACKAGE / "cli" / f"{run.COMMANDS[name]}.py").read_text(encoding="utf-8")
    returned = re.findall(rf"\b({'|'.join(CODES)})\b", "\n".join(re.findall(r"^ +return (.*)", source, re.MULTILINE)))
    assert {CODES[code] for code in returned} <= set(PARSERS[f"llm-do {name}"].exits)


@pytest.mark.proves("CLI-HELP")
@pytest.mark.parametrize("words", [[], ["--help"], ["check", "--help"], ["lib", "install", "-h"]])
def test_a_help_is_printed_where_it_is_asked_for(words: list[str]) -> None:
    ran = llm_do(*words, env={"COLUMNS": "80"})
    assert (ran.returncode, ran.stderr) == (0, "")
    assert f"\nUsage: llm-do {' '.join(word for word in words if not word.startswith('-'))}" in ran.stdout


@pytest.mark.proves("CLI-HELP-TRUE")
def test_each_program_lists_its_commands() -> None:
    for program, commands in (("llm-do", run.COMMANDS), ("llm-do-mcp", serve.COMMANDS), ("llm-do lib", lib.HELP)):
        listed = [name for rows in PARSERS[program].commands.values() for name in rows]
        assert sorted(listed) == sorted(commands)


@pytest.mark.proves("CLI-HELP-TRUE")
def test_the_variables_that_are_told_are_those_that_are_read() -> None:
    told = {name for made in PARSERS.values() for name in made.environment}
    told |= set(re.findall(r"^  (TE_[A-Z_]+)", usage.USAGE, re.MULTILINE))
    read = set(re.findall(r"[\"']((?:LLM_DO|TE)_[A-Z_]+)[\"']", SOURCE))
    ours = {name for name in told if name.startswith(("LLM_DO_", "TE_"))}
    assert ours == read - {HERE} and told >= set(ENVIRONMENT)


@pytest.mark.proves("CLI-HELP-TRUE")
def test_the_sections_that_a_help_names_are_in_the_readme() -> None:
    headings = set(re.findall(r"^##+ (.*)$", README, re.MULTILINE))
    assert {made.more for made in PARSERS.values()} - headings == set()
    assert re.findall(r'README, "(.*)"', usage.USAGE) == ["te"] and "te" in headings


def _lines() -> Iterator[str]:
    """Command lines that helps give as examples, and those that the README has in its text."""
    for command in [*PARSERS, "te"]:
        yield from re.findall(
            r"^  ((?:llm-do|te).*?)(?:  # .*)?$", _help(command).partition("Examples:")[2], re.MULTILINE
        )
    text = re.sub(r"^```.*?^```$", "", README, flags=re.DOTALL | re.MULTILINE)
    yield from (line.replace("\n", " ") for line in re.findall(r"`((?:llm-do|llm-do-mcp|te) [^`]+)`", text))


@pytest.mark.proves("CLI-HELP-TRUE")
@pytest.mark.parametrize("line", sorted(set(_lines())))
def test_a_command_line_that_is_told_has_a_command_and_options_that_exist(line: str) -> None:
    words = shlex.split(line.replace("[", "").replace("]", ""))
    if words[0] == "te":
        assert words[1] in (*TE_COMMANDS, "coach") or words[1].startswith("-")
        return
    longest = next(" ".join(words[:count]) for count in (3, 2, 1) if " ".join(words[:count]) in PARSERS)
    known = {option for action in PARSERS[longest]._actions for option in action.option_strings}
    mine = words[: words.index("--")] if "--" in words else words
    assert {word.partition("=")[0] for word in mine if word.startswith("--")} <= known


@pytest.mark.proves("CLI-HELP-TRUE")
def test_every_target_that_the_readme_names_is_in_the_makefile() -> None:
    makefile = (PACKAGE.parent / "Makefile").read_text(encoding="utf-8")
    named = set(
        re.findall(r"\bmake ([a-z]+)\b", "".join(re.findall(r"`make [^`]*`|^\$ make .*", README, re.MULTILINE)))
    )
    assert {"demo", "test", "check"} <= named
    assert [target for target in named if not re.search(rf"^{target}:", makefile, re.MULTILINE)] == []
