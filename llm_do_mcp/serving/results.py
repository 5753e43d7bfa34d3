"""How a run ended, as a tool result."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mcp.types import CallToolResult, ContentBlock, TextContent

from llm_do_mcp.runtime.account import line
from llm_do_mcp.runtime.engine import Done
from llm_do_mcp.runtime.question import HEADS, Question
from llm_do_mcp.serving.nobody import Place

MAX_QUESTIONS = 10
"""Questions that are named in a result."""
ON_PAGE: dict[Place, str] = {
    "browser": "on the approval page that was opened in the browser, or ",
    "client": "on the approval page that this client can open, or ",
    "": "",
}
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


def handed_over(account: Mapping[str, Any], after_s: float, asked: Sequence[Question]) -> CallToolResult:
    """The run goes on, but the caller's clock would run out: it fetches the result later.

    Args:
        account: Of the run, as it stands.
        after_s: The time that is over.
        asked: Questions that the person in front has before them: without an answer nothing more will come.
    """
    run = account["id"]
    named = ", ".join(f"{question.action} {question.target}".rstrip() for question in asked[:MAX_QUESTIONS])
    state = f"run {run} waits for your user's answer ({named})" if asked else f"run {run} goes on"
    return failure(
        f"not finished after {after_s:g} s: {state}. Call run_wait with run_id {run!r} for its result, "
        "or run_cancel to stop it.",
        {ACCOUNT: account},
    )


def waits_for_person(
    account: Mapping[str, Any], questions: Sequence[Question], *, page: Place, how: str, by_tool: bool
) -> CallToolResult:
    """The run waits for a person whom this client cannot ask, or who did not answer there.

    Args:
        account: Of the run, as it stands.
        questions: What waits.
        page: Where the person was shown the approval page.
        how: The command that asks in a terminal.
        by_tool: The questions can be answered with the tool `run_approve`, which needs their keys.
    """
    run = account["id"]
    lines = [
        f"run {run} waits for a person, who can answer {ON_PAGE[page]}in a terminal with: {how}",
        f"Then call run_wait with run_id {run!r} for the result.",
    ]
    for question in questions[:MAX_QUESTIONS]:
        key = f" (question {question.key!r}: {', '.join(question.decisions)})" if by_tool else ""
        lines.append(f"- {HEADS[question.kind]}: {question.action} {question.target}".rstrip() + key)
    if len(questions) > MAX_QUESTIONS:
        lines.append(f"- and {len(questions) - MAX_QUESTIONS} more")
    return failure("\n".join(lines), {ACCOUNT: account})


def too_many_rounds(account: Mapping[str, Any], questions: int) -> CallToolResult:
    """The run waits for more answers than clients of the 2026-07-28 revision bring in one call."""
    run = account["id"]
    return failure(
        f"run {run} waits for more answers ({questions} now) than one call can carry. "
        f"Call run_wait with run_id {run!r} to go on.",
        {ACCOUNT: account},
    )
