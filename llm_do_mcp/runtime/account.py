"""What a run did and spent, folded from its records: every result carries it in `_meta["llm-do/run"]`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from llm_do_mcp.runtime.store import OPEN, Event

NO_MODEL = "no model was called"
WRITE = "files.write"
NAMED = 10
"""Files that a message names."""


def account(run: str, status: str, events: Sequence[Event]) -> dict[str, Any]:
    """The account of a run.

    Returns:
        `{id, status, models, tokens, cost, calls, approvals, files_changed}`: `models` are the names that replied
        (`scripted:…` and `replay:…` are no models, and `note` says so where there was no other), `tokens` is
        `{input, output}`, `cost` is None where a price is unknown, `calls` counts functions called, `approvals` are
        `{function, target, decision, by, note}`, without questions that were taken back, `files_changed` are
        `alias/path`. A run that has ended has `in_doubt` where something with an effect was begun and never ended:
        `{function, target}` of what may have happened.
    """
    models: dict[str, None] = {}
    tokens = {"input": 0, "output": 0}
    calls = 0
    approvals: list[dict[str, str]] = []
    files: dict[str, None] = {}
    begun: dict[str, str] = {}
    targets: dict[str, str] = {}
    for event in events:
        if event.kind == "model":
            if event.state == "done":
                models[event.data["model"]] = None
                tokens["input"] += event.data["usage"]["input_tokens"]
                tokens["output"] += event.data["usage"]["output_tokens"]
        elif event.kind == "ask":
            approval = _approval(event.data)
            if event.state != "withdrawn":
                approvals.append(approval)
            targets[event.key.rpartition(".")[0]] = approval["target"]
            if approval["function"] == WRITE and approval["decision"] == "done":
                files[approval["target"]] = None  # in doubt, and a person said that it was written
        elif is_call(event):
            calls += 1
            if is_intent(event):
                begun[event.key] = event.kind
            if event.kind == WRITE and event.state == "done" and "path" in event.data:
                files[event.data["path"]] = None
    called = any(not name.startswith(("scripted:", "replay:")) for name in models)
    found: dict[str, Any] = {
        "id": run,
        "status": status,
        "models": list(models),
        "tokens": tokens,
        "cost": None if called else 0,
        "calls": calls,
        "approvals": approvals,
        "files_changed": list(files),
    }
    if models and not called:
        found["note"] = NO_MODEL
    if begun and status not in OPEN:
        found["in_doubt"] = [{"function": name, "target": targets.get(key, "")} for key, name in begun.items()]
    return found


def is_call(event: Event) -> bool:
    """Whether a record is the call of a function that was made, and no definition, question or model's turn."""
    return event.kind not in ("definition", "ask", "model") and event.state != "withdrawn"


def is_intent(event: Event) -> bool:
    """Whether a record is a step that must not run twice, begun and not ended: only such a one numbers its attempts."""
    return event.state == "started" and event.data is not None


def under_way(events: Sequence[Event]) -> str:
    """What has begun and not ended, without that in which something else is under way: where a run stands."""
    begun = [event for event in events if event.state == "started"]
    inmost = [event for event in begun if not any(other.key.startswith(f"{event.key}/") for other in begun)]
    return ", ".join("a turn of the model" if event.kind == "model" else event.kind for event in inmost[:NAMED])


def left_behind(events: Sequence[Event]) -> str:
    """What work that did not come to its end leaves behind, to be said after the reason; "" where that is nothing."""
    found = account("", "failed", events)
    files: list[str] = found["files_changed"]
    more = f" and {len(files) - NAMED} more" if len(files) > NAMED else ""
    doubtful = ", ".join(f"{one['function']} {one['target']}".rstrip() for one in found.get("in_doubt", ()))
    return (f"; written so far: {', '.join(files[:NAMED])}{more}" if files else "") + (
        f"; cut short, and may have happened: {doubtful}" if doubtful else ""
    )


def _approval(data: dict[str, Any]) -> dict[str, str]:
    question, answer = data["question"], data.get("answer")
    if answer is None:
        decision, by, note = "open", "", ""
    else:
        decision, by, note = answer["decision"] or answer["silence"], answer["by"], answer["note"]
    return {
        "function": question["function"],
        "target": question["target"],
        "decision": decision,
        "by": by,
        "note": note,
    }


def _by_whom(approvals: Sequence[dict[str, str]]) -> str:
    """Who answered how: `2 once by terminal, 1 deny by client, 1 open`."""
    found = Counter(" by ".join(filter(None, (one["decision"].replace("_", " "), one["by"]))) for one in approvals)
    return ", ".join(f"{count} {said}" for said, count in found.items())


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def line(account: dict[str, Any]) -> str:
    """The account for people: one short line."""
    parts = [f"run {account['id']}"]
    if account["models"]:
        names = ", ".join(account["models"])
        parts.append(f"{account['note']} ({names})" if account.get("note") else names)
    parts.append(_many(account["calls"], "call"))
    if account["approvals"]:
        parts.append(f"{_many(len(account['approvals']), 'approval')} ({_by_whom(account['approvals'])})")
    if account["files_changed"]:
        parts.append(f"{_many(len(account['files_changed']), 'file')} changed")
    return " · ".join(parts)
