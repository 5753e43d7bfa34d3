"""What may run without a person: a list of rules on canonical names and arguments.

Rules are compiled from every place that can set them (manifest and worker `approvals`, `tool_rules`, a root's
`write_approval`, …) into this one form. Of the rules that match a call, deny beats ask beats allow, however
specific they are; where none matches, the function's risk decides: what only reads runs, the rest asks. A call of
an allowed worker never asks by itself; what the worker then does may.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from llm_do_mcp.runtime.function import JSON, Declaration
from llm_do_mcp.sandbox.names import one_spelling

Decision = Literal["allow", "ask", "deny"]
Caller = Literal["client", "worker"]

SUBJECT = {
    "files.list": "path",
    "files.read": "path",
    "files.write": "path",
    "worker.call": "worker",
    "shell": "command",
    "te": "command",
}
"""Which argument the `subject` of a rule is matched with."""


@dataclass(frozen=True)
class Rule:
    """One rule.

    Args:
        function: Glob on the canonical name: `files.write`, `custom.*`.
        decision: What it says of a call it matches.
        subject: Glob on the argument that names what the call is done to (see `SUBJECT`), or None for any.
        caller: Only calls by a client, or only by a worker; None for either.
        source: Where a person finds it, for messages.
    """

    function: str
    decision: Decision
    subject: str | None = None
    caller: Caller | None = None
    source: str = ""

    def matches(self, declaration: Declaration, value: JSON, caller: Caller) -> bool:
        """Whether the rule speaks of this call."""
        if not fnmatchcase(declaration.name, self.function) or self.caller not in (None, caller):
            return False
        return self.subject is None or fnmatchcase(subject(declaration, value), self.subject)


def subject(declaration: Declaration, value: JSON) -> str:
    """What the call is done to: a path in its one spelling, a worker's id, a command; "" where there is none."""
    found = value.get(SUBJECT.get(declaration.name, "")) if isinstance(value, dict) else None
    if not isinstance(found, str):
        return ""
    return one_spelling(found) if declaration.name.startswith("files.") else found


def decide(rules: tuple[Rule, ...], declaration: Declaration, value: JSON, caller: Caller) -> tuple[Decision, str]:
    """The effective answer for a call, and the source of the rule that gave it."""
    matching = [rule for rule in rules if rule.matches(declaration, value, caller)]
    for decision in ("deny", "ask", "allow"):
        for rule in matching:
            if rule.decision == decision:
                return rule.decision, rule.source
    if declaration.risk == "read" or declaration.nested:
        return "allow", f"default for risk {declaration.risk}"
    return "ask", f"default for risk {declaration.risk}"
