"""The first record of a run: everything that decides what it does, as plain data.

A resumed run is driven from this record, whatever has been edited since. The functions are recorded as their
declarations and bound to code again by the toolsets that declared them.

Clients read many files with the same function, and what such a call is differs by little more than its input. The rest
is what the store has once, and the record of each call names that.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from llm_do_mcp.runtime.function import JSON, Declaration
from llm_do_mcp.runtime.limits import Limits
from llm_do_mcp.runtime.policy import Rule
from llm_do_mcp.runtime.recent import Recent

COMMON = 256
"""How much of what many definitions have in common is kept as it is written."""
OWN = ("kind", "name", "input", "models", "unattended", "began")
"""What the record of a call that only reads has itself: what differs, and what is shown of a run."""


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

    def recorded(self) -> tuple[dict[str, Any], Common | None]:
        """As the journal keeps it, and what is named in that."""
        if not self.only_reads:
            return self.to_json(), None
        common = _common.of(*self.functions, self.rules, self.limits)
        return {**{name: getattr(self, name) for name in OWN}, "common": common.digest}, common

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

    @classmethod
    async def read(cls, data: Mapping[str, Any], blob: Callable[[str], Awaitable[bytes]]) -> Definition:
        """From what the journal keeps.

        Args:
            data: The record.
            blob: Gives the bytes with a digest.
        """
        own = dict(data)
        digest = own.pop("common", None)
        return cls.from_json(own if digest is None else {**json.loads(await blob(digest)), **own})


@dataclass(frozen=True)
class Common:
    """What many definitions have in common.

    Args:
        digest: SHA-256 of its bytes, hexadecimal.
        data: Its JSON.
    """

    digest: str
    data: bytes

    @classmethod
    def of(cls, function: Declaration, rules: tuple[Rule, ...], limits: Limits) -> Common:
        """All that is the same for each call of a function by clients."""
        call = Definition("call", function.name, None, functions=(function,), rules=rules, limits=limits).to_json()
        data = json.dumps({name: value for name, value in call.items() if name not in OWN}).encode()
        return cls(hashlib.sha256(data).hexdigest(), data)


_common = Recent(Common.of, COMMON)
