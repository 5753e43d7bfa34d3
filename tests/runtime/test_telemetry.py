"""Spans, told to the SDK's own exporter; and that nothing is done where nobody listens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from llm_do_mcp.runtime import telemetry
from tests.project.conftest import worker
from tests.runtime.test_trace import FILES, decide
from tests.runtime.workshop import MAIN, Workshop


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """A provider for this test only: the API's own can be set once in a process."""
    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    yield kept
    provider.shutdown()


def parent(spans: dict[int, ReadableSpan], span: ReadableSpan) -> str:
    return "" if span.parent is None else spans[span.parent.span_id].name


@pytest.mark.anyio
@pytest.mark.proves("OTEL-SPANS")
async def test_workers_and_calls_are_spans_that_nest_with_those_around_them(
    tmp_path: Path, exporter: InMemorySpanExporter
) -> None:
    async with Workshop(tmp_path, FILES, model="scripted:m.yaml") as made:
        with trace.get_tracer_provider().get_tracer("sdk").start_as_current_span("tools/call main"):
            done = await made.run("go", decide)
    spans = {span.context.span_id: span for span in exporter.get_finished_spans() if span.context is not None}
    assert sorted((span.name, parent(spans, span)) for span in spans.values()) == [
        ("execute_tool custom.both", "invoke_agent main"),
        ("execute_tool files.read", "execute_tool custom.both"),
        ("execute_tool files.read", "invoke_agent main"),
        ("execute_tool files.write", "invoke_agent main"),
        ("invoke_agent helper", "execute_tool custom.both"),
        ("invoke_agent main", "tools/call main"),
        ("tools/call main", ""),
    ]
    agent = next(span for span in spans.values() if span.name == "invoke_agent main")
    assert dict(agent.attributes or {}) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "main",
        "gen_ai.conversation.id": done.run,
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "m.yaml",
        "gen_ai.response.model": "scripted:m.yaml",
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 20,
    }
    tool = next(span for span in spans.values() if span.name == "execute_tool files.write")
    assert dict(tool.attributes or {}) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "files.write",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "call/t0.2",
        "gen_ai.conversation.id": done.run,
    }


@pytest.mark.anyio
@pytest.mark.proves("OTEL-SPANS", "A079")
async def test_of_an_error_only_its_type_is_told(tmp_path: Path, exporter: InMemorySpanExporter) -> None:
    refusing = {"main": [{"tool_calls": [{"name": "read_file", "input": {"path": "in/secret-name"}}]}, _REFUSAL]}
    files = {"main.worker": worker(MAIN), "m.yaml": json.dumps({"workers": refusing})}
    async with Workshop(tmp_path, files, model="scripted:m.yaml") as made:
        await made.run("go")
    spans = exporter.get_finished_spans()
    assert {span.name: (span.attributes or {}).get("error.type") for span in spans} == {
        "execute_tool files.read": "FileMissing",
        "invoke_agent main": "ModelError",
    }
    assert all(not span.status.is_ok and not span.status.description and not span.events for span in spans)
    assert "secret-name" not in "".join(span.to_json() for span in spans)


_REFUSAL = {"text": "", "stop_reason": "refusal"}


@pytest.mark.proves("OTEL-FREE")
def test_without_a_provider_no_span_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("a tracer was asked for")

    monkeypatch.setattr(trace.ProxyTracerProvider, "get_tracer", never)
    monkeypatch.setattr(trace, "get_tracer_provider", trace.ProxyTracerProvider)
    with telemetry.invoke_agent("main", "r", ("scripted:x",)) as recorder, telemetry.execute_tool("te", "r", "t0.0"):
        recorder.set("a", 1)
        recorder.add("b", 1)
