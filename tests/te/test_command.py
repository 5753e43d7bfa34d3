"""The `te` command as a process: output, exit codes, and how little it loads."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.te.searching import read, te, write

HEAVY = {"argparse", "asyncio", "ctypes", "dataclasses", "json", "pathlib", "pydantic", "shutil", "tempfile", "typing"}


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
    assert b"te grep [flags] PATTERN" in te("--help", folder=tmp_path).stdout


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
