"""The tasks extension: a call of a worker returns at once, and its client asks how it stands whenever it likes.

A task is a run, under another name: it has the run's id, is kept where runs are kept, and can be asked about after a
restart or on another instance. Where a call would return before its run has ended, since its client cannot ask or did
not answer in time, so does a task, in the same words; when somebody has answered elsewhere, the task has the result
that the run came to. Clients that do not declare the extension, and those of the handshake revisions, call
workers as ever.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver.server import require_client_extension
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ElicitRequest,
    ElicitResult,
    RequestParams,
)
from pydantic import ValidationError

from llm_do_mcp.errors import LlmDoError
from llm_do_mcp.runtime.question import Question
from llm_do_mcp.runtime.store import RunRow
from llm_do_mcp.serving.asking import form
from llm_do_mcp.serving.connection import MODERN

IDENTIFIER = "io.modelcontextprotocol/tasks"
POLL_MS = 500
Request = ServerRequestContext[Any, Any]


class TaskParams(RequestParams):
    """Which task."""

    task_id: str


class UpdateParams(TaskParams):
    """Answers for a task: key → what a person answered."""

    input_responses: dict[str, Any] | None = None


class Runs(Protocol):
    """What a server does with the runs that are tasks. Each raises `LlmDoError` for a run that is not the caller's."""

    async def begin(self, params: CallToolRequestParams, request: Request) -> str | CallToolResult | None:
        """Begin a worker's run: its id, or what is wrong with the call; None for a tool that is no worker."""

    async def stands(self, run: str, request: Request) -> tuple[RunRow, CallToolResult | Sequence[Question] | None]:
        """How a run stands: what its call would say now, the questions that this client can answer, or nothing yet."""

    async def answered(self, run: str, responses: Mapping[str, Any], request: Request) -> None:
        """Pass on answers."""

    async def stop(self, run: str) -> None:
        """Stop a run and all below it."""


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
        begun = None if params.request_state is not None else await self._runs.begin(params, ctx)
        if not isinstance(begun, str):
            return await call_next(ctx) if begun is None else begun
        return {"resultType": "task", **await self._described(begun, ctx)}

    async def _get(self, ctx: Request, params: TaskParams) -> HandlerResult:
        require_client_extension(ctx, IDENTIFIER)
        with _refusing():
            return {"resultType": "complete", **await self._described(params.task_id, ctx)}

    async def _update(self, ctx: Request, params: UpdateParams) -> HandlerResult:
        require_client_extension(ctx, IDENTIFIER)
        with _refusing():
            responses = {key: _response(value) for key, value in (params.input_responses or {}).items()}
            await self._runs.answered(params.task_id, responses, ctx)
        return {"resultType": "complete"}

    async def _cancel(self, ctx: Request, params: TaskParams) -> HandlerResult:
        require_client_extension(ctx, IDENTIFIER)
        with _refusing():
            await self._runs.stop(params.task_id)
        return {"resultType": "complete"}

    async def _described(self, run: str, ctx: Request) -> dict[str, Any]:
        row, standing = await self._runs.stands(run, ctx)
        task: dict[str, Any] = {
            "taskId": run,
            "createdAt": _time(row.created),
            "lastUpdatedAt": _time(row.updated),
            "ttlMs": None,
            "pollIntervalMs": POLL_MS,
        }
        if isinstance(standing, CallToolResult):
            if row.status == "cancelled":
                return {**task, "status": "cancelled"}
            result = standing.model_dump(by_alias=True, mode="json", exclude_none=True)
            return {**task, "status": "completed", "result": {"resultType": "complete", **result}}
        if standing is None:
            return {**task, "status": "working"}
        asked = {question.key: ElicitRequest(params=form(question)) for question in standing}
        requests = {key: one.model_dump(by_alias=True, mode="json", exclude_none=True) for key, one in asked.items()}
        return {**task, "status": "input_required", "inputRequests": requests}


def _response(value: Any) -> Any:
    """An answer, or what came in place of one: that approves nothing."""
    try:
        return ElicitResult.model_validate(value)
    except ValidationError:
        return value


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


@contextlib.contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except LlmDoError as error:
        raise MCPError(code=INVALID_PARAMS, message=str(error)) from None
