"""Each example as a client has it: served over stdio, its entry worker called as a tool, by the SDK's own client."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.compat.running import over_stdio
from tests.examples.scripts import REPOSITORY, copied
from tests.serving.clients import ERAS, Person, decide, texts

pytestmark = pytest.mark.anyio


@dataclass(frozen=True)
class Call:
    """What is called, and what comes of it.

    Args:
        project: The example; its entry worker's tool has its name.
        arguments: Of the tool.
        answer: Words of the answer.
        asks: How many questions the person approves.
        writes: A file that is there afterwards, with words of it.
        script: The model.
    """

    project: str
    arguments: dict[str, Any]
    answer: str
    asks: int = 0
    writes: tuple[str, str] | None = None
    script: str = "scripted/model.yaml"


CALLS = (
    Call("calculator", {"question": "How far is 3 mile?"}, "It is 4828.032 m."),
    Call("code_review", {"concern": "swallowed errors"}, '"line": 10', asks=1, script="scripted/model.py"),
    Call("greeter", {"input": "I am Ada", "tone": "formal"}, "Good day, Ada.", script="scripted/model.py"),
    Call(
        "local_team",
        {"input": "What do they ask for?"},
        "- ben: Could you",
        2,
        ("results/answers.md", "forty more jars"),
    ),
    Call("notes", {"input": "change notes/plums.md: None."}, "plums.md", 1, ("notes/plums.md", "None.")),
    Call("pitchdeck_eval", {"input": "Rank."}, "1. Tidewell: 97, invest", 6, ("evaluations/tidewell.md", "**invest**")),
    Call("research", {"input": "Why did the second batch rot?"}, "report.md", 1, ("reports/report.md", "five days")),
    Call("whiteboard_planner", {"input": "Plan it."}, "1 plan", 1, ("plans/board.md", "1. BUILD")),
)


@pytest.mark.proves("EX-SERVED")
def test_every_example_is_called() -> None:
    assert [call.project for call in CALLS] == sorted(
        path.parent.name for path in REPOSITORY.glob("projects/*/README.md")
    )


@pytest.mark.proves("EX-SERVED")
@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("call", CALLS, ids=lambda call: str(call.project))
async def test_a_client_calls_an_example_and_the_person_is_asked_through_it(
    tmp_path: Path, call: Call, mode: str
) -> None:
    root = copied(call.project, tmp_path)
    for file in (*root.rglob("*.worker"), *root.glob("project.yaml")):  # these come before what LLM_DO_MODEL says
        file.write_bytes(re.sub(rb"(?m)^(model|compatible_models): .*\n", b"", file.read_bytes()))
    person = Person(decide("once"))
    variables = {"LLM_DO_MODEL": f"scripted:{call.script}", "LLM_DO_LIBS": str(root / "libs")}
    async with over_stdio(root, mode, person, variables) as client:
        (tool,) = [tool for tool in (await client.list_tools()).tools if tool.name == call.project]
        result = await client.call_tool(call.project, call.arguments)
    assert tool.description
    assert not result.is_error and call.answer in texts(result), texts(result)
    assert len(person.asked) == call.asks
    if call.writes is not None:
        path, words = call.writes
        assert words in (root / path).read_text(encoding="utf-8")
