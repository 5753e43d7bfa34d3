"""What a run did and spent, folded from its records: every result carries it in `_meta["llm-do/run"]`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from llm_do_mcp.models.sampling import is_sampling
from llm_do_mcp.runtime.display import counted
from llm_do_mcp.runtime.store import OPEN, Event

NO_MODEL = "no model was called"
WRITE = "files.write"
NAMED = 10
"""Files that a message names."""


def account(run: str, status: str, events: Sequence[Event]) -> dict[str, Any]:
    """The account of a run.

    Returns:
        `{id, status, models, tokens, cost, calls, approvals, files_changed}`: `models` are the names that replied
        (`scripted:…` and `replay:…` are no models, and `note` says so where there was no other; `sampling (…)` tells
        which model the client had), `tokens` is `{input, output}`, `cost` is in US dollars (None where a price is not
        known, and `unpriced` names the models), both with replies that came to nothing, `calls` counts functions
        called, `approvals` are `{function, target, decision, by, note}`, without questions that were taken back,
        `files_changed` are `alias/path`. A run that has ended has `in_doubt` where something with an effect was begun
        and never ended: `{function, target}` of what may have happened.
    """
    turns = [event.data for event in events if event.kind == "model" and event.ended is not None]
    calls = 0
    approvals: list[dict[str, str]] = []
    files: dict[str, None] = {}
    begun: dict[str, str] = {}
    targets: dict[str, str] = {}
    for event in events:
        if event.kind == "ask":
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
    found: dict[str, Any] = {
        "id": run,
        "status": status,
        **spent(turns),
        "calls": calls,
        "approvals": approvals,
        "files_changed": list(files),
    }
    if begun and status not in OPEN:
        found["in_doubt"] = [{"function": name, "target": targets.get(key, "")} for key, name in begun.items()]
    return found


def spent(turns: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The part of an account that is about models.

    Args:
        turns: What is recorded of turns that ended, answered or not.
    """
    models: dict[str, None] = {}
    called = False
    unpriced: dict[str, None] = {}
    tokens = {"input": 0, "output": 0}
    cost = 0.0
    for turn in turns:
        if "model" in turn:
            lent = is_sampling(turn["model"]) and turn.get("answered_by")
            models[f"{turn['model']} ({turn['answered_by']})" if lent else turn["model"]] = None
        for each in paid(turn):
            called = called or calls_model(each["model"])
            tokens["input"] += each["usage"]["input_tokens"]
            tokens["output"] += each["usage"]["output_tokens"]
            price = each.get("cost", None if calls_model(each["model"]) else 0)
            if price is None:
                unpriced[each["model"]] = None
            cost += price or 0
    found: dict[str, Any] = {"models": list(models), "tokens": tokens, "cost": None if unpriced else round(cost, 9)}
    if unpriced:
        found["unpriced"] = list(unpriced)
    if models and not called:
        found["note"] = NO_MODEL
    return found


def paid(turn: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """What of a recorded turn took tokens: the reply, where there is one, and those that came to nothing.

    Yields:
        Mappings with `model`, `usage` and `cost`.
    """
    if "usage" in turn:
        yield turn
    yield from turn.get("lost", ())


def calls_model(name: str) -> bool:
    """Whether a model's name is that of a model, and not of a script or a recording."""
    return not name.startswith(("scripted:", "replay:"))


def money(account: Mapping[str, Any]) -> str:
    """What was spent, for people; "" where no model was called."""
    if account["cost"] == 0 and not any(map(calls_model, account["models"])):
        return ""
    if account["cost"] is None:
        return f"cost unknown (no price for {', '.join(account['unpriced'])})"
    return dollars(account["cost"])


def dollars(cost: float) -> str:
    """A sum, to the cent, or to four figures where it is less than a dollar."""
    if 0 < cost < 0.0001:
        return "less than $0.0001"
    return f"${cost:.2f}" if cost >= 1 else f"${cost:.4f}"


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


def line(account: dict[str, Any]) -> str:
    """The account for people: one short line."""
    parts = [f"run {account['id']}"]
    if account["models"]:
        names = ", ".join(account["models"])
        parts.append(f"{account['note']} ({names})" if account.get("note") else names)
    if any(account["tokens"].values()):
        parts.append(f"{sum(account['tokens'].values()):,} tokens")
    if said := money(account):
        parts.append(said)
    parts.append(counted(account["calls"], "call"))
    if account["approvals"]:
        parts.append(f"{counted(len(account['approvals']), 'approval')} ({_by_whom(account['approvals'])})")
    if account["files_changed"]:
        parts.append(f"{counted(len(account['files_changed']), 'file')} changed")
    return " · ".join(parts)
