"""Whether a worker can change anything: what its tool's annotations promise to a client.

A worker changes what it can change itself, and what any worker can that it may call, however far down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llm_do_mcp.runtime.policy import decide
from llm_do_mcp.toolsets import filesystem

if TYPE_CHECKING:
    from llm_do_mcp.project.effective import Worker
    from llm_do_mcp.toolsets.workbench import Workbench


class Changes:
    """Answers for the workers of one project, as it is at one moment. What one answer found out serves the next.

    Args:
        bench: The project's.
    """

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self._own: dict[str, bool] = {}
        self._callees: dict[str, tuple[Worker, ...]] = {}
        self._harmless: set[str] = set()

    def possible(self, worker: Worker) -> bool:
        """Whether a worker, or one that it may call, can do more than read."""
        found, todo = {worker.id}, [worker]
        while todo:
            one = todo.pop()
            if one.id in self._harmless:
                continue
            if self._itself(one):
                return True
            below = [callee for callee in self._called_by(one) if callee.id not in found]
            found.update(callee.id for callee in below)
            todo += below
        self._harmless |= found
        return False

    def _called_by(self, worker: Worker) -> tuple[Worker, ...]:
        if worker.id not in self._callees:
            self._callees[worker.id] = self._bench.callees_of(worker)
        return self._callees[worker.id]

    def _itself(self, worker: Worker) -> bool:
        if worker.id not in self._own:
            self._own[worker.id] = _can_change(self._bench, worker)
        return self._own[worker.id]


def _can_change(bench: Workbench, worker: Worker) -> bool:
    toolsets = worker.toolsets
    if toolsets.shell is not None or worker.named_tools or worker.own_tool_modules or worker.imported_tool_modules:
        return True
    if worker.creates_workers:
        return True
    writes = [] if toolsets.filesystem is None else filesystem.declare(worker.roots)
    writes = [declaration for declaration in writes if declaration.risk != "read"]
    if not writes:
        return False
    policy = bench.rules_of(worker)
    return any(decide(policy, declaration, {}, "worker")[0] != "deny" for declaration in writes)
