"""What a run did and spent, folded from its records: every result carries it in `_meta["llm-do/run"]`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llm_do_mcp.runtime.store import Event

NO_MODEL = "no model was called"
WRITE = "files.write"


def account(run: str, status: str, events: Sequence[Event]) -> dict[str, Any]:
    """The account of a run.

    Returns:
        `{id, status, models, tokens, cost, calls, approvals, files_changed}`: `models` are the names that replied
        (`scripted:…` and `replay:…` are no models, and `note` says so where there was no other), `tokens` is
        `{input, output}`, `cost` is None where a price is unknown, `calls` counts functions called, `approvals` are
        `{function, target, decision, by, note}`, `files_changed` are `alias/path`.
    """
    models: dict[str, None] = {}
    tokens = {"input": 0, "output": 0}
    calls = 0
    approvals: list[dict[str, str]] = []
    files: dict[str, None] = {}
    for event in events:
        if event.kind == "model":
            if event.state == "done":
                models[event.data["model"]] = None
                tokens["input"] += event.data["usage"]["input_tokens"]
                tokens["output"] += event.data["usage"]["output_tokens"]
        elif event.kind == "ask":
            approvals.append(approval := _approval(event.data))
            if approval["function"] == WRITE and approval["decision"] == "done":
                files[approval["target"]] = None  # in doubt, and a person said that it was written
        elif event.kind != "definition":
            calls += 1
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
    return found


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


def line(account: dict[str, Any]) -> str:
    """The account for people: one short line."""
    parts = [f"run {account['id']}"]
    if account["models"]:
        names = ", ".join(account["models"])
        parts.append(f"{account['note']} ({names})" if account.get("note") else names)
    parts.append(f"{account['calls']} calls")
    if account["approvals"]:
        parts.append(f"{len(account['approvals'])} approvals")
    if account["files_changed"]:
        parts.append(f"{len(account['files_changed'])} files changed")
    return " · ".join(parts)
