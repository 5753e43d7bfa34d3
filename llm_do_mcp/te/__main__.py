"""The `te` command: searches the working directory, and answers on standard output.

Exit codes are grep's: 0 matches, 1 none, 2 an error (which the answer's header names).
"""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress

from llm_do_mcp.te.command import DEFAULT_HIDDEN, DEFAULT_SECONDS
from llm_do_mcp.te.envelope import Frame, TeError, failure
from llm_do_mcp.te.invocation import RAW, Invocation, Terms, forms_of
from llm_do_mcp.te.settings import HUMAN, Settings, load

_ABOUT_TE: tuple[list[str], ...] = ([], ["-h"], ["--help"], ["help"], ["--version"])
_LEAVINGS = 100_000
"""Objects after which what is left over is looked for: a usual command ends before."""


def main() -> None:
    """Run the command in `sys.argv` and exit."""
    gc.set_threshold(_LEAVINGS)
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if stream is None:  # closed: what is opened next would take its number, and its place
            os.open(os.devnull, os.O_RDWR)
    if sys.stdout is None:
        _complain("standard output is closed")
        sys.exit(2)
    try:
        answer, code = _answer(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(130)
    try:
        sys.stdout.buffer.write(answer.encode())
        sys.stdout.flush()
    except OSError as error:
        if not isinstance(error, BrokenPipeError):  # that one only means that the reader has seen enough
            _complain(f"the answer cannot be written: {error.strerror}")
            code = 2
    os._exit(code)  # all is written: taking the interpreter down in order would take as long as a small search


def _complain(problem: str) -> None:
    with suppress(OSError):
        os.write(2, f"te: {problem}\n".encode())


def _answer(arguments: list[str]) -> tuple[str, int]:
    forms, command = forms_of(arguments)
    is_raw, is_about_te = forms == {RAW}, arguments in _ABOUT_TE
    person = sys.stdout.isatty()
    agent = os.environ.get("TE_AGENT_ID") or (HUMAN if person else "")
    folder, settings = "", Settings()
    try:
        folder = os.getcwd()
        settings = load(folder)
    except OSError:
        if not is_about_te:
            return failure("te", TeError("path_not_found", "the working folder is gone"), Frame(16_000)), 2
    except TeError as error:
        if not (is_raw or is_about_te):  # the way out of the envelope is not barred by what is set for it
            return failure("te", error, Frame(16_000)), 2
    # Without an id of its own, a session is an agent at work in a folder.
    session = os.environ.get("TE_SESSION_ID") or f"{agent}@{folder}"

    def tell(name: str, error: str) -> None:
        if settings.telemetry:
            from llm_do_mcp.te.telemetry import Log, command_event

            mode = "error" if error else "raw"
            event = command_event(arguments, agent=agent, session=session, command=name, mode=mode, error=error)
            Log(settings.base, settings.telemetry).record(event)

    if is_about_te:
        tell("te", "" if arguments else "usage")
        return _about_te(arguments, settings.budget(agent))
    if is_raw or not settings.enabled:
        from llm_do_mcp.te.raw import run_raw

        if is_raw:
            return run_raw(command, tell)
        return run_raw(arguments, tell, called="te, which is switched off here (enabled = false),")
    invocation = Invocation(
        Terms(
            roots={".": folder},
            budget=None,
            hidden=DEFAULT_HIDDEN,
            suffixes={},
            confine=False,
            kernel=None,
            cancelled=None,
            seconds=DEFAULT_SECONDS,
            settings=settings,
            session=session,
            agent=agent,
            folder=None,
            unlisted=None,
            left_out=None,
        )
    )
    answer, code = invocation.answer(arguments[1:] if arguments[:1] == ["te"] else arguments)
    if agent == HUMAN and invocation.error == "internal":
        from llm_do_mcp.te.raw import run_raw

        _complain("internal error; this is the tool's own output")
        return run_raw(command)
    return answer, code


def _about_te(arguments: list[str], budget: int) -> tuple[str, int]:
    from llm_do_mcp.te.usage import USAGE, shortened

    text = USAGE
    if arguments == ["--version"]:
        import llm_do_mcp

        text = f"te {llm_do_mcp.__version__}\n"
    return shortened(text, budget), 0 if arguments else 2


if __name__ == "__main__":
    main()
