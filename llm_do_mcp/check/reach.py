"""Which workers can be reached: from what is published and from the entry, by what each may call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from llm_do_mcp.check.finding import Finding
from llm_do_mcp.check.places import Places
from llm_do_mcp.errors import NotExported, NotLookedUp, ProjectError, WorkerNotFound
from llm_do_mcp.project.build import BrokenWorker
from llm_do_mcp.project.checked import collecting, nearest, quoted
from llm_do_mcp.project.effective import ANY_WORKER
from llm_do_mcp.project.references import covers, is_glob
from llm_do_mcp.toolsets.workbench import Workbench

if TYPE_CHECKING:
    from llm_do_mcp.project.effective import Worker

ALLOW_LISTS = (
    ("allow_workers",),
    ("toolsets", "delegation", "allow_workers"),
    ("toolsets", "delegation", "allow_templates"),
)


@dataclass
class Reach:
    """The workers of a project.

    Args:
        workers: Id → worker, of those that are whole: all of the project's own, and of libraries those that can be
            reached.
        drafts: Id → worker, of those that are broken, without what is wrong with them.
        reached: Ids of those that can be reached.
        problems: What is wrong with single workers.
        unclear: Ids of those of which it is not known what they may call, and what runs or asks of that.
    """

    workers: dict[str, Worker] = field(default_factory=dict)
    drafts: dict[str, Worker] = field(default_factory=dict)
    reached: set[str] = field(default_factory=set)
    problems: list[ProjectError] = field(default_factory=list)
    unclear: set[str] = field(default_factory=set)


def reach(bench: Workbench) -> Reach:
    """Look at all workers of a project, and at those of libraries that matter to it."""
    project, found = bench.project, Reach()
    with collecting(found.problems):
        found.problems += project.broken
        for identifier in project.scan().workers:
            _load(bench, found, identifier)
    waiting = [*project.exports.values(), *([project.entry] if project.entry is not None else [])]
    while waiting:
        worker = _load(bench, found, waiting.pop())
        if worker is None or worker.id in found.reached:
            continue
        found.reached.add(worker.id)
        waiting += [name for name in bench.named_callees(worker) if _dead(bench, worker, name) is None]
    return found


def unreachable(found: Reach, places: Places) -> Iterator[Finding]:
    """The workers of the project that nothing can reach."""
    for worker in found.workers.values():
        if worker.id not in found.reached:
            instead = f"add it to `exports` or to an `allow_workers`; `--entry {worker.id}` still runs it"
            message = f"nothing can reach {worker.id}: it is not exported, and no worker may call it; {instead}"
            yield places.of_worker("warning", message, worker)


def dead_entries(bench: Workbench, found: Reach, places: Places) -> Iterator[Finding]:
    """The entries of allow lists that mean no worker. One that is yet to be made in a session means none so far."""
    made = any(worker.creates_workers for worker in found.workers.values())
    for worker in (*found.workers.values(), *found.drafts.values()):
        for name in worker.allow_workers or ():
            if name == ANY_WORKER or name == worker.lock_worker:
                continue
            if (problem := _dead(bench, worker, name)) and not (made and not is_glob(name)):
                yield places.of_entry("warning", f"allow_workers: {problem}", worker, name, *ALLOW_LISTS)


def _dead(bench: Workbench, worker: Worker, name: str) -> str | None:
    """What is wrong with an entry of an allow list, or None."""
    if is_glob(name):
        if name.rpartition(":")[0] in bench.project.levels_of(worker.library)[0].lacking:
            return None
        matched = any(covers(name, identifier) for identifier in bench.project.within_reach(worker.library))
        return None if matched else f"{quoted(name)} matches no worker"
    try:
        bench.project.worker(name, from_library=worker.library)
    except NotExported as error:
        return error.message
    except NotLookedUp:
        return None
    except WorkerNotFound:
        return f"there is no worker {quoted(name)}; {nearest(name, bench.project.within_reach(worker.library))}"
    except ProjectError:
        return None  # it is there, and broken
    return None


def _load(bench: Workbench, found: Reach, identifier: str) -> Worker | None:
    """A worker by its whole id, or what it amounts to where it is broken; what is wrong with it is noted."""
    try:
        library = identifier.partition(":")[0] if ":" in identifier else None
        worker = bench.project.worker(identifier, from_library=library)
    except ProjectError as error:
        with collecting(found.problems):
            raise error
        if not isinstance(error, BrokenWorker):
            found.unclear.add(identifier)
            return None
        if not error.calls_are_known:
            found.unclear.add(identifier)
        return found.drafts.setdefault(identifier, error.draft)
    return found.workers.setdefault(worker.id, worker)
