"""A run as a file, for tests that replay it: `llm-do test --record RUN FILE`, then `model: replay:FILE`.

The record of runs is private to a user and pruned; a recording is part of the project, and reviewed like code. It has
what the record has of one run, without the secrets that are known to be in it, and is put back into the (empty) record
of the copy in which a test runs: there it is replayed as any run is. A run that is replayed makes its files again, so
the recording also says which there were none of when it began.

Whatever a person's editor, or a merge, has made of the file is looked at once, when it is read: what is put back is of
the form that a record has.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from pydantic import ValidationError

from llm_do_mcp.errors import ProjectError, UsageError
from llm_do_mcp.project.checked import quoted
from llm_do_mcp.project.files import decode
from llm_do_mcp.project.paths import project_path
from llm_do_mcp.project.schema_files import parse_json
from llm_do_mcp.runtime.account import WRITE
from llm_do_mcp.runtime.redact import Redactor
from llm_do_mcp.runtime.store import Batch, Event, RunRow, Store
from llm_do_mcp.sandbox.names import aliased, below, components, fold, shown_path
from llm_do_mcp.sandbox.opener import Directory
from llm_do_mcp.testing.copies import LEFT_OUT
from llm_do_mcp.testing.form import DEFINITION, FORMAT, DefinitionForm, RecordingForm

SUFFIX = ".json"
MOST_BYTES = 50_000_000
"""A recording has what a worker read, whole: more than other files of a project, which people write."""
ANEW = "write one with: llm-do test --record RUN FILE"


async def record(store: Store, row: RunRow, redact: Redactor, root: str, file: str) -> None:
    """Write a run into a file.

    Args:
        store: The record that it is in.
        row: The run.
        redact: What keeps secrets out; those of the run itself are added.
        root: The project's folder.
        file: The file, relative to the project; one that is there is replaced.

    Raises:
        UsageError: The file has another suffix, lies outside the project, or where no test would find it.
    """
    path = _path(file, f"cannot hold a recording; name a file that ends in {SUFFIX}")
    shown = redact.knowing(await store.secrets(row.id))
    events = await store.events(row.id)
    created = shown.data(list(dict.fromkeys(_created(events, root))))
    kept = [shown.data(asdict(_compared(event))) for event in events]
    recorded = {"format": FORMAT, "run": row.id, "created": created, "events": kept}
    text = json.dumps(recorded, ensure_ascii=False, indent=1)
    data = f"{text}\n".encode(errors="backslashreplace")  # half a pair of surrogates is written so in JSON too
    if len(data) > MOST_BYTES:
        raise UsageError(f"run {row.id} makes a recording of {len(data):,} bytes; one has at most {MOST_BYTES:,}")
    with Directory.open(root, label=".") as folder:
        folder.write_atomic(path, data)


def _path(file: str, otherwise: str) -> str:
    if not file.endswith(SUFFIX):
        raise UsageError(f"{quoted(file)} {otherwise}")
    try:
        path = project_path(file)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if (left := next((part for part in path.split("/") if fold(part) in LEFT_OUT), None)) is not None:
        raise UsageError(f"{quoted(file)}: {left} is no part of the project, where no test looks; write to tests/")
    return path


def _created(events: Sequence[Event], project: str) -> Iterator[str]:
    """The files of the project that a run made through `files.write`."""
    runs = {event.key.removesuffix(DEFINITION): event.data for event in events if event.kind == DEFINITION}
    for event in events:
        if event.kind == WRITE and event.state == "done" and event.data.get("created"):
            alias, rel = aliased(event.data["path"])
            folder = _folder(runs[_place(event.key, runs)], alias)
            inside = None if folder is None else below(folder, project)
            if inside is not None:
                yield shown_path((*inside, *components(rel)))


def _place(key: str, runs: Collection[str]) -> str:
    """The run, by its place, in which something was done: by the worker itself, or further down by one of its tools."""
    place = key.rpartition("/")[0]
    while place and f"{place}/" not in runs:
        place = place.rpartition("/")[0]
    return f"{place}/" if place else ""


def _folder(definition: Any, alias: str) -> str | None:
    """Where the folder lies that a run had under an alias."""
    roots = (root for function in definition["functions"] for root in function["options"].get("roots", ()))
    return next((root["path"] for root in roots if root["alias"] == alias), None)


def _compared(event: Event) -> Event:
    """The event, of a definition only what a replay looks at."""
    if event.kind != DEFINITION:
        return event
    kept = {name: event.data[name] for name in DefinitionForm.model_fields}
    hidden = event.data["hidden"]
    functions = [{"shown": name} for function in event.data["functions"] if (name := function["shown"]) not in hidden]
    return replace(event, data={**kept, "functions": functions})


@dataclass(frozen=True)
class Recording:
    """A run that was recorded in a file.

    Args:
        run: Its id.
        created: The files of the project that it made, as paths in it.
        events: Its records.
    """

    run: str
    created: tuple[str, ...]
    events: tuple[Event, ...]

    async def put_back(self, store: Store) -> None:
        """Put the run into a record that does not have it."""
        row = RunRow(self.run, None, "recorded", "done", None, "", 1, 0.0, 0.0)
        await store.write(Batch(row, events=self.events, create=True))


def read(root: str, file: str) -> Recording:
    """Read a recording. Blocks.

    Raises:
        ProjectError, SandboxError: The file is none.
        UsageError: It lies outside the project, or is no file but a run.
    """
    path = _path(file, f"is no recording: a test replays a file of the project that ends in {SUFFIX}; {ANEW}")
    with Directory.open(root) as folder:
        given = parse_json(decode(folder.read_whole(path, MOST_BYTES), path), path)
    try:
        found = RecordingForm.model_validate(given)
    except ValidationError as error:
        place = ".".join(map(str, error.errors(include_url=False)[0]["loc"])) or "it"
        raise ProjectError(f"no recording of format {FORMAT} ({place} is not of its form); {ANEW}", path=path) from None
    return Recording(found.run, found.created, tuple(Event(**vars(event)) for event in found.events))
