"""A worker's file: YAML front matter between the first two `---` lines, then the instructions.

`read_worker` gives what the file itself says; what a worker amounts to once the manifest is merged in is
`effective.Worker`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from llm_do_mcp.errors import InvalidFile, ProjectError
from llm_do_mcp.project import strictyaml
from llm_do_mcp.project.checked import Checked, Flag, Text, TextOrTexts, Texts, check_partly, quoted
from llm_do_mcp.project.settings import (
    ApprovalRule,
    AttachmentPolicy,
    Limits,
    ModelNames,
    SandboxSettings,
    ServerSideTools,
    ToolRules,
    Toolsets,
)
from llm_do_mcp.project.strictyaml import Document

RESERVED_VARIABLES = ("input", "file")
"""Template variables that a parameter cannot be called."""

_FENCE = re.compile(r"---[ \t]*(?:\r\n|\r|\n|\Z)")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_LINE_END = re.compile(r"\r\n|\r|\n")

ALTERNATIVES = (
    ("instructions", "system"),
    ("output_schema", "schema_object", "output_schema_ref"),
    ("input_schema", "schema_in_ref"),
)
"""Keys that say the same thing in different ways: only one of each may be given."""


class Imports(Checked):
    """Workers and tool modules that a worker wants to have at hand. Importing is not permission."""

    workers: Texts = ()
    tools: Texts = ()


def _some(patterns: Texts) -> Texts:
    if not patterns:
        raise ValueError("an empty list rules out every model; name one, or leave the key out")
    return patterns


def _not_blank(prompt: str) -> str:
    if not prompt.strip():
        raise ValueError("an empty prompt leaves out what the caller says; without the key, that is the prompt")
    return prompt


class WorkerFile(Checked):
    """The keys of a worker's file."""

    REFUSED: ClassVar[dict[str, str]] = {
        "functions": "code in a worker is never run; write functions in tools.py and name them under 'tools'",
    }

    name: Text | None = None
    description: Text | None = None
    model: ModelNames = ()
    compatible_models: Annotated[Texts, AfterValidator(_some)] | None = None
    instructions: Text | None = None
    system: Text | None = None
    prompt: Annotated[Text, AfterValidator(_not_blank)] | None = None
    params: dict[Text, Any] = Field(default_factory=dict)
    fragments: TextOrTexts = ()
    system_fragments: TextOrTexts = ()
    input_schema: dict[str, Any] | None = None
    output_schema: dict[str, Any] | None = None
    schema_object: dict[str, Any] | None = None
    schema_in_ref: Text | None = None
    output_schema_ref: Text | None = None
    imports: Imports = Imports()
    toolsets: Toolsets | None = None
    allow_workers: TextOrTexts | None = None
    tools: TextOrTexts = ()
    tool_rules: ToolRules = Field(default_factory=dict)
    approvals: tuple[ApprovalRule, ...] = ()
    sandbox: SandboxSettings | None = None
    attachment_policy: AttachmentPolicy | None = None
    server_side_tools: ServerSideTools = ()
    limits: Limits | None = None
    locked: Flag = False


@dataclass(frozen=True)
class Template:
    """A text that may hold Jinja, and where it stands.

    Args:
        text: As written.
        path: Its file, relative to the project.
        line: The line of the file on which the text starts.
        verbatim: It is no template, whatever it looks like.
    """

    text: str
    path: str
    line: int = 1
    verbatim: bool = False


@dataclass(frozen=True)
class WorkerSource:
    """A worker's file, read and checked.

    Args:
        document: The front matter with its places.
        keys: The front matter as data, as far as it can be used.
        body: The text after the front matter; None for a YAML-only worker.
        problems: What is wrong with it.
        faulty: The keys that are left out for that.
    """

    document: Document
    keys: WorkerFile
    body: Template | None
    problems: tuple[ProjectError, ...] = ()
    faulty: frozenset[str] = frozenset()

    def template(self, *location: str | int) -> Template:
        """The text at a place in the front matter, as a template."""
        value: Any = self.document.data
        for part in location:
            value = value[part]
        return Template(value, self.document.path, self.document.place(location).line)


def read_worker(text: str, path: str) -> WorkerSource:
    """Read a worker's file.

    Args:
        text: The file; `.yaml` and `.yml` hold keys only, anything else front matter and instructions.
        path: Relative to the project.

    Raises:
        ProjectError: With the place of what is wrong; `InvalidFile` where it is more than one thing.
    """
    source = draft_worker(text, path)
    if source.problems:
        raise InvalidFile(source.problems)
    return source


def draft_worker(text: str, path: str) -> WorkerSource:
    """Read a worker's file as far as that goes; what is wrong with its keys is told in the source.

    Raises:
        ProjectError: It has no keys that could be read at all.
    """
    if path.endswith((".yaml", ".yml")):
        document, body = strictyaml.load(text, path=path), None
    else:
        document, body = _split(text, path)
    keys, problems, faulty = check_partly(WorkerFile, document)
    problems += [*_doubled(document), *_unusable_params(document, keys)]
    if body is not None and body.text.strip() and (stated := keys.instructions or keys.system) is not None:
        key = "instructions" if stated == keys.instructions else "system"
        problems.append(document.error(f"{key!r} is given and so is text below the front matter", (key,), of_key=True))
    return WorkerSource(document, keys, body, tuple(problems), faulty)


def _split(text: str, path: str) -> tuple[Document, Template]:
    """Front matter and body. Only a `---` at the start of a line closes: one inside a block scalar is indented."""
    opening = _FENCE.match(text)
    if not opening:
        message = "a worker's file starts with a line '---', its keys, and a second line '---'"
        raise ProjectError(message, path=path, line=1, column=1)
    position, line = opening.end(), 2
    while position < len(text):
        if closing := _FENCE.match(text, position):
            front_matter = strictyaml.load(text[opening.end() : position], path=path, first_line=2)
            return front_matter, Template(text[closing.end() :], path, line + 1)
        position, line = _end_of_line(text, position), line + 1
    raise ProjectError("the front matter is not closed; end it with a line '---'", path=path, line=line, column=1)


def _end_of_line(text: str, position: int) -> int:
    found = _LINE.match(text, position)
    return found.end() if found else len(text)


def _doubled(document: Document) -> Iterable[ProjectError]:
    for alternatives in ALTERNATIVES:
        given = [key for key in document.data if key in alternatives]
        for key in given[1:]:
            yield document.error(f"{key!r} says the same as {given[0]!r}; only one may be given", (key,), of_key=True)


def _unusable_params(document: Document, keys: WorkerFile) -> Iterable[ProjectError]:
    for name in keys.params:
        location = ("params", name)
        if not name.isidentifier() or not name.isascii() or name.startswith("_"):
            yield document.error(f"parameter {quoted(name)} may have letters, digits and _ only", location, of_key=True)
        elif name in RESERVED_VARIABLES:
            yield document.error(f"parameter {name!r} would hide the template variable {name!r}", location, of_key=True)
