"""What `llm-do check` prints: the project, each worker, and last, where it is seen first, what is wrong.

Lines are made for a terminal of 100 columns; what is longer is wrapped, never cut.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from llm_do_mcp.check.examine import Report
from llm_do_mcp.check.shapes import shape, signature
from llm_do_mcp.check.worker import Described, Folder
from llm_do_mcp.runtime.display import escape
from llm_do_mcp.sandbox.names import at_home
from llm_do_mcp.toolsets.delegation import WORKER_CALL

if TYPE_CHECKING:
    from llm_do_mcp.project.load import Project
    from llm_do_mcp.toolsets.overview import Standing

WIDTH = 100
_LABEL = 11
_WHAT = 44


def text(report: Report) -> Iterator[str]:
    """The lines of a report."""
    if report.project is not None:
        yield from _project(report.project, report)
        shared = _shared(report.project)
        for described in report.workers:
            yield ""
            yield from _worker(described, shared)
        if report.client.answers:
            yield ""
            yield "clients"
            yield from _policy(report.client.answers, {})
        yield ""
    for severity in ("note", "warning", "error"):  # what matters most is nearest to the prompt
        found = report.of(severity)
        if found:
            yield f"{severity}s"
            for finding in found:
                yield from (f"  {line}" for line in escape(str(finding), lines=True).splitlines())
            yield ""
    yield report.verdict


def _project(project: Project, report: Report) -> Iterator[str]:
    yield f"project {escape(project.name)}"
    yield from _line("folder", at_home(project.root))
    yield from _line("manifest", project.manifest_path or "none")
    yield from _line("entry", project.entry or "none")
    yield from _line("published", ", ".join(report.tools) or "nothing")
    yield from _folders(_shared(project))
    for number, library in enumerate(project.libraries.values()):
        locked = "locked" if library.files.locked is not None else "not locked"
        version = f" {library.version}" if library.version else ""
        yield from _line("" if number else "libraries", f"{library.name}{version}, {locked}: {at_home(library.root)}")


def _worker(described: Described, inherited: Sequence[Folder]) -> Iterator[str]:
    worker = described.worker
    marks = ["entry"] if described.is_entry else []
    marks += [f"published as {described.published}"] if described.published else []
    marks += ["not reached"] if described.reached is False else []
    marks += ["locked"] if worker.locked else []
    yield escape(f"worker {worker.id}" + (f"  ({', '.join(marks)})" if marks else ""))
    yield from _line("", worker.description)
    yield from _line("file", worker.path)
    yield from _line("model", ", then ".join(worker.model) or "none")
    params = ", ".join(
        name if default is None else f"{name} = {default!r}" for name, default in sorted(worker.params.items())
    )
    yield from _line("input", shape(worker.input_schema))
    yield from _line("params", params)
    yield from _line("output", shape(worker.output_schema))
    yield from _folders(described.folders, inherited)
    yield from _line("network", "" if worker.network_enabled else "denied")
    yield from _line("calls", ", ".join(described.calls))
    yield from _line("provider", ", ".join(tool.tool_type for tool in worker.server_side_tools))
    limits = worker.limits.model_dump(exclude_none=True)
    yield from _line("limits", ", ".join(f"{name} {value:g}" for name, value in limits.items()))
    functions = {one.name: signature(one) for one in described.functions if one.toolset == "custom" and one.code}
    yield from _policy(described.answers, functions)
    yield from _line("Python", ", ".join(f"{module} (not loaded: --import-tools)" for module in described.unseen))


def _shared(project: Project) -> list[Folder]:
    return [Folder.of(root, project.root) for root in project.roots]


def _folders(folders: Iterable[Folder], inherited: Sequence[Folder] = ()) -> Iterator[str]:
    if inherited and list(folders) == list(inherited):
        yield from _line("sandbox", f"{', '.join(f'{one.alias} {one.mode}' for one in inherited)} (the manifest's)")
        return
    for number, folder in enumerate(folders):
        notes = [] if folder.inside else ["outside the project"]
        notes += [] if folder.exists else ["does not exist yet"]
        notes += [", ".join(folder.suffixes)] if folder.suffixes else []
        place = folder.place if folder.inside else at_home(folder.place)
        shown = f"{folder.alias:12} {folder.mode:3}  {place}" + (f"  ({'; '.join(notes)})" if notes else "")
        yield from _line("" if number else "sandbox", shown)


def _policy(answers: Sequence[Standing], functions: dict[str, str]) -> Iterator[str]:
    """What may be called: by the answer, and places with the same one together."""
    ranked = sorted(answers, key=lambda answer: ("allow", "ask", "deny").index(answer.decision))
    for decision, of_one in groupby(ranked, key=lambda answer: answer.decision):
        label: str = decision
        for (shown, source, exceptions), same in groupby(of_one, key=lambda a: (a.shown, a.source, a.exceptions)):
            places = list(same)
            named = functions.get(places[0].function, shown)
            subjects = ", ".join(filter(None, (place.subject for place in places)))
            if places[0].function == "worker.call" and shown != WORKER_CALL:  # a worker's own tool
                subjects = f"(worker {subjects})"
            what = f"{named} {subjects}".rstrip()
            why = "" if source.startswith("default for") else source
            yield from _line(label, f"{what:{_WHAT}}  {why}" if why else what)
            for said in exceptions:
                yield from _line("", f"  {said.decision:5} {said.subject:{_WHAT - 8}}  {said.source}")
            label = ""


def _line(label: str, value: str) -> Iterator[str]:
    """A labelled value, wrapped below itself; nothing where there is none."""
    if not value:
        return
    indent = " " * (_LABEL + 2)
    wrapped = textwrap.wrap(
        escape(value),
        WIDTH - len(indent),
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    )
    for number, line in enumerate(wrapped):
        yield f"  {label:{_LABEL}}{line}" if not number else f"{indent}  {line}"
