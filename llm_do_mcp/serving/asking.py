"""Questions to the person behind an MCP client, and what came back.

The same form in both protocol eras: one enum `decision` and a `note`. Only a decision that was offered, in an
accepted answer, is one; everything else is a way of not answering, each with a name of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp.types import ClientCapabilities, ElicitRequestFormParams, ElicitResult

from llm_do_mcp.runtime.question import LABELS, Answer, Question, Silence, text
from llm_do_mcp.serving.caller import caller

NOTE_CHARS = 2000
CLIENT = "client"
BY_TOOL = "the calling model, through run_approve"


def can_answer_forms(capabilities: ClientCapabilities | None) -> bool:
    """Whether a client says that it can show a form (a bare `elicitation: {}` means forms)."""
    elicitation = None if capabilities is None else capabilities.elicitation
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def opens_addresses(capabilities: ClientCapabilities | None) -> bool:
    """Whether a client says that it opens an address for its person."""
    elicitation = None if capabilities is None else capabilities.elicitation
    return elicitation is not None and elicitation.url is not None


def form(question: Question) -> ElicitRequestFormParams:
    """The question as a form. It has no default: who sends it back untouched has decided nothing."""
    offered = "; ".join(f"{decision} = {LABELS[decision]}" for decision in question.decisions)
    schema = {
        "type": "object",
        "properties": {
            "decision": {
                "type": "string",
                "title": "Decision",
                "description": offered,
                "enum": list(question.decisions),
            },
            "note": {"type": "string", "title": "Note", "description": "Optional: a word to the worker"},
        },
        "required": ["decision"],
    }
    return ElicitRequestFormParams(message=text(question), requested_schema=schema)


def answer_from(question: Question, result: ElicitResult) -> Answer:
    """What a client's result says."""
    if result.action == "decline":
        return silence("declined")
    if result.action != "accept":
        return silence("cancelled")
    content: Mapping[str, Any] = result.content or {}
    decision, note = content.get("decision"), content.get("note")
    if not isinstance(decision, str) or decision not in question.decisions or not isinstance(note, str | None):
        return silence("malformed")
    return Answer(decision, note=(note or "")[:NOTE_CHARS], by=_by())


def silence(kind: Silence) -> Answer:
    """A client's way of not answering."""
    return Answer(silence=kind, by=_by())


def _by() -> str:
    """Whose answer it is, as the record says it."""
    principal = caller().principal
    return f"{CLIENT} {principal}" if principal else CLIENT
