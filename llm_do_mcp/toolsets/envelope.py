"""What holds for a search besides its roots: whose it is, what the project has set, and what stays out of it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from llm_do_mcp.project.files import decode
from llm_do_mcp.project.scan import IGNORE_FILE
from llm_do_mcp.runtime.function import JSON, Declaration
from llm_do_mcp.sandbox.names import is_below
from llm_do_mcp.sandbox.root import Root

if TYPE_CHECKING:
    from llm_do_mcp.project.load import Project

MOST_CHARS = 40_000
"""Characters of an answer at most, whatever an agent's budget is: hosts refuse longer results."""
TELEMETRY = ".llm-do/te_telemetry.jsonl"
_MOST_CONNECTIONS = 1_000


class Sessions:
    """The clients of a server, each with a session of its own: what an answer leaves out is kept for it alone.

    Args:
        store: The folder of the server's runs.
    """

    def __init__(self, store: str) -> None:
        self._store = store
        self._known: list[tuple[object, str]] = []

    def of(self, connection: object | None) -> str:
        """The session of a connection, by identity; "" where nothing tells one client from another.

        That of a principal, which is a text, is the same for all instances on one store.
        """
        if connection is None:
            return ""
        if isinstance(connection, str):
            return f"principal {connection} of {self._store}"
        for known, session in self._known:
            if known is connection:
                return session
        session = f"client {secrets.token_hex(16)}"
        self._known = [*self._known[-_MOST_CONNECTIONS:], (connection, session)]
        return session

    def asked(self, declaration: Declaration, client: str | None, connection: object | None) -> Declaration:
        """The search, as it is asked for by a client."""
        return replace(
            declaration, options={**declaration.options, "agent": client or "", "session": self.of(connection)}
        )


def settings(project: Project) -> dict[str, JSON]:
    """What the project has set, as a run records it: `tool_envelope:`, its folder, and its `.llm-doignore`."""
    given = project.manifest.tool_envelope.model_dump(exclude_unset=True, mode="json")
    log = given.setdefault("telemetry", {})
    log.setdefault("enabled", False)  # runs are recorded anyway
    log.setdefault("path", TELEMETRY)
    return {"settings": given, "project": project.root, "unlisted": _ignore_file(project)}


def workspace(project: Project, closed: Sequence[Root]) -> str | None:
    """The folder that the project widens the search to; None for its sandboxes.

    It is not widened over a folder that may not be read without asking.

    Args:
        project: The project.
        closed: The roots that may not be searched.
    """
    root = project.manifest.tool_envelope.workspace.root
    if root is None:
        return None
    wide = os.path.realpath(os.path.join(project.root, os.path.expanduser(root)))
    for other in closed:
        narrow = os.path.realpath(other.path)
        if is_below(narrow, wide) or is_below(wide, narrow):
            return None
    return wide


def terms(options: Mapping[str, JSON], roots: Sequence[Root], run: str) -> dict[str, Any]:
    """What `te.run` is to be told.

    Args:
        options: Of the declaration.
        roots: What is searched.
        run: The run that asks; where no client does, what is left out of an answer is kept for it alone.
    """
    from llm_do_mcp.te.settings import Settings

    project = options["project"]
    set_ = Settings(options["settings"], project, "tool_envelope")
    set_.root = None  # the roots are settled already
    agent = options.get("agent", "worker")
    text = options["unlisted"]
    inside = {root.alias: _below(project, root.path) for root in roots} if text else {}
    return {
        "settings": set_,
        "agent": agent,
        "session": options.get("session", f"run {run}"),
        "budget": min(set_.budget(agent), MOST_CHARS),
        "unlisted": {alias: (text, place) for alias, place in inside.items() if place is not None},
    }


def _ignore_file(project: Project) -> str:
    files = project.levels[0].files
    return decode(files.read_bytes(IGNORE_FILE), IGNORE_FILE) if files.kind(IGNORE_FILE) is not None else ""


def _below(project: str, folder: str) -> str | None:
    """The path from a project to a folder in it, "" for itself, None for a folder elsewhere."""
    project, folder = os.path.realpath(project), os.path.realpath(folder)
    if not is_below(folder, project):
        return None
    return os.path.relpath(folder, project).replace(os.sep, "/") if folder != project else ""
