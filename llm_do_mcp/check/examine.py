"""From a folder to all that can be said about the project in it.

A project is loaded as far as that goes. What is wrong with the manifest does not hide what is wrong with the workers:
where the manifest, or a library, cannot be used at all, each worker's file is still read for itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from llm_do_mcp.check import odd, policy, python
from llm_do_mcp.check.finding import Finding
from llm_do_mcp.check.places import Places
from llm_do_mcp.check.policy import Answers
from llm_do_mcp.check.reach import dead_entries, reach, unreachable
from llm_do_mcp.check.worker import Described, Folder, describe
from llm_do_mcp.errors import ProjectError, ToolModuleError
from llm_do_mcp.project.checked import collecting
from llm_do_mcp.project.files import ProjectFiles, decode
from llm_do_mcp.project.manifest import WorkersSection
from llm_do_mcp.project.render import Renderer
from llm_do_mcp.project.scan import scan
from llm_do_mcp.project.toolmodules import library_of
from llm_do_mcp.project.worker import read_worker
from llm_do_mcp.runtime.display import counted
from llm_do_mcp.serving.surface import Published, publish
from llm_do_mcp.toolsets.workbench import Workbench

if TYPE_CHECKING:
    from llm_do_mcp.project.effective import Worker
    from llm_do_mcp.project.load import Project
    from llm_do_mcp.runtime.function import Declaration
    from llm_do_mcp.runtime.policy import Rule

Load = Callable[[list[ProjectError]], "Project"]
"""Loads the project; what is wrong with it as a whole is put into the list as far as it can be tolerated."""


@dataclass(frozen=True, repr=False)  # asyncio asks for the repr of what it ran, and this one would be megabytes
class Report:
    """A project, and what was found in it.

    Args:
        project: The project; None where nothing could be loaded.
        workers: Its whole workers, and those of libraries that they can reach.
        tools: Published name → tool.
        client: What MCP clients may do.
        findings: All that was found, in the order in which it is told.
    """

    project: Project | None
    workers: tuple[Described, ...]
    tools: dict[str, Published]
    client: Answers
    findings: tuple[Finding, ...]

    def of(self, severity: str) -> tuple[Finding, ...]:
        """The findings of one severity."""
        return tuple(finding for finding in self.findings if finding.severity == severity)

    @property
    def ok(self) -> bool:
        """Whether there is no error."""
        return not self.of("error")

    @cached_property
    def verdict(self) -> str:
        """All of it in one line: `3 errors, 1 warning`, or `ok: 12 workers, 4 published`."""
        errors, warnings = len(self.of("error")), len(self.of("warning"))
        if errors:
            return ", ".join([counted(errors, "error"), *([counted(warnings, "warning")] if warnings else [])])
        published = len(self.project.exports) if self.project is not None else 0
        more = f"; {counted(warnings, 'warning')}" if warnings else ""
        return f"ok: {counted(len(self.workers), 'worker')}, {published} published{more}"

    def to_json(self) -> dict[str, Any]:
        """As `llm-do check --json` has it."""
        return {
            "ok": self.ok,
            "verdict": self.verdict,
            "findings": [finding.to_json() for finding in self.findings],
            "project": None if self.project is None else _project(self.project),
            "tools": [{"name": tool.name, "calls": tool.subject} for tool in self.tools.values()],
            "workers": [described.to_json() for described in self.workers],
            "client": [answer.to_json() for answer in self.client.answers],
        }


async def examine(path: str, load: Load, *, import_tools: bool = False) -> Report:
    """Look at a project.

    Args:
        path: What was asked for: a folder or a worker's file.
        load: Loads it.
        import_tools: Whether the tool host may import the project's Python, to see what is in it.

    Raises:
        UsageError: A folder of libraries that cannot be used.
    """
    problems: list[ProjectError] = []
    try:
        project = load(problems)
    except ProjectError as error:
        with collecting(problems):
            raise error
        problems += _files_alone(path)
        return Report(None, (), {}, Answers("client"), _told(map(Finding.of, problems)))
    bench = Workbench(project)
    try:
        return await _Examination(bench, problems, is_file=os.path.isfile(path), import_tools=import_tools).report()
    finally:
        await bench.aclose()


class _Examination:
    """One look at a project that could be loaded."""

    def __init__(
        self, bench: Workbench, problems: Sequence[ProjectError], *, is_file: bool, import_tools: bool
    ) -> None:
        self._bench, self._project = bench, bench.project
        self._lacks = bool(bench.project.levels[0].lacking)
        """Whether a function that is not there may be one of a library that could not be had."""
        self._is_file, self._import_tools = is_file, import_tools and not self._lacks
        self._found = reach(bench)
        drafts = self._found.drafts
        self._whole = list(self._found.workers.values())
        self._workers = [*self._whole, *(drafts[name] for name in drafts if name not in self._found.unclear)]
        """Those of which it is known what they are given: whole ones, and broken ones apart from what is broken."""
        self._places = Places(bench.project, {**self._found.workers, **drafts})
        self._findings = [Finding.of(problem) for problem in (*problems, *self._found.problems)]
        self._is_whole = not [*problems, *bench.project.scan().problems, *self._found.unclear]
        """Whether all is known: else one that is broken may be what calls a worker, exports it, or has a function."""

    async def report(self) -> Report:
        renderer = Renderer()
        workers = [*self._whole, *self._found.drafts.values()]
        looking = asyncio.get_running_loop().run_in_executor(None, renderer.problems, self._project, workers)
        try:
            return await self._report(looking)
        finally:
            renderer.close()
            await asyncio.wait([looking])

    async def _report(self, templates: Awaitable[Sequence[ProjectError]]) -> Report:
        """Put together all but what is wrong with templates, which is looked for meanwhile by another process."""
        tools = self._tools()
        given = {worker.id: await self._functions(worker) for worker in self._workers}
        answers = {worker.id: self._answers(worker, given[worker.id]) for worker in self._workers}
        client = policy.of_client(tools.values())
        await self._python(given)
        self._findings += self._idle([*answers.values(), client], given)
        self._findings += dead_entries(self._bench, self._found, self._places)
        if self._is_whole and not self._is_file:
            self._findings += unreachable(self._found, self._places)
            self._findings += odd.strays(self._project)
        self._findings += odd.folders(self._project, self._workers, self._places)
        self._findings += odd.models(self._bench, self._workers, self._places)
        self._findings += odd.of_models(self._bench, self._workers, self._places)
        self._findings += odd.network(self._workers, self._places)
        self._findings += odd.creation(self._workers, self._places)
        self._findings += odd.fields(self._workers, self._places)
        self._findings += odd.commands(self._workers, self._project.root, self._places)
        self._findings += odd.libraries(self._project, self._places)
        self._findings += map(Finding.of, await templates)
        described = [self._described(worker, given[worker.id], answers[worker.id]) for worker in self._whole]
        return Report(self._project, tuple(described), tools, client, _told(self._findings))

    def _tools(self) -> dict[str, Published]:
        with self._noting():
            return publish(self._bench)
        return {}

    async def _functions(self, worker: Worker) -> tuple[Declaration, ...]:
        """What a worker is given, as far as it may be looked at."""
        try:
            if self._import_tools:
                return await self._bench.declarations(worker)
            if self._project.hosting.refused is None and not self._lacks:
                self._bench.check_python(worker)
        except ToolModuleError as error:
            self._is_whole = False
            self._findings.append(self._of_tools(str(error).removeprefix(f"worker {worker.id}: "), worker))
        except ProjectError as error:
            self._is_whole = False
            self._findings.append(Finding.of(error))
        with self._noting():
            return (*self._bench.built_in(worker), *python.named(worker))
        return ()

    def _answers(self, worker: Worker, functions: Sequence[Declaration]) -> Answers:
        found = policy.of_worker(self._bench, worker, functions)
        if self._import_tools:
            return found
        sure = tuple(rule for rule in found.idle if not python.may_be_about(rule, worker))
        return replace(found, answers=tuple(map(python.doubtful, found.answers)), idle=sure)

    async def _python(self, given: Mapping[str, Sequence[Declaration]]) -> None:
        named = (module for worker in self._workers for module in worker.tool_modules)
        own = [m for m in dict.fromkeys((*self._project.defaults.tool_modules, *named)) if library_of(m) is None]
        if not self._import_tools:
            self._findings += python.unused(own, self._workers) if self._is_whole else ()
            return
        modules = await self._bench.host.describe(own)
        self._findings += python.broken(modules)
        told = {finding.path for finding in self._findings}
        self._findings += python.empty([module for module in modules if module.path not in told])
        self._findings += python.shadowed(modules, self._workers, given)
        self._findings += python.unseen(modules, given) if self._is_whole else ()

    def _idle(self, seen: Sequence[Answers], given: Mapping[str, Sequence[Declaration]]) -> Iterator[Finding]:
        """Rules that can match nothing. One of the manifest may be about a worker that could not be looked at."""
        places: dict[str, Finding] = {}

        def place(rule: Rule) -> Finding:
            if rule.source not in places:
                places[rule.source] = self._places.of_rule("warning", "", rule)
            return places[rule.source]

        known = {name for functions in given.values() for one in functions for name in (one.name, one.shown)}
        for rule in policy.never(seen, place):
            found = place(rule)
            if self._is_whole or found.path != self._project.manifest_path:
                yield replace(found, message=policy.nothing(rule, known))

    def _described(self, worker: Worker, functions: Sequence[Declaration], answers: Answers) -> Described:
        unseen = () if self._import_tools else python.unnamed(worker)
        reached = worker.id in self._found.reached or (None if not self._is_whole else False)
        return describe(self._bench, worker, functions, answers.answers, unseen, reached=reached)

    def _of_tools(self, text: str, worker: Worker) -> Finding:
        """What is wrong with a worker's Python: in that file, or where the worker asks for it."""
        found = python.pointed(text)
        if found.path is not None:
            return found
        return self._places.of_worker("error", text, worker, ("toolsets", "custom"), ("tools",), ("imports", "tools"))

    @contextlib.contextmanager
    def _noting(self) -> Iterator[None]:
        """What is raised inside is a finding."""
        problems: list[ProjectError] = []
        with collecting(problems):
            yield
        self._findings += map(Finding.of, problems)
        self._is_whole = self._is_whole and not problems


def _files_alone(path: str) -> list[ProjectError]:
    """What is wrong with each worker's file by itself, where nothing is known of what is around it."""
    problems: list[ProjectError] = []
    root = os.path.realpath(path)
    if not os.path.isdir(root):
        return problems
    files = ProjectFiles(root)
    with collecting(problems):
        found = scan(files, WorkersSection(), None)
        problems += found.problems
        for file in found.workers.values():
            with collecting(problems):
                read_worker(decode(files.read_bytes(file), file), file)
    return problems


def _told(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings in order, each once: several workers may share what is wrong."""
    ranks = ("error", "warning", "note")
    return tuple(sorted(dict.fromkeys(findings), key=lambda finding: (ranks.index(finding.severity), finding.order)))


def _project(project: Project) -> dict[str, Any]:
    return {
        "name": project.name,
        "root": project.root,
        "manifest": project.manifest_path,
        "entry": project.entry,
        "published": dict(project.exports),
        "sandbox": [vars(Folder.of(root, project.root)) for root in project.roots],
        "libraries": [
            {
                "name": library.name,
                "version": library.version,
                "root": library.root,
                "exports": list(library.exports),
                "locked": library.files.locked is not None,
            }
            for library in project.libraries.values()
        ],
    }
