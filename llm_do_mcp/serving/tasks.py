"""The tasks extension: a call of a worker returns at once, and its client asks how it stands whenever it likes.

A task is a run, under another name: it has the run's id, is kept where runs are kept, and can be asked about after a
restart or on another instance. Where a call would return before its run has ended, since its client cannot ask or did
not answer in time, a task ends, in the same words, and stays so: what the run comes to, `run_wait` tells. Clients that
do not declare the extension, and those of the handshake revisions, call workers as ever; a call that one began so, and
goes on with as one that declares it, is a task from then on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver.server import require_client_extension
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp.types import HEADER_MISMATCH, INVALID_PARAMS, CallToolRequestParams, CallToolResult, RequestParams

from llm_do_mcp.errors import LlmDoError
from llm_do_mcp.runtime.store import RunRow
from llm_do_mcp.serving.connection import MODERN
from llm_do_mcp.serving.rounds import Wanted, requests, response

IDENTIFIER = "io.modelcontextprotocol/tasks"
POLL_MS = 500
Request = ServerRequestContext[Any, Any]


class TaskParams(RequestParams):
    """Which task."""

    task_id: str


class UpdateParams(TaskParams):
    """Answers for a task: key → what a person, or the client's model, answered."""

    input_responses: dict[str, Any] | None = None


@dataclass(frozen=True)
class Standing:
    """How a task stands.

    Args:
        row: Its run, in the record.
        result: What it came to; None as long as it goes on.
        wanted: What it wants of the client that asks.
        returned: It ended before its run did.
    """

    row: RunRow
    result: CallToolResult | None = None
    wanted: Wanted = field(default_factory=dict)
    returned: bool = False

    @property
    def status(self) -> str:
        """As the protocol names it."""
        if self.result is not None:
            return "cancelled" if self.row.status == "cancelled" and not self.returned else "completed"
        return "input_required" if self.wanted else "working"


class Runs(Protocol):
    """What a server does with the runs that are tasks. Each raises `LlmDoError` for a run that is not the caller's."""

    async def begin(self, params: CallToolRequestParams, request: Request) -> str | CallToolResult | None:
        """Begin a worker's run: its id, or what is wrong with the call; None for a tool that is no worker."""

    async def stands(self, run: str, request: Request) -> Standing:
        """How a task stands, for this client."""

    async def answered(self, run: str, responses: Mapping[str, Any], request: Request) -> None:
        """Pass on answers."""

    async def stop(self, run: str) -> None:
        """Stop a run and all below it; what that comes to is told by how the task stands."""


class Tasks(Extension):
    """Serves tasks.

    Args:
        runs: What does the work.
    """

    identifier = IDENTIFIER

    def __init__(self, runs: Runs) -> None:
        self._runs = runs

    def methods(self) -> Sequence[MethodBinding]:
        """`tasks/get`, `tasks/update`, `tasks/cancel`."""
        modern = frozenset({MODERN})
        return [
            MethodBinding("tasks/get", TaskParams, self._get, modern),
            MethodBinding("tasks/update", UpdateParams, self._update, modern),
            MethodBinding("tasks/cancel", TaskParams, self._cancel, modern),
        ]

    async def intercept_tool_call(
        self, params: CallToolRequestParams, ctx: Request, call_next: CallNext
    ) -> HandlerResult:
        """Make a call of a worker a task, for a client that declares the extension."""
        declared = ctx.session.client_capabilities
        if ctx.protocol_version != MODERN or IDENTIFIER not in ((declared and declared.extensions) or {}):
            return await call_next(ctx)
        begun = await self._runs.begin(params, ctx)
        if not isinstance(begun, str):
            return await call_next(ctx) if begun is None else begun
        return {"resultType": "task", **_task(await self._runs.stands(begun, ctx))}

    async def _get(self, ctx: Request, params: TaskParams) -> HandlerResult:
        with _of_task(ctx, params):
            standing = await self._runs.stands(params.task_id, ctx)
            task = {"resultType": "complete", **_task(standing)}
            if standing.status == "completed":
                task["result"] = {"resultType": "complete", **_json(standing.result)}
            elif standing.status == "input_required":
                task["inputRequests"] = {key: _json(request) for key, request in requests(standing.wanted).items()}
            return task

    async def _update(self, ctx: Request, params: UpdateParams) -> HandlerResult:
        with _of_task(ctx, params):
            responses = {key: response(value) for key, value in (params.input_responses or {}).items()}
            await self._runs.answered(params.task_id, responses, ctx)
        return {"resultType": "complete"}

    async def _cancel(self, ctx: Request, params: TaskParams) -> HandlerResult:
        with _of_task(ctx, params):
            await self._runs.stop(params.task_id)
        return {"resultType": "complete"}


def _task(standing: Standing) -> dict[str, Any]:
    """What every answer about a task has. It is kept as long as its run: without an end of its own."""
    row = standing.row
    return {
        "taskId": row.id,
        "status": standing.status,
        "createdAt": _time(row.created),
        "lastUpdatedAt": _time(row.updated),
        "ttlMs": None,
        "pollIntervalMs": POLL_MS,
    }


def _json(model: Any) -> dict[str, Any]:
    shown: dict[str, Any] = model.model_dump(by_alias=True, mode="json", exclude_none=True)
    return shown


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


@contextlib.contextmanager
def _of_task(ctx: Request, params: TaskParams) -> Iterator[None]:
    """What a request about a task has to be, and its errors as the protocol has them.

    Raises:
        MCPError: The client does not declare the extension, or, over HTTP, the header by which balancers choose an
            instance names another task.
    """
    require_client_extension(ctx, IDENTIFIER)
    headers = getattr(ctx.request, "headers", None)
    if headers is not None and decode_header_value(headers.get(MCP_NAME_HEADER)) != params.task_id:
        wrong = f"the header {MCP_NAME_HEADER} must be there, and be the taskId of the request"
        raise MCPError(code=HEADER_MISMATCH, message=wrong)
    try:
        yield
    except LlmDoError as error:
        raise MCPError(code=INVALID_PARAMS, message=str(error)) from None
