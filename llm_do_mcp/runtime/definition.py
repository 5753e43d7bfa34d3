"""The first record of a run: everything that decides what it does, as plain data.

A resumed run is driven from this record, whatever has been edited since. The functions are recorded as their
declarations and bound to code again by the toolsets that declared them.

Clients read many files with the same function, and what such a call is differs by little more than its input. The rest
is the same for all of them, and the store keeps it once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from llm_do_mcp.runtime.function import JSON, Declaration
from llm_do_mcp.runtime.limits import Limits
from llm_do_mcp.runtime.policy import Rule
from llm_do_mcp.runtime.recent import Recent
from llm_do_mcp.runtime.store import Common, Shared

COMMON = 256
"""Functions of which is kept at hand what all calls have in common."""
OWN = ("input", "unattended", "began")
"""What two calls of a function by clients may differ by."""


@dataclass(frozen=True)
class Attachment:
    """A file handed to a worker, kept as a blob of the run.

    Args:
        name: Its file name, without the folders where it came from.
        media_type: Such as `application/pdf`.
        blob: SHA-256 of its bytes, hexadecimal: where the store has them.
        size: In bytes.
    """

    name: str
    media_type: str
    blob: str
    size: int


@dataclass(frozen=True)
class Definition:
    """What a run is.

    Args:
        kind: A worker's run, or a single call that a client made itself.
        name: The worker's id; of a single call, the function's canonical name.
        input: What it was given.
        instructions: The rendered instructions (system text).
        prompt: The user text of the first turn.
        context: Further texts beside it: fragments and extra context.
        system_context: Further system texts.
        attachments: Files of the first turn.
        models: The model and its fallbacks.
        output_schema: What the output must fit, or None for text.
        functions: What it may call.
        hidden: Names, as its model would see them, of functions that it is not told of: they could only be refused.
        rules: The policy, strongest source first; `policy.decide` says how they combine.
        limits: Of this run and all below it.
        server_side_tools: Tools that the model's provider runs: what their settings say, as the worker's file has them.
        code: Hash of what the worker amounts to; see `project/identity.py`.
        unattended: Nobody can be asked in it or below: what would ask is refused.
        began: Seconds of work that the whole tree had had when this run began: its own limit of time counts from there,
            also after a resume.
    """

    kind: Literal["worker", "call"]
    name: str
    input: JSON
    instructions: str = ""
    prompt: str = ""
    context: tuple[str, ...] = ()
    system_context: tuple[str, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    models: tuple[str, ...] = ()
    output_schema: Mapping[str, JSON] | None = None
    functions: tuple[Declaration, ...] = ()
    hidden: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    limits: Limits = field(default_factory=Limits)
    server_side_tools: tuple[Mapping[str, JSON], ...] = ()
    code: str = ""
    unattended: bool = False
    began: float = 0.0

    @property
    def only_reads(self) -> bool:
        """Whether nothing in this run can change anything: it is one call by a client, of a function that reads."""
        return self.kind == "call" and all(f.risk == "read" and not f.nested for f in self.functions)

    def to_json(self) -> dict[str, Any]:
        """As plain data. Schemas and inputs are shared, not copied: nobody changes them."""
        parts = ("attachments", "functions", "rules")
        return {
            **vars(self),
            **{name: [dict(vars(part)) for part in getattr(self, name)] for name in parts},
            "limits": dict(vars(self.limits)),
        }

    def recorded(self) -> dict[str, Any]:
        """The same, as the journal keeps it."""
        if not self.only_reads:
            return self.to_json()
        return Shared(_common.of(*self.functions, self.rules, self.limits), {name: getattr(self, name) for name in OWN})

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Definition:
        """From what `to_json` gave, before or after a trip through JSON."""
        values = dict(data)
        values["attachments"] = tuple(Attachment(**a) for a in data["attachments"])
        values["functions"] = tuple(Declaration(**f) for f in data["functions"])
        values["rules"] = tuple(Rule(**{**r, "unless": tuple(r.get("unless", ()))}) for r in data["rules"])
        values["limits"] = Limits(**data["limits"])
        for name in ("context", "system_context", "models", "hidden", "server_side_tools"):
            values[name] = tuple(data[name])
        return cls(**values)


def _common_to_calls(function: Declaration, rules: tuple[Rule, ...], limits: Limits) -> Common:
    call = Definition("call", function.name, None, functions=(function,), rules=rules, limits=limits).to_json()
    return Common({name: value for name, value in call.items() if name not in OWN})


_common = Recent(_common_to_calls, COMMON)
