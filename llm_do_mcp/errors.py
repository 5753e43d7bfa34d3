"""Every error that a person can meet, in one hierarchy.

Each error is one line that says what was wrong, where, and what is allowed instead. Nothing else reaches a
person: whoever catches an `LlmDoError` may print `str(error)` as it is. Anything that is not an `LlmDoError`
is a fault of ours and is reported as one.

`te` stands alone and reports its errors in its own envelope (see `te/envelope.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class LlmDoError(Exception):
    """Base of all errors that a person can meet."""


class UsageError(LlmDoError):
    """A command line or a start-up setting that cannot be used."""


class ProjectError(LlmDoError):
    """Something in a project's files that cannot be used.

    Args:
        message: What is wrong and what is allowed instead, in one line.
        path: The file as a person would name it (relative to the project where it lies inside).
        line, column: Where in the file, counted from 1.
    """

    def __init__(
        self, message: str, *, path: str | None = None, line: int | None = None, column: int | None = None
    ) -> None:
        self.message, self.path, self.line, self.column = message, path, line, column
        place = ":".join(str(part) for part in (path, line, column) if part is not None)
        super().__init__(f"{place}: {message}" if place else message)


class InvalidFile(ProjectError):
    """A project file with everything that is wrong in it: reads as the first problem and how many more there are.

    Args:
        problems: Each problem on its own; at least one.
    """

    def __init__(self, problems: Sequence[ProjectError]) -> None:
        first, more = problems[0], len(problems) - 1
        message = f"{first.message} (and {more} more)" if more else first.message
        super().__init__(message, path=first.path, line=first.line, column=first.column)
        self.problems = tuple(problems)


class WorkerNotFound(ProjectError):
    """A worker reference that names no worker."""


class AmbiguousWorker(ProjectError):
    """A worker reference that names more than one worker on the same level."""


class InvalidReference(ProjectError):
    """A reference to a worker, template, schema or tool module that is not of an allowed form."""


class LibraryNotFound(ProjectError):
    """A library that a project needs and that is nowhere it was looked for, or is no library."""


class LibraryConflict(ProjectError):
    """Libraries that cannot be had together: they depend on each other, or on two versions of one.

    A conflict of versions is told in three lines, who needs which; every other error is one line.
    """


class NotExported(WorkerNotFound):
    """A worker reference that names what a library keeps to itself."""


class NotLookedUp(WorkerNotFound):
    """A worker reference that may lead into a library that could not be had, which is told of already."""


class TemplateFailed(ProjectError):
    """A template that cannot be rendered: undefined variable, forbidden access, or over its limit."""


class LibraryChanged(ProjectError):
    """A library, or a file of it, that is not what the project's `libs.lock` has."""


class ToolModuleError(ProjectError):
    """A tool module that cannot be loaded, or a function in it that cannot be published."""


class SandboxError(LlmDoError):
    """A path that a sandbox refuses, or a file that is not what the operation needs."""


class FileMissing(SandboxError):
    """Nothing is there: apart from the other errors because an optional file may be missing."""


class CallError(LlmDoError):
    """A call of a function that did not give a result. A worker's model is shown it and may go on."""


class InvalidInput(CallError):
    """Arguments that do not fit the function's input schema."""


class InvalidOutput(CallError):
    """A result that does not fit the function's output schema."""


class Refused(CallError):
    """A call that policy or a person refused, or that nobody could be asked about. Nothing was run."""


class Outdated(CallError):
    """What a person was shown of a call is no longer what it would do. Nothing was done; it has to be asked again."""


class FunctionFailed(CallError):
    """A function that ran and failed, or could not be run at all.

    Args:
        message: One line.
        traceback: Where the project's Python raised, for its author; "" elsewhere.
    """

    def __init__(self, message: str, traceback: str = "") -> None:
        super().__init__(message)
        self.traceback = traceback


class ToolHostDied(FunctionFailed):
    """The tool host ended or was killed while the call was under way; its effect is unknown."""


class ModelError(LlmDoError):
    """A model that could not be reached, refused, or answered with something unusable.

    Attributes:
        lost: The `Usage` of each of its replies that came to nothing and is paid for all the same.
    """

    lost: tuple[Any, ...] = ()


class ModelUnavailable(ModelError):
    """A model that did not serve a request which another model may serve: a fallback chain goes on after it."""


class Unanswered(ModelError):
    """A turn that no model of a worker's chain answered.

    Args:
        message: Why, of the last one that was asked and of those before it.
        told: What the record keeps of it beside the message, as `error`: `asked` (the last model), and what a reply
            has of those that failed, see `runtime/chain.py`.
    """

    def __init__(self, message: str, told: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.told = {"error": message, **told}


class RunError(LlmDoError):
    """A run that cannot be found, driven, resumed or answered."""


class LimitReached(RunError):
    """A limit of a run that was met.

    Args:
        message: Names the limit and the worker that has it.
        meter: The meter that was full: a parent goes on where only its sub-worker's limit was met.
    """

    def __init__(self, message: str, meter: object = None) -> None:
        super().__init__(message)
        self.meter = meter


class InDoubt(RunError):
    """A step that must not run twice was under way when its process died; a person has to decide."""


class Diverged(RunError):
    """A replay asked for another step than the journal holds."""


class LeaseLost(RunError):
    """Another process drives the run."""
