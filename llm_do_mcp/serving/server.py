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
import re
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    Completion,
    CompletionArgument,
    ElicitRequestParams,
    ElicitResult,
    GetPromptResult,
    InputRequiredResult,
    Prompt,
    Resource,
    ResourceTemplate,
    TextContent,
    Tool,
    ToolAnnotations,
)
from pydantic import AnyUrl

from llm_do_mcp.errors import InvalidInput, LlmDoError, Refused, RunError
from llm_do_mcp.project.load import Project
from llm_do_mcp.runtime.approvals import Approvals
from llm_do_mcp.runtime.display import cut, escape
from llm_do_mcp.runtime.engine import ANSWERS_EVERY_S, GATHER_S, Asks, Done, Engine, Working
from llm_do_mcp.runtime.hint import of_project, plain
from llm_do_mcp.runtime.question import Answer, Question
from llm_do_mcp.runtime.redact import guard_log, redactor
from llm_do_mcp.runtime.state import state_folder
from llm_do_mcp.runtime.store import OPEN
from llm_do_mcp.serving.asking import BY_TOOL, NOTE_CHARS, answer_from, can_answer_forms, form, opens_addresses, silence
from llm_do_mcp.serving.caller import caller
from llm_do_mcp.serving.connection import MODERN, connection_of, name_of_client
from llm_do_mcp.serving.dialogs import Dialogs
from llm_do_mcp.serving.hardened import HardenedServer
from llm_do_mcp.serving.hosts import call_within
from llm_do_mcp.serving.joining import HandedOver
from llm_do_mcp.serving.names import Names
from llm_do_mcp.serving.nobody import Nobody, WhenNobody, usual
from llm_do_mcp.serving.page.server import Browse
from llm_do_mcp.serving.present import Present
from llm_do_mcp.serving.progress import Progress
from llm_do_mcp.serving.reading import Reading, Reference
from llm_do_mcp.serving.results import (
    ACCOUNT,
    WHOLE_CHARS,
    ending,
    failure,
    handed_over,
    result_of,
    too_many_rounds,
    waits_for_person,
)
from llm_do_mcp.serving.rounds import State, Wanted, requests
from llm_do_mcp.serving.sampling import Sampling
from llm_do_mcp.serving.state import LazyCodec
from llm_do_mcp.serving.surface import RUN_APPROVE, RUN_CANCEL, RUN_WAIT, Published, publish
from llm_do_mcp.serving.tasks import Request, Standing, Tasks
from llm_do_mcp.serving.watch import Watch
from llm_do_mcp.toolhost.results import clean
from llm_do_mcp.toolsets.envelope import Sessions
from llm_do_mcp.toolsets.workbench import Workbench

ROUNDS = 9
"""Rounds of one call: one below the number at which SDK clients give up."""
ANSWER_WITHIN_S = 45.0
"""After this a question is taken as one that nobody answers: below the call's own time."""
AT_ONCE = 4
"""Questions of one round for each of which that time counts; more do not make a silent client wait longer."""
PAGE = "approval-page"
"""The key of an invitation to the approval page among the requests of a round."""
TRACE = re.compile(r"llm-do://runs/([0-9a-f]+)(/.*)?")
"""Addresses of traces."""
LINKS_SINCE = "2025-06-18"
"""The first revision whose results can hold links to resources."""
SIZE = "anthropic/maxResultSizeChars"
"""Where in a tool's `_meta` one host looks for how long results may be before it puts them into a file."""
KEY = "llm-do/key"
"""Where in a request's `_meta` a caller may name its run."""


class ProjectServer(HardenedServer):
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
        remote: Its callers say who they are, and have neither a terminal nor a browser here: what they read names no
            place of this machine.
        beside: The names of the projects that are served together with it, so that those of its tools begin with its
            own; None where it is served alone.

    Raises:
        ProjectError: It cannot be published.
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
        remote: bool = False,
        beside: Names | None = None,
    ) -> None:
        self.approvals = approvals or Approvals()
        folder = state_folder(Path(project.root), state_dir)
        hint = plain if remote else of_project(project, state_dir)
        self.engine = Engine(folder, lambda run: self.bench.body(run), hint=hint)
        self._approve_tool, self._names = approve_tool, beside
        together = beside is not None
        bench = Workbench(project, model=model, approvals=self.approvals)
        self._present = Present(bench, self._publish, beside=together)
        self.reading = Reading(self.engine, self._present, self.traced, beside=together)
        self._followed: dict[str, Published] = {}
        self._followers: Counter[str] = Counter()
        self._in_flight: set[anyio.CancelScope] = set()
        self.call_within = call_within
        self.answer_within = answer_within
        self._nobody = Nobody(self.engine, when_nobody_can_answer or usual(), browse)
        self._dialogs = Dialogs(self.engine, answer_within, self._nobody)
        self._sampling = Sampling(self.engine)
        self._handed = HandedOver(self.engine)
        self._sessions = Sessions(os.path.realpath(folder))
        self._ending = self._ended = False
        self._watch = Watch()
        self.codec = LazyCodec(folder)
        super().__init__(project.name, instructions(self.bench), self.codec, None if together else Tasks(self))

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

    def offers(self, name: str) -> bool:
        """Whether a tool of this name is, or would be but for an error in its worker, published."""
        return self._present.offers(name)

    def lasts(self, tool: str) -> bool:
        """Whether calls of a tool may take as long as a worker does, or a person who is asked."""
        return (published := self.tools.get(tool)) is not None and published.lasts

    def just_reads(self, tool: str) -> bool:
        """Whether calls of a tool read one file and ask nobody."""
        return (published := self.tools.get(tool)) is not None and published.just_reads

    async def list_tools(self) -> list[Tool]:
        """The tools that are published now, as far as the caller may call them."""
        await self._present.look()
        return [_tool(published) for published in self.tools.values() if caller().may(published.scope)]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[None, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a published tool.

        Raises:
            MCPError: There is no such tool.
        """
        began = time.monotonic()
        try:
            state = State.of(context)
            published = await self._called(name, state)
            if published is None or context is None:
                unknown = f"unknown tool {cut(escape(name), 80)!r}; tools/list names those there are"
                raise MCPError(code=INVALID_PARAMS, message=unknown)
            self._need(published)
            if published.name == RUN_CANCEL:
                return await self._cancel(published, arguments)
            if published.name == RUN_APPROVE:
                return await self._approve(published, arguments)
            run, round_ = await self._run_for(published, arguments, context, state)
            if published.name == RUN_WAIT:
                offset = arguments.get("offset")
                published = dataclasses.replace(published, offset=None if offset is None else int(offset))
            result = await self._follow(run, round_, published, context, began)
            if not isinstance(result, CallToolResult):
                self._followed[run] = published
                return result
            self._followed = {other: begun for other, begun in self._followed.items() if self.engine.drives(other)}
            if self.engine.drives(run):
                await self._handed.add(run, connection_of(context), name, arguments)
            return result
        except LlmDoError as error:
            return failure(self.engine.redact.text(str(error)))

    async def list_prompts(self) -> list[Prompt]:
        """The exported workers as prompts."""
        return await self.reading.prompts()

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[None, Any] | None = None
    ) -> GetPromptResult:
        """A worker's instructions, for the host's own model; raises `MCPError`."""
        return await self.reading.prompt(name, arguments or {})

    async def list_resources(self) -> list[Resource]:
        """What can be read of the project without asking for one file or run."""
        return await self.reading.resources()

    async def list_resource_templates(self) -> list[ResourceTemplate]:
        """The forms of addresses of files and runs."""
        return await self.reading.templates()

    async def read_resource(
        self, uri: AnyUrl | str, context: Context[None, Any] | None = None
    ) -> Iterable[ReadResourceContents]:
        """What is at an address; raises `MCPError`."""
        return [await self.reading.read(str(uri))]

    async def complete(self, reference: Reference, argument: CompletionArgument) -> Completion:
        """The values of an argument of a prompt, or in an address."""
        return await self.reading.complete(reference, argument)

    def guard(self) -> None:
        """Keep secrets out of what the process logs."""
        guard_log(lambda: self.engine.redact)

    def leave(self) -> None:
        """Whoever asked is gone: from now on what is cancelled was not cancelled by a client."""
        self._ending = True

    def end(self) -> None:
        """The server is about to end: calls in flight return now, and say how the results of their runs are had."""
        self.leave()
        self._ended = True
        self.news.end()
        for call in tuple(self._in_flight):
            call.cancel()

    async def aclose(self) -> None:
        """Let go of all runs (what had not ended stays resumable), models and child processes."""
        self._ending = True
        self.news.end()
        await self._nobody.aclose()
        await self.engine.aclose(self.bench.kill)
        await self.bench.aclose()
        await self.news.aclose()
        self._watch.close()
        self._present.close()

    # ---- news

    async def stirred(self) -> None:
        """Wait until the project's files may have changed."""
        project = self.project
        await self._watch.stirred(project.folders(), lambda: self._present.wrong is None and project.changed())

    async def traced(self, uri: str) -> str | None:
        """The run whose trace is at a URI.

        Raises:
            RunError: It is not the caller's, or there is none.
        """
        if (found := TRACE.fullmatch(uri)) is None:
            return None
        await self._own(found[1])
        return found[1]

    async def grows(self, run: str) -> bool:
        """Wait until a run has come further; whether it still goes on here."""
        return await self.engine.grows(run)

    # ---- runs as tasks, see `tasks.py`

    async def begin(self, params: CallToolRequestParams, request: Request) -> str | CallToolResult | None:
        """Begin a worker's run for a client that will ask how it stands."""
        context: Context[None, Any] = Context(request_context=request, mcp_server=self, input_params=params)
        try:
            state = State.of(context)
            published = await self._called(params.name, state)
            if published is None or not published.is_worker:
                return None
            self._need(published)
            run, _ = await self._run_for(published, params.arguments or {}, context, state)
            await self.engine.durable(run)
            return run
        except LlmDoError as error:
            return failure(self.engine.redact.text(str(error)))

    async def stands(self, run: str, request: Request) -> Standing:
        """How a task stands: what its call would say now, or what it wants of this client."""
        await self._own(run)
        if (told := await self.engine.told(run)) is not None:
            return Standing(await self.engine.row(run), CallToolResult.model_validate_json(told), returned=True)
        context: Context[None, Any] = Context(request_context=request, mcp_server=self)
        event: Done | Asks | Working = Working(run)
        if await self.engine.take_over(run):
            event = await self.engine.advance(run, timeout=0.0)
            while isinstance(event, Asks) and await self._settled(run, event):
                event = await self.engine.advance(run, timeout=0.0)
        turns = self._sampling.put(run, event.samples, context) if isinstance(event, Asks) else {}
        row = await self.engine.row(run)
        if isinstance(event, Done):
            return Standing(row, await self._result(run, event, None, context))
        waiting = await self._waiting(run)
        if waiting and self._can_ask(context):
            self._taken_along(run, waiting, context)
            return Standing(row, wanted={**turns, **_forms(waiting)})
        if waiting and not turns and await self._nobody.answers(run, waiting, "cannot_ask", context):
            returns = self._waits(await self.engine.recorded(run), waiting)
            told = await self.engine.tell(run, returns.model_dump_json(by_alias=True, exclude_none=True))
            return Standing(row, CallToolResult.model_validate_json(told), returned=True)
        return Standing(row, wanted=turns)

    async def answered(self, run: str, responses: Mapping[str, Any], request: Request) -> None:
        """Pass on what a client brings."""
        await self._own(run)
        await self._answered(run, responses, Context(request_context=request, mcp_server=self))

    async def stop(self, run: str) -> None:
        """Stop a run and all below it, at the latest when the process that drives it comes to that; one that has
        ended stays as it is.

        Raises:
            RunError: It is not the caller's.
        """
        await self._own(run)
        try:
            await self.engine.stop(run, "cancelled by the client")
        except RunError:
            if (await self.engine.row(run)).status in OPEN:
                raise

    # ---- calls

    @staticmethod
    def _need(published: Published) -> None:
        """See to it that the caller may call a tool.

        Raises:
            Refused: It may not.
        """
        if not caller().may(published.scope):
            raise Refused(f"{published.name}: your token does not have the scope {published.scope!r} that it needs")

    def _publish(self, bench: Workbench) -> Mapping[str, Published]:
        """The tools of the project as it is now; what is recorded from now on is redacted as it says."""
        redact = redactor(os.environ, bench.project.manifest)
        tools = publish(bench, approve_tool=self._approve_tool, beside=self._names is not None)
        if self._names is not None:
            self._names.take(bench.project, tools)
        self.engine.redact = redact
        return tools

    async def _called(self, name: str, state: State | None) -> Published | None:
        """The tool that a call is about, as it is now, or as it was when its run began; None where there is none.

        Raises:
            LlmDoError: It cannot be called until somebody mends a file.
        """
        if state is not None and (begun := self._followed.get(state.run)) is not None:
            return begun
        published = await self._present.named(name)
        begins = state is None and published is not None and published.declaration is not None
        if begins and (wrong := self._present.wrong) is not None:
            raise wrong.with_traceback(None)
        return published

    async def _run_for(
        self, published: Published, arguments: dict[str, Any], context: Context[None, Any], state: State | None
    ) -> tuple[str, int]:
        """The run that a call is about (a new one, the one it goes on with, the one it asks for), and the round.

        Raises:
            LlmDoError: The arguments do not fit, or the run cannot be begun.
        """
        if state is not None:
            await self._own(state.run)
            await self._answered(state.run, context.input_responses or {}, context)
            return state.run, state.round
        _fits(published, arguments)
        if published.name == RUN_WAIT:
            await self._own(arguments["run_id"])
            await self.engine.take_over(arguments["run_id"])  # here already, that its progress is told
            return arguments["run_id"], 0
        if (joined := await self._handed.find(connection_of(context), published.name, arguments)) is not None:
            return joined, 0
        assert published.declaration is not None
        declaration = published.declaration
        if declaration.toolset == "te":
            declaration = self._sessions.asked(declaration, name_of_client(context), connection_of(context))
        value, unattended = published.to_input(arguments), self._nobody.denies and not self._can_ask(context)
        definition = self.bench.define_call(declaration, value, published.rules, unattended=unattended)
        meta: Mapping[str, Any] = context.request_context.meta or {}
        if (key := meta.get(KEY)) is None:
            return await self.engine.start(published.subject, definition, principal=caller().principal), 0
        if not isinstance(key, str) or not key or clean(key) != key:
            shown = cut(escape(json.dumps(key)), 80)
            raise InvalidInput(f"{published.name}: {KEY} in _meta must be a text of Unicode, not empty, not {shown}")
        run = await self.engine.start(published.subject, definition, key=key, principal=caller().principal)
        begun = await self.engine.definition(run)
        if begun is not None and (begun.name, begun.input) != (definition.name, definition.input):
            raise InvalidInput(f"{published.name}: the key {cut(escape(key), 80)!r} was given for another call")
        return run, 0

    async def _own(self, run: str) -> None:
        """See to it that a run is the caller's.

        Raises:
            RunError: It is not, or there is none: nobody learns which.
        """
        if not await self.engine.belongs(run, caller().principal):
            raise RunError(f"there is no run {cut(escape(run), 40)}")

    async def _waiting(self, run: str) -> list[Question]:
        """The open questions of a run, here or elsewhere."""
        return [each.question for each in await self.engine.waiting(run)]

    async def _answered(self, run: str, responses: Mapping[str, Any], context: Context[None, Any]) -> None:
        """Pass on the answers that a 2026-07-28 client brings; one that comes too late is noted with its question."""
        with contextlib.suppress(RunError):  # what has ended, or lives elsewhere, is told when it is followed
            await self.engine.resume(run)
        for key, response in responses.items():
            if await self._sampling.answered(run, key, response) or not caller().may("approve"):
                continue
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
        run = arguments["run_id"]
        await self._own(run)
        if not await self.engine.stop(run, "cancelled with run_cancel"):
            later = "its process has been told to end it, and has not yet; call run_wait to follow it"
            raise RunError(f"run {run} goes on: {later}")
        done = await self.engine.outcome(run)
        return CallToolResult(content=[TextContent(type="text", text=done.error)], _meta={ACCOUNT: done.account})

    async def _approve(self, published: Published, arguments: dict[str, Any]) -> CallToolResult:
        """An answer that comes through the calling model, of a host that asks its user before every call."""
        _fits(published, arguments)
        await self._own(arguments["run_id"])
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
        until_the_end = anyio.CancelScope()
        if self._ended:  # while the run was begun
            until_the_end.cancel()
        self._in_flight.add(until_the_end)
        self._followers[run] += 1
        try:
            with until_the_end:
                async with Progress(context).of(self.engine, run):
                    return await self._carry(run, round_, published, context, began)
            return ending(run)
        except anyio.get_cancelled_exc_class():
            # A run does not end with the input, nor with a call that waits for one that was handed over, nor with one
            # of several calls that have its key.
            kept = self._ending or published.name == RUN_WAIT or run in self._handed or self._followers[run] > 1
            if not kept:
                with anyio.CancelScope(shield=True), contextlib.suppress(RunError):
                    await self.engine.cancel(run, "cancelled by the client")
            raise
        finally:
            self._in_flight.discard(until_the_end)
            self._followers[run] -= 1
            if not self._followers[run]:
                del self._followers[run]

    async def _carry(
        self, run: str, round_: int, published: Published, context: Context[None, Any], began: float
    ) -> CallToolResult | InputRequiredResult:
        modern = context.protocol_version == MODERN
        offered: set[str] = set()
        # Who waits for a run, or has gone to the approval page, waits for the person too.
        patient = published.name == RUN_WAIT or (round_ > 0 and self._nobody.shown(run) == "client")
        if (told := await self._elsewhere(run, round_, context, began, patient=patient)) is not None:
            return told
        seen = _Seen(self._dialogs, self._sampling, run, offered)
        while True:
            within = self._within(context)
            left = max(within - (time.monotonic() - began), 0.0)
            gathers = (modern or not self._can_ask(context)) and self.approvals.mode == "ask"
            gather = GATHER_S if gathers else 0.0
            event = await self.engine.advance(run, seen=seen, gather=gather, timeout=left)
            if isinstance(event, Done):
                return await self._result(run, event, published, context)
            if not isinstance(event, Asks):
                return self._unfinished(run, offered, within)
            if await self._settled(run, event):
                continue
            turns = self._sampling.put(run, event.samples, context)
            if turns and not (event.questions and self._can_ask(context)):
                # With the next round come the questions, where there are any.
                return self._asking(run, round_, self.engine.so_far(run), turns)
            if not event.questions:
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
            else:
                if round_ < ROUNDS:
                    self._taken_along(run, event.questions, context)
                return self._asking(run, round_, self.engine.so_far(run), {**turns, **_forms(event.questions)})

    def _taken_along(self, run: str, questions: Sequence[Question], context: Context[None, Any]) -> None:
        """A client of 2026-07-28 has these questions now: deal with those to which it brings no answer in time."""
        # The person answers them one after the other before any of the answers comes back.
        self._nobody.later(run, questions, self.answer_within * min(len(questions), AT_ONCE), context)

    async def _begun_by(self, run: str) -> Published | None:
        """The tool that began a run, whoever fetches its result; None where it is not published any more."""
        name = await self.engine.name(run)
        return next(
            (tool for tool in self.tools.values() if tool.declaration is not None and tool.subject == name), None
        )

    async def _result(
        self, run: str, done: Done, published: Published | None, context: Context[None, Any]
    ) -> CallToolResult:
        """The result of a call whose run has ended, with links to what it wrote, for clients that know links.

        Args:
            run: Its run.
            done: How that ended.
            published: What was called; None where a task is asked about.
            context: The request in front.
        """
        changed = done.account["files_changed"]
        links = self.reading.links(changed) if changed and (context.protocol_version or "") >= LINKS_SINCE else ()
        begun_by = published
        if published is None or published.name == RUN_WAIT:
            begun_by = await self._begun_by(run)
        offset = None if published is None else published.offset
        if begun_by is None:
            structured, for_people = isinstance(done.output, dict), True
        else:
            structured, for_people = begun_by.output_schema is not None, begun_by.is_worker
            if done.status == "done":
                done = dataclasses.replace(done, output=begun_by.to_output(done.output))
        return result_of(done, structured=structured, for_people=for_people, offset=offset, links=links)

    async def _elsewhere(
        self, run: str, round_: int, context: Context[None, Any], began: float, *, patient: bool
    ) -> CallToolResult | InputRequiredResult | None:
        """Follow a run that another process drives, until it has ended or goes on here, since that process is gone.

        Returns:
            What to tell a caller before that: what the run asks, or that its clock would run out. Else None.
        """
        first: float | None = None
        while not await self.engine.take_over(run):
            within, now = self._within(context), time.monotonic()
            waiting = await self._waiting(run)
            first = (first or now) if waiting else None
            account = await self.engine.recorded(run)
            if first is not None and (account["status"] == "waiting" or now - first >= GATHER_S):
                if self._can_ask(context):
                    if context.protocol_version == MODERN:
                        return self._asking(run, round_, account, _forms(waiting))
                    for question in waiting:
                        self._dialogs.put(run, question, context)
                elif not patient:
                    return self._waits(account, waiting)
            if now - began >= within:
                return self._waits(account, waiting) if waiting else handed_over(account, within, ())
            await anyio.sleep(ANSWERS_EVERY_S)
        return None

    def _asking(
        self,
        run: str,
        round_: int,
        account: Mapping[str, Any],
        wanted: Wanted,
    ) -> CallToolResult | InputRequiredResult:
        """A round that brings requests to a client, or what it is told where that would be one too many."""
        return too_many_rounds(account, len(wanted)) if round_ >= ROUNDS else self._round(run, round_, wanted)

    @staticmethod
    def _round(run: str, round_: int, wanted: Wanted) -> InputRequiredResult:
        return InputRequiredResult(input_requests=requests(wanted), request_state=State(run, round_ + 1).to_text())

    def _can_ask(self, context: Context[None, Any]) -> bool:
        """Whether this client shows forms to its person, as far as it says and has shown so far."""
        if not caller().may("approve"):
            return False
        if not can_answer_forms(context.client_capabilities) or self._nobody.is_silent(context):
            return False
        return context.protocol_version == MODERN or bool(context.session.can_send_request)

    def _within(self, context: Context[None, Any]) -> float:
        """Seconds after which a call of this client hands its run over."""
        if self.call_within is not None:
            return self.call_within
        asked_for_progress = (context.request_context.meta or {}).get("progress_token") is not None
        return call_within(name_of_client(context), progress=asked_for_progress)

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
    """The questions and turns that a call need not be told of: now, not when it began to wait."""

    dialogs: Dialogs
    sampling: Sampling
    run: str
    offered: Collection[str]

    def __contains__(self, key: object) -> bool:
        return key in self.dialogs.of(self.run) or key in self.sampling.of(self.run) or key in self.offered


def _fits(published: Published, arguments: dict[str, Any]) -> None:
    from llm_do_mcp.runtime.schema import problem

    if (wrong := problem(published.input_schema, arguments)) is not None:
        raise InvalidInput(f"{published.name}: {wrong}")


def _forms(questions: Iterable[Question]) -> dict[str, ElicitRequestParams]:
    return {question.key: form(question) for question in questions}


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
        _meta={SIZE: WHOLE_CHARS} if published.is_long else None,
    )


def instructions(bench: Workbench) -> str:
    """What clients are told of a project when they connect."""
    project = bench.project
    lines = [project.manifest.description or f"Workers of the project {project.name}, called like functions."]
    for library in project.libraries.values():
        if library.python:
            python = ", ".join(library.python)
            lines.append(f"Python of the library {library.spec}: {python} (sha256 {library.python_hash[:12]})")
    lines += [f"Not served, because of an error in its file: {error}" for error in project.broken]
    lines += [f"Not served: {error}" for error in bench.unusable.values()]
    return "\n".join(lines)
