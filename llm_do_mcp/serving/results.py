"""How a run ended, as a tool result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mcp.types import CallToolResult, ContentBlock, TextContent

from llm_do_mcp.runtime.account import line
from llm_do_mcp.runtime.engine import Done

ACCOUNT = "llm-do/run"
"""Where in `_meta` a result carries the account of its run."""


def result_of(done: Done, *, structured: bool, for_people: bool) -> CallToolResult:
    """The result of a call whose run has ended.

    Args:
        done: How it ended.
        structured: The tool has an output schema.
        for_people: Add the account as one short line.
    """
    meta = {ACCOUNT: done.account}
    if done.status != "done":
        note = f"\n{line(done.account)}" if for_people else ""
        return failure(done.error + note, meta)
    output = done.output
    shown = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, indent=2)
    content: list[ContentBlock] = [TextContent(type="text", text=shown)]
    if for_people:
        content.append(TextContent(type="text", text=line(done.account)))
    return CallToolResult(content=content, structured_content=output if structured else None, _meta=meta)


def failure(message: str, meta: Mapping[str, Any] | None = None) -> CallToolResult:
    """A result that tells its caller in one line what went wrong."""
    content: list[ContentBlock] = [TextContent(type="text", text=message[:10_000])]
    return CallToolResult(content=content, is_error=True, _meta=dict(meta) if meta else None)


def handed_over(account: Mapping[str, Any], after_s: float) -> CallToolResult:
    """The run goes on, but the caller's clock would run out: it fetches the result later."""
    run = account["id"]
    return failure(
        f"not finished after {after_s:g} s: run {run} goes on. Call run_wait with run_id {run!r} for its result, "
        "or run_cancel to stop it.",
        {ACCOUNT: account},
    )


def too_many_rounds(account: Mapping[str, Any], questions: int) -> CallToolResult:
    """The run waits for more answers than clients of the 2026-07-28 revision bring in one call."""
    run = account["id"]
    return failure(
        f"run {run} waits for more answers ({questions} now) than one call can carry. "
        f"Call run_wait with run_id {run!r} to go on.",
        {ACCOUNT: account},
    )
