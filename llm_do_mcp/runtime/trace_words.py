"""A trace in words: what all that shows a run (terminal, page, approval page) says of it and of what happened in it."""

from __future__ import annotations

from llm_do_mcp.runtime.account import NO_MODEL, dollars, money
from llm_do_mcp.runtime.display import cut
from llm_do_mcp.runtime.store import OPEN
from llm_do_mcp.runtime.trace import Item, ItemState, Trace

STATES: dict[ItemState, str] = {
    "done": "",
    "failed": "failed",
    "running": "running",
    "waiting": "waits for a person",
    "refused": "refused",
    "not_made": "not made",
    "in_doubt": "in doubt",
    "unfinished": "not finished",
    "withdrawn": "withdrawn",
}
"""What became of an item, in words; nothing where it went well."""


def duration(seconds: float) -> str:
    """A length of time, as short as it can be read: `4 ms`, `1.3 s`, `2 min 5 s`, `3 h 20 min`."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    if seconds < 3599.5:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, rest = divmod(round(seconds / 60), 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"


def title(item: Item) -> str:
    """An item's name, for people: turns are counted from 1."""
    if item.kind == "turn":
        return f"turn {int(item.key.rpartition('/')[2][1:]) + 1}"
    if item.kind == "question":
        return f"{item.name} {item.facts['target']}".rstrip()
    return item.name


def tokens(item: Item) -> str:
    """What a turn took; "" where that is not known."""
    lost = item.facts.get("lost_tokens")
    in_vain = f"{lost:,} for replies that came to nothing" if lost else ""
    if not item.facts.get("input_tokens") and not item.facts.get("output_tokens"):
        return in_vain
    cost = item.facts.get("cost")
    took = f"{item.facts['input_tokens']:,} in, {item.facts['output_tokens']:,} out"
    return ", ".join(part for part in (took, dollars(cost) if cost else "", in_vain) if part)


def _asked_in_vain(found: Trace) -> list[str]:
    """The models that were asked in turns to which no answer came."""
    turns = [item.facts for _, item in found.walk() if item.kind == "turn" and item.state == "failed"]
    asked = [name for facts in turns for name in (*(each["model"] for each in facts["passed_over"]), facts["model"])]
    return list(filter(None, dict.fromkeys(asked)))


def passed_over(item: Item) -> str:
    """The models of a chain that did not serve a turn."""
    return ", ".join(f"passed over {each['model']}" for each in item.facts.get("passed_over", ()))


def decided(item: Item) -> str:
    """Who answered a question, what, and how long that took."""
    if "decision" not in item.facts:
        return "no answer yet" if item.ended is None else f"no answer, withdrawn after {took(item)}"
    note = f" “{item.facts['note']}”" if item.facts["note"] else ""
    by = f", by {item.facts['by']}" if item.facts["by"] else ""
    return f"{str(item.facts['decision']).replace('_', ' ')}{note}{by}, after {took(item)}"


def stopped(item: Item) -> str:
    """Why a model stopped, where it did not simply end its turn."""
    reason = item.facts.get("stop_reason", "end_turn")
    return "" if reason in ("end_turn", "tool_use") else f"stopped: {reason}"


def course(item: Item) -> list[str]:
    """What there is to say of how a worker's run, a turn or a call went: state, time, tokens, why it stopped."""
    lasted = "" if item.state == "not_made" else took(item)
    return [word for word in (STATES[item.state], lasted, tokens(item), passed_over(item), stopped(item)) if word]


def line(item: Item) -> str:
    """An item as one line: what it is, how it went, what it was given and what it gave. Not escaped."""
    if item.kind == "question":
        return f"? {title(item)}: {decided(item)}"
    facts = item.facts
    head = "  ".join((title(item), *course(item)))
    given = facts.get("arguments") or (facts.get("input") if item.kind == "worker" else "") or ""
    gave = facts.get("error") or facts.get("result") or facts.get("output") or facts.get("text") or ""
    return " ".join(part for part in (head, cut(given, 80), f"→ {gave}" if gave else "") if part)


def took(item: Item) -> str:
    """How long an item lasted; "" where it has no end."""
    return "" if item.ended is None else duration(item.ended - item.started)


def summary(found: Trace) -> list[tuple[str, str]]:
    """What a run amounts to: (label, value)."""
    account = found.account
    whole = found.until - found.started
    models = ", ".join(account["models"]) or "none"
    if unanswered := _asked_in_vain(found):
        models += f" (asked without an answer: {', '.join(unanswered)})"
    return [
        ("took", duration(whole)),
        ("waiting for a person", duration(found.person_s)),
        ("model", f"{models} ({NO_MODEL})" if account.get("note") else models),
        ("tokens", f"{account['tokens']['input']:,} in, {account['tokens']['output']:,} out"),
        *((("cost", said.removeprefix("cost ")),) if (said := money(account)) else ()),
        ("turns", str(found.turns())),
        ("calls", str(account["calls"])),
        ("questions", str(len(account["approvals"]))),
        ("files changed", str(len(account["files_changed"]))),
    ]


def status(found: Trace) -> str:
    """How the run stands: its status, and whether a process that is gone left it so."""
    left = found.status in OPEN and not found.driven
    return f"{found.status}, left by its process" if left else found.status
