"""`scripted:<file>`: turns from a file of the project, for tests, demos and CI. No model is called.

The file is YAML (see `script.py`), or Python whose `reply(request)` answers for every worker. A function is given
the request as JSON (`turn.request_json`), so a script can compute its answer from what it was really sent. It is
the project's Python, so it runs in the tool host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from llm_do_mcp.errors import LlmDoError
from llm_do_mcp.models.failures import failure
from llm_do_mcp.models.script import PythonFunction, Script, Turn, load_script, parse_turn
from llm_do_mcp.models.turn import Block, Reply, Request, request_json
from llm_do_mcp.project.paths import project_path

if TYPE_CHECKING:
    from llm_do_mcp.toolhost.client import ToolHost


class ScriptedModel:
    """A script in place of a model.

    Args:
        file: The script, relative to the project.
        project_root: The project's folder.
        toolhost: Where the script's Python runs.
    """

    calls_model = False

    def __init__(self, file: str, *, project_root: str, toolhost: ToolHost) -> None:
        self.name = f"scripted:{file}"
        self._file = file
        self._project_root = project_root
        self._toolhost = toolhost
        self._script: Script | None = None

    async def reply(self, request: Request, *, deadline: float) -> Reply:
        """See `Model.reply`. The script is read once, with the first turn."""
        try:
            turn = await self._turn(request, deadline)
        except (LlmDoError, ValueError) as error:
            raise failure(request, f"the script cannot answer: {error}", "correct the script") from error
        return Reply(_content(turn, request.turn), turn.stop_reason, turn.usage, self.name)

    async def aclose(self) -> None:
        """See `Model.aclose`."""

    async def _turn(self, request: Request, deadline: float) -> Turn:
        file = project_path(self._file)
        if file.endswith(".py"):
            return await self._call(PythonFunction(file, "reply"), request, deadline)
        if self._script is None:
            self._script = await anyio.to_thread.run_sync(load_script, self._project_root, file)
        answers = self._script.get(request.worker)
        if answers is None:
            raise ValueError(f"it has no worker {request.worker}; it has {', '.join(self._script) or 'none'}")
        if isinstance(answers, PythonFunction):
            return await self._call(answers, request, deadline)
        if request.turn >= len(answers):
            raise ValueError(f"turn {request.turn + 1} was asked for, and it has {len(answers)} for this worker")
        return answers[request.turn]

    async def _call(self, function: PythonFunction, request: Request, deadline: float) -> Turn:
        remaining = max(deadline - anyio.current_time(), 0.0)
        payload = request_json(request)
        answer = await self._toolhost.evaluate(function.file, function.name, payload, timeout=remaining)
        try:
            return parse_turn(answer)
        except ValueError as error:
            raise ValueError(f"{function.file}:{function.name} returned something else: {error}") from None


def _content(turn: Turn, number: int) -> tuple[Block, ...]:
    """A turn's blocks. Ids of calls follow from their place in the conversation, so that a replay has the same."""
    text: list[Block] = [{"type": "text", "text": turn.text}] if turn.text else []
    calls = [
        {"type": "tool_use", "id": f"call_{number}_{index}", "name": call.name, "input": dict(call.input)}
        for index, call in enumerate(turn.tool_calls)
    ]
    return (*text, *calls)
