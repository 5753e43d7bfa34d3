"""What a person gives a worker on the command line: its input, single fields with `--set`, files with `--attach`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from llm_do_mcp.errors import InvalidInput, ProjectError, UsageError
from llm_do_mcp.runtime.display import escape

if TYPE_CHECKING:
    from llm_do_mcp.project.effective import Worker
    from llm_do_mcp.project.load import Project
    from llm_do_mcp.sandbox.root import Root


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that `arguments` and `attached` read."""
    parser.add_argument("text", nargs="?", metavar="INPUT", help="what the worker is to do")
    parser.add_argument("--input", metavar="JSON", help="the input as a JSON object, for a worker with an input schema")
    parser.add_argument(
        "--set",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a template parameter or field of the input; may be repeated",
    )
    parser.add_argument("--attach", metavar="FILE", action="append", default=[], help="attach a file; may be repeated")


def arguments(options: argparse.Namespace, worker: Worker) -> dict[str, Any]:
    """The arguments of the worker's call.

    Raises:
        UsageError: They are not of the form that the worker takes.
    """
    from llm_do_mcp.runtime.schema import problem

    value = _given(options, worker)
    schema = worker.tool_schema
    properties = schema["properties"]
    for setting in options.set:
        name, equals, text = setting.partition("=")
        if not equals or name not in properties:
            raise UsageError(f"--set {setting}: write NAME=VALUE; names are {', '.join(properties) or 'none'}")
        value[name] = _typed(text, properties[name], schema)
    if worker.input_schema is None:
        value.setdefault("input", "")
    if (wrong := problem(schema, value)) is not None:
        raise UsageError(f"worker {worker.id}: {wrong}")
    return value


def attached(project: Project, worker: Worker, files: Sequence[str]) -> tuple[tuple[Root, ...], list[str]]:
    """The files of `--attach`: their folders as read-only roots of this call, and the files' paths in them.

    A person may give a link: what it leads to is attached.

    Raises:
        UsageError: There is no such file, or it cannot be attached. It is named as it was given; what a link of
            another name leads to, by its own name, as that is the one that counts.
    """
    from llm_do_mcp.serving.surface import attached_files, direct_policy
    from llm_do_mcp.toolsets.delegation import check_attachments, room_for_attachments

    for file in files:
        if os.path.isdir(file):
            raise UsageError(f"--attach {file}: that is a folder; attach the files in it")
        if not os.path.isfile(file):
            what = "that is no regular file" if os.path.exists(file) else "there is no such file"
            raise UsageError(f"--attach {file}: {what}")
    real = [os.path.realpath(file) for file in files]
    shown = [
        escape(file if os.path.basename(file) == os.path.basename(path) else path)
        for file, path in zip(files, real, strict=True)
    ]
    policies = worker.attachment_policy, direct_policy(project)
    try:
        check_attachments(shown, *policies)
    except InvalidInput as error:
        raise UsageError(f"--attach: {error}") from None
    room, whose = room_for_attachments(*policies)
    if (size := sum(map(os.path.getsize, files))) > room:
        what = f"{' and '.join(files)} {'has' if len(files) == 1 else 'have together'} {size} bytes"
        raise UsageError(f"--attach: {what}; {whose} allows {room} (`attachment_policy: {{max_total_bytes: …}}`)")
    for name, path in zip(shown, real, strict=True):
        _check_content(name, path, room)
    return attached_files(real, worker.attachment_policy)


def _check_content(name: str, path: str, room: int) -> None:
    """See that a file is of a kind that can be attached, before there is a run that cannot say where it came from."""
    from llm_do_mcp.models.attachments import attachment

    try:
        with open(path, "rb") as file:
            attachment(name, file.read(room))
    except InvalidInput as error:
        raise UsageError(f"--attach {error}") from None
    except OSError as error:
        raise UsageError(f"--attach {name}: {error.strerror}") from None


def _given(options: argparse.Namespace, worker: Worker) -> dict[str, Any]:
    from llm_do_mcp.project.schema_files import parse_json

    if options.input is not None:
        if options.text is not None:
            raise UsageError("give INPUT or --input, not both")
        try:
            value = parse_json(options.input, "")
        except ProjectError as error:
            where = f" (line {error.line}, column {error.column})" if error.line is not None else ""
            raise UsageError(f"--input is not JSON: {error.message}{where}") from None
        if not isinstance(value, dict):
            raise UsageError("--input must be a JSON object")
        return value
    if worker.input_schema is not None and options.text is not None:
        raise UsageError(f"worker {worker.id} has an input schema; give its input with --input JSON")
    return {} if options.text is None else {"input": options.text}


def _typed(text: str, field: Any, whole: Mapping[str, Any]) -> Any:
    """The value that a text stands for, where the schema wants something else than text."""
    from llm_do_mcp.serving.fields import TEXT, kinds, parsed

    if kinds(field, whole) in ((), (TEXT,)):
        return text
    try:
        return parsed(field, whole, text)
    except ValueError:
        return text  # the schema says what is allowed instead
