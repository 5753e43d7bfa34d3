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
import os
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
from mcp.server.mcpserver import Context, MCPServer, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolResult,
    ElicitRequest,
    ElicitRequestParams,
    ElicitResult,
    InputRequiredResult,
    TextContent,
    Tool,
    ToolAnnotations,
)

from llm_do_mcp.errors import InvalidInput, LlmDoError, RunError
from llm_do_mcp.project.load import Project
from llm_do_mcp.runtime.approvals import Approvals
from llm_do_mcp.runtime.display import cut, escape
from llm_do_mcp.runtime.engine import ANSWERS_EVERY_S, GATHER_S, Asks, Done, Engine
from llm_do_mcp.runtime.hint import of_project
from llm_do_mcp.runtime.question import Answer, Question
from llm_do_mcp.runtime.redact import guard_log, redactor
from llm_do_mcp.runtime.state import request_state_key, state_folder
from llm_do_mcp.serving.asking import BY_TOOL, NOTE_CHARS, answer_from, can_answer_forms, form, opens_addresses, silence
from llm_do_mcp.serving.connection import MODERN, connection_of
from llm_do_mcp.serving.dialogs import Dialogs
from llm_do_mcp.serving.hosts import call_within
from llm_do_mcp.serving.joining import HandedOver
from llm_do_mcp.serving.nobody import Nobody, WhenNobody, usual
from llm_do_mcp.serving.page.server import Browse
from llm_do_mcp.serving.present import Present
from llm_do_mcp.serving.progress import Progress
from llm_do_mcp.serving.results import ACCOUNT, failure, handed_over, result_of, too_many_rounds, waits_for_person
from llm_do_mcp.serving.state import LazyCodec
from llm_do_mcp.serving.stdio import ends_in_time, hardened_stdio, interrupts
from llm_do_mcp.serving.surface import RUN_APPROVE, RUN_CANCEL, RUN_WAIT, Published, publish
from llm_do_mcp.toolsets.envelope import Sessions
from llm_do_mcp.toolsets.workbench import Workbench

ROUNDS = 9
"""Rounds of one call: one below the number at which SDK clients give up."""
STATE_TTL_S = 7 * 24 * 3600.0
ANSWER_WITHIN_S = 45.0
"""After this a question is taken as one that nobody answers: below the call's own time."""
PAGE = "approval-page"
"""The key of an invitation to the approval page among the requests of a round."""
KEY = "llm-do/key"
"""Where in a request's `_meta` a caller may name its run."""


class ProjectServer(MCPServer[None]):
    """Serves one project.

    Args:
        project: What is served. Its files are followed: each list and each call that begins is of what they are then.
        state_dir: Where its runs are kept; None for the usual place.
        model: `--model`, for the entry worker.
        call_within: Seconds after which a call hands its run over; None for what its client is known to wait.
        answer_within: Seconds that a question waits for the client's answer.
        when_nobody_can_answer: What becomes of questions that the client cannot put, or left without an answer;
            None for `deny` in CI and `pause` elsewhere.
        approve_tool: Publish `run_approve`, for hosts that ask their own user before every call.
        approvals: `--approvals`: what is settled without the client.
        browse: Opens an address in the browser of this machine's person; None where there is none.
    """

    def __init__(
        self,
        project: Project,
        *,
        state_dir: str | None = None,
        model: str | None = None,
        call_within: float | None = None,
        answer_within: float = ANSWER_WITHIN_S,
        when_nobody_can_answer: WhenNobody | None = None,
        approve_tool: bool = False,
        approvals: Approvals | None = None,
        browse: Browse | None = None,
    ) -> None:
        from llm_do_mcp import __version__

        self.approvals = approvals or Approvals()
        folder = state_folder(Path(project.root), state_dir)
        self.engine = Engine(folder, lambda run: self.bench.body(run), hint=of_project(project, state_dir))
        self._approve_tool = approve_tool
        self._present = Present(Workbench(project, model=model, approvals=self.approvals), self._publish)
        self._followed: dict[str, Published] = {}
        self.call_within = call_within
        self.answer_within = answer_within
        self._nobody = Nobody(self.engine, when_nobody_can_answer or usual(), browse)
        self._dialogs = Dialogs(self.engine, answer_within, self._nobody)
        self._handed = HandedOver(self.engine.drives)
        self._sessions = Sessions()
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

    @property
    def bench(self) -> Workbench:
        """What makes the runs that begin now."""
        return self._present.bench

    @property
    def project(self) -> Project:
        """The project, as it was when somebody last listed or called something."""
        return self.bench.project

    @property
    def tools(self) -> Mapping[str, Published]:
        """What it publishes, by name."""
        return self._present.tools

    # ---- the SDK's seams

    async def list_tools(self) -> list[Tool]:
        """The tools that are published now."""
        await self._present.look()
        return [_tool(published) for published in self.tools.values()]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[None, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a published tool.

        Raises:
            MCPError: There is no such tool.
        """
        began = time.monotonic()
        try:
            published = await self._called(name, context)
            if published is None or context is None:
                unknown = f"unknown tool {cut(escape(name), 80)!r}; tools/list names those there are"
                raise MCPError(code=INVALID_PARAMS, message=unknown)
            if published.name == RUN_CANCEL:
                return await self._cancel(published, arguments)
            if published.name == RUN_APPROVE:
                return await self._approve(published, arguments)
            run, round_ = await self._run_for(published, arguments, context)
            result = await self._follow(run, round_, published, context, began)
            if not isinstance(result, CallToolResult):
                self._followed[run] = published
                return result
            self._followed = {other: begun for other, begun in self._followed.items() if self.engine.drives(other)}
            if self.engine.drives(run):
                self._handed.add(run, connection_of(context), name, arguments)
            return result
        except LlmDoError as error:
            return failure(self.engine.redact.text(str(error)))

    async def run_stdio_async(self) -> None:
        """Serve over stdio, hardened, and let go of everything at the end of input."""
        guard_log(lambda: self.engine.redact)
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
            except* ConnectionError:
                pass  # a client that no longer reads is gone, as one whose input has ended
            finally:
                await self.aclose()

    async def aclose(self) -> None:
        """Let go of all runs (what had not ended stays resumable), models and child processes."""
        self._ending = True
        await self._nobody.aclose()
        await self.engine.aclose(self.bench.kill)
        await self.bench.aclose()

    # ---- calls

    def _publish(self, bench: Workbench) -> Mapping[str, Published]:
        """The tools of the project as it is now; what is recorded from now on is redacted as it says."""
        redact = redactor(os.environ, bench.project.manifest)
        tools = publish(bench, approve_tool=self._approve_tool)
        self.engine.redact = redact
        return tools

    async def _called(self, name: str, context: Context[None, Any] | None) -> Published | None:
        """The tool that a call is about, as it is now, or as it was when its run began; None where there is none.

        Raises:
            LlmDoError: It cannot be called until somebody mends a file.
        """
        state = context.request_state if context is not None and context.protocol_version == MODERN else None
        if state is not None and (begun := self._followed.get(json.loads(state)["run"])) is not None:
            return begun
        await self._present.look()
        published = self.tools.get(name)
        if published is None and name in self.project.exports:
            self.project.worker(self.project.exports[name])  # a broken one, which says what is wrong with it
        begins = state is None and published is not None and published.declaration is not None
        if begins and (wrong := self._present.wrong) is not None:
            raise wrong.with_traceback(None)
        return published

    async def _run_for(
        self, published: Published, arguments: dict[str, Any], context: Context[None, Any]
    ) -> tuple[str, int]:
        """The run that a call is about (a new one, the one it goes on with, the one it asks for), and the round.

        Raises:
            LlmDoError: The arguments do not fit, or the run cannot be begun.
        """
        if context.protocol_version == MODERN and context.request_state is not None:
            state = json.loads(context.request_state)
            await self._answered(state["run"], context.input_responses or {}, context)
            return state["run"], state["round"]
        _fits(published, arguments)
        if published.name == RUN_WAIT:
            await self.engine.take_over(arguments["run_id"])  # here already, that its progress is told
            return arguments["run_id"], 0
        if (joined := self._handed.find(connection_of(context), published.name, arguments)) is not None:
            return joined, 0
        assert published.declaration is not None
        declaration = published.declaration
        if declaration.toolset == "te":
            client = context.session.client_params
            name = None if client is None else client.client_info.name
            declaration = self._sessions.asked(declaration, name, connection_of(context))
        value, unattended = published.to_input(arguments), self._nobody.denies and not self._can_ask(context)
        definition = self.bench.define_call(declaration, value, published.rules, unattended=unattended)
        meta: Mapping[str, Any] = context.request_context.meta or {}
        if (key := meta.get(KEY)) is None:
            return await self.engine.start(published.subject, definition), 0
        if not isinstance(key, str) or not key:
            shown = cut(escape(json.dumps(key)), 80)
            raise InvalidInput(f"{published.name}: {KEY} in _meta must be a text that is not empty, not {shown}")
        run = await self.engine.start(published.subject, definition, key=key)
        begun = await self.engine.definition(run)
        if begun is not None and (begun.name, begun.input) != (definition.name, definition.input):
            raise InvalidInput(f"{published.name}: the key {cut(escape(key), 80)!r} was given for another call")
        return run, 0

    async def _answered(self, run: str, responses: Mapping[str, Any], context: Context[None, Any]) -> None:
        """Pass on the answers that a 2026-07-28 client brings; one that comes too late is noted with its question."""
        with contextlib.suppress(RunError):  # what has ended, or lives elsewhere, is told when it is followed
            await self.engine.resume(run)
        for key, response in responses.items():
            understood = isinstance(response, ElicitResult)
            if key == PAGE and understood and response.action == "accept":
                self._nobody.invited(run)
            if (question := await self.engine.asked(run, key)) is not None:
                self._nobody.heard(context)
                answer = answer_from(question, response) if understood else silence("malformed")
                await self.engine.answer(run, key, answer)
                await self._nobody.undecided(run, question, answer, context)

    async def _settled(self, run: str, asked: Asks) -> bool:
        """Answer what `--approvals` has an answer for; whether there was any."""
        answers = [(question, self.approvals.answer(question)) for question in asked.questions]
        for question, answer in answers:
            if answer is not None:
                await self.engine.answer(run, question.key, answer)
        return any(answer is not None for _, answer in answers)

    async def _cancel(self, published: Published, arguments: dict[str, Any]) -> CallToolResult:
        _fits(published, arguments)
        await self.engine.cancel(arguments["run_id"], "cancelled with run_cancel")
        done = await self.engine.outcome(arguments["run_id"])
        return CallToolResult(content=[TextContent(type="text", text=done.error)], _meta={ACCOUNT: done.account})

    async def _approve(self, published: Published, arguments: dict[str, Any]) -> CallToolResult:
        """An answer that comes through the calling model, of a host that asks its user before every call."""
        _fits(published, arguments)
        run, question = arguments["run_id"], await self.engine.asked(arguments["run_id"], arguments["question"])
        if question is None:
            raise RunError(f"run {cut(escape(run), 40)} has no such question; call run_wait to see those it has")
        if arguments["decision"] not in question.decisions:
            raise InvalidInput(f"{published.name}: decision must be one of {', '.join(question.decisions)}")
        answer = Answer(arguments["decision"], note=arguments.get("note", "")[:NOTE_CHARS], by=BY_TOOL)
        first = await self.engine.answer(run, question.key, answer)
        said = "taken" if first else "too late: the question was settled already"
        return CallToolResult(content=[TextContent(type="text", text=f"{said}; call run_wait for the result")])

    async def _follow(
        self, run: str, round_: int, published: Published, context: Context[None, Any], began: float
    ) -> CallToolResult | InputRequiredResult:
        """Carry questions and answers until the run has ended or the caller's clock runs out."""
        try:
            async with Progress(context).of(self.engine, run):
                return await self._carry(run, round_, published, context, began)
        except anyio.get_cancelled_exc_class():
            # A run that was handed over does not end with a call that waits for it, nor any with the input.
            if not self._ending and published.name != RUN_WAIT and run not in self._handed:
                with anyio.CancelScope(shield=True), contextlib.suppress(RunError):
                    await self.engine.cancel(run, "cancelled by the client")
            raise

    async def _carry(
        self, run: str, round_: int, published: Published, context: Context[None, Any], began: float
    ) -> CallToolResult | InputRequiredResult:
        if (told := await self._elsewhere(run, context, began)) is not None:
            return told
        modern = context.protocol_version == MODERN
        offered: set[str] = set()
        # Who waits for a run, or has gone to the approval page, waits for the person too.
        patient = published.name == RUN_WAIT or (round_ > 0 and self._nobody.shown(run) == "client")
        seen = _Seen(self._dialogs, run, offered)
        while True:
            within = self._within(context)
            left = max(within - (time.monotonic() - began), 0.0)
            gathers = (modern or not self._can_ask(context)) and self.approvals.mode == "ask"
            gather = GATHER_S if gathers else 0.0
            event = await self.engine.advance(run, seen=seen, gather=gather, timeout=left)
            if isinstance(event, Done):
                return _result(event, published)
            if not isinstance(event, Asks):
                return self._unfinished(run, offered, within)
            if await self._settled(run, event):
                continue
            if not self._can_ask(context):
                if not await self._nobody.answers(run, event.questions, "cannot_ask", context):
                    continue
                offered.update(question.key for question in event.questions)
                # A round holds the call up until it is answered: none for a client that shows nothing.
                opens = opens_addresses(context.client_capabilities) and not self._nobody.is_silent(context)
                if modern and opens and (invitation := await self._nobody.invitation(run)) is not None:
                    return self._round(run, round_, {PAGE: invitation})
                if not patient:
                    return self._unfinished(run, offered, within)
            elif not modern:
                for question in event.questions:
                    self._dialogs.put(run, question, context)
            elif round_ >= ROUNDS:
                return too_many_rounds(self.engine.so_far(run), len(event.questions))
            else:
                # The person answers them one after the other before any of the answers comes back.
                patience = self.answer_within * len(event.questions)
                self._nobody.later(run, event.questions, patience, context)
                return self._round(run, round_, {question.key: form(question) for question in event.questions})

    async def _elsewhere(self, run: str, context: Context[None, Any], began: float) -> CallToolResult | None:
        """Wait for a run that another process drives, until it has ended or goes on here, since that process is gone.

        Returns:
            What to tell a caller whose clock runs out before; else None.
        """
        while not await self.engine.take_over(run):
            if time.monotonic() - began < (within := self._within(context)):
                await anyio.sleep(ANSWERS_EVERY_S)
                continue
            account = await self.engine.recorded(run)
            waiting = [each.question for each in await self.engine.waiting() if each.run == run]
            return self._waits(account, waiting) if waiting else handed_over(account, within, ())
        return None

    @staticmethod
    def _round(run: str, round_: int, requests: Mapping[str, ElicitRequestParams]) -> InputRequiredResult:
        return InputRequiredResult(
            input_requests={key: ElicitRequest(params=params) for key, params in requests.items()},
            request_state=json.dumps({"run": run, "round": round_ + 1}),
        )

    def _can_ask(self, context: Context[None, Any]) -> bool:
        """Whether this client shows forms to its person, as far as it says and has shown so far."""
        if not can_answer_forms(context.client_capabilities) or self._nobody.is_silent(context):
            return False
        if context.protocol_version == MODERN:
            return True
        return bool(context.session.can_send_request)

    def _within(self, context: Context[None, Any]) -> float:
        """Seconds after which a call of this client hands its run over."""
        if self.call_within is not None:
            return self.call_within
        client = context.session.client_params
        asked_for_progress = (context.request_context.meta or {}).get("progress_token") is not None
        return call_within(None if client is None else client.client_info.name, progress=asked_for_progress)

    def _unfinished(self, run: str, offered: Collection[str], within: float) -> CallToolResult:
        """What a call says that returns before its run has ended."""
        account = self.engine.so_far(run)
        waiting = [question for question in self.engine.questions(run) if question.key in offered]
        if not waiting:
            return handed_over(account, within, self.engine.questions(run))
        return self._waits(account, waiting)

    def _waits(self, account: Mapping[str, Any], questions: Sequence[Question]) -> CallToolResult:
        run = account["id"]
        by_tool, how = RUN_APPROVE in self.tools, self.engine.hint("approve", run)
        return waits_for_person(account, questions, page=self._nobody.shown(run), how=how, by_tool=by_tool)


@dataclasses.dataclass(frozen=True)
class _Seen:
    """The questions that a call need not be told of: now, not when it began to wait."""

    dialogs: Dialogs
    run: str
    offered: Collection[str]

    def __contains__(self, key: object) -> bool:
        return key in self.dialogs.of(self.run) or key in self.offered


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
    for library in project.libraries.values():
        if library.python:
            python = ", ".join(library.python)
            lines.append(f"Python of the library {library.spec}: {python} (sha256 {library.python_hash[:12]})")
    lines += [f"Not served, because of an error in its file: {error}" for error in project.broken]
    return "\n".join(lines)
