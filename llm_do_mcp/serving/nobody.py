"""Questions that nobody in front can answer: the client cannot ask its person, or was silent for too long.

A client that said that it shows forms and left one without an answer for too long is not asked again on its
connection, until it brings an answer after all (`silences.py`).

`pause` leaves them open: the person is told where to answer (the approval page in a browser, an address for a client
that opens addresses, `llm-do approve` in a terminal), and the run waits. `deny` refuses them at once, and the run goes
on without. What a crash left in doubt is never refused: that always waits for a person.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from collections.abc import Sequence
from typing import Any, Literal

from mcp.server.mcpserver import Context
from mcp.types import ElicitRequest, ElicitRequestURLParams, ElicitResult

from llm_do_mcp.runtime.engine import Engine
from llm_do_mcp.runtime.question import Answer, Question, Silence
from llm_do_mcp.serving import back
from llm_do_mcp.serving.asking import opens_addresses
from llm_do_mcp.serving.caller import caller
from llm_do_mcp.serving.connection import connection_of
from llm_do_mcp.serving.page.server import ApprovalPage, Browse
from llm_do_mcp.serving.silences import Silences, client_of

INVITATION = "A run waits for your decision. Open the approval page?"

DENIED_BY = "--when-nobody-can-answer deny"

WhenNobody = Literal["pause", "deny"]
Place = Literal["browser", "client", ""]
"""Where a person was shown the way to the approval page: the browser of this machine, the client, nowhere."""


def usual() -> WhenNobody:
    """What holds where nothing was said: in CI nobody will come and answer."""
    return "deny" if os.environ.get("CI") else "pause"


class Nobody:
    """What becomes of such questions.

    Args:
        engine: Has the questions and takes the answers.
        when: `pause` or `deny`.
        browse: Opens an address in the browser of this machine's person; None where there is none.
    """

    def __init__(self, engine: Engine, when: WhenNobody, browse: Browse | None = None) -> None:
        self._engine, self._when = engine, when
        self._page = ApprovalPage(engine, browse)
        self._in_browser = False
        self._invited: set[str] = set()
        self._told: set[str] = set()
        self._silences = Silences()
        self._inviting: list[object] = []
        self._along: set[tuple[str, str]] = set()
        """Questions that a client has taken along, by run and key, until it is said to be silent."""
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def denies(self) -> bool:
        """Whether what cannot be asked is refused."""
        return self._when == "deny"

    # ---- who was silent

    def is_silent(self, context: Context[None, Any]) -> bool:
        """Whether the client of a request has left a question without an answer."""
        return self._silences.has(client_of(context))

    def heard(self, context: Context[None, Any]) -> None:
        """The client of a request brought an answer."""
        self._silences.end(client_of(context))

    async def silent(self, run: str, questions: Sequence[Question], context: Context[None, Any]) -> None:
        """Deal with questions that a client left without an answer for too long."""
        self._silences.begin(client_of(context))
        await self.answers(run, questions, "timed_out", context)

    async def undecided(self, run: str, question: Question, answer: Answer, context: Context[None, Any]) -> None:
        """Deal with what a client brought for a question, where that leaves it open: it would bring the same again."""
        if answer.silence and await self._engine.is_open(run, question.key):
            await self.silent(run, (question,), context)

    # ---- what becomes of their questions

    async def answers(self, run: str, questions: Sequence[Question], why: Silence, context: Context[None, Any]) -> bool:
        """Deal with questions.

        Args:
            run: Their run.
            questions: Open ones.
            why: How it came that nobody answers.
            context: The request in front.

        Returns:
            Whether something still waits for a person.
        """
        for question in questions:
            if self.denies and question.kind != "in_doubt":
                await self._engine.answer(run, question.key, Answer(silence=why, by=DENIED_BY))
        waiting = [question for question in questions if await self._engine.is_open(run, question.key)]
        if waiting:
            await self._tell(run, context)
        return bool(waiting)

    def later(self, run: str, questions: Sequence[Question], seconds: float, context: Context[None, Any]) -> None:
        """Deal with questions that are still open after a while: a client took them along and did not come back.

        Those that were taken along before, and for which that while is not over, are dealt with then.
        """
        new = {(run, question.key): question for question in questions if (run, question.key) not in self._along}

        async def wait() -> None:
            try:
                await asyncio.sleep(seconds)
            finally:
                self._along -= new.keys()
            left = [question for question in new.values() if await self._engine.is_open(run, question.key)]
            if left:
                await self.silent(run, left, context)

        if new:
            self._along |= new.keys()
            self._keep(wait())

    async def invitation(self, run: str) -> ElicitRequestURLParams | None:
        """The approval page for a client that opens addresses; None where its person was invited before.

        No model reads it: the client shows it to its person.
        """
        if run in self._invited or caller().is_remote:  # elsewhere, the loopback address leads to somebody else's page
            return None
        self._invited.add(run)
        try:
            return ElicitRequestURLParams(message=INVITATION, url=await self._page.address())
        except OSError:  # no port: `llm-do approve` remains
            return None

    def shown(self, run: str) -> Place:
        """Where the way to the page was shown for a run."""
        return "client" if run in self._told else "browser" if self._in_browser else ""

    def invited(self, run: str) -> None:
        """The person of a client has taken the invitation."""
        self._told.add(run)

    async def aclose(self) -> None:
        """Stop the page; what waits can still be answered with `llm-do approve`."""
        for task in self._tasks:
            task.cancel()
        await self._page.aclose()

    async def _tell(self, run: str, context: Context[None, Any]) -> None:
        with contextlib.suppress(OSError):  # no port, no browser: `llm-do approve` remains
            self._in_browser = await self._page.show()
        session, client = context.session, connection_of(context)
        if not opens_addresses(session.client_capabilities) or not session.can_send_request:
            return
        if any(inviting is client for inviting in self._inviting):
            return  # one invitation has no answer yet, or never got one: its page lists what waits
        invitation = await self.invitation(run)
        if invitation is not None:
            self._told.add(run)
            self._inviting.append(client)
            self._keep(self._invite(context, client, invitation))

    async def _invite(
        self, context: Context[None, Any], client: object | None, invitation: ElicitRequestURLParams
    ) -> None:
        # Not part of any result: the address is for the person, and no model reads it.
        named = invitation.model_copy(update={"elicitation_id": secrets.token_hex(8)})
        with contextlib.suppress(Exception):
            await back.ask(context, ElicitRequest(params=named), ElicitResult)
            self._inviting = [inviting for inviting in self._inviting if inviting is not client]

    def _keep(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
