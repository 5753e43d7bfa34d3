"""Exported workers as MCP prompts, for the host's own model to do the work with our files and search.

The instructions are those that the worker's own model would get, word for word. What differs is the functions that they
speak of: a model in a host has the tools of this server instead, so a prompt says which stands for which.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mcp.types import GetPromptResult, Prompt, PromptArgument, PromptMessage, TextContent

from llm_do_mcp.errors import InvalidInput
from llm_do_mcp.serving import fields
from llm_do_mcp.serving.surface import Published, worker_input

if TYPE_CHECKING:
    from llm_do_mcp.project.effective import Worker
    from llm_do_mcp.toolsets.workbench import Workbench


def listed(published: Published, worker: Worker) -> Prompt:
    """A worker's prompt. Its arguments are the fields of its input, and its parameters."""
    schema = worker.tool_schema
    required = schema.get("required", ())
    arguments = [
        PromptArgument(name=name, description=_about(field, schema), required=name in required)
        for name, field in schema.get("properties", {}).items()
    ]
    return Prompt(name=published.name, description=published.description, arguments=arguments)


async def rendered(
    bench: Workbench, tools: Mapping[str, Published], published: Published, worker: Worker, given: Mapping[str, str]
) -> GetPromptResult:
    """A worker's prompt with its arguments put in.

    Args:
        bench: The project's.
        tools: What is published beside it.
        published: The worker's tool.
        worker: The worker.
        given: Arguments as hosts hand them over, each a text.

    Raises:
        LlmDoError: They do not fit, or a template cannot be rendered.
    """
    from llm_do_mcp.runtime.schema import problem

    schema = worker.tool_schema
    arguments = _typed(published.name, schema, given)
    if (wrong := problem(schema, arguments)) is not None:
        raise InvalidInput(f"{published.name}: {wrong}")
    call = worker_input(worker, arguments, ())
    texts = await bench.rendered(worker, call["input_data"], call["params"])
    how = [texts.instructions, *texts.system_fragments, "\n".join(_instead(worker, tools))]
    if worker.output_schema is not None:
        how.append(f"Answer with JSON of this schema:\n{json.dumps(worker.output_schema, ensure_ascii=False)}")
    what = [*texts.fragments, texts.asked(call["input_data"])]
    messages = [_said("\n\n".join(part for part in parts if part)) for parts in (how, what)]
    return GetPromptResult(description=published.description, messages=messages)


def _said(text: str) -> PromptMessage:
    return PromptMessage(role="user", content=TextContent(type="text", text=text))


def _about(field: Any, schema: Mapping[str, Any]) -> str | None:
    """What a person is told of an argument; where it cannot be a text, also what it can be."""
    about = field.get("description", "") if isinstance(field, dict) else ""
    kinds = fields.kinds(field, schema)
    if not kinds or fields.TEXT in kinds:
        return about or None
    form = f"JSON: {' or '.join(kinds)}"
    return f"{about} ({form})" if about else form


def _typed(name: str, schema: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, Any]:
    """Arguments as the schema has them. One that is left empty, and cannot be, is not given where it need not be."""
    known = schema.get("properties", {})
    return {
        key: fields.value(known.get(key), schema, text, f"{name}: {key}")
        for key, text in given.items()
        if text or key in schema.get("required", ()) or fields.fits(known.get(key), schema, text)
    }


def _instead(worker: Worker, tools: Mapping[str, Published]) -> Iterator[str]:
    """Which tools stand for the functions that a worker's instructions may speak of."""
    files = {(tool.function, tool.alias): tool.name for tool in tools.values()}
    workers = {tool.subject: tool.name for tool in tools.values() if tool.is_worker}
    search = next((tool.name for tool in tools.values() if tool.function == "te"), None)
    lines = []
    if worker.toolsets.filesystem is not None:
        for function, shown in (("list", "list_files"), ("read", "read_file"), ("write", "write_file")):
            found = [(root.alias, files.get((f"files.{function}", root.alias))) for root in worker.roots]
            lines += [f"- {shown} in {alias}: {name}, with paths below {alias}" for alias, name in found if name]
    if worker.toolsets.te is not None and search is not None:
        lines.append(f"- te: {search}")
    able = {other: name for other, name in workers.items() if other != worker.id and worker.may_call(other)}
    lines += [f"- worker {other}: {name}" for other, name in able.items()]
    if lines:
        yield "Use these tools for it, in place of the functions that are spoken of above:"
        yield from lines
    missing = [*(["shell"] if worker.toolsets.shell is not None else []), *(worker.named_tools or ())]
    if missing:
        yield f"Not to be had here, so say where it would be needed: {', '.join(missing)}"
