"""Who answers where no person is to be asked: `--approvals` and `--approve-all` as a front of its own.

Like every front it only answers questions; the run knows nothing of it. What a crash left in doubt is no matter of
policy: that question always waits for a person.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from llm_do_mcp.errors import UsageError
from llm_do_mcp.runtime import lock
from llm_do_mcp.runtime.hint import plain
from llm_do_mcp.runtime.lock import Lock
from llm_do_mcp.runtime.question import Answer, Question

Mode = Literal["ask", "locked", "deny", "all"]
MODES: tuple[Mode, ...] = ("ask", "locked", "deny")
"""What `--approvals` takes; `all` has an option of its own."""

HELP = "ask a person (default), allow only what approvals.lock lists, or refuse whatever would ask"


@dataclass(frozen=True)
class Approvals:
    """What `--approvals` says.

    Args:
        mode: `ask` leaves every question to a person; `locked` allows what the lock does and refuses the rest; `deny`
            refuses; `all` allows every call, and leaves what a tool asks to a person.
        lock: For `locked`.
    """

    mode: Mode = "ask"
    lock: Lock = field(default_factory=Lock)

    def answer(self, question: Question) -> Answer | None:
        """The answer to a question; None where a person is to be asked."""
        if self.mode == "ask" or question.kind == "in_doubt":
            return None
        if self.mode == "all":
            return Answer("once", by="--approve-all") if question.kind == "approval" else None
        if self.mode == "deny" or question.kind == "question":
            return Answer(silence="policy", by=f"--approvals {self.mode}")
        difference = self.lock.difference(question)
        if difference is None:
            return Answer("once", by=lock.NAME)
        return Answer(silence="not_locked", note=difference, by=lock.NAME)

    def hides(self, worker: str, function: str) -> bool:
        """Whether a call that would ask could only be refused: all are, or the lock has nothing of that function.

        One that it has for other code stays in sight: that a lock is out of date must show.
        """
        return self.mode == "deny" or (self.mode == "locked" and not self.lock.names(worker, function))


def of_project(mode: Mode, root: str) -> Approvals:
    """What a mode means for a project.

    Raises:
        UsageError: `locked`, and there is no lock.
        ProjectError: The lock cannot be used.
    """
    if mode != "locked":
        return Approvals(mode)
    found = lock.read(root)
    if found is None:
        how = plain("approvals", "lock", "RUN", "--project", root)
        raise UsageError(f"there is no {lock.NAME} in the project; from a run it is written with: {how}")
    return Approvals(mode, found)
