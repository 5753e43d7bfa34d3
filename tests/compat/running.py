"""The nine projects of this folder, each copied to where it may be run, by the command and over MCP.

They are written as workers were in December 2025, and run unchanged: what a worker needs to be run without a model (the
script in `scripted/`) is beside it, and named by `LLM_DO_MODEL`. Only `whiteboard` asks for a model of Anthropic's; it
is run against a server on loopback that speaks the Messages API.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mcp import Client
from mcp.client.stdio import StdioServerParameters, get_default_environment, stdio_client

from tests.serving.clients import Person, client_of, command

HERE = Path(__file__).parent
SCRIPTED = {"LLM_DO_MODEL": "scripted:scripted/model.yaml"}


@dataclass(frozen=True)
class Case:
    """A project, what it is asked, and what comes of it where every question is approved.

    Args:
        project: Its folder.
        given: What the entry worker is given.
        says: What its answer has in it.
        files: Path → what the file has in it afterwards, of all that were written.
        asks: How many questions a person is asked.
    """

    project: str
    given: str
    says: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    asks: int = 0

    def __str__(self) -> str:
        return self.project


CASES = (
    Case("greeter", "I am Ada", ("Welcome, Ada!",)),
    Case(
        "calculator",
        "What is 10!, and what is it made of?",
        ("10! is 3628800", "[2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 5, 5, 7]"),
        {"scratch/last.txt": "3628800 = 2 x 2"},
    ),
    Case(
        "approvals_demo",
        "buy pears",
        ('"path": "notes/log.txt"', "notes/log.md: suffix not allowed; allowed are .txt, .log"),
        {"notes/log.txt": "the log begins\nbuy pears (A. L.)\n"},
        asks=2,
    ),
    Case("code_analyzer", "How large is it?", ("5 total", "shop/till.py:2:", "from shop.till import total"), asks=1),
    Case(
        "pitchdeck",
        "Judge all decks.",
        ("2 of 2 decks are judged.",),
        {
            f"evaluations/{deck.stem}.md": f"# {deck.name}\n2 questions put to {deck.stat().st_size} bytes of "
            for deck in HERE.glob("pitchdeck/input/*.pdf")
        },
        asks=2,
    ),
    Case(
        "web_research",
        "pears",
        ("The report is in reports/report.md.",),
        {
            "reports/report.md": "A ripe pear gives way at its neck. (https://orchard.example/)",
            "reports/report.json": '"https://pantry.example/"',
        },
        asks=3,
    ),
    Case("web_searcher", "What is new?", ("I was given web_search 3 ['example.org'].",)),
    Case(
        "bootstrapper", "Count the words.", ("2 texts counted.",), {"output/dog.md": "3", "output/fox.md": "4"}, asks=3
    ),
)
"""All but `whiteboard`, which has a test of its own."""


def copied(project: str, tmp_path: Path) -> Path:
    """A copy of a project that may be run."""
    return Path(shutil.copytree(HERE / project, tmp_path / project))


def written(root: Path, project: str) -> dict[str, str]:
    """What a run left in a copy: path → text of the files that are new or not as they were."""
    found = {}
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        if path.is_file() and not {".llm-do", "__pycache__"} & set(relative.parts):
            original = HERE / project / relative
            if not original.exists() or original.read_bytes() != path.read_bytes():
                found[relative.as_posix()] = path.read_text(encoding="utf-8")
    return found


def over_stdio(root: Path, mode: str, person: Person | None, env: Mapping[str, str]) -> Client:
    """The SDK's client of a project in a child process with these variables."""
    first, *rest = command(root)
    parameters = StdioServerParameters(command=first, args=rest, env={**get_default_environment(), **env})
    return client_of(stdio_client(parameters), mode, person)
