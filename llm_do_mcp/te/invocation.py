"""One command from its words to its answer: its limits, the folder it works in, what is kept of it, what is logged.

`te [--json] grep|cat|find …`, `te --handle H [--chunk N]`, `te coach report`; `-i` before a command asks for its lines
without the envelope.
"""

from __future__ import annotations

import os
import time

from llm_do_mcp.te.envelope import LEAST_KEPT, Bare, Envelope, Frame, Json, Style, TeError, failure
from llm_do_mcp.te.settings import KEPT
from llm_do_mcp.te.text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from llm_do_mcp.te.handles import Handles
    from llm_do_mcp.te.roots import Workspace
    from llm_do_mcp.te.settings import Settings

JSON, RAW = "--json", "-i"
"""What may stand before a command: the form of its answer."""
COMMANDS = {"grep": "Grep", "cat": "Cat", "find": "Find"}
"""Each command is a class of this name, in a module of the command's name."""


class Terms:
    """What holds for a command whatever it asks; see `command.run`."""

    def __init__(
        self,
        *,
        roots: Mapping[str, str | int],
        budget: int | None,
        hidden: Sequence[str],
        suffixes: Mapping[str, Sequence[str]],
        confine: bool,
        kernel: bool | None,
        cancelled: Callable[[], bool] | None,
        seconds: float,
        settings: Settings,
        session: str,
        agent: str,
        folder: str | None,
        unlisted: Mapping[str, tuple[str, str]] | None,
        left_out: Mapping[str, str] | None,
    ) -> None:
        self.roots = roots
        self.budget = settings.budget(agent) if budget is None else budget
        self.hidden = hidden
        self.suffixes = suffixes
        self.confine = confine
        self.kernel = kernel
        self.cancelled = cancelled
        self.seconds = seconds
        self.settings = settings
        self.session = session
        self.agent = agent
        self.folder = folder
        self.unlisted = unlisted
        self.left_out = left_out

    @property
    def form(self) -> Envelope:
        """How an answer is written that nothing else is asked of."""
        return Envelope() if self.settings.enabled else Bare()


class Invocation:
    """One command.

    Args:
        terms: What holds for it.
    """

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.name = "te"
        self._frame = Frame(terms.budget, terms.form)
        self._strategy = ""
        self._handle = ""
        self._input_size = 0
        self._workspace: Workspace | None = None
        self.error = ""
        """The code of the error that the answer is about, or ""."""
        self._shortcoming = ""
        """The code of the error that an answer has which is there all the same, or ""."""

    def answer(self, arguments: Sequence[str]) -> tuple[str, int]:
        """The answer and grep's exit code. Never raises."""
        started = time.monotonic()
        try:
            text, code = self._run(list(arguments))
        except TeError as problem:
            self.error = problem.code
            text, code = failure(self.name, problem, self._frame), 2
        except Exception as fault:  # a fault of ours: told as one, and the caller goes on
            self.error = "internal"
            text, code = failure(self.name, _internal(fault), self._frame), 2
        finally:
            if self._workspace is not None:
                self._workspace.close()
        if self.terms.settings.telemetry:
            self._record(arguments, text, time.monotonic() - started)
        return text, code

    def _run(self, arguments: list[str]) -> tuple[str, int]:
        settings = self.terms.settings
        forms, arguments = forms_of(arguments)
        if len(forms) > 1:
            raise TeError("usage", f"{JSON} asks for an object, {RAW} for the tool's own output: ask for one of them")
        form = Json() if JSON in forms else Bare() if RAW in forms else self.terms.form
        self._frame = Frame(self.terms.budget, form)
        if arguments and arguments[0].partition("=")[0] in ("--handle", "--chunk"):
            self.name = "handle"
            return self._chunk(arguments), 0
        if arguments[:1] == ["coach"]:
            self.name = "coach"
            if arguments[1:] in (["--help"], ["report", "--help"]):
                return self._help(self.name), 0
            from llm_do_mcp.te.coach import report
            from llm_do_mcp.te.telemetry import Log

            log = Log(settings.base, settings.telemetry) if settings.telemetry else None
            return report(arguments[1:], log, self._frame), 0
        if not arguments or arguments[0] not in COMMANDS:
            given = f"not {one_line(arguments[0], 40)}" if arguments else "and none was given"
            if arguments in (["--help"], ["-h"], ["help"]):
                return self._help(), 0
            raise TeError("unknown_command", f"te knows the commands {', '.join(COMMANDS)}, {given}")
        self.name = arguments[0]
        if arguments[1:] == ["--help"]:
            return self._help(self.name), 0
        self._frame = Frame(settings.most(self.name, self.terms.budget), form, self._style())
        command = self._command(self.name, arguments[1:], self.terms.roots)
        if self.terms.session and not isinstance(form, Bare) and self._frame.budget >= LEAST_KEPT:
            self._frame.keep = lambda sections: self._keep(command, arguments, sections)
        answer: tuple[str, int] = command.run(self._frame)
        self._input_size = command.input_size
        self._shortcoming = str(command.fields.get("error", ""))
        return answer

    def _help(self, name: str = "") -> str:
        from llm_do_mcp.te import usage

        form, budget = self._frame.form, self._frame.budget
        text = usage.of_command(name) if name else usage.USAGE
        return form.within(usage.shortened(text, budget, lambda lines: form.text(self.name, {}, lines)), budget)

    def _command(self, name: str, arguments: Sequence[str], roots: Mapping[str, str | int]) -> Any:
        from llm_do_mcp.te.patience import Patience
        from llm_do_mcp.te.roots import Workspace

        terms, settings = self.terms, self.terms.settings
        here = ""
        if settings.root is not None and isinstance(folder := roots.get("."), str):
            here = os.path.realpath(folder)
            roots = {".": settings.root}
        self._workspace = Workspace(
            roots,
            hidden=(*terms.hidden, KEPT, *([os.path.basename(settings.telemetry)] if settings.telemetry else [])),
            suffixes=terms.suffixes,
            left_out=terms.left_out,
            guarded=terms.confine,
            here=here,
            open_ended=settings.allow_outside_root and not terms.confine,
            gitignore=settings.respect_gitignore,
            unlisted=terms.unlisted,
        )
        confined = terms.confine and (_kernel_confines() if terms.kernel is None else terms.kernel)
        patience = Patience(terms.settings.seconds(name, terms.seconds), terms.cancelled)
        kind = getattr(__import__(f"llm_do_mcp.te.{name}", fromlist=[COMMANDS[name]]), COMMANDS[name])
        return kind(arguments, self._workspace, patience, confined=confined)

    # ---- handles ----

    def _handles(self) -> Handles:
        from llm_do_mcp.te.handles import Handles

        return Handles(self.terms.session, self.terms.folder)

    def _keep(self, command: object, arguments: Sequence[str], sections: Sequence[Any]) -> str:
        from llm_do_mcp.te.recall import keep

        # A plain working directory is found again by its path, wherever the handle is asked for.
        plain = {alias: root for alias, root in self.terms.roots.items() if alias == "." and isinstance(root, str)}
        about = {"arguments": list(arguments), "roots": plain, "budget": self._frame.budget}
        handles = self._handles()
        self._handle = keep(command, handles, sections, about)
        self._frame.not_kept = handles.problem
        return self._handle

    def _chunk(self, arguments: Sequence[str]) -> str:
        from functools import partial

        from llm_do_mcp.te.patience import Interrupted
        from llm_do_mcp.te.recall import chunk_asked_for, make, serve

        handle, number = chunk_asked_for(arguments)
        self._handle = handle

        def again(about: Mapping[str, Any]) -> Any:
            name, *words = about["arguments"]
            return self._command(name, words, self._roots(about))

        handles = self._handles()
        try:
            kept = handles.text(handle, partial(make, again)) if self.terms.session else None
        except Interrupted as interruption:
            raise TeError(interruption.code, "the text of this handle was not ready in time") from interruption
        if handles.problem:
            raise TeError("not_kept", f"the text of {handle} cannot be written: {handles.problem}")
        if kept is None:
            raise TeError("unknown_handle", f"this session has no {handle}: handles end with their session")
        name, text = kept
        self._frame = Frame(self.terms.settings.most(name, self.terms.budget), self._frame.form)
        with text:
            return serve(handle, number, text, self._frame)

    def _roots(self, about: Mapping[str, Any]) -> Mapping[str, str | int]:
        return self.terms.roots if self.terms.confine or not about["roots"] else about["roots"]

    # ---- the coach, and the log it learns from ----

    def _style(self) -> Style:
        settings = self.terms.settings
        style = Style()
        if settings.coach and settings.telemetry:
            from random import Random

            from llm_do_mcp.te.strategies import STRATEGIES, TAIL, choose, scores
            from llm_do_mcp.te.telemetry import Log

            events = list(Log(settings.base, settings.telemetry).events(TAIL))
            names = list(STRATEGIES[self.name])
            scored = {
                strategy: values for (command, strategy), values in scores(events).items() if command == self.name
            }
            random = Random(None if settings.seed is None else f"{settings.seed} {len(events)}")
            self._strategy = choose(names, scored, settings.explore, random)
            style = STRATEGIES[self.name][self._strategy]
        most = settings.preview(self.name)
        if most is None:
            return style
        preview = most if style.preview is None else min(most, style.preview)
        return Style(preview, hot_zone=style.hot_zone, crumb_room=style.crumb_room)

    def _record(self, arguments: Sequence[str], text: str, seconds: float) -> None:
        from llm_do_mcp.te.telemetry import Log, command_event

        settings = self.terms.settings
        assert settings.telemetry is not None
        event = command_event(
            arguments,
            agent=self.terms.agent,
            session=self.terms.session,
            command=self.name,
            mode="error" if self.error else "raw" if isinstance(self._frame.form, Bare) else "enriched",
            input_size=self._input_size,
            answer=text,
            truncated=self._frame.truncated,
            handle=self._handle,
            seconds=seconds,
            error=self.error or self._shortcoming,
            strategy=self._strategy,
        )
        Log(settings.base, settings.telemetry).record(event)


def forms_of(arguments: Sequence[str]) -> tuple[set[str], list[str]]:
    """The forms that are asked for before a command, and the command."""
    at = 0
    while at < len(arguments) and arguments[at] in (JSON, RAW):
        at += 1
    return set(arguments[:at]), list(arguments[at:])


def _kernel_confines() -> bool:
    from llm_do_mcp.te import confine

    return confine.available()


def _internal(error: Exception) -> TeError:
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f"{type(error).__name__}, line {place.tb_lineno}" if place is not None else type(error).__name__
    return TeError("internal", f"internal error, operator intervention required ({where})")
