"""The `te` toolset: search over a caller's readable roots, in the command line that models already know."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from llm_do_mcp.runtime.function import JSON, Declaration, Function
from llm_do_mcp.runtime.gate import Call
from llm_do_mcp.runtime.threads import in_thread
from llm_do_mcp.sandbox.files import Handles
from llm_do_mcp.sandbox.root import Root
from llm_do_mcp.toolsets import envelope

if TYPE_CHECKING:
    from llm_do_mcp.project.load import Project

_BY_DESCRIPTOR = os.path.isdir("/proc/self/fd")
"""Whether another program can be pointed at a folder that we hold open."""


WORKSPACE = "workspace"
"""The alias of the folder that a project widens the search to; its paths are shown without it."""

ENVELOPE = (
    "The answer starts with exact totals; where it leaves something out, `--handle res_… [--chunk N]` with the handle "
    "it names serves the rest."
)
BARE = "The answer is lines alone, as many as there is room for."
"""What is said of answers; the latter where the project has switched the envelope off."""


def declare(project: Project, roots: Sequence[Root], restricted: Mapping[str, str]) -> tuple[Declaration, ...]:
    """The search over roots, as far as reading them needs no approval and shows more than what a run wrote.

    Args:
        project: Whose settings hold.
        roots: The caller's.
        restricted: Alias → the rule by which not every file of a root may be read without asking.
    """
    left_out = dict(restricted)
    for root in roots:
        if root.mode == "out" or root.read_approval:
            left_out[root.alias] = "mode: out" if root.mode == "out" else "read_approval: true"
    wide = envelope.workspace(project, [root for root in roots if root.alias in left_out])
    roots = [root for root in roots if root.alias not in left_out] if wide is None else [Root(WORKSPACE, wide)]
    if not roots:
        return ()
    aliases = ", ".join(root.alias for root in roots)
    where = f"Paths start with one of the folders: {aliases}." if wide is None else "Paths are relative."
    return (
        Declaration(
            name="te",
            shown="te",
            description=(
                "Search and read files. One command line, as in a shell: `grep [-i -w -F -E -l -c …] PATTERN [PATH…]`, "
                f"`cat [-n] FILE[:FROM-TO]…`, `find [PATH…] [-name …]`. {where} "
                f"{ENVELOPE if project.manifest.tool_envelope.enabled else BARE}"
            ),
            input_schema={
                "type": "object",
                "properties": {"command": {"type": "string", "description": "such as: grep -n 'revenue' input"}},
                "required": ["command"],
                "additionalProperties": False,
            },
            risk="read",
            idempotent=True,
            toolset="te",
            options={
                "roots": [root.to_json() for root in roots],
                "left_out": left_out if wide is None else {},
                "wide": wide is not None,
                **envelope.settings(project),
            },
        ),
    )


def bind(declaration: Declaration, handles: Handles) -> Function:
    """The search, ready to run."""
    options = declaration.options
    roots = tuple(Root.from_json(root) for root in options["roots"])
    suffixes = {root.alias: root.suffixes for root in roots if root.suffixes is not None}
    left_out = {
        alias: f"not all that is there may be read without asking ({why})" for alias, why in options["left_out"].items()
    }

    def opened(root: Root) -> str | int:
        # The handle that files are read through: a folder that takes the root's place is not searched either.
        descriptor = handles.of(root).descriptor if _BY_DESCRIPTOR else None
        return root.path if descriptor is None else descriptor

    async def execute(call: Call) -> JSON:
        from llm_do_mcp import te

        stop = threading.Event()

        def search() -> str:
            folders = {"." if options["wide"] else root.alias: opened(root) for root in roots}
            return te.run(
                call.input["command"],
                roots=folders,
                suffixes=suffixes,
                left_out=left_out,
                cancelled=stop.is_set,
                **envelope.terms(options, roots, f"{call.run.tree.row.id}/{call.run.path}"),
            )

        return await in_thread(search, stop=stop.set)

    return Function(declaration, execute)
