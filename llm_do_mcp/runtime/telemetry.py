"""OpenTelemetry spans for what only we know of: `invoke_agent WORKER` and `execute_tool TOOL`.

They sit between the spans that the MCP SDK (`tools/call NAME`) and the Anthropic SDK (`anthropic.messages.create`)
make themselves, and bear the names and attributes of the GenAI semantic conventions. The API comes with the MCP SDK;
where nobody has set a tracer provider (`pip install llm-do-mcp[otel]`, then for instance
`opentelemetry-instrument llm-do-mcp PROJECT`), a span costs one comparison. Texts (inputs, outputs, error messages)
are never part of a span: of an error only its type is.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from opentelemetry import trace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.trace import Span, Tracer

    Attribute = str | int | list[str]

NAME = "llm_do_mcp"


class Recorder:
    """What a span is told while it lasts; without a provider, nothing.

    Args:
        span: The span, or None.
    """

    def __init__(self, span: Span | None) -> None:
        self._span = span
        self._counts: dict[str, int] = {}

    def set(self, name: str, value: Attribute) -> None:
        """An attribute, the last value counts."""
        if self._span is not None:
            self._span.set_attribute(name, value)

    def add(self, name: str, value: int) -> None:
        """To an attribute that is a sum."""
        if self._span is not None:
            self._counts[name] = total = self._counts.get(name, 0) + value
            self._span.set_attribute(name, total)


_SILENT = contextlib.nullcontext(Recorder(None))


def invoke_agent(worker: str, run: str, models: tuple[str, ...]) -> AbstractContextManager[Recorder]:
    """A worker's run, as far as this process drives it.

    Args:
        worker: The worker's id.
        run: The id of the whole run.
        models: The worker's model and its fallbacks.
    """
    provider, _, model = (models[0] if models else "").partition(":")
    attributes: dict[str, Attribute] = {"gen_ai.agent.name": worker, "gen_ai.conversation.id": run}
    if model:
        attributes |= {"gen_ai.provider.name": provider, "gen_ai.request.model": model}
    return _span("invoke_agent", worker, attributes)


def execute_tool(function: str, run: str, call: str) -> AbstractContextManager[Recorder]:
    """One call that is executed: after its approval, before its result is checked.

    Args:
        function: The canonical name.
        run: The id of the whole run.
        call: The call's key in it.
    """
    attributes: dict[str, Attribute] = {
        "gen_ai.tool.name": function,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": call,
        "gen_ai.conversation.id": run,
    }
    return _span("execute_tool", function, attributes)


def _span(operation: str, subject: str, attributes: Mapping[str, Attribute]) -> AbstractContextManager[Recorder]:
    provider = trace.get_tracer_provider()
    if isinstance(provider, trace.ProxyTracerProvider):  # the API's own, which stands in where nobody has set one
        return _SILENT
    return _recorded(provider.get_tracer(NAME), operation, subject, attributes)


@contextlib.contextmanager
def _recorded(tracer: Tracer, operation: str, subject: str, attributes: Mapping[str, Attribute]) -> Iterator[Recorder]:
    with tracer.start_as_current_span(
        f"{operation} {subject}",
        attributes={"gen_ai.operation.name": operation, **attributes},
        record_exception=False,  # its message may hold anything
        set_status_on_exception=False,
    ) as span:
        try:
            yield Recorder(span)
        except (Exception, asyncio.CancelledError) as error:
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(trace.StatusCode.ERROR)
            raise
