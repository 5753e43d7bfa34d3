"""One test, played: its call is made in a copy of the project, questions are answered as it says, and what came of it
is compared with what it expects.

The engine is the one of every other front; only who answers is different. In the whole tree of workers the test's model
answers, so that a project whose workers name real models is tested without one.
"""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from llm_do_mcp.errors import InvalidInput, LlmDoError, UsageError
from llm_do_mcp.models.attachments import attachment
from llm_do_mcp.models.replay import replayed
from llm_do_mcp.project.load import Project
from llm_do_mcp.runtime.account import account, calls_model
from llm_do_mcp.runtime.approvals import Approvals, of_project
from llm_do_mcp.runtime.definition import Definition
from llm_do_mcp.runtime.display import cut, escape
from llm_do_mcp.runtime.engine import Asks, Done, Engine
from llm_do_mcp.runtime.policy import SUBJECT, spelled
from llm_do_mcp.runtime.question import Answer, Question
from llm_do_mcp.runtime.redact import redactor
from llm_do_mcp.runtime.schema import problem
from llm_do_mcp.runtime.state import STATE
from llm_do_mcp.runtime.threads import in_thread
from llm_do_mcp.sandbox.opener import Directory
from llm_do_mcp.serving.surface import attached_files, direct_policy, worker_declaration, worker_input
from llm_do_mcp.testing import copies, recording
from llm_do_mcp.testing.expect import Outcome, differences
from llm_do_mcp.testing.suite import Asked, Case
from llm_do_mcp.toolsets.delegation import check_attachments, room_for_attachments
from llm_do_mcp.toolsets.rules import of_approval
from llm_do_mcp.toolsets.workbench import Workbench

if TYPE_CHECKING:
    from llm_do_mcp.project.effective import Worker
    from llm_do_mcp.project.settings import AttachmentPolicy

_log = logging.getLogger(__name__)

BY = "the test"
NO_CLIENT = "a test has no MCP client, which could lend its model"
PRINTED = 4000
"""How much of what was printed and logged in a test is shown, in bytes: the end of it."""


@dataclass(frozen=True)
class Played:
    """What became of a test.

    Args:
        case: The test.
        failures: What is not as expected, one line each; none where it has passed.
        seconds: How long it took.
        model_called: Whether a model was called.
        printed: What was printed and logged meanwhile, line by line; the end of it, where that is long.
    """

    case: Case
    failures: tuple[str, ...]
    seconds: float
    model_called: bool
    printed: tuple[str, ...] = ()


@dataclass
class _Answers:
    """Answers questions by a test's list, and knows what was asked that is not in it, and the other way round."""

    asked: Sequence[Asked]
    counts: Counter[int] = field(default_factory=Counter)
    unexpected: list[str] = field(default_factory=list)

    def answer(self, question: Question) -> Answer:
        for index, asked in enumerate(self.asked):
            full = asked.times is not None and self.counts[index] >= asked.times
            if _names(asked, question) and not full and (question.kind == "question") == (asked.answer is not None):
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


def _names(asked: Asked, question: Question) -> bool:
    """Whether a question is about what a test names, as a rule that allows would name it."""
    rule = of_approval(asked.rule, BY)
    if not fnmatchcase(question.function, rule.function):
        return False
    subject = question.exact.get(SUBJECT.get(question.function, ""), {}).get("is")
    done_to = spelled(question.function, subject) if isinstance(subject, str) else question.target
    return rule.fits(question.function, done_to)


async def play(case: Case, project: Project, original: str, printed: BinaryIO) -> Played:
    """Play a test.

    Args:
        case: The test.
        project: A copy of its project that nothing else uses, loaded.
        original: The project's own folder, which is named where the copy's would be.
        printed: A file of the test's own: where what the project's Python prints goes, and what is logged.
    """
    began = time.monotonic()
    handler = _AmongPrinted(printed)
    logging.getLogger().addHandler(handler)
    try:
        failures, called = await _played(case, project)
    except LlmDoError as error:
        failures, called = [str(error)], False
    except Exception as fault:  # of ours: it fails this test, and the others are played
        failures, called = [f"internal error: {type(fault).__name__}: {fault}"], False
        _log.exception("%s met a fault of ours", case.title)
    finally:
        logging.getLogger().removeHandler(handler)
    redact = redactor(os.environ, project.manifest)

    def shown(lines: Iterable[str]) -> tuple[str, ...]:
        return tuple(escape(redact.text(line.replace(project.root, original))) for line in lines)

    return Played(case, shown(failures), time.monotonic() - began, called, shown(_end_of(printed)))


class _AmongPrinted(logging.Handler):
    """Logs among what is printed.

    Args:
        printed: Where other processes write as well: so each record is written at once, behind what is there.
    """

    def __init__(self, printed: BinaryIO) -> None:
        super().__init__()
        self._descriptor = printed.fileno()

    def emit(self, record: logging.LogRecord) -> None:
        os.write(self._descriptor, f"{self.format(record)}\n".encode(errors="backslashreplace"))


def _end_of(printed: BinaryIO) -> list[str]:
    size = printed.seek(0, os.SEEK_END)
    printed.seek(max(0, size - PRINTED))
    lines = printed.read().decode(errors="replace").splitlines()
    return lines if size <= PRINTED else [f"… ({size - PRINTED} bytes before)", *lines]


async def _played(case: Case, project: Project) -> tuple[list[str], bool]:
    keys = case.keys
    copies.check_inside(project.root, project.roots)
    mode = keys.approvals
    listed = _Answers(mode if isinstance(mode, tuple) else ())
    settled = Approvals() if isinstance(mode, tuple) else of_project(mode, project.root)
    model, recorded = case.model, None
    if model is not None and (file := replayed(model)) is not None:
        recorded = await in_thread(recording.read, project.root, file)
        model = f"replay:{recorded.run}"
        await in_thread(copies.leave_out, project.root, recorded.created)
    before = await in_thread(copies.snapshot, project.root)
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
    policies = worker.attachment_policy, direct_policy(bench.project)
    await in_thread(_check_attached, bench.project.root, case.keys.attach, *policies)
    files = [os.path.join(bench.project.root, file) for file in case.keys.attach]
    roots, attachments = attached_files(files, worker.attachment_policy)
    if attachments:
        value["attachments"] = attachments
    await bench.check(worker)
    return bench.define_call(worker_declaration(bench, worker, (*bench.project.roots, *roots)), value, ())


def _check_attached(root: str, files: Sequence[str], callee: AttachmentPolicy, caller: AttachmentPolicy) -> None:
    """See that files can be attached, before there is a run, which knows them by other names than the test does.

    Raises:
        InvalidInput, SandboxError: One cannot be.
    """
    check_attachments(files, callee, caller)
    room, _ = room_for_attachments(callee, caller)
    with Directory.open(root) as folder:
        for file in files:
            data = folder.read_whole(file, room)
            attachment(file, data)
            room -= len(data)
