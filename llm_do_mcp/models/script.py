"""The file of a scripted model: what each worker answers, turn by turn, or which function knows.

    workers:
      main:
        - tool_calls: [{name: list_files, input: {path: input}}]
        - Done.
      evaluator: {python: "scripted/evaluator.py:reply"}

A function returns a turn in the same form, so both are read by `parse_turn`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from llm_do_mcp.models.turn import Usage
from llm_do_mcp.project.files import ProjectFiles, decode
from llm_do_mcp.project.paths import project_path
from llm_do_mcp.project.strictyaml import KeyPath, load

STOP_REASONS = ("end_turn", "tool_use", "max_tokens", "refusal", "model_context_window_exceeded")


@dataclass(frozen=True)
class ToolCall:
    """A call that a script makes."""

    name: str
    input: Mapping[str, Any]


@dataclass(frozen=True)
class Turn:
    """What a script answers in one turn."""

    text: str
    tool_calls: tuple[ToolCall, ...]
    stop_reason: str
    usage: Usage


@dataclass(frozen=True)
class PythonFunction:
    """A function that answers: its file, relative to the project, and its name."""

    file: str
    name: str


Script = Mapping[str, "tuple[Turn, ...] | PythonFunction"]
"""Id of a worker → its turns."""


def load_script(project_root: str, file: str) -> Script:
    """Read a script file. Blocks.

    Args:
        project_root: The project's folder.
        file: The file, relative to it.

    Raises:
        ProjectError: It cannot be read inside the project, or is no script; with the place.
    """
    document = load(decode(ProjectFiles(project_root).read_bytes(file), file), path=file)
    script: dict[str, tuple[Turn, ...] | PythonFunction] = {}
    place: KeyPath = ()
    try:
        workers = document.data.get("workers")
        if set(document.data) != {"workers"} or not isinstance(workers, dict):
            raise ValueError("a script has one key: workers, a mapping of worker ids")
        for worker, answers in workers.items():
            place = ("workers", worker)
            if isinstance(answers, list):
                turns = []
                for index, turn in enumerate(answers):
                    place = ("workers", worker, index)
                    turns.append(parse_turn(turn))
                script[worker] = tuple(turns)
            else:
                script[worker] = _parse_function(answers)
    except ValueError as error:
        raise document.error(str(error), place) from None
    return script


def _parse_function(answers: Any) -> PythonFunction:
    reference = answers.get("python") if isinstance(answers, dict) and len(answers) == 1 else None
    file, _, name = reference.partition(":") if isinstance(reference, str) else ("", "", "")
    if not file.endswith(".py") or not name.isidentifier():
        raise ValueError('a worker has a list of turns, or {python: "file.py:function"}')
    return PythonFunction(project_path(file), name)


def parse_turn(data: Any) -> Turn:
    """A turn as a script gives it: a text, or a mapping of `text`, `tool_calls`, `stop_reason` and `usage`.

    Raises:
        ValueError: It is not of this form.
    """
    if isinstance(data, str):
        data = {"text": data}
    if not isinstance(data, dict) or not data or not set(data) <= {"text", "tool_calls", "stop_reason", "usage"}:
        raise ValueError("a turn is a text, or a mapping of text, tool_calls, stop_reason and usage")
    text, calls, usage = data.get("text") or "", data.get("tool_calls") or [], data.get("usage") or {}
    if not isinstance(text, str):
        raise ValueError("text is a text")
    if not isinstance(calls, list):
        raise ValueError("tool_calls is a list of {name, input}")
    stop_reason = data.get("stop_reason") or ("tool_use" if calls else "end_turn")
    if stop_reason not in STOP_REASONS:
        raise ValueError(f"stop_reason is one of {', '.join(STOP_REASONS)}")
    counts = [field.name for field in fields(Usage)]
    if not isinstance(usage, dict) or not set(usage) <= set(counts) or not all(map(_is_count, usage.values())):
        raise ValueError(f"usage is a mapping of numbers, whole and not below 0: {', '.join(counts)}")
    return Turn(text, tuple(_parse_call(call) for call in calls), stop_reason, Usage(**usage))


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _parse_call(data: Any) -> ToolCall:
    if isinstance(data, dict) and set(data) <= {"name", "input"}:
        name, arguments = data.get("name"), data.get("input", {})
        if isinstance(name, str) and name and isinstance(arguments, dict):
            return ToolCall(name, arguments)
    raise ValueError("a tool call is {name: ..., input: {...}}")
