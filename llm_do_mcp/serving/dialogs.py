"""Questions as dialogs of handshake-era clients, where the server asks in the middle of a call.

A dialog belongs to its question, not to the call in which it came up: it stays open when that call hands its run over,
and it is withdrawn as soon as the question is settled in another way (by a grant, another front, the end of the run).
For that it is sent on the connection's own channel: the channel of a request is closed with its answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from mcp.types import CONNECTION_CLOSED

from llm_do_mcp.runtime.engine import Engine
from llm_do_mcp.runtime.question import Answer, Question
from llm_do_mcp.serving.asking import answer_from, form, silence


class Dialogs:
    """The open dialogs of all runs.

    Args:
        engine: Has the questions and takes the answers.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._open: dict[str, dict[str, asyncio.Task[None]]] = {}

    def of(self, run: str) -> Collection[str]:
        """The keys of a run's questions that have a dialog."""
        return self._open.get(run, {}).keys()

    def put(self, run: str, question: Question, session: ServerSession) -> None:
        """Show a question to a client, unless one has its dialog already."""
        dialogs = self._open.setdefault(run, {})
        if question.key in dialogs:
            return

        def closed(_: asyncio.Task[None]) -> None:
            del dialogs[question.key]
            if not dialogs:
                del self._open[run]

        dialogs[question.key] = dialog = asyncio.create_task(self._hold(run, question, session))
        dialog.add_done_callback(closed)

    async def _hold(self, run: str, question: Question, session: ServerSession) -> None:
        asked = asyncio.create_task(_ask(question, session))
        settled = asyncio.create_task(self._engine.settled(run, question.key))
        try:
            await asyncio.wait((asked, settled), return_when=asyncio.FIRST_COMPLETED)
            if not settled.done() and (answer := asked.result()) is not None:
                await self._engine.answer(run, question.key, answer)
        finally:
            # Cancelled, the request to the client is followed by a word that its dialog is no longer wanted.
            asked.cancel()
            settled.cancel()


async def _ask(question: Question, session: ServerSession) -> Answer | None:
    """What a client answers; None where it went away: nobody answered then, and the question stays open."""
    shown = form(question)
    try:
        return answer_from(question, await session.elicit_form(shown.message, shown.requested_schema))
    except MCPError as error:
        return None if error.error.code == CONNECTION_CLOSED else silence("failed")
    except Exception:
        return silence("failed")
