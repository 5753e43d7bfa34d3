"""The terminal as a front: a thin loop over `Engine.advance`, like those for MCP clients."""

from __future__ import annotations

import asyncio
import json
import math
import sys
from collections.abc import Mapping
from functools import partial

from llm_do_mcp.cli import terminal
from llm_do_mcp.cli.exits import DONE, FAILED, PAUSED, REFUSED
from llm_do_mcp.runtime.account import line
from llm_do_mcp.runtime.approvals import Approvals
from llm_do_mcp.runtime.engine import Asks, Done, Engine
from llm_do_mcp.runtime.function import JSON
from llm_do_mcp.runtime.question import GOES_AHEAD, Answer, Kind, Question, text

WAITS: dict[Kind, str] = {
    "approval": "waits for approval",
    "in_doubt": "in doubt",
    "question": "waits for an answer",
}


NO_CLIENT = "a terminal is no MCP client, which could lend its model"


async def drive(engine: Engine, run: str, approvals: Approvals, *, as_json: bool = False) -> int:
    """Carry a run's questions to the person at the terminal until it ends; print its result.

    Args:
        engine: What drives the run.
        run: Its id.
        approvals: What is settled without that person.
        as_json: Print the result and the account as JSON, also of a run that is left waiting.

    Returns:
        The exit code. Where nobody can be asked and nothing was said about it, the run is left waiting.
    """
    try:
        with engine.listening(run, terminal.say):
            event = await _carry(engine, run, approvals)
    except asyncio.CancelledError:
        if await engine.store.get(run) is not None:
            terminal.say(f"run {run} was interrupted; to go on with it: {engine.hint('runs', 'resume', run)}")
        raise
    if isinstance(event, Done):
        return _finish(event, as_json=as_json)
    return _leave(event, engine, as_json=as_json)


async def _carry(engine: Engine, run: str, approvals: Approvals) -> Done | Asks:
    """Carry questions to the person until the run has ended, or only waits for somebody who is not here."""
    nobody = False
    while True:
        # Before a run is left, what can go on without an answer is waited for: nothing is cut short.
        event = await engine.advance(run, gather=math.inf if nobody else 0.0)
        if isinstance(event, Done):
            return event
        assert isinstance(event, Asks)
        engine.lend_none(event, NO_CLIENT)
        if not event.questions:
            continue
        for question in event.questions:
            if question not in engine.questions(run):
                continue  # an answer for the rest of the run has settled it
            if (answer := await _answer(engine, run, question, approvals)) is not None:
                await engine.answer(run, question.key, answer)
        unanswered = all(question in engine.questions(run) for question in event.questions)
        if unanswered and nobody:
            return event
        nobody = unanswered


async def _answer(engine: Engine, run: str, question: Question, approvals: Approvals) -> Answer | None:
    if (settled := approvals.answer(question)) is not None:
        return settled
    if terminal.has_person():
        elsewhere = partial(engine.settled, run, question.key)
        return await terminal.ask(text(question), question.decisions, elsewhere=elsewhere)
    return None


def _leave(event: Asks, engine: Engine, *, as_json: bool) -> int:
    if as_json:
        _print_json(None, None, engine.so_far(event.run))
    for question in event.questions:
        what = f"{question.function} {question.target or question.arguments}".rstrip()
        print(f"{WAITS[question.kind]}: {what}", file=sys.stderr)
    how = engine.hint("runs", "resume", event.run)
    print(f"run {event.run} waits for a person; in a terminal: {how}", file=sys.stderr)
    return PAUSED


def _finish(done: Done, *, as_json: bool) -> int:
    if as_json:
        _print_json(done.output, done.error or None, done.account)
    elif done.status == "done":
        whole = done.output if isinstance(done.output, str) else json.dumps(done.output, ensure_ascii=False, indent=2)
        print(terminal.result(whole))
    if done.status != "done" and not as_json:
        print(f"llm-do: {done.error}", file=sys.stderr)
    print(line(done.account), file=sys.stderr)
    if done.status != "done":
        return FAILED
    approvals = done.account["approvals"]
    return DONE if all(approval["decision"] in GOES_AHEAD for approval in approvals) else REFUSED


def _print_json(output: JSON, error: str | None, account: Mapping[str, JSON]) -> None:
    print(json.dumps({"output": output, "error": error, "run": account}, ensure_ascii=False, indent=2))
