"""The `te` command as a process: output, exit codes, and how little it loads."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from llm_do_mcp.te.options import REFUSED, SWITCHES, VALUES
from tests.te.searching import read, search, te, write

HEAVY = {"argparse", "asyncio", "ctypes", "dataclasses", "json", "pathlib", "pydantic", "shutil", "tempfile", "typing"}
HEAVY |= {"re", "subprocess"} if os.name == "posix" else set()


@pytest.mark.proves("TE-COMMAND")
def test_the_command_searches_the_working_directory(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "needle\n", "d/ü.txt": "needle ü\n"})
    ran = te("grep", "-rn", "needle", folder=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert read(ran.stdout.decode()).hits == ["a.txt:1: needle", "d/ü.txt:1: needle ü"]
    assert te("grep", "nope", folder=tmp_path).returncode == 1
    for arguments in (("grep", "x", "../"), ("grep", "-E", "("), ("grep", "x", "nope"), ("frob", "a.txt")):
        failed = te(*arguments, folder=tmp_path)
        assert failed.returncode == 2
        assert "error" in read(failed.stdout.decode()).meta
        assert failed.stderr == b""


@pytest.mark.proves("TE-COMMAND")
def test_the_command_explains_itself(tmp_path: Path) -> None:
    assert te("--help", folder=tmp_path).returncode == 0
    assert te(folder=tmp_path).returncode == 2
    assert "te grep [FLAG]… PATTERN".encode() in te("--help", folder=tmp_path).stdout


@pytest.mark.proves("TE-HELP")
def test_each_command_tells_its_options(tmp_path: Path) -> None:
    for command, options in (
        ("grep", [*SWITCHES, *VALUES, *REFUSED]),
        ("find", ["-name", "-mmin", "-prune"]),
        ("cat", ["FILE:10-40", "-n +100"]),
        ("coach", ["te coach report", "llmc.toml"]),
    ):
        ran = te(command, "--help", folder=tmp_path)
        assert ran.returncode == 0
        told = search(f"te {command} --help", tmp_path)
        assert told.meta == {"v": 1, "cmd": command} and told.text == ran.stdout.decode()
        assert all(option in told.text for option in options)
        assert 150 < len(search(f"te {command} --help", tmp_path, budget=300).text) <= 300
    ran = te("coach", "report", "--help", folder=tmp_path)
    assert (ran.returncode, ran.stdout) == (0, te("coach", "--help", folder=tmp_path).stdout)
    assert "te cat [-n] FILE" in search("te --help", tmp_path).text
    write(tmp_path, {"a.txt": "x\n"})
    named = set(re.findall(r"(?<![\w-])-[a-zA-Z]\b", search("te cat --help", tmp_path).text))
    assert len(named) >= 5
    for switch in sorted(named):
        assert "error" not in search(f"te cat {switch} a.txt", tmp_path).meta, "what help names is taken"
    assert search("te grep -e --help", tmp_path).meta["matches"] == 0, "as a value it is none"


@pytest.mark.proves("TE-HELP", "TE-BUDGET")
@pytest.mark.parametrize("budget", [1, 60, 700])
@pytest.mark.parametrize("arguments", [(), ("--help",), ("help",), ("grep", "--help"), ("--version",)])
def test_help_keeps_the_agent_s_budget_too(tmp_path: Path, arguments: tuple[str, ...], budget: int) -> None:
    whole = te(*arguments, folder=tmp_path)
    write(tmp_path, {"llmc.toml": f"[tool_envelope.agent_budgets]\ndefault = {budget}\n"})
    short = te(*arguments, folder=tmp_path)
    assert short.returncode == whole.returncode
    assert len(short.stdout.decode()) <= budget and whole.stdout.startswith(short.stdout)
    assert short.stdout or budget == 1, "it says as much as it may"


@pytest.mark.proves("TE-STDIN")
@pytest.mark.parametrize("command", ["grep needle -", "cat -", "grep -f - a.txt"])
def test_standard_input_is_refused_in_words(tmp_path: Path, command: str) -> None:
    write(tmp_path, {"a.txt": "needle\n", "-": "needle\n"})
    answer = search(f"te {command}", tmp_path)
    assert answer.meta == {"v": 1, "cmd": command.split()[0], "error": "standard_input"}
    assert answer.notes == ["[TE] standard input is not read, only files (te -i grep in a shell reads it)"]
    assert search("te grep needle - a.txt", tmp_path).hits == ["a.txt:1: needle"], "the others are searched"
    assert search("te grep needle ./-", tmp_path).hits == ["./-:1: needle"]


@pytest.mark.proves("TE-COMMAND")
@pytest.mark.skipif(os.name != "posix", reason="closed pipes are met differently")
def test_a_reader_that_has_seen_enough_is_no_error(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "needle\n" * 5_000})
    read_end, write_end = os.pipe()
    os.close(read_end)
    ran = te("grep", "needle", folder=tmp_path, stdout=write_end)
    os.close(write_end)
    assert (ran.returncode, ran.stderr) == (0, b"")


@pytest.mark.proves("TE-COLD")
def test_the_command_loads_nothing_heavy(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": "needle\n"})
    ran = te("grep", "needle", folder=tmp_path, python=("-X", "importtime", "-I", "-S"))
    assert read(ran.stdout.decode()).hits == ["a.txt:1: needle"]
    loaded = {line.rpartition("|")[2].strip() for line in ran.stderr.decode().splitlines()}
    assert "llm_do_mcp.te.grep" in loaded
    assert loaded.isdisjoint(HEAVY)
    others = {name for name in loaded if name.startswith("llm_do_mcp.") and not name.startswith("llm_do_mcp.te")}
    assert others == set(), "te stands alone"
