"""One test, played: its call is made in a copy of the project, questions are answered as it says, and what came of it
is compared with what it expects.

The engine is the one of every other front; only who answers is different. In the whole tree of workers the test's model
answers, so that a project whose workers name real models is tested without one.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_do_mcp.errors import InvalidInput, LlmDoError, UsageError
from llm_do_mcp.models.replay import replayed
from llm_do_mcp.project.load import Project
from llm_do_mcp.runtime.account import account, calls_model
from llm_do_mcp.runtime.approvals import Approvals, of_project
from llm_do_mcp.runtime.definition import Definition
from llm_do_mcp.runtime.display import cut, escape
from llm_do_mcp.runtime.engine import Asks, Done, Engine
from llm_do_mcp.runtime.question import Answer, Question
from llm_do_mcp.runtime.redact import redactor
from llm_do_mcp.runtime.schema import problem
from llm_do_mcp.runtime.state import STATE
from llm_do_mcp.runtime.threads import in_thread
from llm_do_mcp.serving.surface import attached_files, worker_declaration, worker_input
from llm_do_mcp.testing import copies, recording
from llm_do_mcp.testing.expect import Outcome, differences
from llm_do_mcp.testing.suite import Asked, Case
from llm_do_mcp.toolsets.workbench import Workbench

if TYPE_CHECKING:
    from llm_do_mcp.project.effective import Worker

BY = "the test"
NO_CLIENT = "a test has no MCP client, which could lend its model"


@dataclass(frozen=True)
class Played:
    """What became of a test.

    Args:
        case: The test.
        failures: What is not as expected, one line each; none where it has passed.
        seconds: How long it took.
        model_called: Whether a model was called.
    """

    case: Case
    failures: tuple[str, ...]
    seconds: float
    model_called: bool


@dataclass
class _Answers:
    """Answers questions by a test's list, and knows what was asked that is not in it, and the other way round."""

    asked: Sequence[Asked]
    counts: Counter[int] = field(default_factory=Counter)
    unexpected: list[str] = field(default_factory=list)

    def answer(self, question: Question) -> Answer:
        for index, asked in enumerate(self.asked):
            full = asked.times is not None and self.counts[index] >= asked.times
            fits = fnmatchcase(question.function, asked.function) and fnmatchcase(question.target, asked.subject)
            if fits and not full and (question.kind == "question") == (asked.answer is not None):
                self.counts[index] += 1
                if asked.answer is not None:
                    return Answer("answer", note=asked.answer, by=BY)
                return Answer(asked.decision, note=asked.note, by=BY)
        what = f"{question.function} {question.target or question.arguments}".rstrip()
        self.unexpected.append(f"asked, and not among `approvals`: {cut(what, 200)}")
        return Answer(silence="policy", by=BY)

    def failures(self) -> Iterable[str]:
        yield from self.unexpected
        for index, asked in enumerate(self.asked):
            count, wanted = self.counts[index], asked.times
            if count != wanted if wanted is not None else count == 0:
                times = "" if wanted is None else f", {wanted} expected"
                yield f"approvals: {asked.function} {asked.subject} was asked {count} times{times}"


async def play(case: Case, project: Project) -> Played:
    """Play a test.

    Args:
        case: The test.
        project: A copy of its project that nothing else uses, loaded.
    """
    began = time.monotonic()
    try:
        failures, called = await _played(case, project)
    except LlmDoError as error:
        failures, called = [str(error)], False
    shown = redactor(os.environ, project.manifest)
    lines = tuple(escape(shown.text(line)) for line in failures)
    return Played(case, lines, time.monotonic() - began, called)


async def _played(case: Case, project: Project) -> tuple[list[str], bool]:
    keys = case.keys
    copies.check_inside(project.root, project.roots)
    before = await in_thread(copies.snapshot, project.root)
    mode = keys.approvals
    listed = _Answers(mode if isinstance(mode, tuple) else ())
    settled = Approvals() if isinstance(mode, tuple) else of_project(mode, project.root)
    model, recorded = case.model, None
    if model is not None and recording.is_recording(file := replayed(model) or ""):
        recorded = await in_thread(recording.read, project.root, file)
        model = f"replay:{recorded.run}"
    bench = Workbench(project, entry=keys.worker, model=model, everywhere=model is not None, approvals=settled)
    state = Path(project.root) / STATE
    engine = Engine(state, bench.body, redactor(os.environ, project.manifest))
    try:
        if recorded is not None:
            await recorded.put_back(engine.store)
        done = await _run(case, bench, engine, settled, listed)
        changed = await in_thread(copies.written, project.root, before)
        outcome = Outcome(done.status, done.output, done.error, done.account, changed)
        failures = [*listed.failures(), *await differences(keys.expect, outcome, bench)]
        return failures, any(map(calls_model, done.account["models"]))
    finally:
        await engine.aclose(bench.kill)
        await bench.aclose()


async def _run(case: Case, bench: Workbench, engine: Engine, settled: Approvals, listed: _Answers) -> Done:
    """The call that a test makes; one that is refused before a run of it begins has failed, as a run can."""
    name = case.keys.worker or bench.project.entry
    if name is None:
        raise LlmDoError("the project has no entry worker; name one with `worker`")
    try:
        worker = bench.worker(name)
        definition = await _defined(case, bench, worker)
    except UsageError:
        raise  # it is the test that cannot be played
    except LlmDoError as error:
        return Done("", "failed", None, str(error), account("", "failed", ()))
    run = await engine.start(worker.id, definition)
    while True:
        event = await engine.advance(run)
        if isinstance(event, Done):
            return event
        assert isinstance(event, Asks)
        engine.lend_none(event, NO_CLIENT)
        for question in event.questions:
            if question in engine.questions(run):
                await engine.answer(run, question.key, settled.answer(question) or listed.answer(question))


async def _defined(case: Case, bench: Workbench, worker: Worker) -> Definition:
    copies.check_inside(bench.project.root, worker.roots)
    bench.check_model(worker)
    stated = case.keys.input
    given: Mapping[str, Any] = stated if isinstance(stated, Mapping) else {"input": stated}
    if (wrong := problem(worker.tool_schema, given)) is not None:
        raise InvalidInput(f"input of worker {worker.id}: {wrong}")
    value = worker_input(worker, given, ())
    assert isinstance(value, dict)
    files = [os.path.join(bench.project.root, file) for file in case.keys.attach]
    roots, attachments = attached_files(files, worker.attachment_policy)
    if attachments:
        value["attachments"] = attachments
    await bench.check(worker)
    return bench.define_call(worker_declaration(bench, worker, (*bench.project.roots, *roots)), value, ())
