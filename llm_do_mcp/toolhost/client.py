"""The tool host as the server uses it: describe a project's tool modules, call their functions.

`ToolHost` keeps one child process, started when first needed and replaced when it dies, is stuck or spoiled, or holds
code that has been edited. Whoever needs one state of the code for longer than a call takes a `snapshot`: that keeps the
process that it began with (`processes.py`).

What must stop is stopped in three steps: the call is told (`ctx.cancelled`); if it does not end, the process is
retired, so that new calls go to a new one; then it is killed. When `call` returns or raises, however it does, its
function is no longer running, with one exception: where other calls are under way in the process, they may finish, for
a while, and what had to be stopped is killed with the last of them. Nobody waits for that, and nobody hears it.

An import may end its process, or never end. So code that was not imported yet is imported where nothing can be lost: in
a process in which nothing was called so far, else in one of its own first. What does not survive that is remembered by
the hash of its code, and not imported again until that is another one.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import logging
import os
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio

from llm_do_mcp.errors import CallError, FunctionFailed, InvalidInput, ProjectError, ToolHostDied
from llm_do_mcp.toolhost.descriptions import BrokenFunction, SchemaModule, ToolFunction, ToolModule
from llm_do_mcp.toolhost.exchange import Exchange, Host, NotBegun
from llm_do_mcp.toolhost.frames import Frame
from llm_do_mcp.toolhost.process import CannotStart
from llm_do_mcp.toolhost.processes import Processes
from llm_do_mcp.toolhost.trials import Trials

__all__ = ["BrokenFunction", "SchemaModule", "ToolFunction", "ToolHost", "ToolModule"]

ATTEMPTS = 3

_log = logging.getLogger(__name__)


class ToolHost:
    """The child process that holds a project's Python. It belongs to the event loop that uses it first.

    Args:
        project_root: The project's folder; the working directory of the tools.
        python: The interpreter (`tools.python`): None for ours, a command, or a path from the project's folder.
        env: Names of environment variables that the tools get besides the basics (`tools.env`).
        libraries: Name → folder of the project's libraries.
        admit: Called in a thread before a module is imported; raises `ProjectError` where it must not be.
        refused: Why no Python may be loaded (`--no-import-tools`): nothing is ever started then. None where it may.
        prints_to: An open file to which what the tools print goes; None for our error output.
        start_timeout: Seconds until a started process must answer.
        import_timeout: Seconds that the import of a module may take.
        cancel_grace: Seconds that a cancelled call has to end by itself.
        drain: Seconds that the other calls have to finish in a process that must be killed.
    """

    def __init__(
        self,
        project_root: str | os.PathLike[str],
        *,
        python: str | None = None,
        env: Collection[str] = (),
        libraries: Mapping[str, str] | None = None,
        admit: Callable[[str], None] | None = None,
        refused: str | None = None,
        prints_to: int | None = None,
        start_timeout: float = 10.0,
        import_timeout: float = 10.0,
        cancel_grace: float = 0.5,
        drain: float = 10.0,
    ) -> None:
        root = os.path.abspath(project_root)
        self._processes = Processes(root, python, env, libraries or {}, refused, prints_to, start_timeout)
        self._started_with = json.dumps([python, sorted(env)]) if python or env else ""
        self._admit = admit
        self._import_timeout = import_timeout
        self._cancel_grace = cancel_grace
        self._drain = drain
        self._trials = Trials()
        self._kept: _Kept | None = None

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[ToolHost]:
        """This tool host, with one state of the project's code, whatever is edited meanwhile.

        It keeps the process that it comes to need first. Where that ends, it goes on with a new one, in which the
        files are as they are by then; a call that names its `code_hash` is not run there if they are others.
        """
        view = copy.copy(self)
        view._kept = kept = _Kept()
        try:
            yield view
        finally:
            kept.let_go()

    async def keep(self, modules: Collection[str]) -> None:
        """Has a snapshot keep modules, and what they import, as they are on disk now. Nothing is imported for it.

        Args:
            modules: As for `describe`. One that cannot be read is told of when it is needed.
        """
        if self._kept is not None and not self._kept.modules.issuperset(modules):
            with contextlib.suppress(CannotStart):  # told of by whoever calls something
                await self._keeping(self._kept, modules)

    async def describe(self, modules: Sequence[str]) -> tuple[ToolModule, ...]:
        """What the modules hold, as they are on disk now. A module that cannot be loaded has an `error`; none raises.

        Args:
            modules: Paths relative to the project (`tools.py`, `workers/x/tools.py`, a folder with an `__init__.py`),
                and modules that Python imports by name, with what registers their tools (`my_project.tools:register`).
        """
        return tuple([await self._describe(path) for path in modules])

    async def schemas(self, module: str) -> SchemaModule:
        """The JSON Schemas of the classes of a module, as it is on disk now. It never raises, as `describe`.

        Args:
            module: A path relative to the project, or `my_project.schemas:Class` for what Python imports by name.
        """
        try:
            value = await self._fresh(module, "schemas")
        except _NotImported as failed:
            return SchemaModule(module, error=str(failed))
        return SchemaModule(module, value["schemas"], value["broken"], value["error"], value["files"])

    async def call(
        self,
        module: str,
        function: str,
        arguments: dict[str, Any],
        *,
        on_call: Callable[[str, Any], Awaitable[Any]] | None = None,
        on_ask: Callable[[str], Awaitable[Any]] | None = None,
        on_log: Callable[[str], Awaitable[None]] | None = None,
        on_progress: Callable[[float, float | None, str], Awaitable[None]] | None = None,
        timeout: float | None = None,
        code_hash: str | None = None,
    ) -> Any:
        """Calls a tool and gives its result as plain JSON values.

        Cancelling it cancels the call, as the module's docstring says.

        Args:
            module: As for `describe`.
            function: The tool's name.
            arguments: By parameter, plain JSON values.
            on_call, on_ask: What the context's `call` and `ask` reach; None refuses them. A `CallError` that they raise
                is raised in the tool, which may go on; anything else stops the tool, and is raised from here.
            on_log, on_progress: What the context's `log` and `progress` reach; None drops them.
            timeout: Seconds that it may run; while a question of its context is open, the clock stands still.
            code_hash: Of the module, as described: if its code has changed since, nothing is run.

        Raises:
            InvalidInput: The arguments do not fit.
            ToolHostDied: The process ended while the function ran; whether it took effect is unknown.
            FunctionFailed: It raised, took too long, returned what JSON cannot carry, or could not be run at all.
        """
        request: Frame = {"do": "call", "module": module, "function": function, "input": arguments}
        request |= {"code_hash": code_hash, "started_with": self._started_with}
        return await self._run(request, _Callbacks(on_call, on_ask, on_log, on_progress), timeout)

    async def evaluate(self, module: str, function: str, payload: Any, *, timeout: float | None = None) -> Any:
        """Calls any function of a project's file with one JSON value: it need not be a tool, nor be annotated.

        Raises as `call`.
        """
        request = {"do": "evaluate", "module": module, "function": function, "input": payload}
        return await self._run(request, _Callbacks(), timeout)

    def kill(self) -> None:
        """Ends everything at once: calls under way raise `ToolHostDied`, later ones are refused."""
        self._processes.kill()

    async def aclose(self) -> None:
        """`kill`, and waits until the processes are gone."""
        await self._processes.aclose()

    # ---- one process

    async def _host(self) -> Host:
        """The process for a new call, started if there is none.

        Raises:
            CannotStart: There cannot be one.
        """
        return await self._processes.current() if self._kept is None else await self._keeping(self._kept, ())

    async def _keeping(self, kept: _Kept, modules: Collection[str]) -> Host:
        """The process that a snapshot keeps, with these modules as they are, or were when they were first kept.

        Raises:
            CannotStart: There cannot be one.
        """
        async with kept.lock:
            for _ in range(ATTEMPTS):
                begun = kept.host
                if begun is not None and kept.modules.issuperset(modules):
                    return begun
                host = begun or await self._processes.current()
                with contextlib.suppress(NotBegun), kept.taking(host):
                    kept_now = await self._glance(host, {"do": "keep", "modules": sorted(kept.modules.union(modules))})
                    if begun is None and (kept_now["stale"] or await self._do_better(kept_now["failed"])):
                        self._processes.supersede(host)
                        raise NotBegun
                    kept.modules.update(modules)
                    return host
            raise CannotStart("the tool host keeps ending, or its code being edited, before anything can begin in it")

    async def _glance(self, host: Host, request: Frame) -> dict[str, Any]:
        """What a process answers to a request for which none of the project's code runs.

        Raises:
            NotBegun: It does not answer, or ended.
        """
        try:
            frame = await self._exchange(
                host,
                {"module": "", **request},
                _Callbacks(),
                self._import_timeout,
                stopped="it did not answer",
                grace=0,
            )
        except _TimedOut:
            raise NotBegun from None
        if frame["say"] != "result":
            raise NotBegun
        value: dict[str, Any] = frame["value"]
        return value

    # ---- one call

    async def _describe(self, path: str) -> ToolModule:
        try:
            return ToolModule.from_json((await self._fresh(path, "describe"))["module"])
        except _NotImported as failed:
            return ToolModule(path, error=str(failed))

    async def _fresh(self, path: str, do: str) -> dict[str, Any]:
        """What a module that is imported is found to hold, in a process whose code is not older than the files.

        Raises:
            _NotImported: It could not be imported.
        """
        found: dict[str, Any] | None = None
        for _ in range(ATTEMPTS):
            try:
                host = await self._host()
                found = await self._import(host, path, do)
            except CannotStart as error:
                raise _NotImported(f"{path}: {error}") from error
            except NotBegun:
                continue
            if self._kept is not None or not (found["stale"] or await self._do_better(found["failed"])):
                return found
            self._processes.supersede(host)
        if found is None:
            raise _NotImported(f"{path}: the tool host keeps ending before it can import it")
        return found

    async def _import(self, host: Host, path: str, do: str = "describe") -> dict[str, Any]:
        """Has a module imported. Also tells whether this process holds code that has been edited since (`stale`).

        Raises:
            _NotImported: It did not end, or ended the process, now or before.
            NotBegun: The process ended, and this import is not to blame.
            CannotStart: It must be tried in another process, and there cannot be one.
        """
        if self._admit is not None:
            try:
                await asyncio.to_thread(self._admit, path)
            except ProjectError as error:
                raise _NotImported(str(error)) from error
        if (do, path) in host.loaded:
            async with host.importing:
                return await self._load(host, path, do)
        async with self._trials.of(do, path):
            code = await self._glance(host, {"do": "hash", "module": path})
            if (failure := self._trials.failure(do, path, code["hash"])) is not None:
                if code["stale"] and self._kept is None:
                    self._processes.supersede(host)
                    raise NotBegun
                raise _NotImported(failure)
            if not self._trials.survived(do, path, code["hash"]):
                async with host.importing:
                    if not host.called:
                        with host.trial():
                            return await self._load(host, path, do, code["hash"])
                # A snapshot may keep code that is on disk no longer: there is no other place to try that.
                await self._try(path, do, code["hash"])
            async with host.importing:
                return await self._load(host, path, do, code["hash"])

    async def _try(self, path: str, do: str, code_hash: str | None = None) -> dict[str, Any] | None:
        """Has a module imported in a process of its own, which ends with that.

        Args:
            code_hash: Of the code that is meant; None for the one that is on disk.

        Returns:
            None where nothing was tried: other code is on disk, or it failed before.

        Raises:
            _NotImported, NotBegun, CannotStart: As for `_import`.
        """
        host = await self._processes.another()
        try:
            found: str = (await self._glance(host, {"do": "hash", "module": path}))["hash"]
            if code_hash not in (None, found) or self._trials.failure(do, path, found) is not None:
                return None
            return await self._load(host, path, do, found)
        finally:
            host.kill("it was a trial")

    async def _do_better(self, failed: Sequence[str]) -> bool:
        """Whether a module that raised when it was imported would not do so now: what it lacked may be there."""
        for path in failed:
            with contextlib.suppress(_NotImported, NotBegun, CannotStart):
                found = await self._try(path, "describe")
                if found is not None and found["module"]["error"] is None:
                    return True
        return False

    async def _load(self, host: Host, path: str, do: str, code_hash: str = "") -> dict[str, Any]:
        """Has a module imported here and now, unless it is there already, and remembers how that went.

        Args:
            code_hash: Of its code; empty where it is there already.

        Raises:
            _NotImported, NotBegun: As for `_import`.
        """
        request = {"do": do, "module": path, "started_with": self._started_with}
        stopped = f"the import of {path} did not end"
        try:
            frame = await self._exchange(host, request, _Callbacks(), self._import_timeout, stopped=stopped, grace=0)
        except _TimedOut as late:
            what = f"{late.place or path}: still importing after {self._import_timeout:g} s; it was stopped"
            raise _NotImported(self._trials.failed(do, path, code_hash, what)) from late
        if frame["say"] == "died":
            if host.killed or not frame["alone"]:
                raise NotBegun  # an unfinished import has no effects to lose
            what = f"{path}: the tool host ended while it was imported ({frame['how']})"
            raise _NotImported(self._trials.failed(do, path, code_hash, what))
        if frame["say"] == "error":
            raise _NotImported(f"{path}: {frame['text']}")
        value: dict[str, Any] = frame["value"]
        if (spoiled := frame["spoiled"]) is not None:
            what = value["module"]["error"] if do == "describe" else value["error"]
            what = what or f"{path}: its import breaks what all code in the process stands on: {spoiled}"
            raise _NotImported(self._trials.failed(do, path, code_hash, what))
        host.loaded.add((do, path))
        self._trials.went_well(do, path, code_hash)
        return value

    async def _run(self, request: Frame, callbacks: _Callbacks, timeout: float | None) -> Any:
        path, name = request["module"], request["function"]
        stopped = f"`{name}` of {path} did not end"
        for _ in range(ATTEMPTS):
            try:
                host = await self._host()
                if ("describe", path) not in host.loaded:  # its import has a time limit of its own
                    error = (await self._import(host, path))["module"]["error"]
                    if error is not None:
                        raise FunctionFailed(error)
                await host.admit_call()
                frame = await self._exchange(
                    host, request, callbacks, timeout, stopped=stopped, grace=self._cancel_grace
                )
            except NotBegun:
                continue
            except _NotImported as failed:
                raise FunctionFailed(str(failed)) from failed
            except CannotStart as error:
                raise FunctionFailed(f"{path}: `{name}` cannot be run: {error}") from error
            except _TimedOut as late:
                message = f"{late.place or path}: `{name}` was still running after {timeout:g} s; it was stopped"
                raise FunctionFailed(message) from None
            if frame["say"] == "result":
                return frame["value"]
            if frame["say"] == "died":
                how = host.killed or frame["how"]
                raise ToolHostDied(f"{path}: the tool host ended while `{name}` ran ({how}); its effect is unknown")
            if frame["kind"] == "input":
                raise InvalidInput(frame["text"])
            raise FunctionFailed(frame["text"], frame["traceback"])
        raise FunctionFailed(f"{path}: the tool host keeps ending before `{name}` can begin; nothing was run")

    async def _exchange(
        self,
        host: Host,
        request: Frame,
        callbacks: _Callbacks,
        timeout: float | None,
        *,
        stopped: str,
        grace: float,
    ) -> Frame:
        """Has one request carried out and gives the last frame about it. However this ends, it is no longer running.

        Args:
            stopped: What the other calls are told where the process has to be killed because of this one.
            grace: Seconds that it has to end by itself.

        Raises:
            InvalidInput: The request cannot be carried.
            NotBegun: The process ended before the request reached it.
            _TimedOut: It ran for longer than it may.
        """
        try:
            exchange = host.begin(request)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInput(f"{request['module']}: the arguments cannot be carried as JSON ({error})") from error
        try:
            frame = await self._converse(exchange, callbacks, timeout)
        except BaseException:
            await self._end(host, exchange, stopped, grace)
            raise
        finally:
            host.finish(exchange)
        if frame["say"] == "died" and not exchange.begun:
            raise NotBegun
        if (spoiled := frame.get("spoiled")) is not None:
            self._processes.retire(host)
            what = " ".join(filter(None, (request["module"], request.get("function"))))
            _log.warning("after %s: %s; other calls go to a new tool host", what, spoiled)
        return frame

    async def _converse(self, exchange: Exchange, callbacks: _Callbacks, timeout: float | None) -> Frame:
        """Answers what a call asks until its last frame, which it gives.

        Raises:
            _TimedOut: It ran for longer than it may.
            Exception: What a callback raised that is not the tool's to handle.
        """
        remaining = timeout
        open_questions = 0
        last: Frame | None = None
        failure: Exception | None = None
        async with anyio.create_task_group() as group:
            while last is None and failure is None:
                began = time.monotonic()
                frame = await exchange.receive(None if open_questions else remaining)
                if remaining is not None and not open_questions:
                    remaining -= time.monotonic() - began
                match frame:
                    case None:
                        failure = _TimedOut(await exchange.place())
                    case {"say": "question"}:
                        open_questions += 1
                        group.start_soon(_answer, exchange, callbacks, frame)
                    case {"say": "answered", "failure": broken}:
                        open_questions -= 1
                        failure = broken
                    case {"say": "log" | "progress"}:
                        failure = await _tell(callbacks, frame)
                    case _:  # its last
                        last = frame
            group.cancel_scope.cancel()
        if failure is not None:
            raise failure
        assert last is not None
        return last

    async def _end(self, host: Host, exchange: Exchange, reason: str, grace: float) -> None:
        """Sees to it that a call is no longer running: asks it to end, then retires and kills its process."""
        exchange.stopping = True
        with anyio.CancelScope(shield=True):
            exchange.send({"do": "cancel"})
            if await exchange.ends_within(grace):
                return
            if self._processes.end(host, reason, self._drain):
                await exchange.ends_within(1.0)


@dataclass(frozen=True)
class _Callbacks:
    """What a tool's `ToolContext` reaches; see `ToolHost.call`."""

    call: Callable[[str, Any], Awaitable[Any]] | None = None
    ask: Callable[[str], Awaitable[Any]] | None = None
    log: Callable[[str], Awaitable[None]] | None = None
    progress: Callable[[float, float | None, str], Awaitable[None]] | None = None


class _Kept:
    """What a snapshot keeps."""

    def __init__(self) -> None:
        self.lock = anyio.Lock()
        self.modules: set[str] = set()
        self._host: Host | None = None

    @property
    def host(self) -> Host | None:
        """Its process; None where there is none yet, or none that takes calls."""
        if self._host is not None and not self._host.takes_calls:
            self.let_go()
        return self._host

    @contextlib.contextmanager
    def taking(self, host: Host) -> Iterator[None]:
        """Holds a process, from now on where nothing is raised."""
        held = self._host
        if held is None:
            self._host = host
            host.hold()
        try:
            yield
        except BaseException:
            if held is None:
                self.let_go()
            raise

    def let_go(self) -> None:
        if self._host is not None:
            self._host.let_go()
            self._host = None


class _NotImported(Exception):
    """A module that could not be imported; the text is one line."""


class _TimedOut(Exception):
    """A call ran for longer than it may. `place`: where it was then, where that could be found out."""

    def __init__(self, place: str | None) -> None:
        super().__init__(place)
        self.place = place


async def _tell(callbacks: _Callbacks, frame: Frame) -> Exception | None:
    """Passes on what a tool tells. Gives what the callback raised, if it did."""
    try:
        if frame["say"] == "log" and callbacks.log is not None:
            await callbacks.log(frame["text"])
        elif frame["say"] == "progress" and callbacks.progress is not None:
            await callbacks.progress(frame["done"], frame["total"], frame["text"])
    except Exception as error:
        return error
    return None


async def _answer(exchange: Exchange, callbacks: _Callbacks, question: Frame) -> None:
    """Answers a question of a tool, and tells the conversation that it was answered."""
    answer: Frame = {"do": "answer", "question": question["question"]}
    failure: Exception | None = None
    try:
        exchange.send(answer | {"value": await _answer_to(callbacks, question)})
    except CallError as error:
        exchange.send(answer | {"error": str(error), "kind": type(error).__name__})
    except Exception as error:
        failure = error
    exchange.deliver({"say": "answered", "failure": failure})


async def _answer_to(callbacks: _Callbacks, question: Frame) -> Any:
    if question["what"] == "call":
        if callbacks.call is None:
            raise FunctionFailed("other functions cannot be called from here")
        return await callbacks.call(question["name"], question["input"])
    if callbacks.ask is None:
        raise FunctionFailed("nobody can be asked from here")
    return await callbacks.ask(question["text"])
