"""Where in a project's files a setting stands.

A worker is known by what it amounts to, so a setting of it may stand in its own file or in the manifest. Files are
read again for this, and only where something was found.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from llm_do_mcp.check.finding import Finding, Severity
from llm_do_mcp.errors import ProjectError
from llm_do_mcp.project.files import decode
from llm_do_mcp.project.strictyaml import Document, KeyPath
from llm_do_mcp.project.worker import draft_worker

if TYPE_CHECKING:
    from llm_do_mcp.project.effective import Worker
    from llm_do_mcp.project.load import Project
    from llm_do_mcp.runtime.policy import Rule

_NUMBER = re.compile(r", rule (\d+)")


class Places:
    """The files of a project, for what is found in them.

    Args:
        project: The project.
        workers: Those that findings are about, by their ids.
    """

    def __init__(self, project: Project, workers: Mapping[str, Worker]) -> None:
        self._project, self._workers = project, workers
        self._documents: dict[str, Document] = {}

    def of_worker(self, severity: Severity, message: str, worker: Worker, *locations: KeyPath) -> Finding:
        """A finding about a setting of a worker: where it is said first, or else at the worker's beginning.

        Args:
            severity, message: The finding's.
            worker: Whose setting.
            locations: Keys that may say it.
        """
        for document in self._said_by(worker):
            for location in locations:
                if location in document.values:
                    return Finding.of(document.error(message, location), severity)
        return Finding(severity, message, worker.path, 1, 1)

    def of_manifest(self, severity: Severity, message: str, *location: str | int) -> Finding:
        """A finding about a setting of the manifest."""
        document = self._project.defaults.document
        if document is None:
            return Finding(severity, message)
        return Finding.of(document.error(message, location), severity)

    def of_entry(self, severity: Severity, message: str, worker: Worker, text: str, *lists: KeyPath) -> Finding:
        """A finding about one entry of a list, which may be spelled in other ways than we know it by."""
        for document in self._said_by(worker):
            for location in lists:
                for place in document.values:
                    if place[:-1] == location and _is_spelling(_value(document, place), text):
                        return Finding.of(document.error(message, place), severity)
        named = [(*location[:-1], text) for location in lists]  # `helper: {}` beside the list says it, too
        return self.of_worker(severity, message, worker, *named, *lists)

    def of_rule(self, severity: Severity, message: str, rule: Rule) -> Finding:
        """A finding about a rule of the policy, by the words in which the rule says where it comes from."""
        said, _, whose = rule.source.partition(" of ")
        whose, _, _ = whose.partition(",")
        number = _NUMBER.search(rule.source)
        kind, _, name = whose.rpartition(" ")
        worker = self._workers.get(name) if kind == "worker" else None
        documents = self._manifests() if worker is None else self._said_by(worker)
        if kind == "sandbox":
            said = f"sandbox.paths.{name}.{said}"
            documents = itertools.chain(documents, self._with_alias(name))
        for document in documents:
            location = _location(document, said)
            if location and number and "rules" in _mapping(document, location):
                location = (*location, "rules")
            if location:
                place = (*location, int(number[1]) - 1) if number else location
                return Finding.of(document.error(message, place, of_key=not number), severity)
        return Finding(severity, message, worker.path if worker is not None else None)

    def _said_by(self, worker: Worker) -> Iterator[Document]:
        """The files that say what a worker is: its own, then the manifest that it starts from."""
        yield self._document(worker)
        document = self._project.defaults_of(worker.library).document
        if document is not None:
            yield document

    def _manifests(self) -> Iterator[Document]:
        if self._project.defaults.document is not None:
            yield self._project.defaults.document

    def _with_alias(self, alias: str) -> Iterator[Document]:
        for worker in self._workers.values():
            if any(root.alias == alias for root in worker.roots):
                yield self._document(worker)

    def _document(self, worker: Worker) -> Document:
        if worker.id not in self._documents:
            files = self._project.levels_of(worker.library)[0].files
            try:
                text = decode(files.read_bytes(worker.path.removeprefix(files.label)), worker.path)
                found = draft_worker(text, worker.path).document
            except ProjectError:  # it has changed since it was loaded
                found = Document(worker.path, {})
            self._documents[worker.id] = found
        return self._documents[worker.id]


def _location(document: Document, dotted: str) -> KeyPath:
    """The place of `tool_rules.worker.call`, where keys may have dots themselves; () where it is not in the file."""
    location: KeyPath = ()
    while dotted:
        keys = _mapping(document, location)
        key = next((key for key in sorted(keys, key=len, reverse=True) if f"{dotted}.".startswith(f"{key}.")), None)
        if key is None:
            return ()
        location, dotted = (*location, key), dotted[len(key) + 1 :]
    return location


def _mapping(document: Document, location: KeyPath) -> Mapping[str, object]:
    found = _value(document, location)
    return found if isinstance(found, dict) else {}


def _value(document: Document, location: KeyPath) -> object:
    found: object = document.data
    for part in location:
        if isinstance(found, dict):
            found = found.get(part)
        elif isinstance(found, list) and isinstance(part, int) and part < len(found):
            found = found[part]
        else:
            return None
    return found


def _is_spelling(written: object, known: str) -> bool:
    """Whether `./workers/reports/x.worker`, as somebody wrote it, is `reports/x`."""
    inside = known.rpartition(":")[2]
    return isinstance(written, str) and (written == known or inside in (written, *_stems(written)))


def _stems(written: str) -> Iterator[str]:
    path = written.rpartition(":")[2].removeprefix("./").removesuffix(".worker")
    yield path
    yield path.partition("/")[2]
