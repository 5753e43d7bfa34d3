"""How a run ended, as a tool result."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mcp.types import CallToolResult, ContentBlock, ResourceLink, TextContent

from llm_do_mcp.runtime.account import line
from llm_do_mcp.runtime.display import cut
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


ERROR_CHARS = 9_900
"""Of an error: one host cuts what is longer than about 10,000 in its middle."""


TEXT_CHARS = 40_000
"""Of a worker's text in one result; the rest is behind a handle."""
WHOLE_CHARS = 500_000
"""Of a result that cannot be cut, since it has a form; hosts that ask tools for their size are told so."""
MAX_LINKS = 20


def result_of(
    done: Done,
    *,
    structured: bool,
    for_people: bool,
    offset: int | None = None,
    links: Sequence[ResourceLink] = (),
) -> CallToolResult:
    """The result of a call whose run has ended.

    Args:
        done: How it ended.
        structured: The tool has an output schema.
        for_people: Add the account as one short line, and keep to what hosts show of a text.
        offset: From where on the output's text is wanted; None for the output as it is.
        links: To files that were written.
    """
    meta = {ACCOUNT: done.account}
    if done.status != "done":
        note = f"\n{line(done.account)}" if for_people else ""
        return failure(cut(done.error, ERROR_CHARS - len(note)) + note, meta)
    output = done.output
    shown = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, indent=2)
    if (structured and offset is None) and len(shown) > WHOLE_CHARS:
        return failure(_too_long(len(shown), done.account["id"]), meta)
    if offset is not None or (for_people and not structured):
        structured, shown = False, _part(shown, offset or 0, done.account["id"])
    content: list[ContentBlock] = [TextContent(type="text", text=shown), *links[:MAX_LINKS]]
    if for_people:
        content.append(TextContent(type="text", text=line(done.account)))
    return CallToolResult(content=content, structured_content=output if structured else None, _meta=meta)


def _part(text: str, offset: int, run: str) -> str:
    """What fits of a text, from an offset on, and how the rest is had."""
    end = offset + TEXT_CHARS
    if len(text) <= end:
        return text[offset:]
    rest = f"{len(text) - end} more characters of {len(text)}: run_wait with run_id {run!r} and offset {end}"
    return f"{text[offset:end]}\n[{rest}]"


def _too_long(length: int, run: str) -> str:
    return (
        f"the run is done, and its result of {length} characters is more than the {WHOLE_CHARS} that one answer holds. "
        f"Read it in parts: run_wait with run_id {run!r} and offset 0"
    )


def failure(message: str, meta: Mapping[str, Any] | None = None) -> CallToolResult:
    """A result that tells its caller in one line what went wrong."""
    content: list[ContentBlock] = [TextContent(type="text", text=cut(message, ERROR_CHARS))]
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


def ending(run: str) -> CallToolResult:
    """The server is about to end; the run goes on where somebody waits for it."""
    return failure(
        f"this server is about to end, before run {run} has. The run goes on where it was once you call run_wait with "
        f"run_id {run!r}, on this server when it is back or on another one of the same project."
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
    """The run waits for more answers, of people or the client's model, than one call brings in 2026-07-28."""
    run = account["id"]
    return failure(
        f"run {run} waits for more answers ({questions} now) than one call can carry. "
        f"Call run_wait with run_id {run!r} to go on.",
        {ACCOUNT: account},
    )
