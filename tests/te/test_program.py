"""Another program is started by the system or by `subprocess`, and is the same program either way."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from llm_do_mcp.te.program import Program
from tests.te.searching import next_handle


@pytest.fixture(params=["in our folder", "in another one"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a program runs; in our own folder the system can start it."""
    if request.param == "in our folder":
        monkeypatch.chdir(tmp_path)
    return tmp_path


def start(code: str, folder: Path, reading: int | None = None, handles: Sequence[int] = ()) -> Program:
    command = [sys.executable, "-I", "-S", "-c", code]
    return Program(command, folder=str(folder), handles=handles, reading=reading)


def read(handle: int) -> bytes:
    return b"".join(iter(lambda: os.read(handle, 1 << 16), b""))


@pytest.mark.proves("TE-PROGRAM")
def test_its_streams_and_its_exit_code_are_ours(folder: Path) -> None:
    code = "import os, sys; print(os.getcwd(), sys.stdin.read()); print('oh', file=sys.stderr); sys.exit(7)"
    (folder / "input").write_text("what it is given")
    handle = os.open(folder / "input", os.O_RDONLY)
    program = start(code, folder, handle)
    os.close(handle)
    assert read(program.output).decode().split(None, 1) == [os.path.realpath(folder), "what it is given\n"]
    assert read(program.complaints).strip() == b"oh"
    assert program.wait() == 7
    program.kill()  # what has ended is not harmed
    program.close()


@pytest.mark.proves("TE-PROGRAM")
def test_without_input_it_reads_nothing_and_inherits_nothing(folder: Path) -> None:
    handle = os.open(os.devnull, os.O_RDONLY)
    code = f"import os, sys\ntry: os.fstat({handle}); print('inherited')\nexcept OSError: print(repr(sys.stdin.read()))"
    program = start(code, folder)
    os.close(handle)
    assert read(program.output).strip() == b"''"
    assert program.wait() == 0
    program.close()


@pytest.mark.proves("TE-PROGRAM")
@pytest.mark.skipif(os.name != "posix", reason="handles are not passed on")
def test_what_it_is_to_inherit_has_the_same_number(folder: Path) -> None:
    (folder / "input").write_text("behind a handle")
    passed, other = (os.open(folder / "input", os.O_RDONLY) for _ in range(2))
    code = f"import os\nprint(os.read({passed}, 99))\ntry: os.fstat({other})\nexcept OSError: print('alone')"
    program = start(code, folder, handles=[passed])
    os.close(passed)
    os.close(other)
    assert read(program.output).split(b"\n") == [b"b'behind a handle'", b"alone", b""]
    assert program.wait() == 0
    program.close()


@pytest.mark.proves("TE-PROGRAM")
@pytest.mark.skipif(os.name != "posix", reason="there are no signals")
def test_one_that_is_killed_says_so(folder: Path) -> None:
    program = start("print('up', flush=True); import time; time.sleep(600)", folder)
    assert os.read(program.output, 2) == b"up"
    program.kill()
    assert program.wait() == -signal.SIGKILL
    program.close()


@pytest.mark.proves("TE-PROGRAM")
def test_one_that_is_not_there_leaves_no_handle(folder: Path) -> None:
    before = next_handle()
    with pytest.raises(OSError):
        Program([str(folder / "nothing")], folder=str(folder))
    assert next_handle() == before


@pytest.mark.proves("TE-PROGRAM")
@pytest.mark.skipif(os.name != "posix", reason="there are no signals")
def test_its_end_is_seen_where_the_system_forgets_children(folder: Path) -> None:
    usual = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        program = start("", folder)
        assert program.wait() == 0
        program.close()
    finally:
        signal.signal(signal.SIGCHLD, usual)
