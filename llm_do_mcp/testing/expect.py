"""What came of a test beside what it expects: each difference is one line that says both."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llm_do_mcp.errors import LlmDoError
from llm_do_mcp.models.replay import parted
from llm_do_mcp.project.files import ProjectFiles
from llm_do_mcp.project.schema_files import SelfContained
from llm_do_mcp.runtime.display import cut
from llm_do_mcp.runtime.function import JSON
from llm_do_mcp.runtime.schema import problem
from llm_do_mcp.sandbox import patterns
from llm_do_mcp.testing.suite import Expected

if TYPE_CHECKING:
    from llm_do_mcp.toolsets.workbench import Workbench

SHOWN = 200
"""Characters of each side of a difference."""
ERROR = 2000
"""Characters of the error of a run that was to be done: a replay that was asked something else says in it what."""
ASSERTION_S = 60.0
"""How long a Python assertion may take."""


@dataclass(frozen=True)
class Outcome:
    """What came of a run.

    Args:
        status: `done` or how else it ended.
        output: What it gave.
        error: One line where it is not done.
        account: What it did and spent.
        files: Path in the project → text of files that were written.
    """

    status: str
    output: JSON
    error: str
    account: Mapping[str, Any]
    files: Mapping[str, str]


async def differences(expected: Expected, outcome: Outcome, bench: Workbench) -> list[str]:
    """What is not as expected; nothing where all is.

    Raises:
        LlmDoError: What is expected cannot be looked at, such as a schema that is broken.
    """
    found = list(_of_status(expected, outcome))
    if found:
        return found  # of a run that ended in another way, the rest would only say the same again
    found += _pieces("error", expected.error, outcome.error)
    found += _pieces("text", expected.text, _text(outcome.output))
    if "output" in expected.model_fields_set and not _same(outcome.output, expected.output):
        wanted, got = parted(_json(expected.output), _json(outcome.output), SHOWN)
        found.append(f"output: expected {wanted}, got {got}")
    if expected.output_schema is not None:
        wrong = problem(_schema(expected.output_schema, bench.project.root), outcome.output)
        found += [] if wrong is None else [f"output_schema: {wrong}"]
    if expected.files is not None:
        found += _of_files(expected.files, outcome.files)
    if expected.python is not None:
        found += await _asserted(expected.python, outcome, bench)
    return found


def _of_status(expected: Expected, outcome: Outcome) -> Iterator[str]:
    if outcome.status != expected.status:
        how = cut(outcome.error, ERROR) or cut(_json(outcome.output), SHOWN)
        yield f"status: expected {expected.status}, got {outcome.status}: {how}"


def _pieces(name: str, pieces: tuple[str, ...], whole: str) -> list[str]:
    return [f"{name}: {cut(piece, SHOWN)!r} is not in {cut(whole, SHOWN)!r}" for piece in pieces if piece not in whole]


def _schema(given: dict[str, Any] | str, root: str) -> Mapping[str, Any]:
    if isinstance(given, dict):
        return given
    return SelfContained(ProjectFiles(root).read_bytes, str).file(given)


def _of_files(expected: Mapping[str, tuple[str, ...]], files: Mapping[str, str]) -> Iterator[str]:
    for path in files:
        if not any(_fits(path, pattern) for pattern in expected):
            yield f"files: {path} was written, and is not among them"
    for pattern, pieces in expected.items():
        fitting = {path: text for path, text in files.items() if _fits(path, pattern)}
        if not fitting:
            yield f"files: {pattern} was not written; written: {', '.join(files) or 'none'}"
        for path, text in fitting.items():
            yield from _pieces(f"files: {path}", pieces, text)


def _fits(path: str, pattern: str) -> bool:
    return patterns.matches(patterns.parse(pattern), path.split("/"))


async def _asserted(reference: str, outcome: Outcome, bench: Workbench) -> list[str]:
    """What a Python assertion says. It runs where all of the project's Python does."""
    file, _, name = reference.partition(":")
    result = {
        "status": outcome.status,
        "output": outcome.output,
        "error": outcome.error,
        "files": dict(outcome.files),
        "account": dict(outcome.account),
    }
    try:
        await bench.host.evaluate(file, name, result, timeout=ASSERTION_S)
    except LlmDoError as error:
        return [f"python: {error}"]
    return []


def _same(one: JSON, other: JSON) -> bool:
    """Whether two values are the same JSON: 1 is 1.0, and neither is true."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def _text(output: JSON) -> str:
    return output if isinstance(output, str) else _json(output)


def _json(value: JSON) -> str:
    return json.dumps(value, ensure_ascii=False)
