"""What the author of a tool imports: `from llm_do_mcp import tool, ToolContext`.

A tool is a typed function; `tool` only marks it, so the function stays what it was and can be tested as it is:

    from llm_do_mcp import ToolContext, tool

    @tool(risk="read", idempotent=True)
    def lines(context: ToolContext, path: str) -> int:
        "Counts the lines of a file of the project."
        return len((context.project_root / path).read_text().splitlines())
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, get_args, overload

Risk = Literal["read", "write", "network", "destructive"]
RISKS: tuple[str, ...] = get_args(Risk)

F = TypeVar("F", bound=Callable[..., Any])

_MARK = "__llm_do_tool__"


class Mark(NamedTuple):
    """What an author declared about a tool. `risk` None: undeclared."""

    risk: Risk | None = None
    idempotent: bool = False


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(*, risk: Risk | None = None, idempotent: bool = False) -> Callable[[F], F]: ...
def tool(function: F | None = None, /, *, risk: Risk | None = None, idempotent: bool = False) -> F | Callable[[F], F]:
    """Marks a function as a tool that workers can be given.

    Args:
        risk: What it can do at worst. "read" runs without asking, the others ask. Undeclared counts as "write".
        idempotent: Whether running it twice is the same as running it once. Where it is not, a call that was under way
            in a crash is never repeated without asking.

    Raises:
        ValueError: A risk that does not exist.
    """
    mark = checked_mark(risk, idempotent)

    def marked(function: F) -> F:
        setattr(function, _MARK, mark)
        return function

    return marked if function is None else marked(function)


def checked_mark(risk: Risk | None, idempotent: bool) -> Mark:
    """A mark of these values. Raises ValueError for a risk that does not exist."""
    if risk is not None and risk not in RISKS:
        raise ValueError(f"unknown risk {risk!r}; it is one of {', '.join(RISKS)}")
    return Mark(risk, bool(idempotent))


def mark_of(function: object) -> Mark | None:
    """What `tool` declared about a function, or None where it was not marked."""
    mark = getattr(function, _MARK, None)
    return mark if isinstance(mark, Mark) else None


class ToolContext(ABC):
    """The call that a tool is running in; given to a first parameter that is annotated `ToolContext`.

    In an `async def` tool, `call` and `ask` are awaited; in a plain function they simply return.
    """

    @abstractmethod
    def call(self, name: str, input: Any = None) -> Any:
        """Calls a worker (by its id) or another function (by its canonical name) and gives its result.

        It goes through the same limits, policy and record as a call by a worker's model.

        Raises:
            llm_do_mcp.errors.CallError: It was refused, or failed. `Refused`, `InvalidInput` … tell which.
        """

    @abstractmethod
    def ask(self, question: str) -> Any:
        """Asks the person in front and gives the answer.

        Raises:
            llm_do_mcp.errors.CallError: Nobody could be asked, or nobody answered.
        """

    @abstractmethod
    def log(self, message: str) -> None:
        """Adds a line to the run's record. After 1,000 lines of one call the rest is dropped."""

    @abstractmethod
    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Tells how far the call is. May be called as often as convenient: what comes too fast is dropped."""

    @property
    @abstractmethod
    def cancelled(self) -> bool:
        """Whether the call is no longer wanted. A long loop that looks at it, and returns, is not killed."""

    @property
    @abstractmethod
    def project_root(self) -> Path:
        """The project's folder."""
