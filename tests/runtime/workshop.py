"""A real project in a folder of its own, with its runs, for tests that look at what a worker does.

Its model is a script that does what the test wrote into the input: the input of a worker is the JSON of its first
turn (`saying`, `calling`), and what the model was sent back afterwards is the worker's answer (`Seen`). So a test reads
as: let the model call this; what was it told?
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from llm_do_mcp.project.load import load_project
from llm_do_mcp.runtime.engine import Done, Engine
from llm_do_mcp.runtime.question import Answer, Question
from llm_do_mcp.serving.surface import worker_declaration
from llm_do_mcp.toolsets.workbench import Workbench
from tests.project.conftest import worker, write
from tests.runtime.driving import finished

SCRIPT = '''
import json


def reply(request):
    """Does what the first text says, and then gives back all that it was sent."""
    if request["turn"] == 0:
        return json.loads(request["messages"][0]["content"][-1]["text"])
    return json.dumps({"system": request["system"], "results": request["messages"][-1]["content"]})
'''

SCRIPTED = "scripted:script.py"
MAIN = """
toolsets:
  filesystem: {}
  delegation: {allow_workers: ["*"]}
sandbox:
  paths:
    in: {root: ./in, mode: ro}
    out: {root: ./out, mode: rw}
"""


def calling(*calls: tuple[str, Mapping[str, Any]], **turn: Any) -> str:
    """An input that lets the model make these calls in its first turn."""
    return json.dumps({"tool_calls": [{"name": name, "input": given} for name, given in calls], **turn})


def refuse(question: Question) -> Answer:
    return Answer("deny", by="client")


def approve(question: Question) -> Answer:
    return Answer("once", by="client")


class Workshop:
    """A project and its runs, as an asynchronous context manager.

    Args:
        root: Where it lies.
        files: Beside `main.worker` (which may call every worker, read `in/` and write `out/`) and the script.
        libs: Folders of libraries.
    """

    def __init__(
        self,
        root: Path,
        files: Mapping[str, str] | None = None,
        *,
        model: str = "scripted:script.py",
        libs: Sequence[str] = (),
    ) -> None:
        given = {
            "main.worker": worker(MAIN, "The main worker."),
            "project.yaml": f"name: shop\nmodel: {model}\n",
            "script.py": SCRIPT,
            "in/notes.md": "three\n",
            **(files or {}),
        }
        write(root, given)
        self.root = root
        self.bench = Workbench(load_project(root, libs=libs))
        self.engine = Engine(root / ".llm-do", self.bench.body)

    async def __aenter__(self) -> Workshop:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.engine.aclose()
        await self.bench.aclose()

    async def start(self, given: Any = "", name: str = "main", **arguments: Any) -> str:
        """Begin a call of a worker, as a front does."""
        called = self.bench.project.worker(name)
        declaration = worker_declaration(self.bench, called, called.roots)
        value = {"worker": called.id, "input_data": given, **arguments}
        return await self.engine.start(called.id, self.bench.define_call(declaration, value, ()))

    async def run(
        self,
        given: Any = "",
        decide: Callable[[Question], Answer] = refuse,
        name: str = "main",
        *,
        gather: float = 0.0,
        **arguments: Any,
    ) -> Done:
        """How a call of a worker ends; `gather` as `Engine.advance` has it."""
        return await finished(self.engine, await self.start(given, name, **arguments), decide, gather=gather)

    async def told(self, *calls: tuple[str, Mapping[str, Any]], decide: Callable[[Question], Answer] = refuse) -> Any:
        """What the main worker's model is told after these calls: a list of (text, whether it is an error)."""
        done = await self.run(calling(*calls), decide)
        assert done.status == "done", done.error
        results = json.loads(done.output)["results"]
        return [(result["content"], result["is_error"]) for result in results if result["type"] == "tool_result"]
