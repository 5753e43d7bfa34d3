"""A project as an MCP server.

Runs belong to the server: a call starts one, carries its questions to the client and its result back, and may hand it
over when the caller's clock runs out. Both protocol eras are the same loop over `Engine.advance`:

- handshake era: each new question is an `elicitation/create` in the middle of the call;
- 2026-07-28: the open questions are an `InputRequiredResult`, and the call is made again with the answers. Its sealed
  state is the run's id and the number of the round.

The SDK's server class is subclassed at its public seams (`list_tools`, `call_tool`, `run_stdio_async`), so `mcp run`
and `mcp dev` serve exactly what `llm-do-mcp` does.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
from mcp.server.mcpserver import Context, MCPServer, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolResult,
    ElicitRequest,
    ElicitResult,
    InputRequiredResult,
    TextContent,
    Tool,
    ToolAnnotations,
)

from llm_do_mcp.errors import InvalidInput, LlmDoError, RunError
from llm_do_mcp.project.load import Project
from llm_do_mcp.runtime.display import cut, escape
from llm_do_mcp.runtime.engine import GATHER_S, Asks, Done, Engine
from llm_do_mcp.runtime.state import request_state_key, state_folder
from llm_do_mcp.serving.asking import answer_from, can_answer_forms, form, silence
from llm_do_mcp.serving.dialogs import Dialogs
from llm_do_mcp.serving.progress import Progress
from llm_do_mcp.serving.results import ACCOUNT, failure, handed_over, result_of, too_many_rounds
from llm_do_mcp.serving.state import LazyCodec
from llm_do_mcp.serving.stdio import ends_in_time, hardened_stdio, interrupts
from llm_do_mcp.serving.surface import RUN_CANCEL, RUN_WAIT, Published, publish
from llm_do_mcp.toolsets.workbench import Workbench

MODERN = "2026-07-28"
ROUNDS = 9
"""Rounds of one call: one below the number at which SDK clients give up."""
STATE_TTL_S = 7 * 24 * 3600.0
CALL_WITHIN_S = 48.0
"""After this a call hands over: known clients give up at 60 s."""
KEY = "llm-do/key"
"""Where in a request's `_meta` a caller may name its run."""


class ProjectServer(MCPServer[None]):
    """Serves one project.

    Args:
        project: What is served.
        state_dir: Where its runs are kept; None for the usual place.
        model: `--model`, for the entry worker.
        call_within: Seconds after which a call hands its run over.
    """

    def __init__(
        self,
        project: Project,
        *,
        state_dir: str | None = None,
        model: str | None = None,
        call_within: float = CALL_WITHIN_S,
    ) -> None:
        from llm_do_mcp import __version__

        self.project = project
        self.bench = Workbench(project, model=model)
        self.tools = publish(self.bench)
        folder = state_folder(Path(project.root), state_dir)
        self.engine = Engine(folder, self.bench.body)
        self.call_within = call_within
        self._dialogs = Dialogs(self.engine)
        self._ending = False
        super().__init__(
            project.name,
            version=__version__,
            instructions=_instructions(project),
            request_state_security=RequestStateSecurity(
                codec=LazyCodec(lambda: request_state_key(folder)), ttl=STATE_TTL_S
            ),
            log_level="WARNING",
        )

    # ---- the SDK's seams

    async def list_tools(self) -> list[Tool]:
        """The published tools."""
        return [_tool(published) for published in self.tools.values()]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[None, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a published tool.

        Raises:
            MCPError: There is no such tool.
        """
        published = self.tools.get(name)
        if published is None or context is None:
            unknown = cut(escape(name), 80)
            raise MCPError(code=INVALID_PARAMS, message=f"unknown tool {unknown!r}; tools/list names those there are")
        began = time.monotonic()
        try:
            if published.name == RUN_CANCEL:
                return await self._cancel(published, arguments)
            run, round_ = await self._run_for(published, arguments, context)
            return await self._follow(run, round_, published, context, began)
        except LlmDoError as error:
            return failure(str(error))

    async def run_stdio_async(self) -> None:
        """Serve over stdio, hardened, and let go of everything at the end of input."""
        with ends_in_time() as clock:

            def at_end() -> None:
                if not self._ending:
                    self._ending = True
                    clock.start()

            try:
                with interrupts(at_end):
                    async with hardened_stdio(at_end) as (read, write):
                        options = self._lowlevel_server.create_initialization_options()
                        await self._lowlevel_server.run(read, write, options)
            finally:
                await self.aclose()

    async def aclose(self) -> None:
        """Let go of all runs (what had not ended stays resumable), models and child processes."""
        self._ending = True
        await self.engine.aclose()
        await self.bench.aclose()

    # ---- calls

    async def _run_for(
        self, published: Published, arguments: dict[str, Any], context: Context[None, Any]
    ) -> tuple[str, int]:
        """The run that a call is about (a new one, the one it goes on with, the one it asks for), and the round.

        Raises:
            LlmDoError: The arguments do not fit, or the run cannot be begun.
        """
        if context.protocol_version == MODERN and context.request_state is not None:
            state = json.loads(context.request_state)
            await self._answered(state["run"], context.input_responses or {})
            return state["run"], state["round"]
        _fits(published, arguments)
        if published.name == RUN_WAIT:
            return arguments["run_id"], 0
        assert published.declaration is not None
        definition = self.bench.define_call(published.declaration, published.to_input(arguments), published.rules)
        meta: Mapping[str, Any] = context.request_context.meta or {}
        key = meta.get(KEY)
        if not isinstance(key, str):
            return await self.engine.start(published.subject, definition), 0
        run = await self.engine.start(published.subject, definition, key=key)
        begun = await self.engine.definition(run)
        if begun is not None and (begun.name, begun.input) != (definition.name, definition.input):
            raise InvalidInput(f"{published.name}: the key {cut(escape(key), 80)!r} was given for another call")
        return run, 0

    async def _answered(self, run: str, responses: Mapping[str, Any]) -> None:
        """Pass on the answers that a 2026-07-28 client brings; what is not open any more takes none."""
        with contextlib.suppress(RunError):  # what has ended, or lives elsewhere, is told when it is followed
            await self.engine.resume(run)
        for key, response in responses.items():
            question = self.engine.question(run, key)
            if question is not None:
                understood = isinstance(response, ElicitResult)
                answer = answer_from(question, response) if understood else silence("malformed")
                await self.engine.answer(run, key, answer)

    async def _cancel(self, published: Published, arguments: dict[str, Any]) -> CallToolResult:
        _fits(published, arguments)
        await self.engine.cancel(arguments["run_id"], "cancelled with run_cancel")
        done = await self.engine.outcome(arguments["run_id"])
        return CallToolResult(content=[TextContent(type="text", text=done.error)], _meta={ACCOUNT: done.account})

    async def _follow(
        self, run: str, round_: int, published: Published, context: Context[None, Any], began: float
    ) -> CallToolResult | InputRequiredResult:
        """Carry questions and answers until the run has ended or the caller's clock runs out."""
        try:
            async with Progress(context).of(self.engine, run):
                return await self._carry(run, round_, published, context, began)
        except anyio.get_cancelled_exc_class():
            # A run that was handed over does not end with a call that waits for it, nor any with the input.
            if not self._ending and published.name != RUN_WAIT:
                with anyio.CancelScope(shield=True), contextlib.suppress(RunError):
                    await self.engine.cancel(run, "cancelled by the client")
            raise

    async def _carry(
        self, run: str, round_: int, published: Published, context: Context[None, Any], began: float
    ) -> CallToolResult | InputRequiredResult:
        modern = context.protocol_version == MODERN
        can_ask = can_answer_forms(context.client_capabilities) and (modern or context.session.can_send_request)
        while True:
            left = max(self.call_within - (time.monotonic() - began), 0.0)
            gather = GATHER_S if modern and can_ask else 0.0
            event = await self.engine.advance(run, seen=self._dialogs.of(run), gather=gather, timeout=left)
            if isinstance(event, Done):
                return _result(event, published)
            if not isinstance(event, Asks):
                return handed_over(self.engine.so_far(run), self.call_within)
            if not can_ask:
                for question in event.questions:
                    await self.engine.answer(run, question.key, silence("cannot_ask"))
            elif not modern:
                for question in event.questions:
                    self._dialogs.put(run, question, context.session)
            elif round_ >= ROUNDS:
                return too_many_rounds(self.engine.so_far(run), len(event.questions))
            else:
                return InputRequiredResult(
                    input_requests={q.key: ElicitRequest(params=form(q)) for q in event.questions},
                    request_state=json.dumps({"run": run, "round": round_ + 1}),
                )


def _fits(published: Published, arguments: dict[str, Any]) -> None:
    from llm_do_mcp.runtime.schema import problem

    if (wrong := problem(published.input_schema, arguments)) is not None:
        raise InvalidInput(f"{published.name}: {wrong}")


def _result(done: Done, published: Published) -> CallToolResult:
    if published.name == RUN_WAIT:
        return result_of(done, structured=isinstance(done.output, dict), for_people=True)
    if done.status == "done":
        done = dataclasses.replace(done, output=published.to_output(done.output))
    return result_of(done, structured=published.output_schema is not None, for_people=published.is_worker)


def _tool(published: Published) -> Tool:
    return Tool(
        name=published.name,
        description=published.description,
        input_schema=dict(published.input_schema),
        output_schema=None if published.output_schema is None else dict(published.output_schema),
        annotations=ToolAnnotations(
            read_only_hint=published.read_only,
            destructive_hint=not published.read_only,
            idempotent_hint=published.idempotent,
            open_world_hint=published.open_world,
        ),
    )


def _instructions(project: Project) -> str:
    lines = [project.manifest.description or f"Workers of the project {project.name}, called like functions."]
    lines += [f"Not served, because of an error in its file: {error}" for error in project.broken]
    return "\n".join(lines)
