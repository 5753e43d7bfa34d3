"""Questions as dialogs of handshake-era clients, where the server asks in the middle of a call.

A dialog belongs to its question, not to the call in which it came up: it stays open when that call hands its run over,
and it is withdrawn as soon as the question is settled in another way (by a grant, another front, the end of the run).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp.types import CONNECTION_CLOSED, ElicitRequest, ElicitResult

from llm_do_mcp.runtime.engine import Engine
from llm_do_mcp.runtime.question import Answer, Question
from llm_do_mcp.serving import back
from llm_do_mcp.serving.asking import answer_from, form, silence
from llm_do_mcp.serving.connection import connection_of
from llm_do_mcp.serving.nobody import Nobody


@dataclass
class _Dialog:
    context: Context[None, Any]
    task: asyncio.Task[None]
    since: float
    """When it was shown, or the client last answered another: some show one after the other."""


class Dialogs:
    """The open dialogs of all runs.

    Args:
        engine: Has the questions and takes the answers.
        patience: Seconds that a dialog waits for its answer.
        nobody: Takes the questions whose dialog was in vain.
    """

    def __init__(self, engine: Engine, patience: float, nobody: Nobody) -> None:
        self._engine, self._patience, self._nobody = engine, patience, nobody
        self._open: dict[str, dict[str, _Dialog]] = {}

    def of(self, run: str) -> Collection[str]:
        """The keys of a run's questions that have a dialog."""
        return self._open.get(run, {}).keys()

    def put(self, run: str, question: Question, context: Context[None, Any]) -> None:
        """Show a question to the client of a call, unless one has its dialog already."""
        dialogs = self._open.setdefault(run, {})
        if question.key in dialogs:
            return

        def closed(_: asyncio.Task[None]) -> None:
            del dialogs[question.key]
            if not dialogs:
                del self._open[run]
            self._engine.nudge(run)  # the question may still be open, and has no dialog now

        task = asyncio.create_task(self._hold(run, question, context))
        dialogs[question.key] = _Dialog(context, task, time.monotonic())
        task.add_done_callback(closed)

    def _heard(self, context: Context[None, Any]) -> None:
        """Who has just answered one dialog is given time for the others."""
        for dialogs in self._open.values():
            for dialog in dialogs.values():
                if connection_of(dialog.context) is connection_of(context):
                    dialog.since = time.monotonic()

    async def _hold(self, run: str, question: Question, context: Context[None, Any]) -> None:
        asked = asyncio.create_task(_ask(question, context))
        settled = asyncio.create_task(self._engine.settled(run, question.key))
        try:
            dialog = self._open[run][question.key]
            while (left := dialog.since + self._patience - time.monotonic()) > 0:
                done, _ = await asyncio.wait((asked, settled), timeout=left, return_when=asyncio.FIRST_COMPLETED)
                if done:
                    break
            if asked.done():
                if (answer := asked.result()) is not None:
                    self._heard(context)
                    await self._engine.answer(run, question.key, answer)  # noted where another came first
                    await self._nobody.undecided(run, question, answer, context)
            elif not settled.done():
                asked.cancel()
                await self._nobody.silent(run, (question,), context)
        finally:
            # Cancelled, the request to the client is followed by a word that its dialog is no longer wanted.
            asked.cancel()
            settled.cancel()


async def _ask(question: Question, context: Context[None, Any]) -> Answer | None:
    """What a client answers; None where it went away: nobody answered then, and the question stays open."""
    try:
        return answer_from(question, await back.ask(context, ElicitRequest(params=form(question)), ElicitResult))
    except MCPError as error:
        return None if error.error.code == CONNECTION_CLOSED else silence("failed")
    except Exception:
        return silence("failed")
