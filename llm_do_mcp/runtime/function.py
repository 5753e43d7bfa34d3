"""The one interface: workers, Python tools, file operations and search are all a `Function`.

A function has two halves. Its `Declaration` is plain data: what a model is told, what policy matches, what a
run's definition records. Its coroutine is bound to that data by the toolset that declared it, at the start of a
run and again when the run is resumed, so that a resumed run has exactly the functions it started with.

Nothing calls `Function.execute` but the gate (`gate.py`): whoever calls whichever, it is `call(name, input)`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from llm_do_mcp.runtime.gate import Call

JSON = Any
"""A value that JSON can hold; what goes in and out of every function."""

Risk = Literal["read", "write", "network", "destructive"]


@dataclass(frozen=True)
class Declaration:
    """What a function is, as data.

    Args:
        name: The canonical name, which policy and journal use: `files.read`, `worker.call`, `custom.add`, `te`.
        shown: The name its caller sees: `read_file`.
        description: What a model is told.
        input_schema: JSON Schema of the input; always an object.
        output_schema: JSON Schema of the output, or None where the output is text.
        risk: What a call may do at worst.
        idempotent: Made twice, a call does what it does when it is made once.
        nested: The call is a run of its own (a sub-worker): it keeps its own records and is no single step.
        toolset: Which toolset binds it again.
        options: What that toolset needs to bind it, as JSON.
        code: Hash of the code behind it, or "" where that is this package.
    """

    name: str
    shown: str
    description: str
    input_schema: Mapping[str, JSON]
    output_schema: Mapping[str, JSON] | None = None
    risk: Risk = "write"
    idempotent: bool = False
    nested: bool = False
    toolset: str = ""
    options: Mapping[str, JSON] = field(default_factory=dict)
    code: str = ""

    @property
    def repeatable(self) -> bool:
        """Whether a call that was cut short may simply be made again."""
        return self.risk == "read" or self.idempotent


@dataclass(frozen=True)
class Preview:
    """What a call would do, for the person who is asked.

    Args:
        action: A fixed label of ours: "write a file".
        target: What it would be done to (`alias/path`), or "" where there is no such thing.
        detail: What helps to decide, such as a unified diff; may be long.
        scope: What "for the rest of this run" covers besides the function: an alias, a command.
        basis: What this was made against, such as the digest of a file's present bytes, or "": the call is only made
            while that is so, see `Outdated`. Made twice, such a call does what it does when it is made once.
    """

    action: str
    target: str = ""
    detail: str = ""
    scope: str = ""
    basis: str = ""


async def _plain_preview(call: Call) -> Preview:
    return Preview(action=f"call {call.function.declaration.shown}")


@dataclass(frozen=True)
class Function:
    """A declaration with its coroutine.

    Args:
        declaration: The data half.
        execute: Does the call and returns its output; raises `CallError` for what the caller should be told.
        preview: Tells what the call would do, without doing it.
        now: Tells what the function is at this moment, for code that may have been edited since it was declared; raises
            an `LlmDoError` where it is no longer there.
        subject: Tells what a call with an input is done to, for policy, where the input alone does not say it in its
            one spelling; raises `InvalidInput` where it could mean nothing.
    """

    declaration: Declaration
    execute: Callable[[Call], Awaitable[JSON]]
    preview: Callable[[Call], Awaitable[Preview]] = _plain_preview
    subject: Callable[[JSON], str] | None = None
    now: Callable[[], Awaitable[Declaration]] | None = None
