"""What is served in the measurements: a project of 25 workers that uses what real ones use."""

from __future__ import annotations

import json
from pathlib import Path

WORKERS = 25
TEXT = "One line of a note, as short as notes are.\n" * 8
"""The file that is read, and what the bare server echoes: the same number of bytes crosses the pipe."""
READ, READ_ARGUMENTS = "files_notes_read_text", {"path": "note.md"}
ECHO, ECHO_ARGUMENTS = "echo", {"text": TEXT}

MANIFEST = """\
name: measured
version: "1.0"
description: A project of the usual size.
model: anthropic:claude-haiku-4-5
exports: ["**"]
sandbox:
  paths:
    notes: {root: ./notes, mode: ro, suffixes: [.md, .txt]}
    reports: {root: ./reports, mode: out}
limits: {max_turns: 20}
approvals:
  - {function: files.write, subject: reports/*, decision: ask}
"""

TOOLS = '''\
"""Tools of the project."""

import statistics


def mean(numbers: list[float]) -> float:
    """The mean of some numbers."""
    return statistics.fmean(numbers)
'''

WORKER = """\
---
description: Reads notes about topic {number} and writes what they amount to.
input_schema:
  type: object
  properties:
    topic: {{type: string, description: what to look for}}
    depth: {{type: integer, minimum: 1, maximum: 5}}
  required: [topic]
{output}
params:
  tone: plain
toolsets:
  filesystem: {{}}
  te: {{}}
  custom: [mean]
  delegation:
    allow_workers: [{callee}]
sandbox:
  paths:
    group_{group}: {{root: ./notes/{group}, mode: ro}}
attachment_policy:
  allowed_suffixes: [.md]
  max_attachments: 2
---
You look for {{{{ input.topic }}}} in the notes, in a {{{{ tone }}}} tone.

Number {number} of its kind. Ask `{callee}` where you are not sure, and cite the note that you used.
"""

INLINE = """\
output_schema:
  type: object
  properties:
    summary: {type: string}
    sources: {type: array, items: {type: string}}
  required: [summary, sources]"""
BY_REFERENCE = "output_schema_ref: schemas/finding.json"

FINDING = {
    "type": "object",
    "properties": {
        "finding": {"type": "string"},
        "certainty": {"type": "number", "minimum": 0, "maximum": 1},
        "sources": {"type": "array", "items": {"$ref": "#/$defs/source"}},
    },
    "required": ["finding", "certainty", "sources"],
    "$defs": {"source": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}},
}


def write_project(root: Path) -> Path:
    """Write the project below `root` and return its folder."""
    project = root / "measured"
    files = {"project.yaml": MANIFEST, "tools.py": TOOLS, "schemas/finding.json": json.dumps(FINDING, indent=2)}
    files["notes/note.md"] = TEXT
    for number in range(WORKERS):
        output = INLINE if number % 2 else BY_REFERENCE
        callee = f"group_{(number + 1) % WORKERS % 5}/w{(number + 1) % WORKERS}"
        worker = WORKER.format(number=number, group=number % 5, output=output, callee=callee)
        files[f"workers/group_{number % 5}/w{number}.worker"] = worker
        files[f"notes/{number % 5}/{number}.md"] = TEXT
    for path, content in files.items():
        target = project / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8")
    return project
