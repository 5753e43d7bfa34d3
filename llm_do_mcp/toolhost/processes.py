"""The processes of one tool host: the one for whoever begins now, and older ones that somebody still uses.

A process is *superseded* when its code is no longer that of the files: whoever holds it goes on with it, and it ends
when the last one lets go. It is *retired* when it is stuck or spoiled: nobody calls it any more, what runs in it may
finish, and then it ends.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Mapping

import anyio

from llm_do_mcp.toolhost.exchange import Host
from llm_do_mcp.toolhost.process import CannotStart, environment, interpreter


class Processes:
    """Starts, keeps and ends the processes of a project.

    Args:
        root: The project's folder, absolute.
        python: The interpreter; see `ToolHost`.
        env: Names of environment variables that they get besides the basics.
        libraries: Name → folder of the project's libraries.
        refused: Why none may be started, or None.
        prints_to: An open file to which what they print goes, or None.
        start_timeout: Seconds until a started process must answer.
    """

    def __init__(
        self,
        root: str,
        python: str | None,
        env: Collection[str],
        libraries: Mapping[str, str],
        refused: str | None,
        prints_to: int | None,
        start_timeout: float,
    ) -> None:
        self._root = root
        self._python = python
        self._env = tuple(env)
        self._libraries = dict(libraries)
        self._refused = refused
        self._prints_to = prints_to
        self._start_timeout = start_timeout
        self._current: Host | None = None
        self._alive: set[Host] = set()
        self._closed = False

    async def current(self) -> Host:
        """The process for whoever begins now, started if there is none.

        Raises:
            CannotStart: There cannot be one.
        """
        if self._refused is not None:
            raise CannotStart(self._refused)
        if self._closed:
            raise CannotStart("the tool host is closed")
        if self._current is None:
            self._current = self._start()
        return await self._started(self._current)

    async def another(self) -> Host:
        """A process for whoever asks, and nobody else.

        Raises:
            CannotStart: There cannot be one.
        """
        if self._closed:
            raise CannotStart("the tool host is closed")
        return await self._started(self._start())

    def _start(self) -> Host:
        python = interpreter(self._python, self._root)
        # Waits only until the program is loaded, a few milliseconds; a thread for it would let two start.
        env = environment(self._env, os.environ)
        host = Host(python, self._root, env, self._forget, self._libraries, self._prints_to)
        self._alive.add(host)
        return host

    async def _started(self, host: Host) -> Host:
        """The process, once it answers."""
        with anyio.move_on_after(self._start_timeout):
            refusal = await asyncio.shield(host.started)
            if refusal is None:
                return host
            self._stop(host, refusal)
            raise CannotStart(f"tools.python: {self._python or 'our interpreter'} cannot run the tool host: {refusal}")
        self._stop(host, "it did not start")
        raise CannotStart(f"the tool host did not answer within {self._start_timeout:g} s of its start")

    def supersede(self, host: Host) -> None:
        """Have another process for whoever begins from now on."""
        self._replace(host)
        host.supersede()

    def retire(self, host: Host) -> None:
        """Have another process for every call from now on."""
        self._replace(host)
        host.retire()

    def end(self, host: Host, reason: str, within: float) -> bool:
        """Kill a process with a call in it that does not stop; other calls may finish before, within so many seconds.

        Returns:
            Whether it was killed at once. Else it will be with the last of the others.
        """
        self.retire(host)
        alone = all(exchange.stopping for exchange in host.exchanges())
        if alone:
            host.kill(reason)
        else:
            asyncio.get_running_loop().call_later(within, host.kill, reason)
        return alone

    def kill(self) -> None:
        """End all at once, and start no other."""
        self._closed = True
        for host in list(self._alive):
            self._stop(host, "the server is stopping")

    async def aclose(self) -> None:
        """`kill`, and wait until they are gone."""
        self.kill()
        for host in list(self._alive):
            with anyio.move_on_after(1.0):
                await asyncio.wrap_future(host.process.ended)

    def _replace(self, host: Host) -> None:
        if self._current is host:
            self._current = None

    def _stop(self, host: Host, reason: str) -> None:
        self.retire(host)
        host.kill(reason)

    def _forget(self, host: Host) -> None:
        self._alive.discard(host)
        self._replace(host)
