"""The README as it is read: its snippets are what they say they are, and its commands have the options they use."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml

from llm_do_mcp.project.checked import check
from llm_do_mcp.project.manifest import Manifest
from llm_do_mcp.project.strictyaml import load
from llm_do_mcp.testing.suite import SuiteFile
from tests.cli.commands import environment, llm_do
from tests.examples.scripts import REPOSITORY

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
PROGRAMS = {
    "llm-do": "llm_do_mcp.cli.run",
    "llm-do-mcp": "llm_do_mcp.cli.serve",
    "te": "llm_do_mcp.te",
}
WITH_COMMANDS = {
    "llm-do": ("check", "init", "list", "test", "demo", "lib", "runs", "trace", "approve", "approvals"),
    "llm-do-mcp": ("install", "bundle", "doctor", "token"),
}


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def _commands() -> Iterator[str]:
    """Every command of the console blocks that is one of ours, without what is set for it and without its comment."""
    for block in _blocks("console"):
        for line in re.findall(r"^\$ (.*)", block.replace("\\\n", " "), re.MULTILINE):
            for part in re.split(r"\s+#\s.*|; ", line):
                words = shlex.split(part)
                while words and re.match(r"[A-Z_]+=", words[0]):
                    words.pop(0)
                if words and Path(words[0]).name in PROGRAMS:
                    yield shlex.join([Path(words[0]).name, *words[1:]])


@cache
def _help(program: str, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", PROGRAMS[program], *command, "--help"],
        env=environment(COLUMNS="100"),
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.proves("README-COMMANDS")
@pytest.mark.parametrize("line", sorted(set(_commands())))
def test_a_command_has_the_options_that_the_readme_uses(line: str) -> None:
    program, *words = shlex.split(line)
    command = [words[0]] if words and words[0] in WITH_COMMANDS.get(program, ()) else []
    text = _help(program, *command)
    used = {word.partition("=")[0] for word in words if word.startswith("--")}
    known = set(re.findall(r"--[a-z][a-z-]*", text))
    if command and command[0] in ("lib", "approvals", "runs"):
        known |= set(re.findall(r"--[a-z][a-z-]*", _help(program, *words[: 1 + (words[1:2] != [])])))
    assert used <= known, f"{sorted(used - known)} in `{line}`"


@pytest.mark.proves("README-COMMANDS")
@pytest.mark.parametrize("program", WITH_COMMANDS)
def test_every_command_is_in_the_help_of_its_program(program: str) -> None:
    text = _help(program)
    assert [name for name in WITH_COMMANDS[program] if f"{program} {name}" not in text] == []


@pytest.mark.proves("README-SNIPPETS")
def test_snippets_of_configuration_are_what_they_say_they_are() -> None:
    kinds = {"# project.yaml": Manifest, "# tests/": SuiteFile}
    seen = set()
    for block in _blocks("yaml"):
        if block.startswith("---"):
            continue  # the worker, which has a test of its own
        if "# lib.yaml" in block:
            block = "\n".join(line[:40].split("# lib")[0] for line in block.splitlines())  # the left one of two columns
        kind = next(begins for begins in kinds if block.startswith(begins))
        check(kinds[kind], load(block, path="README.md"))
        seen.add(kind)
    assert seen == set(kinds)
    for block in _blocks("json"):
        json.loads(block)
    for block in _blocks("toml"):
        tomllib.loads(block)


@pytest.mark.proves("README-SNIPPETS")
def test_the_worker_and_its_test_run_as_they_stand(tmp_path: Path) -> None:
    (worker,) = [block for block in _blocks("yaml") if block.startswith("---")]
    (suite,) = [block for block in _blocks("yaml") if block.startswith("# tests/")]
    write = {"path": "summaries/release.md", "content": "# Release\n"}
    turns = [{"tool_calls": [{"name": "write_file", "input": write}]}, "It is in summaries/release.md."]
    for path, text in {
        "main.worker": worker,
        "tests/summaries.yaml": suite,
        "notes/release.md": "out on Monday\n",
        "scripted/model.yaml": yaml.safe_dump({"workers": {"main": turns}}),
    }.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    done = llm_do("test", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.proves("README-SNIPPETS")
def test_every_link_of_the_readme_leads_somewhere() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]
    assert links and [link for link in links if not os.path.exists(REPOSITORY / link)] == []
