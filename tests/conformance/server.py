"""The server that the suite judges: ours, with the project beside it, and with the suite's own fixtures.

Whatever the suite calls `test_input_required_result_…` is a worker of that project: its tool asks, the run waits in the
engine, and the questions go out and the answers come back by the server's own rounds. Only the words are the suite's:
it wants questions of other kinds than approvals, by names of its own. What it calls as tasks are workers, too.
"""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import anyio
from mcp import MCPDeprecationWarning
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ClientCapabilities,
    Completion,
    CompletionArgument,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    GetPromptResult,
    InputRequiredResult,
    ListRootsRequest,
    Prompt,
    PromptMessage,
    Resource,
    ResourceTemplate,
    SamplingMessage,
    TextContent,
    Tool,
)
from pydantic import AnyUrl

from llm_do_mcp.project.load import load_project
from llm_do_mcp.serving.http.serve import Listening, serve
from llm_do_mcp.serving.reading import Reference
from llm_do_mcp.serving.rounds import State
from llm_do_mcp.serving.server import ProjectServer
from llm_do_mcp.serving.tasks import Request
from tests.conformance import fixtures

PROJECT = Path(__file__).with_name("project")
PREFIX = "test_input_required_result_"
PROMPT = PREFIX + "prompt"
STREAMING = "test_streaming_elicitation"
LATER = "test_tool_with_task"
"""What the suite wants to ask something before it becomes a task."""
TASKS = ("slow_compute", "failing_job", "confirm_delete", "multi_input", LATER)
TRIGGERS = {"test_trigger_tool_change": "tool", "test_trigger_prompt_change": "prompt"}

Requests = ElicitRequest | CreateMessageRequest | ListRootsRequest


def _elicits(message: str, field: str, kind: str = "string") -> ElicitRequest:
    schema = {"type": "object", "properties": {field: {"type": kind}}, "required": [field]}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def _samples(text: str) -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=TextContent(type="text", text=text))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=100))


REQUESTS: dict[str, Requests] = {
    "user_name": _elicits("What is your name?", "name"),
    "capital_question": _samples("What is the capital of France?"),
    "client_roots": ListRootsRequest(),
    "confirm": _elicits("Please confirm", "ok", "boolean"),
    "greeting": _samples("Generate a greeting"),
    "step1": _elicits("Step 1: What is your name?", "name"),
    "step2": _elicits("Step 2: What is your favorite color?", "color"),
    "user_context": _elicits("What context should the prompt use?", "context"),
}
"""What the project's tool asks about, as the suite wants to be asked."""

_client: ContextVar[ClientCapabilities | None] = ContextVar("client", default=None)


def _can(capabilities: ClientCapabilities | None, request: Requests) -> bool:
    kind = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}
    return getattr(capabilities, kind[request.method], None) is not None


class JudgedServer(ProjectServer):
    """The server.

    Args:
        folder: Where the project is put: it is edited while it is served.
    """

    def __init__(self, folder: Path) -> None:
        self._root = folder / "project"
        shutil.copytree(PROJECT, self._root)
        super().__init__(load_project(self._root), when_nobody_can_answer="pause")
        fixtures.add_to(self)

    # ---- what the suite finds

    async def list_tools(self) -> list[Tool]:
        own = [_named(tool) for tool in await super().list_tools() if tool.name != "prompt"]
        hooks = [
            Tool(name=name, description="Edits the project.", input_schema={"type": "object"}) for name in TRIGGERS
        ]
        return [*await MCPServer.list_tools(self), fixtures.SCHEMA_TOOL, *hooks, *own]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[None, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        if name in TRIGGERS:
            self._edit(TRIGGERS[name])
            return CallToolResult(content=[TextContent(type="text", text="edited")])
        if name.startswith(PREFIX) or name in (STREAMING, *TASKS):
            return await super().call_tool(_worker(name), arguments, context)
        return await MCPServer.call_tool(self, name, arguments, context)

    async def begin(self, params: CallToolRequestParams, request: Request) -> str | CallToolResult | None:
        if params.name == LATER and params.request_state is None:
            return None
        return await super().begin(params, request)

    def _edit(self, what: str) -> None:
        """Add a worker: one more tool, and one more prompt."""
        number = len(list((self._root / "workers").iterdir()))
        shutil.copyfile(self._root / "workers/prompt.worker", self._root / f"workers/{what}_{number}.worker")

    async def list_prompts(self) -> list[Prompt]:
        asks = Prompt(name=PROMPT, description="Asks first.")
        return [asks, *await MCPServer.list_prompts(self), *await super().list_prompts()]

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[None, Any] | None = None
    ) -> GetPromptResult | InputRequiredResult:
        if name in {prompt.name for prompt in await MCPServer.list_prompts(self)}:
            return await MCPServer.get_prompt(self, name, arguments, context)
        if name != PROMPT:
            return await super().get_prompt(name, arguments, context)
        result = await super().call_tool("prompt", {}, context)
        if isinstance(result, InputRequiredResult):
            return result
        said = [block for block in result.content if isinstance(block, TextContent)]
        return GetPromptResult(messages=[PromptMessage(role="user", content=block) for block in said])

    async def list_resources(self) -> list[Resource]:
        return [*await MCPServer.list_resources(self), *await super().list_resources()]

    async def list_resource_templates(self) -> list[ResourceTemplate]:
        return [*await MCPServer.list_resource_templates(self), *await super().list_resource_templates()]

    async def read_resource(
        self, uri: AnyUrl | str, context: Context[None, Any] | None = None
    ) -> Iterable[ReadResourceContents]:
        if str(uri).startswith("llm-do:"):
            return await super().read_resource(uri, context)
        return await MCPServer.read_resource(self, uri, context)

    async def complete(self, reference: Reference, argument: CompletionArgument) -> Completion:
        return fixtures.complete(argument.value)

    # ---- what it is asked, and what it answers

    def _can_ask(self, context: Context[None, Any]) -> bool:
        _client.set(context.client_capabilities)
        return any(_can(context.client_capabilities, request) for request in REQUESTS.values())

    def _round(self, run: str, round_: int, requests: Mapping[str, Any]) -> InputRequiredResult:  # type: ignore[override]
        about = [question.detail for question in self.engine.questions(run) if question.key in requests]
        asked = {name: REQUESTS[name] for name in about if _can(_client.get(), REQUESTS[name])}
        return InputRequiredResult(input_requests=asked, request_state=State(run, round_ + 1).to_text())

    async def _answered(self, run: str, responses: Mapping[str, Any], context: Context[None, Any]) -> None:
        open_ = self.engine.questions(run)
        keys = {question.key: question.key for question in open_} | {one.detail: one.key for one in open_}
        answers = {
            keys[name]: ElicitResult(
                action="accept",
                content={"decision": "answer", "note": response.model_dump_json(by_alias=True, exclude_none=True)},
            )
            for name, response in responses.items()
            if name in keys
        }
        await super()._answered(run, answers, context)


def _worker(name: str) -> str:
    return "streaming" if name == STREAMING else name.removeprefix(PREFIX)


def _named(tool: Tool) -> Tool:
    if tool.name == "streaming":
        return tool.model_copy(update={"name": STREAMING})
    own = tool.name.startswith("run_") or tool.name in TASKS
    return tool if own else tool.model_copy(update={"name": PREFIX + tool.name})


if __name__ == "__main__":
    warnings.simplefilter("ignore", MCPDeprecationWarning)  # the suite asks for sampling and logs
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(serve, JudgedServer(Path(folder)), Listening.at("127.0.0.1:0"))
