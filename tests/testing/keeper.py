"""A project that keeps what it is told, with a script for a model, for the tests of `llm-do test`."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.cli.commands import llm_do

FILES = {
    "project.yaml": "name: keeper\nsandbox: {paths: {notes: 'rw:./notes'}}\n",
    "main.worker": """---
toolsets: {filesystem: {}, custom: [stamp], delegation: {allow_workers: [judge]}}
model: anthropic:claude-haiku-4-5
---
Keep what you are told.
""",
    "workers/judge.worker": """---
compatible_models: ["anthropic:*"]
output_schema: {type: object, properties: {mark: {type: integer}}, required: [mark]}
---
Judge.
""",
    "tools.py": "def stamp(text: str) -> str:\n    return f'[{text}]'\n",
    "notes/old.md": "old\n",
    "script.yaml": """workers:
  main:
    - tool_calls:
        - {name: write_file, input: {path: notes/new.md, content: "pears\\n"}}
        - {name: stamp, input: {text: pears}}
        - {name: worker_call, input: {worker: judge, input_data: pears}}
    - Kept.
  judge: ['{"mark": 3}']
""",
    "tests/checks.py": """
def kept(result):
    assert result["status"] == "done"
    assert result["files"] == {"notes/new.md": "pears\\n"}, result["files"]
    assert result["account"]["calls"] >= 3


def never(result):
    assert result["output"] == "Lost.", f"it says {result['output']}"
""",
}
APPROVALS = """
      - {function: files.write, subject: notes/*}
      - {function: custom.stamp, decision: deny, note: no stamps}
"""
"""What its run asks, as a test lists it."""


def keeper(folder: Path, tests: str, **more: str) -> Path:
    """Write the project, with a file of tests, and other files over its own; gives its folder."""
    root = folder / "keeper"
    for path, text in {**FILES, "tests/keeping.yaml": tests, **more}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return root


def one_test(test: str, approvals: str = APPROVALS, model: str = "scripted:script.yaml") -> str:
    """A file of one test, with more lines of that test, such as what it expects."""
    return f"model: {model}\ntests:\n  it keeps:\n    input: pears\n    approvals:{approvals}{test}"


def played(folder: Path, tests: str, *options: str) -> subprocess.CompletedProcess[str]:
    """What `llm-do test` says of the project with these tests."""
    return llm_do("test", keeper(folder, tests), *options)
