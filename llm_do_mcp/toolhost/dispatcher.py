"""Runs what the server asks for: every call in a thread of its own, async functions on one loop.

There is no pool that could run full: 41 slow calls do not hold up the next, and a call that waits for a nested one
holds nothing. How many run at a time is the server's to decide.

The project's code can break what ours stands on. What it has broken for others is told with the frame that ends the
call (`vitals.py`), and the server lets go of the process; where our own code fails, the process ends at once, since
nothing that it says can be relied on any more.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import inspect
import os
import sys
import threading
import traceback
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any, Literal

from llm_do_mcp.toolhost.classes import ClassSchemas, class_schemas
from llm_do_mcp.toolhost.context import Call, CallContext, Cancelled
from llm_do_mcp.toolhost.descriptions import BrokenFunction, ToolModule
from llm_do_mcp.toolhost.discovery import Tool, discover
from llm_do_mcp.toolhost.frames import Frame
from llm_do_mcp.toolhost.modules import ImportFailed, ProjectImporter
from llm_do_mcp.toolhost.results import Unreturnable, checked_result, clean_text
from llm_do_mcp.toolhost.signatures import Mismatch
from llm_do_mcp.toolhost.vitals import Vitals

TRACEBACK_CHARS = 20_000
"""The end of a traceback, as much of it as is sent."""


class _Failure(Exception):
    """A call that cannot be done. `kind` tells the server whether its input is to blame, `raised` what the project's
    code raised: its traceback is for the server to show, which knows the secrets that must not be in it."""

    def __init__(self, kind: Literal["input", "failed"], message: str, raised: BaseException | None = None) -> None:
        super().__init__(message)
        self.kind, self.raised = kind, raised


def _error(kind: str, text: str, raised: BaseException | None = None) -> Frame:
    found = "" if raised is None else "".join(traceback.format_exception(raised))
    return {"say": "error", "kind": kind, "text": clean_text(text), "traceback": clean_text(found[-TRACEBACK_CHARS:])}


def _bound(code_hash: str, started_with: str) -> str:
    """The hash of code and of the settings that its process is started with; that of the code alone where none are."""
    return hashlib.sha256(f"{code_hash}\n{started_with}".encode()).hexdigest() if started_with else code_hash


class _Module:
    """A module that was loaded, or could not be. A failed import is not tried again: it may have had effects."""

    def __init__(self, path: str, importer: ProjectImporter) -> None:
        self.namespace: dict[str, Any] = {}
        self.tools: dict[str, Tool] = {}
        broken: dict[str, BrokenFunction] = {}
        error = None
        try:
            module = importer.load(path)
            self.namespace.update(vars(module))
            self.tools, broken = discover(module, path, importer)
        except ImportFailed as failed:
            error = str(failed)
        except BaseException as failed:  # `register` may raise whatever it likes
            error = importer.explain(failed, path)
        self.described = ToolModule(
            path=path,
            functions=tuple(self.tools[name].described for name in sorted(self.tools)),
            broken=tuple(broken[name] for name in sorted(broken)),
            error=error and clean_text(error),
            code_hash=importer.code_hash(path),
        )


class Dispatcher:
    """Takes the server's frames.

    Args:
        root: The project's folder, absolute.
        libraries: Name → folder, absolute, of its libraries.
        send: Sends a frame to the server; any thread may use it.
        end: Ends this process at once.
    """

    def __init__(
        self, root: str, libraries: Mapping[str, str], send: Callable[[Frame], None], end: Callable[[], None]
    ) -> None:
        self._root = root
        self._send = send
        self._end = end
        self._importer = ProjectImporter(root, libraries)
        self._vitals = Vitals()
        self._modules: dict[str, _Module] = {}
        self._loading = threading.RLock()
        self._calls: dict[int, Call] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_thread: threading.Thread | None = None
        self._loop_lock = threading.Lock()

    def handle(self, frame: Frame) -> None:
        """Acts on a frame. Returns at once, whatever the project's code does."""
        number, do = frame["call"], frame["do"]
        call = self._calls.get(number)
        if do == "cancel":
            if call is not None:
                call.cancel()
        elif do == "answer":
            if call is not None:
                call.answer(frame["question"], frame)
        elif do == "where":
            self._send({"call": number, "say": "place", "place": call and self._place_of(call)})
        else:
            call = self._calls[number] = Call(number, self._send)
            call.say("begun")  # from here on, nobody can know how far it came if this process dies
            try:
                threading.Thread(target=self._run, args=(call, frame), daemon=True, name=f"call-{number}").start()
            except RuntimeError:
                del self._calls[number]
                busy = _error("failed", "the tool host cannot start another thread; call again later")
                self._send({"call": number, **busy, "spoiled": self._vitals.broken()})

    def _run(self, call: Call, frame: Frame) -> None:
        try:
            self._answer(call, frame)
        except BaseException as error:
            # A fault of ours, or of what ours stands on: the server must not wait for ever, and others not suffer it.
            try:
                how = self._vitals.broken() or f"it failed: {error!r}"
                with contextlib.suppress(OSError):
                    os.write(2, f"the tool host ends, while {frame.get('module')} is used: {how}\n".encode())
                self._send({"call": call.number, "say": "died", "how": how, "alone": not self._others(frame)})
            finally:
                self._end()

    def _answer(self, call: Call, frame: Frame) -> None:
        call.thread_id = threading.get_ident()
        try:
            outcome = {"say": "result", "value": self._outcome(call, frame)}
        except _Failure as failure:
            outcome = _error(failure.kind, str(failure), failure.raised)
        except Cancelled:
            outcome = _error("failed", "cancelled")
        call.finish()
        self._calls.pop(call.number, None)
        self._return_home()
        self._send({"call": call.number, **outcome, "spoiled": self._vitals.broken()})

    def _outcome(self, call: Call, frame: Frame) -> Any:
        if frame["do"] == "keep":
            return self._keep(frame["modules"])
        if frame["do"] == "hash":
            return {"hash": self._importer.code_hash(frame["module"]), "stale": self._importer.is_stale()}
        if frame["do"] == "schemas":
            return self._schemas(frame["module"])
        known = frame["module"] in self._modules
        module = self._module(frame["module"])
        if frame["do"] == "describe":
            # A module that failed before may do better in a fresh process: what it lacked may be there now.
            failed = [module.described.path] if known and module.described.error is not None else []
            bound = replace(module.described, code_hash=_bound(module.described.code_hash, frame["started_with"]))
            return {"module": bound.to_json(), "stale": self._importer.is_stale(), "failed": failed}
        if module.described.error is not None:
            raise _Failure("failed", module.described.error)
        expected = frame.get("code_hash")
        if expected is not None and expected != _bound(module.described.code_hash, frame["started_with"]):
            raise _Failure("failed", f"{frame['module']}: its code is not the one that this call was meant for")
        if frame["do"] == "evaluate":
            return self._evaluate(call, module, frame)
        return self._call(call, module, frame)

    def _others(self, frame: Frame) -> bool:
        """Whether code has run here that the frame is not about."""
        return any(path != frame.get("module") for path in self._modules)

    def _keep(self, paths: list[str]) -> Any:
        self._importer.keep(paths)
        failed = [path for path in paths if path in self._modules and self._modules[path].described.error is not None]
        return {"stale": self._importer.is_stale(), "failed": failed}

    def _schemas(self, path: str) -> Any:
        """What the classes of a module describe, and which files that depends on."""
        found = ClassSchemas({}, {})
        error = None
        with self._loading:
            try:
                found = class_schemas(self._importer.load(path))
            except ImportFailed as failed:
                error = clean_text(str(failed))
            self._return_home()
        return {
            "schemas": found.schemas,
            "broken": found.broken,
            "error": error,
            "files": self._importer.executed(),
            "stale": self._importer.is_stale(),
            "failed": [],
        }

    def _call(self, call: Call, module: _Module, frame: Frame) -> Any:
        path, name = frame["module"], frame["function"]
        tool = module.tools.get(name)
        if tool is None:
            broken = {function.name: function.reason for function in module.described.broken}
            known = ", ".join(module.tools) or "none"
            raise _Failure("failed", broken.get(name) or f"{path}: no tool `{name}`; it has {known}")
        context = [CallContext(call, self._root)] if tool.signature.takes_context else []

        def run() -> Any:
            return tool.function(*context, **tool.signature.read(frame["input"]))

        try:
            return self._guarded(call, path, run, f"{tool.described.place}: `{name}`")
        except Mismatch as error:
            raise _Failure("input", f"{path}: `{name}`: {error}") from error

    def _evaluate(self, call: Call, module: _Module, frame: Frame) -> Any:
        path, name = frame["module"], frame["function"]
        function = module.namespace.get(name)
        if not inspect.isfunction(function):
            raise _Failure("failed", f"{path}: no function `{name}`")
        return self._guarded(call, path, lambda: function(frame["input"]), f"{path}: `{name}`")

    def _guarded(self, call: Call, path: str, run: Callable[[], Any], what: str) -> Any:
        """The checked result of the project's code; whatever it raises is a `_Failure` of one line.

        Args:
            call: The call.
            path: The module.
            run: The code.
            what: The function and its place, for what is wrong with its result.
        """
        try:
            value = run()
            if inspect.iscoroutine(value):
                value = self._await(call, value)
            return checked_result(value)
        except (Cancelled, Mismatch):
            raise
        except Unreturnable as error:
            raise _Failure("failed", f"{what}: {error}") from error
        except BaseException as error:
            if call.cancelled and isinstance(error, asyncio.CancelledError):
                raise Cancelled from error
            raise _Failure("failed", self._importer.explain(error, path), error) from error

    def _await(self, call: Call, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """What a coroutine returns or raises, run as a task of the loop that all async tools share."""
        loop = self._running_loop()

        async def guarded() -> tuple[Any, BaseException | None]:
            task = asyncio.current_task()
            assert task is not None
            call.run_as(loop, task)
            try:
                return await coroutine, None
            except BaseException as error:  # a SystemExit that reaches the loop would end it
                return None, error

        value, error = asyncio.run_coroutine_threadsafe(guarded(), loop).result()
        if error is not None:
            raise error
        return value

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._loop_lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._loop_thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="async-tools")
                self._loop_thread.start()
            return self._loop

    def _module(self, path: str) -> _Module:
        if (loaded := self._modules.get(path)) is not None:  # without waiting for an import that is under way
            return loaded
        with self._loading:
            if path not in self._modules:
                self._modules[path] = _Module(path, self._importer)
                self._return_home()
            return self._modules[path]

    def _place_of(self, call: Call) -> str | None:
        """Where in the project's code a call is at this moment."""
        thread_ids = [call.thread_id, self._loop_thread and self._loop_thread.ident]
        frames = sys._current_frames()
        for thread_id in thread_ids:
            place = thread_id and self._importer.place_of_frame(frames.get(thread_id))
            if place:
                return place
        return None

    def _return_home(self) -> None:
        """A tool that changed the working directory changed it for all: it is set back after each call."""
        with contextlib.suppress(OSError):
            os.chdir(self._root)
