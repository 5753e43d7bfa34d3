"""Every command of the README is typed at a terminal, every file that it shows is written and used, in their order.

Sections that go on where another ended share its folder. The home directory is an empty one, the commands are those of
this Python's environment, questions are answered with *Allow this one*, and models are a server on loopback: there is
no network.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llm_do_mcp.cli.serve import COMMANDS
from tests.cli.commands import Terminal
from tests.examples.scripts import REPOSITORY
from tests.models.messages_server import Answer, MessagesServer, message, text, tool_use
from tests.readme.document import Block, Command, blocks, commands

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the README's commands are for a POSIX shell")

GO_ON = ("Check and test", "Connect a client", "Approvals", "In CI", "Runs", "Over HTTP")
"""Sections that go on with what the section before them made."""
INSTEAD = {
    # setting up fetches packages
    "make demo": "llm-do demo --project projects/pitchdeck_eval",
    "llm-do demo --yes": "llm-do demo --yes --project projects/pitchdeck_eval",
    "python3 -m venv .venv && .venv/bin/pip install --upgrade pip && .venv/bin/pip install -e . --group dev": "true",
    ". .venv/bin/activate": "true",
    # this test would run itself
    "make test": f"make --dry-run --directory '{REPOSITORY}' test",
    "python -m pytest": "python -m pytest --version",
    # the Inspector is a program of Node's, which uv and npm fetch
    "cd my-notes && mcp dev ../llm_do_mcp/server.py": "mcp dev --help",
    # there is a key once a client was asked something
    "llm-do-mcp rotate-key my-notes": "llm-do-mcp rotate-key --help",
    # the repository is one of this machine
    "llm-do lib install git+https://github.com/org/workers.git@v1.2#subdir=utils --force": (
        "git init --quiet workers.git && cp -R utils workers.git && cd workers.git && git add --all"
        " && git -c user.name=Ann -c user.email=ann@example.org commit --quiet --message first && git tag v1.2 && cd .."
        ' && llm-do lib install "git+file://$PWD/workers.git@v1.2#subdir=utils" --force'
    ),
}
"""What is run in place of a command that needs the network, another program, a person's machine, or a client."""
PROMPT = "note behind it if you like, and Enter.\n> "
ENDS = " ===\n"
BETWEEN = "printf '\\n=== exit %s ===\\n' $?"
"""What is run behind each command, to tell its end and its exit code."""
CHECKOUT = ("README.md", "llm_do_mcp", "projects")


def _sessions() -> dict[str, list[Block]]:
    """The blocks that share a folder, by the section that begins it."""
    found: dict[str, list[Block]] = {}
    begins = ""
    for block in blocks():
        if block.section not in GO_ON:
            begins = block.section
        found.setdefault(begins, []).append(block)
    return found


SESSIONS = _sessions()


@pytest.mark.proves("README-COMMANDS", "README-SNIPPETS")
@pytest.mark.parametrize("name", SESSIONS)
def test_what_the_readme_shows_works_as_it_stands(tmp_path: Path, name: str) -> None:
    folder, home = tmp_path / "here", tmp_path / "home"
    _lay_out(folder)
    home.mkdir()
    lines = [*_lines(SESSIONS[name], folder), *_checks(SESSIONS[name])]
    script = "".join(f"{line}\n{BETWEEN}\n" for _, line in lines)
    there = {
        "HOME": str(home),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": str(REPOSITORY),
        "TMPDIR": str(tmp_path),
        "COLUMNS": "100",
    }
    inside = f"cd '{folder}' && exec >&2\n{script}"
    with (
        MessagesServer(respond=_model) as server,
        Terminal(["sh", "-c", inside], env={**there, "MODEL_SERVER": server.url}) as terminal,
    ):
        for command, line in lines:
            output = _typed(terminal)
            code = re.search(r"\n=== exit (\d+) ===\n$", output)
            assert code and code[1] == "0", f"{line}\n{output}"
            if command is not None:
                said = output[: code.start()]
                assert command.is_shown(said), f"README.md:{command.block.line}: `{line}` prints\n{said}"


@pytest.mark.proves("README-COMMANDS")
def test_what_has_a_stand_in_is_in_the_readme() -> None:
    lines = {line for block in blocks() if block.language == "console" for line in _plain(block)}
    assert set(INSTEAD) <= lines


def _plain(block: Block) -> Iterator[str]:
    """The commands of a block without their comments."""
    return (_without_comment(command.line) for command in commands(block))


def _without_comment(line: str) -> str:
    return re.sub(r"\s+#\s.*", "", line)


def _typed(terminal: Terminal) -> str:
    """What a command prints to its end; each question is answered."""
    output = ""
    while True:
        shown = terminal.expect(PROMPT, ENDS)
        output += shown
        if shown.endswith(ENDS):
            return output
        terminal.type("a\n")


def _lay_out(folder: Path) -> None:
    """A folder that has what a checkout has."""
    for name in CHECKOUT:
        source, target = REPOSITORY / name, folder / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=_left_behind)
        else:
            target.parent.mkdir(exist_ok=True)
            shutil.copy(source, target)


def _left_behind(folder: str, names: list[str]) -> list[str]:
    """What running leaves in a checkout, and git ignores."""
    written = folder.endswith("evaluations")
    return [name for name in names if name in ("__pycache__", ".llm-do") or (written and name.endswith(".md"))]


def _lines(found: list[Block], folder: Path) -> Iterator[tuple[Command | None, str]]:
    """What is run for the blocks: a file is written when its block is reached."""
    for number, block in enumerate(found):
        if block.language == "console":
            for command in commands(block):
                yield command, _run(command.line)
            continue
        kept = folder / f"block-{number}"
        kept.write_text(block.text, encoding="utf-8")
        yield None, f"mkdir -p '{os.path.dirname(block.path) or '.'}' && mv {kept.name} '{block.path}'"


def _run(line: str) -> str:
    """The line itself, or what stands for it."""
    words = _without_comment(line)
    if words in INSTEAD:
        return INSTEAD[words]
    if calls := re.match(r'(.*\b)(llm-do [a-z-]+ ".*)', words):
        return f"{calls[1]}ANTHROPIC_BASE_URL=$MODEL_SERVER {calls[2]}"
    if "--http" in words:
        return f"python -m tests.readme.serve_once {words}"
    program, first, *_ = words.split()
    serves = (program == "llm-do-mcp" and first not in COMMANDS) or " mcp run " in words
    return f"{words} </dev/null" if serves else words  # a client that hangs up at once


def _checks(found: list[Block]) -> Iterator[tuple[None, str]]:
    """At the end, each project that the blocks made passes `check`."""
    for path in (block.path for block in found if block.language != "console"):
        if path.endswith("/main.worker"):
            yield None, f"llm-do check {os.path.dirname(path)} --import-tools"


def _model(body: dict[str, Any]) -> Answer:
    """What the model says: a summary is written, other questions are answered."""
    asked = json.dumps(body["messages"][-1])
    if "Summarise" in asked:
        return message(tool_use("write_file", {"path": "output/week.md", "content": "# The week\n"}, id="one"))
    return message(text("Ines does (input/notes.md)."))
