"""The terminal as a front: a thin loop over `Engine.advance`, like those for MCP clients."""

from __future__ import annotations

import argparse
import json
import math
import shlex
import sys

from llm_do_mcp.cli import terminal
from llm_do_mcp.cli.exits import DONE, FAILED, PAUSED, REFUSED
from llm_do_mcp.runtime.account import line
from llm_do_mcp.runtime.approvals import Approvals
from llm_do_mcp.runtime.engine import Asks, Done, Engine
from llm_do_mcp.runtime.question import Answer, Kind, Question, text

WAITS: dict[Kind, str] = {
    "approval": "waits for approval",
    "in_doubt": "in doubt",
    "question": "waits for an answer",
}


async def drive(engine: Engine, run: str, options: argparse.Namespace, approvals: Approvals, project: str) -> int:
    """Carry a run's questions to the person at the terminal until it ends; print its result.

    Args:
        engine: What drives the run.
        run: Its id.
        options: `approve_all` and `json` of the command line.
        approvals: Its `--approvals`.
        project: The project's root, for the line that says how to go on.

    Returns:
        The exit code. Where nobody can be asked and nothing was said about it, the run is left waiting.
    """
    nobody = False
    with engine.listening(run, terminal.say):
        while True:
            # Before a run is left, what can go on without an answer is waited for: nothing is cut short.
            event = await engine.advance(run, gather=math.inf if nobody else 0.0)
            if isinstance(event, Done):
                return _finish(event, options)
            assert isinstance(event, Asks)
            answered = False
            for question in event.questions:
                if question not in engine.questions(run):
                    continue  # an answer for the rest of the run has settled it
                if (answer := await _answer(question, options, approvals)) is not None:
                    answered |= await engine.answer(run, question.key, answer)
            if not answered and nobody:
                return _leave(event, project)
            nobody = not answered


async def _answer(question: Question, options: argparse.Namespace, approvals: Approvals) -> Answer | None:
    if question.kind == "approval" and options.approve_all:
        return Answer("once", by="--approve-all")
    if (settled := approvals.answer(question)) is not None:
        return settled
    if terminal.has_person():
        return await terminal.ask(text(question), question.decisions)
    return None


def _leave(event: Asks, project: str) -> int:
    for question in event.questions:
        what = f"{question.function} {question.target or question.arguments}".rstrip()
        print(f"{WAITS[question.kind]}: {what}", file=sys.stderr)
    how = shlex.join(["llm-do", "runs", "resume", event.run, "--project", project])
    print(f"run {event.run} waits for a person; in a terminal: {how}", file=sys.stderr)
    return PAUSED


def _finish(done: Done, options: argparse.Namespace) -> int:
    if options.json:
        shown = {"output": done.output, "error": done.error or None, "run": done.account}
        print(json.dumps(shown, ensure_ascii=False, indent=2))
    elif done.status == "done":
        print(done.output if isinstance(done.output, str) else json.dumps(done.output, ensure_ascii=False, indent=2))
    if done.status != "done" and not options.json:
        print(f"llm-do: {done.error}", file=sys.stderr)
    print(line(done.account), file=sys.stderr)
    if done.status != "done":
        return FAILED
    approvals = done.account["approvals"]
    granted = ("once", "run", "done", "again", "answer")
    return REFUSED if any(approval["decision"] not in granted for approval in approvals) else DONE
