"""A run as a file, for tests that replay it: `llm-do test --record RUN FILE`, then `model: replay:FILE`.

The record of runs is private to a user and pruned; a recording is part of the project, and reviewed like code. It has
what the record has of one run, without the secrets that are known to be in it, and is put back into the (empty) record
of the copy in which a test runs: there it is replayed as any run is.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

from llm_do_mcp.errors import ProjectError, UsageError
from llm_do_mcp.project.checked import quoted
from llm_do_mcp.project.files import ProjectFiles, decode
from llm_do_mcp.project.paths import project_path
from llm_do_mcp.project.schema_files import parse_json
from llm_do_mcp.runtime.redact import Redactor
from llm_do_mcp.runtime.store import Batch, Event, RunRow, Store
from llm_do_mcp.sandbox.opener import Directory

SUFFIX = ".json"
FORMAT = 1
DEFINITION = "definition"
COMPARED = ("instructions", "system_context", "context", "prompt", "attachments")
"""What a replay compares of a definition, beside the names of its functions."""


def is_recording(run: str) -> bool:
    """Whether what a `replay:` names is a file."""
    return run.endswith(SUFFIX)


async def record(store: Store, row: RunRow, redact: Redactor, root: str, file: str) -> None:
    """Write a run into a file.

    Args:
        store: The record that it is in.
        row: The run.
        redact: What keeps secrets out; those of the run itself are added.
        root: The project's folder.
        file: The file, relative to the project; one that is there is replaced.

    Raises:
        UsageError: The file has another suffix, or lies outside the project.
    """
    if not is_recording(file):
        raise UsageError(f"{quoted(file)} cannot hold a recording; name a file that ends in {SUFFIX}")
    shown = redact.knowing(await store.secrets(row.id))
    events = [shown.data(asdict(_compared(event))) for event in await store.events(row.id)]
    text = json.dumps({"format": FORMAT, "run": row.id, "events": events}, ensure_ascii=False, indent=1)
    with Directory.open(root, label=".") as folder:
        folder.write_atomic(_path(file), f"{text}\n".encode())


def _path(file: str) -> str:
    try:
        return project_path(file)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _compared(event: Event) -> Event:
    """The event, of a definition only what a replay looks at: the rest is long, and names folders of this machine."""
    if event.kind != DEFINITION:
        return event
    kept = {name: event.data[name] for name in COMPARED}
    functions = [{"shown": function["shown"]} for function in event.data["functions"]]
    return replace(event, data={**kept, "functions": functions})


@dataclass(frozen=True)
class Recording:
    """A run that was recorded in a file."""

    run: str
    events: tuple[Event, ...]

    async def put_back(self, store: Store) -> None:
        """Put the run into a record that does not have it."""
        row = RunRow(self.run, None, "recorded", "done", None, "", 1, 0.0, 0.0)
        await store.write(Batch(row, events=self.events, create=True))


def read(root: str, file: str) -> Recording:
    """Read a recording. Blocks.

    Raises:
        ProjectError: The file is none.
        UsageError: It lies outside the project.
    """
    path = _path(file)
    found = parse_json(decode(ProjectFiles(root).read_bytes(path), path), path)
    try:
        if found["format"] == FORMAT:
            return Recording(str(found["run"]), tuple(Event(**event) for event in found["events"]))
    except (KeyError, TypeError):
        pass
    message = f"no recording of format {FORMAT}; write one with: llm-do test --record RUN FILE"
    raise ProjectError(message, path=path)
