"""What can be read of a project by address: workers' files, schemas, what is published, sandbox files, and runs.

Files of a sandbox are read through the gate, as by a tool: policy and record are the same. Of the rest nothing is shown
that the tools do not show to the same caller, and secrets are left out.
"""

from __future__ import annotations

import json
import mimetypes
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from mcp.types import Resource, ResourceTemplate

from llm_do_mcp.models.attachments import sniffed
from llm_do_mcp.sandbox.opener import Directory
from llm_do_mcp.sandbox.text import NotText, decode
from llm_do_mcp.serving.surface import Published

if TYPE_CHECKING:
    from llm_do_mcp.project.effective import Worker
    from llm_do_mcp.project.load import Project

SCHEME = "llm-do://"
RUNS = f"{SCHEME}runs/"
RUN = f"{RUNS}{{run_id}}"
"""The form of the address of a run's trace."""
JSON_TYPE, MARKDOWN, SCHEMA = "application/json", "text/markdown", "application/schema+json"
MAX_BYTES = 10_000_000
"""Of a file that is read as a whole."""
_TYPES = {".md": MARKDOWN, ".worker": MARKDOWN, ".yaml": "application/yaml", ".yml": "application/yaml"}


def home(project: Project, *, beside: bool) -> str:
    """How the addresses of a project begin; those of runs are the same for all.

    Args:
        project: Whose.
        beside: Other projects are served beside it.
    """
    return f"{SCHEME}projects/{quote(project.name, safe='')}/" if beside else SCHEME


def listed(project: Project, tools: Mapping[str, Published], base: str) -> Iterator[Resource]:
    """The resources that there are without asking for one: not files of sandboxes, and not runs."""
    about = f"What the project {project.name} publishes."
    yield Resource(uri=f"{base}project", name=project.name, description=about, mime_type=JSON_TYPE)
    for tool, worker in exported(project, tools):
        if worker.library is None:
            uri = f"{base}workers/{quote(worker.id)}"
            yield Resource(uri=uri, name=worker.path, description=worker.description or None, mime_type=MARKDOWN)
        for kind, schema in (("input", tool.input_schema), ("output", tool.output_schema)):
            if schema is not None:
                uri, name = f"{base}schemas/{tool.name}/{kind}", f"{tool.name}: {kind}"
                yield Resource(uri=uri, name=name, description=f"JSON Schema of its {kind}.", mime_type=SCHEMA)


def templates(tools: Mapping[str, Published], base: str) -> Iterator[ResourceTemplate]:
    """The forms of addresses of what there can be many of."""
    for alias in aliases(tools):
        about = f"A file of {alias}, as text or bytes."
        yield ResourceTemplate(
            uri_template=f"{base}files/{alias}/{{+path}}", name=f"files of {alias}", description=about
        )
    about = "What happened in a run; who subscribes is told when it goes on."
    yield ResourceTemplate(uri_template=RUN, name="trace of a run", description=about, mime_type=JSON_TYPE)


def exported(project: Project, tools: Mapping[str, Published]) -> Iterator[tuple[Published, Worker]]:
    """Published workers with their tools."""
    for tool in tools.values():
        if tool.is_worker:
            yield tool, project.worker(tool.subject)


def aliases(tools: Mapping[str, Published]) -> dict[str, Published]:
    """Published folders, and the tool that reads in each."""
    return {tool.alias: tool for tool in tools.values() if tool.function == "files.read"}


def file_address(base: str, path: str) -> str:
    """The address of a file.

    Args:
        base: See `home`.
        path: `alias/path`, as a listing has it.
    """
    return f"{base}files/{quote(path)}"


def file_named(uri: str, base: str) -> tuple[str, str] | None:
    """The alias and path that an address means; None where it is the address of something else."""
    if not uri.startswith(f"{base}files/"):
        return None
    alias, _, path = uri.removeprefix(f"{base}files/").partition("/")
    return unquote(alias), unquote(path)


def text_of(project: Project, tools: Mapping[str, Published], base: str, uri: str) -> tuple[str, str] | None:
    """What is at an address that `listed` gives, and its media type; None where there is nothing. Blocks."""
    kind, _, rest = uri.removeprefix(base).partition("/") if uri.startswith(base) else ("", "", "")
    if kind == "project" and not rest:
        return _json(_public(project, tools)), JSON_TYPE
    for tool, worker in exported(project, tools):
        if kind == "workers" and worker.library is None and unquote(rest) == worker.id:
            with Directory.open(project.root, label="project") as root:
                return decode(root.read_whole(worker.path, MAX_BYTES), whole=True), MARKDOWN
        for which, schema in (("input", tool.input_schema), ("output", tool.output_schema)):
            if kind == "schemas" and rest == f"{tool.name}/{which}" and schema is not None:
                return _json(schema), SCHEMA
    return None


def _public(project: Project, tools: Mapping[str, Published]) -> dict[str, Any]:
    """The part of the manifest that is for whoever uses the project: names, and no places, models or policy."""
    manifest = project.manifest
    return {
        "name": project.name,
        "version": manifest.version,
        "description": manifest.description,
        "entry": project.entry,
        "workers": [
            {"id": worker.id, "tool": tool.name, "description": worker.description}
            for tool, worker in exported(project, tools)
        ],
        "files": [*aliases(tools)],
        "tools": [*tools],
    }


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, indent=2)


def shown(path: str, data: bytes) -> tuple[str | bytes, str]:
    """A file's content, as text where it is text, and its media type: by what is in it, then by its name."""
    suffix = f".{path.rpartition('.')[2].lower()}" if "." in path.rpartition("/")[2] else ""
    # Without the machine's own tables, so that a type does not depend on where a server runs.
    by_name = _TYPES.get(suffix) or mimetypes.MimeTypes(filenames=()).guess_type(f"x{suffix}")[0]
    found = sniffed(data, suffix) if data else None
    if found is not None and found != "text/plain":
        return data, found
    try:
        text = decode(data, whole=True)
    except NotText:
        return data, by_name or "application/octet-stream"
    is_text = by_name is not None and not by_name.startswith(("image/", "audio/", "video/", "font/"))
    return text, by_name if by_name is not None and (is_text or by_name == "image/svg+xml") else "text/plain"
