"""`llm-do approve`: answers from a terminal, while a server runs and when its process is gone."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import LLM_DO, Terminal, llm_do
from tests.serving.clients import FILES, PATIENCE_S, Turn, Wire, command, shop, turn, worker, write

at_terminal = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo terminal")


class Server:
    """A server of a shop for a client that cannot ask.

    Args:
        root: The shop.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.wire = Wire(command(root))
        self.wire.open()

    def paused(self) -> str:
        """Call the worker; the id of its run, which waits for a person."""
        result = self.call("shop", input="go")
        assert "waits for a person" in result["content"][0]["text"]
        return str(result["_meta"]["llm-do/run"]["id"])

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.wire.request("tools/call", {"name": tool, "arguments": arguments})

    def account(self, run: str) -> dict[str, Any]:
        """The account of a run that ends by itself."""
        return dict(self.call("run_wait", run_id=run)["_meta"]["llm-do/run"])

    def kill(self) -> None:
        self.wire.process.send_signal(signal.SIGKILL)
        self.wire.process.wait(PATIENCE_S)

    def approve(self, *arguments: str) -> Terminal:
        """`llm-do approve` at a terminal."""
        return Terminal([*LLM_DO, "approve", *arguments, "--project", str(self.root)])


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Any]:
    """`serve(*turns)` serves a shop whose worker makes these turns."""
    servers: list[Server] = []

    def start(*turns: Turn, **manifest: Any) -> Server:
        servers.append(Server(shop(tmp_path, *turns, **manifest)))
        return servers[-1]

    yield start
    for server in servers:
        server.wire.close()


@pytest.mark.proves("APPROVE-LIST")
def test_without_a_terminal_what_waits_is_listed_and_nothing_is_decided(serve: Any) -> None:
    server = serve(turn(write("out/a.txt"), write("out/b.txt")))
    empty = llm_do("approve", "--project", server.root)
    assert (empty.returncode, empty.stdout, empty.stderr) == (0, "", "")
    run = server.paused()
    listed = llm_do("approve", "--project", server.root)
    assert listed.returncode == 4 and listed.stdout.count(f"run {run}\nApproval needed: create the file out/") == 2
    found = json.loads(llm_do("approve", run, "--json", "--project", server.root).stdout)
    assert sorted(each["target"] for each in found) == ["out/a.txt", "out/b.txt"]
    assert {(each["run"], each["function"], each["driven"]) for each in found} == {(run, "files.write", True)}
    assert found[0]["decisions"] == ["once", "run", "deny"]
    unknown = llm_do("approve", "nothing", "--project", server.root)
    assert (unknown.returncode, unknown.stdout) == (1, "") and "there is no run nothing" in unknown.stderr
    assert not (server.root / "out/a.txt").exists()


@at_terminal
@pytest.mark.proves("APPROVE-SERVED")
def test_a_run_of_a_server_is_answered_question_after_question_and_goes_on_there(serve: Any) -> None:
    server = serve(turn(write("out/a.txt")), turn(write("out/b.txt")))
    run = server.paused()
    with server.approve() as terminal:
        shown = terminal.expect("> ")
        assert f"run {run} (main)" in shown and "Approval needed: create the file out/a.txt" in shown
        assert "+new" in shown
        terminal.type("a looks fine\n")
        assert "out/b.txt" in terminal.expect("> "), "what the run asks next is asked here too"
        terminal.type("d\n")
        terminal.expect(f"run {run} has ended (done)")
        assert terminal.finish() == (0, "")
    account = server.account(run)
    assert account["files_changed"] == ["out/a.txt"]
    assert [(each["decision"], each["by"], each["note"]) for each in account["approvals"]] == [
        ("once", "terminal", "looks fine"),
        ("deny", "terminal", ""),
    ]


@at_terminal
@pytest.mark.proves("APPROVE-SERVED")
def test_an_answer_for_the_rest_of_the_run_settles_what_else_waits(serve: Any) -> None:
    server = serve(turn(*(write(f"out/{number}.txt") for number in range(5))), turn(write("out/last.txt")))
    run = server.paused()
    with server.approve(run) as terminal:
        terminal.expect("> ")
        terminal.type("s\n")
        assert "> " not in terminal.expect(f"run {run} has ended (done)")
        assert terminal.finish() == (0, "")
    account = server.account(run)
    assert len(account["files_changed"]) == 6
    assert sorted(each["by"] for each in account["approvals"]) == [*["grant"] * 5, "terminal"]


@at_terminal
@pytest.mark.proves("APPROVE-SERVED")
def test_only_the_questions_of_the_named_run_are_asked(serve: Any) -> None:
    server = serve(turn(write("out/a.txt")))
    first, second = server.paused(), server.call("files_out_write_text", path="b.txt", content="x")
    with server.approve(second["_meta"]["llm-do/run"]["id"]) as terminal:
        assert "out/b.txt" in terminal.expect("> ")
        terminal.type("a\n")
        assert terminal.finish() == (0, "")
    waiting = json.loads(llm_do("approve", "--json", "--project", server.root).stdout)
    assert [each["run"] for each in waiting] == [first]


@at_terminal
@pytest.mark.proves("APPROVE-LEFT")
def test_a_run_whose_process_is_gone_goes_on_in_the_terminal(serve: Any) -> None:
    server = serve(turn(write("out/a.txt")), turn(write("out/b.txt")))
    run = server.paused()
    server.kill()
    with server.approve(run) as terminal:
        terminal.expect("> ")
        terminal.type("a\n")
        terminal.expect(f"run {run} goes on here: its process is gone")
        assert "out/b.txt" in terminal.expect("> ")
        terminal.type("a\n")
        code, output = terminal.finish()
    assert code == 0 and '"out/b.txt"' in output
    assert (server.root / "out/a.txt").exists() and (server.root / "out/b.txt").exists()


@at_terminal
@pytest.mark.proves("APPROVE-WITHDRAWN", "A081")
def test_a_question_that_is_answered_elsewhere_is_withdrawn_and_takes_no_line_with_it(serve: Any) -> None:
    server = serve(turn(write("out/a.txt")), turn(write("out/b.txt")))
    run = server.paused()
    with server.approve() as slow:
        slow.expect("> ")
        slow.type("a for the one bef")  # not sent: it must decide nothing, now or later
        with server.approve() as quick:
            quick.expect("> ")
            quick.type("d too early\n")
            slow.expect("answered already, by terminal: Refuse “too early”")
            assert "out/b.txt" in slow.expect("> "), "and what the run asks next is asked in both"
            quick.expect("> ")
            slow.type("d ore\n")
            quick.expect("answered already, by terminal: Refuse “ore”")
            assert quick.finish() == (0, "")
        assert slow.finish() == (0, "")
    notes = [(each["decision"], each["note"]) for each in server.account(run)["approvals"]]
    assert notes == [("deny", "too early"), ("deny", "ore")]
    assert not (server.root / "out/a.txt").exists() and not (server.root / "out/b.txt").exists()


WAIT = """\
from llm_do_mcp import tool


@tool(risk="read")
def wait() -> str:
    with open("gate", "rb", buffering=0) as gate:
        return gate.read(1).decode()
"""


@at_terminal
@pytest.mark.proves("APPROVE-WITHDRAWN")
def test_what_is_typed_after_a_question_was_withdrawn_is_left_to_the_next_program(serve: Any, tmp_path: Path) -> None:
    files = {"tools.py": WAIT, "main.worker": worker({"toolsets": {**FILES, "custom": ["wait"]}})}
    server = serve(turn(write("out/a.txt")), turn(("wait", {})), files=files)
    os.mkfifo(tmp_path / "gate")
    server.paused()
    then = f"{shlex.join([*LLM_DO, 'approve', '--project', str(tmp_path)])}; read -r line; echo shell: $line"
    gate = os.open(tmp_path / "gate", os.O_RDWR)  # in both directions: to open it waits for nobody
    with Terminal(["sh", "-c", then]) as terminal, server.approve() as quick:
        terminal.expect("> ")
        quick.expect("> ")
        quick.type("a\n")
        terminal.expect("answered already, by terminal: Allow this one")
        terminal.type("ls\n")
        os.write(gate, b".")  # the run ends, and with it the command
        assert terminal.finish() == (0, "shell: ls\n")
    os.close(gate)


@at_terminal
@pytest.mark.proves("APPROVE-LEAVE")
@pytest.mark.parametrize("keys", ["\x04", "x\nyes\n\n\x04"], ids=["end of input", "nothing that is offered"])
def test_who_goes_away_from_the_prompt_has_decided_nothing(serve: Any, keys: str) -> None:
    server = serve(turn(write("out/a.txt")))
    run = server.paused()
    with server.approve() as terminal:
        terminal.expect("> ")
        terminal.type(keys)
        assert terminal.finish() == (4, "")
    (waiting,) = json.loads(llm_do("approve", "--json", "--project", server.root).stdout)
    assert waiting["run"] == run and not (server.root / "out/a.txt").exists()


@at_terminal
@pytest.mark.proves("APPROVE-LEFT")
def test_secrets_of_the_environment_stay_out_of_the_terminal(serve: Any) -> None:
    server = serve(turn(write("out/a.txt")), turn(write("out/sk-very-secret-value.txt")))
    server.paused()
    server.kill()
    with Terminal(
        [*LLM_DO, "approve", "--project", str(server.root)], env={"ANTHROPIC_API_KEY": "sk-very-secret-value"}
    ) as terminal:
        terminal.expect("> ")
        terminal.type("a\n")
        assert "sk-very-secret" not in terminal.expect("> ")
